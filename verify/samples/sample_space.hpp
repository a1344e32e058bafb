// What the samples of a rule were like: dtypes, ranks, sizes, broadcasting, special values. A space
// that is listed, so that what is missing is seen.
#pragma once

#include <array>
#include <map>
#include <set>
#include <tuple>

#include "backends/kernel.hpp"
#include "graph/graph.hpp"
#include "verify/samples/contents.hpp"
#include "verify/samples/special_values.hpp"

namespace pw {

/// What was drawn for the samples of a rule.
struct DrawnSamples {
  std::set<DType> dtypes;        ///< of any input
  std::set<DType> refused;       ///< that no graph could be made of
  std::set<std::size_t> ranks;   ///< of any input
  std::set<std::int64_t> sizes;  ///< of any axis: 0, 1, and 2 for all others
  bool first_smaller = false;    ///< some pointwise op broadcasts its first operand
  bool others_smaller = false;   ///< or another one
  /// How many special values each input of a dtype had, at least, of how many.
  struct Share {
    std::size_t least = 0, of = 0;
  };
  std::map<DType, Share> special;
};

class SampleSpace {
 public:
  /// Takes up what a graph is like at these sizes. Returns whether it has a pair of features that
  /// no graph before had.
  bool add(const Graph& graph, const Symbols& symbols);
  /// Takes up the special values that input `position` of a sample holds.
  void add(std::size_t position, const Tensor& tensor, Contents contents);
  /// Whether input `position` has had every special value of its dtype.
  [[nodiscard]] bool complete(std::size_t position, DType dtype, Contents contents) const;
  /// Takes up a dtype that no graph could be made of.
  void refuse(DType dtype) { drawn_.refused.insert(dtype); }
  [[nodiscard]] DrawnSamples drawn() const;

 private:
  DrawnSamples drawn_;
  std::set<std::array<int, 4>> pairs_;
  using Input = std::tuple<std::size_t, DType, Contents>;
  std::map<Input, std::set<ElementBits>> seen_;
};

}  // namespace pw
