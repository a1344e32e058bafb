// Selects the captured graph of a step: the whole step with its exact key, else its pieces with the
// relaxed key, else none. A look-up in the plan's captures that takes well below a microsecond.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "splitter/sizes.hpp"

namespace pw {

struct Plan;

/// Identifies what a graph was captured for.
struct DispatchKey {
  std::int64_t tokens = 0;    ///< rows, padding included; 0: the graph is static
  std::int64_t requests = 0;  ///< sequences, padding included; 0 for captured pieces
  std::int64_t query = 0;     ///< new tokens of every sequence; 0: they may differ
  std::int64_t loras = 0;     ///< maximum number of adapters
  friend auto operator<=>(const DispatchKey&, const DispatchKey&) = default;
};
[[nodiscard]] std::string print(const DispatchKey& key);

enum class DispatchMode : std::uint8_t { none, piecewise, full };
[[nodiscard]] std::string_view name(DispatchMode mode);

/// One graph, or one for each piece class, with its predicted resources. Bytes are those of its own
/// size; arena offsets are those of the plan.
struct Capture {
  DispatchMode mode = DispatchMode::piecewise;
  DispatchKey key;
  std::size_t graphs = 0;
  std::size_t nodes = 0;         ///< nodes of these graphs that launch a kernel or library call
  std::int64_t input_bytes = 0;  ///< bytes copied into the static inputs
  std::int64_t live_bytes = 0;   ///< maximum arena bytes alive at once
};

/// The step properties that dispatch depends on.
struct StepShape {
  std::int64_t tokens = 0;
  std::int64_t requests = 0;
  std::int64_t query = 0;  ///< new tokens of every sequence; 0: they differ
  std::int64_t loras = 0;  ///< adapters in use
};
StepShape shape_of(std::span<const std::int64_t> new_tokens, std::int64_t loras = 0);

/// Reason why a step does not get a better mode.
enum class DispatchReason : std::uint8_t {
  captured,  ///< the step gets the plan's best mode
  no_tokens,
  too_many,       ///< more tokens than the plan is made for
  nothing,        ///< the plan captures nothing
  above_largest,  ///< more tokens than the largest captured size
  loras,          ///< more adapters than any captured graph has room for
  differ,         ///< its sequences differ in new tokens, or are not a uniform decode
  requests,       ///< no whole graph has enough tokens or sequences
};

struct Dispatch {
  DispatchMode mode = DispatchMode::none;
  DispatchKey key;  ///< `tokens` is the row count to run in any mode; the rest is the graph's key
  std::int64_t padding = 0;  ///< rows
  DispatchReason reason = DispatchReason::captured;
};

class Dispatcher {
 public:
  explicit Dispatcher(const Plan& plan);  ///< copies the plan's data
  [[nodiscard]] Dispatch dispatch(const StepShape& step) const;
  /// Returns one sentence about what a step gets and why nothing better. `captures`: the engine
  /// replays captures; otherwise it only pads to the plan's sizes.
  [[nodiscard]] std::string explain(const StepShape& step, const Dispatch& found,
                                    bool captures = true) const;

 private:
  [[nodiscard]] Dispatch eagerly(std::int64_t tokens, DispatchReason reason) const;
  bool is_static_ = false, mode_is_none_ = false;
  std::int64_t max_tokens_ = 0, max_requests_ = 0, decode_query_ = 1, eager_multiple_ = 1;
  CaptureSizes sizes_;
  std::vector<std::int64_t> loras_;            // ascending
  std::vector<DispatchKey> full_, piecewise_;  // sorted
};

/// Returns the captures for a plan's mode, sizes and adapters, with mode and key only. Pieces
/// precede whole steps, each from the largest size down, so that smaller captures reuse the memory
/// of larger ones.
std::vector<Capture> captures_of(const Plan& plan);

}  // namespace pw
