// A pipeline run in many orders of its rules and matches, and what differs between them.
#pragma once

#include <string>

#include "pipeline/load.hpp"
#include "pipeline/report/table.hpp"
#include "rewriter/analysis/orders/fuzz_order.hpp"

namespace pw {

struct FuzzOrderRequest {
  std::string pipeline;
  FuzzOptions options;
  bool reduce = true;  ///< look for a smaller graph that shows a difference
};

/// PW1101 for an unknown pipeline.
Result<FuzzReport> fuzz_orders(const Graph& graph, const LoadedRules& rules,
                               const FuzzOrderRequest& request);
/// A row an order.
[[nodiscard]] Table order_run_table(const FuzzReport& report);

/// Two orders that give different graphs.
struct OrderDifference {
  std::size_t nodes = 0;  ///< of the graph that shows it
  std::string order;      ///< the other one: "ranks"
  std::uint64_t seed = 0;
  std::string counts;      ///< "a == 1 instead of a == 2"; empty: the same rules, at other places
  std::string difference;  ///< of the two graphs, for people
  std::string tests;       ///< tests that show it, for a rule file that uses the rules
};
/// Of a graph for which fuzz_orders found one.
Result<OrderDifference> find_difference(const Graph& graph, const LoadedRules& rules,
                                        const FuzzOrderRequest& request, const Log& log);

}  // namespace pw
