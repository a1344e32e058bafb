// `associative` under `saturate`: adds the groupings of a chain of one op, a∘b∘c∘…, that some
// pattern can observe. Any two neighbouring operands are combined first, or any two at all if the
// op commutes, then the rest. Never changes the dtype of an intermediate value.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "rewriter/egraph/egraph.hpp"

namespace pw {

class Reassociation {
 public:
  /// Predicate that holds if some pattern may look through the op at these two operands.
  using Wanted = std::function<bool(OpId op, ValueId a, ValueId b)>;

  /// Creates a reassociation of these ops; those without the trait are ignored.
  Reassociation(Graph& graph, EGraph& equal, const std::set<OpId>& ops, Wanted wanted);
  /// Runs once over the present graph. Returns true if it made anything new or equal; stops before
  /// the graph exceeds `most` nodes.
  bool run(std::size_t most);
  /// Returns true if the last run stopped at that limit.
  [[nodiscard]] bool full() const { return full_; }

 private:
  using Form = std::tuple<OpId, AttributesId, ValueId, ValueId>;
  /// Extent of a chain: as written, the shortest, or the longest.
  enum class Reach { written, least, most };
  [[nodiscard]] bool continues(NodeId chain, ValueId value) const;
  [[nodiscard]] std::optional<NodeId> next(NodeId chain, ValueId value, Reach reach) const;
  [[nodiscard]] std::vector<ValueId> chain_of(NodeId node, Reach reach) const;
  void regroup(NodeId node, const std::vector<ValueId>& chain);
  void write(NodeId like, const std::vector<ValueId>& chain, std::size_t i, std::size_t j);
  std::optional<ValueId> joined(NodeId like, std::optional<ValueId> a, ValueId b);
  [[nodiscard]] Form form_of(NodeId like, ValueId a, ValueId b) const;

  Graph& graph_;
  EGraph& equal_;
  Wanted wanted_;
  std::set<OpId> ops_;
  std::map<Form, ValueId> known_;           ///< of this round
  std::set<std::vector<ValueId>> written_;  ///< of this round: result, then the chain
  bool changed_ = false, full_ = false;
};

}  // namespace pw
