// Assigns values to the symbols of a graph, and chooses its token symbol.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/run/execution.hpp"

namespace pw {

/// Parses `s0=4` → (s0, 4). Fails with PW1470.
Result<std::pair<std::string, std::int64_t>> parse_symbol_value(const std::string& text);
/// Fixes each symbol in `values` to its number, and declares `tokens`, unless empty, as the token
/// symbol. Fails with PW1470 for an unknown symbol, or a number outside its range.
Status set_symbols(Graph& graph, const std::vector<std::string>& values, const std::string& tokens);
/// Chooses a token symbol if dims are dynamic and none is declared, and logs it. In the order of
/// the inputs' dims, prefers a symbol without a fixed or `given` value; then one with a value in
/// `stated`; then the first.
void name_tokens(Graph& graph, const Log& log, const Symbols& given = {},
                 const std::vector<std::int64_t>& stated = {});
/// Sets symbols without a value from the extents of the request's tensors; the token symbol only if
/// the request states no steps. Also chooses the token symbol. Fails with PW1470 if the range of
/// another symbol exceeds the plan's tokens.
Status take_extents(const ExecutionRequest& request, Graph& graph, const Log& log);
/// Returns the plan's values for symbols other than the token symbol.
[[nodiscard]] Symbols planned_symbols(const Plan& plan);

}  // namespace pw
