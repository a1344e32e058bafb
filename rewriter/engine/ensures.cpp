// Decides the promise of a strategy after it ran. Counts are numbers of the present graph, so only
// params remain as names.
//
// Substitutes the graph's counts into the statement, which leaves a guard over params for
// evaluate_guard. Each substitution is recorded as text, and counted nodes are collected for the
// explanation. Linear in the graph for each `count`.
#include "rewriter/engine/ensures.hpp"

#include <fmt/format.h>

#include "base/try.hpp"
#include "graph/text/text.hpp"

namespace pw {
namespace {

std::vector<NodeId> nodes_with(const Graph& graph, std::string_view op) {
  std::vector<NodeId> out;
  for (NodeId n = graph.first(); n.valid(); n = graph.next(n))
    if (graph.op_of(n).name == op) out.push_back(n);
  return out;
}

class Numbers {
 public:
  Numbers(const Graph& graph, const Env& params) : graph_(graph), params_(params) {}

  Expr put_into(const Expr& expr) {
    const bool call = expr.kind == Expr::Kind::call && expr.text == "count" && !expr.args.empty();
    if (call) return number(expr, count(nodes_with(graph_, expr.args.front().text)));
    if (expr.kind == Expr::Kind::path && expr.text == "nodes")
      return number(expr, static_cast<std::int64_t>(graph_.node_count()));
    if (expr.kind == Expr::Kind::path) note_param(expr);
    Expr out = expr;
    for (Expr& arg : out.args) arg = put_into(arg);
    return out;
  }

  std::string values;
  std::vector<NodeId> counted;

 private:
  std::int64_t count(const std::vector<NodeId>& nodes) {
    counted.insert(counted.end(), nodes.begin(), nodes.end());
    return static_cast<std::int64_t>(nodes.size());
  }

  Expr number(const Expr& expr, std::int64_t value) {
    note(print(expr), std::to_string(value));
    Expr out;
    out.kind = Expr::Kind::integer;
    out.span = expr.span;
    out.integer = value;
    return out;
  }

  void note_param(const Expr& expr) {
    const auto found = params_.find(expr.text);
    if (found == params_.end()) return;
    if (const auto* value = std::get_if<Attribute>(&found->second))
      note(expr.text, graph_.context().attributes.print(*value));
  }

  void note(const std::string& name, const std::string& value) {
    const std::string text = fmt::format("{} is {}", name, value);
    if (values.find(text) == std::string::npos) values += (values.empty() ? "" : ", ") + text;
  }

  const Graph& graph_;
  const Env& params_;
};

}  // namespace

Result<Ensured> check_ensures(const Graph& graph, const Expr& statement, const Env& params) {
  Numbers numbers(graph, params);
  const Expr guard = numbers.put_into(statement);
  Truth truth = PW_TRY(evaluate_guard(graph.context(), &graph, guard, params, graph.facts));
  return Ensured{truth, std::move(numbers.values), std::move(numbers.counted)};
}

}  // namespace pw
