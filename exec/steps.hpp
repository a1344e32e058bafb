// Steps as a text, like the requests of a server, and the step of a graph that runs as it is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/backend.hpp"
#include "backends/kernel.hpp"
#include "base/diagnostic.hpp"

namespace pw {

/// A step and the sequences that end after it.
struct PlannedStep {
  Step step;  ///< `past` counts the sequence's tokens of earlier steps
  std::vector<std::int64_t> ended;
  std::size_t number = 0;  ///< index of the step, from 0
};

/// Parses steps, one a line: `ID:NEW` for a sequence with NEW new tokens, `ID.` for one that ends
/// after the step. `#` begins a comment; empty lines are skipped. An ended sequence may begin
/// again. Fails with PW1211, line and column, on syntax errors, a sequence listed twice in a step,
/// no tokens, more than 2^24 tokens of a sequence, or more than 2^20 sequences.
Result<std::vector<PlannedStep>> parse_steps(std::string_view text, const std::string& file);

/// Returns the leading extent of an input that changes from call to call, if it has one.
[[nodiscard]] std::optional<std::int64_t> rows_of_input(const Graph& graph, ValueId input);
/// Returns the leading extents of the changing inputs, most frequent first. Empty if the graph has
/// a tokens symbol or no such input.
[[nodiscard]] std::vector<std::int64_t> static_rows(const Graph& graph);
/// Returns the tokens of a step of the whole graph: the value of its symbol in `symbols`, else the
/// rows of a static graph, else 1.
[[nodiscard]] std::int64_t tokens_of_step(const Graph& graph, const Symbols& symbols);

}  // namespace pw
