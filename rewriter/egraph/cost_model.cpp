#include "rewriter/egraph/cost_model.hpp"

#include <cmath>
#include <limits>
#include <set>

#include <fmt/format.h>

#include "dsl/cost_tables.hpp"

namespace pw {
namespace {

constexpr std::int64_t kMostCost = std::numeric_limits<std::int64_t>::max();

}  // namespace

CostModel::CostModel(const Graph& graph, const RuleSet& rules, std::string_view name,
                     const Env& params)
    : graph_(graph),
      params_(params),
      sizes_(representative_sizes(graph.facts)),
      cost_(cost_named(name)) {
  const ast::Table* table = cost_ ? nullptr : find_cost_table(rules, name);
  if (!cost_ && table == nullptr) cost_ = Cost::nodes;
  if (table == nullptr) return;
  for (const ast::Table::Row& row : table->rows) {
    if (row.name == kOtherOps)
      other_ = &row;
    else
      rows_.emplace(graph.context().ops.find(row.name), &row);
  }
}

std::int64_t CostModel::of(NodeId node) {
  if (cost_) return cost_of(graph_, node, *cost_, sizes_);
  const auto row = rows_.find(graph_.op(node));
  if (row != rows_.end()) return of_row(node, *row->second);
  return other_ == nullptr ? 0 : of_row(node, *other_);
}

std::int64_t CostModel::of_graph() {
  if (cost_) return cost_of(graph_, *cost_);
  std::int64_t total = 0;
  for (NodeId n = graph_.first(); n.valid(); n = graph_.next(n))
    if (__builtin_add_overflow(total, of(n), &total)) return kMostCost;
  return total;
}

std::int64_t CostModel::of_row(NodeId node, const ast::Table::Row& row) {
  if (row.cells.empty()) return 0;
  const Expr& cell = row.cells.front();
  const Result<Attribute> value = evaluate(graph_.context(), &graph_, cell, names_of(node));
  const std::optional<std::int64_t> cost = value ? number(*value) : std::nullopt;
  if (cost && *cost >= 0) return *cost;
  if (error_.empty())
    error_.push_back(error_at(cell.span, "PW1115",
                              fmt::format("the cost of %{} ({}) is not known: {}",
                                          graph_.node_name(node), graph_.op_of(node).name,
                                          !value ? value.error().front().message
                                          : cost ? fmt::format("{} is negative", *cost)
                                                 : std::string("it is not a number")),
                              "a cost is a non-negative integer"));
  return 0;
}

/// Returns the names of a table's cell: params, sizes, attributes, and the dims that the signature
/// names.
Env CostModel::names_of(NodeId node) {
  Env out = params_;
  const Op& op = graph_.op_of(node);
  std::set<ValueId> read;
  std::int64_t read_bytes = 0, written = 0;
  for (std::size_t i = 0; i < graph_.operand_count(node); ++i) {
    const ValueId v = graph_.operand(node, i);
    if (!v.valid()) continue;
    if (read.insert(v).second) read_bytes += bytes_of(graph_.context(), graph_.type(v), sizes_);
    if (i < op.operands.size() && op.operands[i].type && !op.operands[i].variadic)
      unify(graph_.context(), *op.operands[i].type, graph_.type(v), out);
  }
  for (std::size_t i = 0; i < graph_.result_count(node); ++i)
    written += bytes_of(graph_.context(), graph_.type(graph_.result(node, i)), sizes_);
  for (const AttributeDecl& attribute : op.attributes)
    if (const Attribute* value = graph_.attribute(node, attribute.name))
      out.insert_or_assign(attribute.name, Binding(*value));
  for (const auto& [name, size] :
       {std::pair("read", read_bytes), {"written", written}, {"bytes", read_bytes + written}})
    out.insert_or_assign(name, Binding(Attribute(size)));
  return out;
}

std::optional<std::int64_t> CostModel::number(const Attribute& value) const {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return *whole;
  if (const auto* real = std::get_if<double>(&value))
    return std::abs(*real) < 9e18 ? std::optional(std::llround(*real)) : std::nullopt;
  const auto* dim = std::get_if<DimId>(&value);
  if (dim == nullptr) return std::nullopt;
  SymbolSizes all = sizes_;
  for (const std::string& name : graph_.context().dims.symbols(*dim)) all.emplace(name, 8192);
  return graph_.context().dims.evaluate(*dim, all);
}

}  // namespace pw
