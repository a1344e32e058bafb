// The rows of a graph without a symbol for its tokens: what to do where they are to be others than
// its inputs say.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "exec/steps.hpp"
#include "graph/graph.hpp"

namespace pw {

/// PW1404 where a static graph is to run as many tokens as none of its inputs has rows, or whole
/// numbers.
Status check_static_rows(const Graph& graph, std::int64_t tokens);
/// "--symbol n=x.0,y.0 makes …", of the inputs with so many rows.
[[nodiscard]] std::string symbol_hint(const Graph& graph, std::int64_t rows);
/// Of a static graph with very many rows: that it has this one size alone, and the hint. Else
/// empty.
[[nodiscard]] std::string many_rows_note(const Graph& graph);

}  // namespace pw
