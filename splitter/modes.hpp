// Capture modes: which parts of a step are recorded, and which modes the ops of a graph allow.
//
//   none                 nothing
//   piecewise            the pieces between splitting ops
//   full                 the whole step
//   full_decode_only     the whole step if it is a uniform decode; nothing else
//   full_and_piecewise   the whole step if it is a uniform decode, else the pieces
//
// A uniform decode has 1 + k new tokens a sequence, where k is the number of speculative tokens.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "splitter/splitter.hpp"

namespace pw {

enum class CaptureMode : std::uint8_t {
  none,
  piecewise,
  full,
  full_decode_only,
  full_and_piecewise
};
[[nodiscard]] std::string_view name(CaptureMode mode);
[[nodiscard]] std::optional<CaptureMode> capture_mode_named(std::string_view name);

[[nodiscard]] bool captures_pieces(CaptureMode mode);
[[nodiscard]] bool captures_decodes_whole(CaptureMode mode);  ///< in graphs of their own

struct ModeChoice {
  CaptureMode mode = CaptureMode::none;
  std::string reason;  ///< why the mode differs from the wanted one, or empty
};
/// Returns the best mode not above the wanted one. Each op of a splitting piece must be capturable
/// in the steps that are captured whole. Pieces are captured only if there are some.
ModeChoice allowed_mode(CaptureMode wanted, const StitchedGraph& pieces, const Graph& source,
                        std::int64_t speculative_tokens);

}  // namespace pw
