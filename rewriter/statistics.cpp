// Exports gather_statistics.
#include "rewriter/statistics.hpp"

namespace pw {

GraphStatistics gather_statistics(const Graph& graph) {
  constexpr std::size_t kMost = 1 << 17;
  GraphStatistics out;
  const std::size_t ops = graph.context().ops.size();
  out.nodes.assign(ops, 0);
  out.users.assign(ops, 0);
  std::vector<double> results(ops, 0);
  const std::size_t stride = graph.node_bound() / kMost + 1;
  for (std::size_t i = 0; i < graph.node_bound(); i += stride) {
    const NodeId node(i);
    if (!graph.alive(node)) continue;
    const std::size_t op = graph.op(node).index;
    out.nodes[op] += static_cast<double>(stride);
    for (std::size_t k = 0; k < graph.result_count(node); ++k) {
      results[op] += 1;
      out.users[op] += static_cast<double>(graph.use_count(graph.result(node, k)));
    }
  }
  for (std::size_t op = 0; op < ops; ++op)
    out.users[op] = results[op] == 0 ? 1 : out.users[op] / results[op];
  double uses = 0;
  for (ValueId input : graph.inputs()) uses += static_cast<double>(graph.use_count(input));
  if (!graph.inputs().empty()) out.input_users = uses / static_cast<double>(graph.inputs().size());
  return out;
}

}  // namespace pw
