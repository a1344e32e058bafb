// A histogram of steps by token count, read from a server's counts or generated as one of three
// synthetic distributions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/diagnostic.hpp"

namespace pw {

struct Histogram {
  std::vector<std::pair<std::int64_t, std::int64_t>> steps;  ///< tokens, count; ascending, > 0
  [[nodiscard]] double total() const;
};

/// Reads a histogram. The content determines the format:
///   JSON  {"16": 120, "300": 4} or {"steps": [[16, 120], [300, 4]]}
///   text  one token count per line, or a token count and a count separated by a comma or blanks; a
///         first line of words and lines that begin with # are skipped
///   table the rows `| Unpadded Tokens | … | Count |` that vLLM logs with --cudagraph-metrics, with
///         any columns between them
/// Counts of equal tokens are added. Fails with PW0731 on any other format, on token counts outside
/// 1..2^24, on counts outside 0..2^40, and if no step is left. `file` is the location for messages.
Result<Histogram> read_histogram(std::string_view text, const std::string& file);

/// Reads measured seconds of steps, in the formats lines or JSON with a time in place of the count.
/// Returns them ascending by tokens. Fails with PW0731 on times that are negative, not finite, or
/// above 10^6.
Result<std::vector<std::pair<std::int64_t, double>>> read_step_times(std::string_view text,
                                                                     const std::string& file);

/// Returns `lognormal` (median 64, deviation of the logarithm 1), `bimodal` (normal about 24 and
/// about 384) or `uniform`, over 1..512, with about a million steps; nothing for another name.
[[nodiscard]] std::optional<Histogram> histogram_named(std::string_view name);

}  // namespace pw
