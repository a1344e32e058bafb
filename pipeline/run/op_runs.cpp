#include "pipeline/run/op_runs.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "backends/eager/eager.hpp"
#include "backends/host_functions.hpp"

namespace pw {

OpRuns::OpRuns(const Context& context, std::function<bool(const Op&)> kernel)
    : context_(context), kernel_(std::move(kernel)) {}

bool OpRuns::op(OpId id) {
  const auto [it, fresh] = known_.emplace(id, false);
  if (!fresh) return it->second;
  const Op& op = context_.ops[id];
  const bool runs = op.has_body() ? std::all_of(op.body.begin(), op.body.end(),
                                                [&](const Statement& s) { return all(s.value); })
                                  : kernel_(op);
  return known_[id] = runs;
}

bool OpRuns::named(std::string_view name) {
  const OpId id = context_.ops.find(name);
  return !id.valid() || op(id);  // a cast, or a function of numbers
}

bool OpRuns::all(const Expr& e) {
  static const std::map<std::string_view, std::string_view> kInfix{
      {"+", "add"}, {"-", "sub"}, {"*", "mul"}, {"/", "div"}};
  if (e.kind == Expr::Kind::call && !named(e.text)) return false;
  if (e.kind == Expr::Kind::negate && !named("neg")) return false;
  if (const auto it = kInfix.find(e.text); e.kind == Expr::Kind::binary && it != kInfix.end())
    if (!named(it->second)) return false;
  return std::all_of(e.args.begin(), e.args.end(), [&](const Expr& arg) { return all(arg); });
}

Status check_kernels(const Graph& graph, const StepEngineKind& engine) {
  std::map<std::string, std::size_t> missing;
  for (NodeId n = graph.first(); n.valid(); n = graph.next(n)) {
    const Op& op = graph.op_of(n);
    // The engine decides by types for an op with a body; parts without kernels run eagerly.
    const bool runs = op.has_body() || engine.runs(op) || has_kernel(op);
    if (!runs && !has_host_function(graph, n)) ++missing[op.name];
  }
  if (missing.empty()) return {};
  std::string list;
  std::size_t nodes = 0;
  for (const auto& [op, count] : missing) {
    list += fmt::format("{}{} × {}", list.empty() ? "" : ", ", op, count);
    nodes += count;
  }
  return fail(error_in("graph " + graph.name, "PW1201",
                       fmt::format("backend {} has no kernel for {} of {} nodes: {}", engine.name,
                                   nodes, graph.node_count(), list),
                       "rewrite them to ops with a kernel, declare the ops with a body, or "
                       "provide host functions: docs/running.md"));
}

}  // namespace pw
