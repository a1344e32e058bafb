// What each element of each value of a graph is: layout ops rewrite the index, pointwise ops are
// scalar terms, a reduction binds an index, a collective reads other ranks. The graph's ops have no
// bodies left but those that stay opaque.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.hpp"
#include "proof/index_levels.hpp"
#include "proof/terms.hpp"

namespace pw::proof {

/// Thrown within this folder: which side of `at_least_zero` an index is on has to be known first.
struct NeedSplit {
  Ix at_least_zero;
};
/// Thrown within this folder: no meaning is known here.
struct NoMeaning {
  std::string why;
};

/// Ops whose meaning is known here though they have a body: nothing is to unfold them.
inline constexpr std::string_view kOwnMeaning[] = {"pad_last"};

class Elements {
 public:
  Elements(const Graph& graph, Terms& terms);

  /// Of the rank that the proof is about; without ranks the same for all.
  TermId element(ValueId value, const std::vector<Ix>& at) { return element(value, at, rank_, 0); }
  /// The term at an index of its own for each axis.
  TermId general(ValueId value) { return general(value, value); }
  /// At the indices of another value of the same sizes.
  TermId general(ValueId value, ValueId like);
  [[nodiscard]] std::vector<Ix> extents(ValueId value);
  /// Forgets what was found under other facts.
  void forget() { known_.clear(); }
  /// What was taken for granted on the way.
  [[nodiscard]] const std::set<std::string>& granted() const { return granted_; }

 private:
  friend class NodeElements;
  TermId element(ValueId value, const std::vector<Ix>& at, Ix rank, std::uint32_t level);
  TermId reduce(const std::string& name, DType dtype, Ix extent, std::uint32_t level,
                const std::function<std::vector<TermId>(Ix, std::uint32_t)>& body);
  bool at_least(Ix difference);

  const Graph& graph_;
  Terms& terms_;
  Integers& integers_;
  Ix rank_;  ///< invalid without collectives
  Ix world_;
  std::string group_;
  std::map<std::tuple<ValueId, std::vector<Ix>, Ix, std::uint32_t>, TermId> known_;
  std::set<std::string> granted_;
  int depth_ = 0;  ///< of calls of `element`
};

}  // namespace pw::proof
