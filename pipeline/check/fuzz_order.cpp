#include "pipeline/check/fuzz_order.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/try.hpp"
#include "rewriter/strategies/driver.hpp"
#include "verify/isomorphism.hpp"

namespace pw {
namespace {

/// Prefers an order with the nodes in another order, which can be written as a test.
const OrderRun& clearest(const FuzzReport& report) {
  for (std::size_t i : report.different)
    if (report.runs[i].kind == OrderRun::Kind::nodes) return report.runs[i];
  return report.runs[report.different.front()];
}

}  // namespace

Result<FuzzReport> fuzz_orders(const Graph& graph, const LoadedRules& rules,
                               const FuzzOrderRequest& request) {
  const Strategy* strategy = PW_TRY(find_strategy(rules.set, request.pipeline));
  PW_TRY(check_number("orders",
                      static_cast<std::int64_t>(
                          std::min<std::size_t>(request.options.orders, std::size_t{1} << 40)),
                      1, 10000));
  return fuzz_order(graph, rules.set, *strategy, rules.params, request.options);
}

Table order_run_table(const FuzzReport& report) {
  Table table({"order", "seed", "nodes", "hash", "counts that differ"});
  for (const OrderRun& run : report.runs)
    table.add({std::string(name(run.kind)), run.seed, run.graph.node_count(),
               fmt::format("{:016x}", run.hash),
               differing_counts(report.runs.front(), run).second});
  return table;
}

Result<OrderDifference> find_difference(const Graph& graph, const LoadedRules& rules,
                                        const FuzzOrderRequest& request, const Log& log) {
  const Strategy* strategy = PW_TRY(find_strategy(rules.set, request.pipeline));
  Graph shown = graph;
  if (request.reduce) {
    shown = reduce_order_dependence(graph, rules.set, *strategy, rules.params, request.options);
    log.say(fmt::format("the smallest graph found that shows it has {} of {}", shown.node_count(),
                        counted(graph.node_count(), "node")));
  }
  const FuzzReport report = PW_TRY(fuzz_orders(shown, rules, request));
  const OrderRun& usual = report.runs.front();
  const OrderRun& other = clearest(report);
  const auto [here, there] = differing_counts(usual, other);
  OrderDifference out;
  out.nodes = shown.node_count();
  out.order = name(other.kind);
  out.seed = other.seed;
  out.counts = here.empty() ? "" : there + " instead of " + here;
  out.difference = graph_difference(usual.graph, other.graph);
  out.tests = fuzz_tests(request.pipeline, rules.set, rules.params, usual, other);
  return out;
}

}  // namespace pw
