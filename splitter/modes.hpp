// Capture modes: what of a step is recorded, and what the ops of a graph allow of it.
//
//   none                 nothing
//   piecewise            the pieces between splitting ops
//   full                 the whole step
//   full_decode_only     the whole step where it is a uniform decode; nothing else
//   full_and_piecewise   the whole step where it is a uniform decode, else the pieces
//
// A uniform decode has 1 + k new tokens a sequence, k being the speculative ones.
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
[[nodiscard]] bool captures_decodes_whole(CaptureMode mode);  ///< as graphs of their own

struct ModeChoice {
  CaptureMode mode = CaptureMode::none;
  std::string reason;  ///< why it is not the one that was wanted, or empty
};
/// The best mode that is not above the wanted one: each op of a splitting piece must be capturable
/// in the steps that are captured whole, and pieces are captured only where there are some.
ModeChoice allowed_mode(CaptureMode wanted, const StitchedGraph& pieces, const Graph& source,
                        std::int64_t speculative_tokens);

}  // namespace pw
