// The numbers that a request gives the symbols of a graph, and the symbol that counts its tokens.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/run/execution.hpp"

namespace pw {

/// `s0=4` → (s0, 4). PW1470.
Result<std::pair<std::string, std::int64_t>> parse_symbol_value(const std::string& text);
/// Narrows the range of each symbol to the number that `values` gives it, and makes `tokens`,
/// unless it is empty, the symbol that counts the tokens of a step. PW1470 for a symbol that the
/// graph lacks, or a number outside of its range.
Status set_symbols(Graph& graph, const std::vector<std::string>& values, const std::string& tokens);
/// Where dims are dynamic and no symbol counts the tokens of a step, makes one do: in the order of
/// the inputs' dims the first that has neither one number nor one in `given`, else one that has a
/// number of `stated` there, else the first. It is said.
void name_tokens(Graph& graph, const Log& log, const Symbols& given = {},
                 const std::vector<std::int64_t>& stated = {});
/// Symbols without a number get the one that the extents of the request's tensors say; the one of
/// the tokens only where the request states no steps. Names the tokens, too. PW1470 where a symbol
/// other than the tokens is left with a range beyond the plan's tokens.
Status take_extents(const ExecutionRequest& request, Graph& graph, const Log& log);
/// What the plan has for symbols other than the tokens.
[[nodiscard]] Symbols planned_symbols(const Plan& plan);

}  // namespace pw
