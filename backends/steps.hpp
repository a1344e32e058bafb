// Steps as a text: what a server would hand over, step by step.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "backends/backend.hpp"
#include "base/diagnostic.hpp"

namespace pw {

/// A step, and the sequences that are over after it.
struct PlannedStep {
  Step step;  ///< `past` is what earlier steps gave the sequence
  std::vector<std::int64_t> ended;
};

/// A line a step: `ID:NEW` for each sequence that gets NEW tokens, `ID.` for one that is over after
/// the step, `#` and what follows is a comment; empty lines are no steps. A sequence that is over
/// may begin again. PW1211 with line and column for anything else: a sequence twice in a step, no
/// tokens, more than 2^24 tokens of a sequence or 2^20 sequences.
Result<std::vector<PlannedStep>> parse_steps(std::string_view text, const std::string& file);

}  // namespace pw
