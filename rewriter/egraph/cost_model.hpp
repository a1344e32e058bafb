// A cost selected by name: one of cost.hpp, or a table of the rules (dsl/cost_tables.hpp).
#pragma once

#include "dsl/run_rules.hpp"
#include "rewriter/egraph/cost.hpp"

namespace pw {

class CostModel {
 public:
  /// Creates a model. Sizes are representative_sizes() of the graph's facts. An unknown name counts
  /// nodes.
  CostModel(const Graph& graph, const RuleSet& rules, std::string_view name, const Env& params);

  /// Returns what one node adds. Not negative; 0 if a table's cell cannot be evaluated, see
  /// error().
  std::int64_t of(NodeId node);
  /// Returns the cost of all nodes; saturates at the largest number.
  std::int64_t of_graph();
  /// Returns PW1115 for the first cell that could not be evaluated, or was negative.
  [[nodiscard]] const Diagnostics& error() const { return error_; }

 private:
  std::int64_t of_row(NodeId node, const ast::Table::Row& row);
  [[nodiscard]] Env names_of(NodeId node);
  [[nodiscard]] std::optional<std::int64_t> number(const Attribute& value) const;

  const Graph& graph_;
  const Env& params_;
  SymbolSizes sizes_;
  std::optional<Cost> cost_;
  std::map<OpId, const ast::Table::Row*> rows_;
  const ast::Table::Row* other_ = nullptr;
  Diagnostics error_;
};

}  // namespace pw
