#include "rewriter/strategies/statistics.hpp"

#include <cstdint>

namespace pw {

namespace {

constexpr std::size_t kMost = 1 << 12;

/// Calls `look(i)` for all i below the count, or for kMost of them. These are spread by the golden
/// ratio, since an even stride would hit the same places of every layer.
template <class Look>
void sample(std::size_t count, Look&& look) {
  if (count <= kMost) {
    for (std::size_t i = 0; i < count; ++i) look(i);
    return;
  }
  std::uint64_t at = 0;
  for (std::size_t k = 0; k < kMost; ++k, at += 0x9e3779b97f4a7c15u)
    look(static_cast<std::size_t>(((at >> 32) * count) >> 32));
}

}  // namespace

GraphStatistics gather_statistics(const Graph& graph) {
  GraphStatistics out;
  const std::size_t ops = graph.context().ops.size(), bound = graph.node_bound();
  for (std::size_t op = 0; op < ops; ++op)
    out.nodes.push_back(static_cast<double>(graph.node_count(OpId(op))));
  out.users.assign(ops, 0);
  std::vector<double> results(ops, 0);
  sample(bound, [&](std::size_t i) {
    const NodeId node(i);
    if (!graph.alive(node)) return;
    const std::size_t op = graph.op(node).index;
    for (std::size_t k = 0; k < graph.result_count(node); ++k) {
      results[op] += 1;
      out.users[op] += static_cast<double>(graph.use_count(graph.result(node, k)));
    }
  });
  for (std::size_t op = 0; op < ops; ++op)
    out.users[op] = results[op] == 0 ? 1 : out.users[op] / results[op];
  const std::vector<ValueId>& inputs = graph.inputs();
  double uses = 0, seen = 0;
  sample(inputs.size(), [&](std::size_t i) {
    uses += static_cast<double>(graph.use_count(inputs[i]));
    ++seen;
  });
  if (seen > 0) out.input_users = uses / seen;
  return out;
}

}  // namespace pw
