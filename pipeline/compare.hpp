// Compares two graphs or two plans, as rows and lines.
#pragma once

#include <string>
#include <vector>

#include "graph/compare/graph_diff.hpp"
#include "pipeline/report/table.hpp"

namespace pw {

/// Compares two graphs. `fold` merges equal changes of repeated layers.
GraphDiff compare_graphs(const Graph& before, const Graph& after, bool fold = true);
/// Returns at most `most` rows; 0 means all.
[[nodiscard]] Table change_table(const GraphDiff& diff, std::size_t most = 0);
/// Returns the rows, and the numbers of matched, changed, removed, and added nodes.
[[nodiscard]] Answer diff_answer(const GraphDiff& diff, std::size_t most = 0);

/// Returns the differences of two plan.json files, one line each; empty if they are equal.
Result<std::vector<std::string>> compare_plans(const std::string& before, const std::string& after);

}  // namespace pw
