// Which captured graph a step runs: the whole step with its exact key, else its pieces with the
// relaxed key, else none. A look-up in the plan's captures, well below a microsecond.
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

/// What a captured graph was recorded for.
struct DispatchKey {
  std::int64_t tokens = 0;    ///< rows, padding included; 0: the graph is static
  std::int64_t requests = 0;  ///< sequences, padding included; 0 where pieces are captured
  std::int64_t query = 0;     ///< new tokens of every sequence; 0: they may differ
  std::int64_t loras = 0;     ///< adapters that it has room for
  friend auto operator<=>(const DispatchKey&, const DispatchKey&) = default;
};
[[nodiscard]] std::string print(const DispatchKey& key);

enum class DispatchMode : std::uint8_t { none, piecewise, full };
[[nodiscard]] std::string_view name(DispatchMode mode);

/// One graph, or one for each piece class, and what it will take. Bytes are of its own size; places
/// in the arena are those of the plan.
struct Capture {
  DispatchMode mode = DispatchMode::piecewise;
  DispatchKey key;
  std::size_t graphs = 0;
  std::size_t nodes = 0;         ///< of these graphs: what launches a kernel or a library call
  std::int64_t input_bytes = 0;  ///< the parts of the static inputs that are copied into
  std::int64_t live_bytes = 0;   ///< of the arena: the most that is alive at once
};

/// The step properties that dispatch depends on.
struct StepShape {
  std::int64_t tokens = 0;
  std::int64_t requests = 0;
  std::int64_t query = 0;  ///< new tokens of every sequence; 0: they differ
  std::int64_t loras = 0;  ///< adapters in use
};
StepShape shape_of(std::span<const std::int64_t> new_tokens, std::int64_t loras = 0);

/// Why a step does not get a better mode.
enum class DispatchReason : std::uint8_t {
  captured,  ///< it gets the best that the plan has
  no_tokens,
  too_many,       ///< more tokens than the plan is made for
  nothing,        ///< the plan captures nothing
  above_largest,  ///< of the captured sizes
  loras,          ///< more adapters than any captured graph has room for
  differ,         ///< its sequences differ in new tokens, or have not those of a decode
  requests,       ///< no whole graph has so many tokens, or room for so many sequences
};

struct Dispatch {
  DispatchMode mode = DispatchMode::none;
  DispatchKey key;           ///< tokens is the count that runs in any mode; the rest is the graph's
  std::int64_t padding = 0;  ///< rows
  DispatchReason reason = DispatchReason::captured;
};

class Dispatcher {
 public:
  explicit Dispatcher(const Plan& plan);  ///< copies what it needs
  [[nodiscard]] Dispatch dispatch(const StepShape& step) const;
  /// One sentence: what a step gets, and why it is nothing better.
  /// `captures`: the engine replays what is captured; otherwise it runs at the plan's sizes only.
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

/// The captures of a plan's mode, sizes and adapters: pieces, then whole steps, each from the
/// largest size down, so that the smaller find room in what the larger used. Only mode and key.
std::vector<Capture> captures_of(const Plan& plan);

}  // namespace pw
