// Derives the term for each element of each value of a graph. Layout ops rewrite the index,
// pointwise ops become scalar terms, a reduction binds an index, and a collective reads other
// ranks. The graph must be unfolded: only opaque ops may still have bodies.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "graph/graph.hpp"
#include "proof/index_levels.hpp"
#include "proof/terms.hpp"

namespace pw::proof {

/// Thrown within this folder where the sign of the index `at_least_zero` has to be decided first;
/// the caller then splits into cases.
struct NeedSplit {
  Ix at_least_zero;
};
/// Thrown within this folder for an op whose meaning is unknown here.
struct NoMeaning {
  std::string why;
};

/// Returns true for an op with a body whose meaning is nevertheless defined here, so it must not be
/// unfolded.
[[nodiscard]] inline bool has_own_meaning(Primitive op) { return op == Primitive::pad_last; }

/// Maps (value, index, rank) to a term. Requires a graph whose bodies are inlined.
class Elements {
 public:
  Elements(const Graph& graph, Terms& terms);

  /// Returns the element on the rank that the proof is about; without ranks all ranks are equal.
  TermId element(ValueId value, const std::vector<Ix>& at) { return element(value, at, rank_, 0); }
  /// Returns the term at a generic index: one free variable for each axis.
  TermId general(ValueId value) { return general(value, value); }
  /// Returns the term at the generic index of `like`, a value with the same sizes.
  TermId general(ValueId value, ValueId like);
  [[nodiscard]] std::vector<Ix> extents(ValueId value);
  /// Clears the memo of elements; required after the facts change.
  void forget() {
    known_.clear();
    positions_.clear();
  }
  /// A position at which an element that was derived reads a table: 0 ≤ `at` < `extent`.
  using Position = std::pair<Ix, Ix>;
  [[nodiscard]] const std::set<Position>& positions() const { return positions_; }
  /// Returns the assumptions that the derivation made.
  [[nodiscard]] const std::set<std::string>& granted() const { return granted_; }

 private:
  friend class NodeContext;
  TermId element(ValueId value, const std::vector<Ix>& at, Ix rank, std::uint32_t level);
  TermId reduce(Function function, DType dtype, Ix extent, std::uint32_t level,
                const std::function<std::vector<TermId>(Ix, std::uint32_t)>& body);
  bool at_least(Ix difference);

  const Graph& graph_;
  Terms& terms_;
  Integers& integers_;
  Ix rank_;  ///< invalid if the graph has no collectives
  Ix world_;
  std::string group_;
  std::map<std::tuple<ValueId, std::vector<Ix>, Ix, std::uint32_t>, TermId> known_;
  std::set<std::string> granted_;
  std::set<Position> positions_;
  int depth_ = 0;  ///< recursion depth of `element`
};

}  // namespace pw::proof
