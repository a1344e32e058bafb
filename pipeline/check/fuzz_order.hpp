// Runs a pipeline in many orders of its rules and matches, and reports differences.
#pragma once

#include <string>

#include "pipeline/load.hpp"
#include "pipeline/report/table.hpp"
#include "rewriter/analysis/orders/fuzz_order.hpp"

namespace pw {

struct FuzzOrderRequest {
  std::string pipeline;
  FuzzOptions options;
  bool reduce = true;  ///< search for a smaller graph with a difference
};

/// Fails with PW1101 for an unknown pipeline.
Result<FuzzReport> fuzz_orders(const Graph& graph, const LoadedRules& rules,
                               const FuzzOrderRequest& request);
/// Returns one row for each order.
[[nodiscard]] Table order_run_table(const FuzzReport& report);

/// Two orders that produce different graphs.
struct OrderDifference {
  std::size_t nodes = 0;  ///< of the example graph
  std::string order;      ///< the second order: "ranks"
  std::uint64_t seed = 0;
  std::string counts;      ///< "a == 1 instead of a == 2"; empty if the same rules apply elsewhere
  std::string difference;  ///< readable diff of the two graphs
  std::string tests;       ///< failing tests for a file that uses the rules
};
/// Finds the difference on a graph for which fuzz_orders reported one.
Result<OrderDifference> find_difference(const Graph& graph, const LoadedRules& rules,
                                        const FuzzOrderRequest& request, const Log& log);

}  // namespace pw
