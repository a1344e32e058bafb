// Capture sizes: which token counts have a captured graph, and which size a step pads to.
// Deployments constrain sizes: uniform decodes with speculative tokens, and equal parts for the
// ranks of sequence parallelism.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pw {

inline constexpr std::int64_t kLargestSize = std::int64_t{1} << 24;  ///< the table is an array

struct CaptureSizes {
  std::vector<std::int64_t> sizes;  ///< ascending
  std::vector<std::int64_t>
      padding;  ///< [tokens] → captured size; 0: no tokens; -1: none; up to the largest size
  /// Returns the captured size for a token count, or -1: the step runs at its own size, or eagerly.
  [[nodiscard]] std::int64_t pad(std::int64_t tokens) const;
};
/// Returns the sizes sorted and without duplicates; sizes below 1 are dropped. Every size is a
/// fixed point of pad().
CaptureSizes make_capture_sizes(std::vector<std::int64_t> sizes);

struct SizeRules {
  std::int64_t max_tokens = 8192;
  std::int64_t max_requests = 256;      ///< sequences of a step
  std::int64_t speculative_tokens = 0;  ///< k: a decode step has 1 + k tokens a sequence
  std::int64_t sequence_parallel = 1;   ///< ranks that share the tokens of a step; 1: off
  std::int64_t cap = 512;               ///< of the default sizes
  /// Returns the number that every captured size is a multiple of.
  [[nodiscard]] std::int64_t multiple() const;
};

/// Returns `1, 2, 4`, 8..<256 by 8, 256..M by 16, with M = min(max_requests · (1 + k) · 2, cap,
/// max_tokens), plus max_tokens if it is ≤ M. Each is rounded up to the multiple, and dropped if
/// that exceeds M.
std::vector<std::int64_t> default_capture_sizes(const SizeRules& rules);

struct KeptSizes {
  std::vector<std::int64_t> sizes;  ///< ascending, each once
  std::string dropped;              ///< which sizes were dropped and why; empty: none
};
/// Returns the requested sizes that are multiples of `multiple`.
KeptSizes keep_multiples(std::vector<std::int64_t> sizes, std::int64_t multiple,
                         const std::string& what);

/// Returns `tokens` rounded up to a multiple.
[[nodiscard]] std::int64_t round_up(std::int64_t tokens, std::int64_t multiple);

}  // namespace pw
