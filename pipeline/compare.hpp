// Two graphs or two plans compared, as rows and lines.
#pragma once

#include <string>
#include <vector>

#include "graph/compare/graph_diff.hpp"
#include "pipeline/report/table.hpp"

namespace pw {

/// `fold`: equal changes of repeated layers are one.
GraphDiff compare_graphs(const Graph& before, const Graph& after, bool fold = true);
/// `most` rows at most; 0: all.
[[nodiscard]] Table change_table(const GraphDiff& diff, std::size_t most = 0);
/// rows, and how many nodes matched, changed, were removed and added.
[[nodiscard]] Answer diff_answer(const GraphDiff& diff, std::size_t most = 0);

/// What differs between two plan.json files, a line each; empty where they are equal.
Result<std::vector<std::string>> compare_plans(const std::string& before, const std::string& after);

}  // namespace pw
