// `associative` under `saturate`: a chain of one op, a∘b∘c∘…, is added in those groupings that some
// pattern can see: any two neighbouring operands first, or any two at all if the op commutes, then
// the rest. Never where an intermediate value would get another dtype.
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
  /// Whether some pattern may look through the op at these two operands.
  using Wanted = std::function<bool(OpId op, ValueId a, ValueId b)>;

  /// Of these ops; those without the trait are left out.
  Reassociation(Graph& graph, EGraph& equal, const std::set<OpId>& ops, Wanted wanted);
  /// Once over the graph as it stands. Whether it made anything new or equal; it stops before the
  /// graph has more nodes than `most`.
  bool run(std::size_t most);
  /// Whether the last run stopped for that.
  [[nodiscard]] bool full() const { return full_; }

 private:
  using Form = std::tuple<OpId, AttributesId, ValueId, ValueId>;
  /// The extent of a chain: as written, the shortest, or the longest.
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
