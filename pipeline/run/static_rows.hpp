// Diagnoses requests to run a static graph with a number of rows other than that of its inputs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "exec/steps.hpp"
#include "graph/graph.hpp"

namespace pw {

/// Fails with PW1404 if `tokens` is neither the rows nor the integers of an input of a static
/// graph.
Status check_static_rows(const Graph& graph, std::int64_t tokens);
/// Returns "--symbol n=x.0,y.0 makes …" for the inputs with that many rows.
[[nodiscard]] std::string symbol_hint(const Graph& graph, std::int64_t rows);
/// Returns a note with the hint if a static graph has very many rows and thus only this size;
/// otherwise an empty text.
[[nodiscard]] std::string many_rows_note(const Graph& graph);

}  // namespace pw
