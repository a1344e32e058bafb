// Coverage statistics of a rule's samples: dtypes, ranks, sizes, broadcasting, special values.
// Listing the space makes gaps visible.
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

/// The features that occurred in a rule's samples.
struct DrawnSamples {
  std::set<DType> dtypes;        ///< over all inputs
  std::set<DType> refused;       ///< dtypes without any graph
  std::set<std::size_t> ranks;   ///< over all inputs
  std::set<std::int64_t> sizes;  ///< size classes of axes: 0, 1, and 2 for all larger ones
  bool first_smaller = false;    ///< some pointwise op broadcasts its first operand
  bool others_smaller = false;   ///< some pointwise op broadcasts another operand
  /// Minimum number of special values seen by an input of a dtype, and their total.
  struct Share {
    std::size_t least = 0, of = 0;
  };
  std::map<DType, Share> special;
};

class SampleSpace {
 public:
  /// Records a graph's features at these sizes. Returns true if it adds a pair of features not seen
  /// before.
  bool add(const Graph& graph, const Symbols& symbols);
  /// Records the special values that input `position` of a sample holds.
  void add(std::size_t position, const Tensor& tensor, Contents contents);
  /// Returns true if input `position` has held every special value of its dtype.
  [[nodiscard]] bool complete(std::size_t position, DType dtype, Contents contents) const;
  /// Records a dtype without any graph.
  void refuse(DType dtype) { drawn_.refused.insert(dtype); }
  [[nodiscard]] DrawnSamples drawn() const;

 private:
  DrawnSamples drawn_;
  std::set<std::array<int, 4>> pairs_;
  using Input = std::tuple<std::size_t, DType, Contents>;
  std::map<Input, std::set<ElementBits>> seen_;
};

}  // namespace pw
