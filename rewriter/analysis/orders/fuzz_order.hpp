// Tests whether the result of a pass depends on the order of its rules and matches, by running many
// orders. A graph that shows a dependence is reduced.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rewriter/analysis/orders/outcome.hpp"

namespace pw {

struct FuzzOptions {
  std::size_t orders = 20;
  std::uint64_t seed = 1;
  std::size_t most_rewrites = 20000;  ///< of one run
  std::size_t random_nodes = 200;     ///< matches are chosen at random in graphs up to this size
  std::size_t tries = 2000;           ///< of making a graph smaller
};

/// One order; the first in a list is the regular one.
struct OrderRun {
  enum class Kind : std::uint8_t { declared, nodes, ranks, random } kind = Kind::declared;
  std::uint64_t seed = 0;
  Graph input;  ///< with its nodes in the order that was run
  Graph graph;
  std::uint64_t hash = 0;
  std::map<std::string, std::size_t> counts;  ///< by written name
};
std::string_view name(OrderRun::Kind kind);

struct FuzzReport {
  std::vector<OrderRun> runs;
  std::vector<std::size_t> different;  ///< in `runs`: those that differ from the first
};
Result<FuzzReport> fuzz_order(const Graph& graph, const RuleSet& rules, const Strategy& strategy,
                              const Env& params, const FuzzOptions& options = {});
/// Returns the smallest graph found on which some order still makes a difference.
Graph reduce_order_dependence(const Graph& graph, const RuleSet& rules, const Strategy& strategy,
                              const Env& params, const FuzzOptions& options);
/// Returns rules whose counts differ, with both counts: "a == 1, b == 0".
std::pair<std::string, std::string> differing_counts(const OrderRun& a, const OrderRun& b);
/// Returns a test that passes with the regular order; if another order of nodes made the
/// difference, a second test with that order.
std::string fuzz_tests(const std::string& strategy, const RuleSet& rules, const Env& params,
                       const OrderRun& usual, const OrderRun& other);

}  // namespace pw
