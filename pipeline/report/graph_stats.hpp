// Checks and counts a graph, as `pwr import` does.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pipeline/load.hpp"
#include "pipeline/report/table.hpp"

namespace pw {

/// Reads a graph, logs all details of its import, and checks its invariants (PW06xx).
Result<Graph> import_graph(const ContextPtr& context, const GraphSource& source, const Log& log);

struct GraphStats {
  struct OpCount {
    std::string op, meaning;  ///< unknown, body or native
    std::size_t nodes = 0;
  };
  std::vector<OpCount> ops;  ///< the most frequent first
  std::size_t nodes = 0, inputs = 0, outputs = 0;
  std::vector<std::string> written;  ///< inputs
  std::uint64_t hash = 0;            ///< structural
};
GraphStats count_graph(const Graph& graph);
[[nodiscard]] Table op_count_table(const GraphStats& stats);
/// Returns ops, nodes, inputs, outputs, written, and hash.
[[nodiscard]] Answer stats_answer(const GraphStats& stats);
/// Returns "30 nodes, 7 inputs, 2 outputs, writes cache".
[[nodiscard]] std::string size_line(const GraphStats& stats);

}  // namespace pw
