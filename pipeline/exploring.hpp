// Which order of the passes is best, and why: all orders on one graph, what they cost, and which
// rule took the nodes of which.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "pipeline/load.hpp"
#include "pipeline/table.hpp"
#include "rewriter/analysis/orders.hpp"

namespace pw {

struct ExploreRequest {
  std::string pipeline;             ///< empty: `passes` alone
  std::vector<std::string> passes;  ///< to be put in order; empty: all of the pipeline
  std::vector<std::pair<std::string, std::string>> before;
  std::vector<std::string> by = {"nodes"};  ///< costs; the first decides which order is best
  bool subsets = false;
};

struct Exploration {
  std::vector<std::string> passes;  ///< as they are called
  std::vector<Cost> by;
  OrderResults results;
  std::vector<Theft> thefts;
  std::vector<std::size_t> ranked;  ///< ends, the best first
  std::vector<std::size_t> front;   ///< ends that no other beats in all of `by`
  std::string suggestion;  ///< a pipeline in the best order, or empty where the written one is
};

/// `norm:norm_quant`: the first stands before the second. PW1418.
Result<std::pair<std::string, std::string>> parse_before(const std::string& text);
/// What stands in the pipeline before the first of the passes runs first, and the rest of it last.
/// PW1101 for an unknown pipeline or pass, PW1402 for a cost that there is not, PW1407 for a
/// pipeline of ranges, PW1114 for more than can be looked at.
Result<Exploration> explore(const Graph& graph, const LoadedRules& rules,
                            const ExploreRequest& request, const Log& log);

/// `ends`: a row an end graph, the best first, at most so many; `thefts`: a row for each rule that
/// takes nodes of another's matches; `pairs`: a row for each two passes whose order makes a
/// difference somewhere; `orders`, `graphs`, `runs`, `suggestion`.
[[nodiscard]] Answer explore_answer(const Exploration& found, std::size_t most);

}  // namespace pw
