// Steps as a text, what a server would hand over, step by step; and the step of a graph that is run
// as it is.
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

/// A step, and the sequences that are over after it.
struct PlannedStep {
  Step step;  ///< `past` is what earlier steps gave the sequence
  std::vector<std::int64_t> ended;
  std::size_t number = 0;  ///< of the run's steps, from 0
};

/// A line a step: `ID:NEW` for each sequence that gets NEW tokens, `ID.` for one that is over after
/// the step, `#` and what follows is a comment; empty lines are no steps. A sequence that is over
/// may begin again. PW1211 with line and column for anything else: a sequence twice in a step, no
/// tokens, more than 2^24 tokens of a sequence or 2^20 sequences.
Result<std::vector<PlannedStep>> parse_steps(std::string_view text, const std::string& file);

/// The leading extent of an input that changes from call to call, if it has one.
[[nodiscard]] std::optional<std::int64_t> rows_of_input(const Graph& graph, ValueId input);
/// The leading extents of what changes from call to call, the most frequent first. Empty where the
/// graph has a symbol for its tokens, or no such input.
[[nodiscard]] std::vector<std::int64_t> static_rows(const Graph& graph);
/// The tokens of a step of the whole graph: the value of its symbol where `symbols` has one; of a
/// static graph its rows; else 1.
[[nodiscard]] std::int64_t tokens_of_step(const Graph& graph, const Symbols& symbols);

}  // namespace pw
