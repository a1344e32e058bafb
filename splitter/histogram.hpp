// How often steps of each token count occur, read from a server's counts, and three synthetic kinds
// of traffic.
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

/// Told apart by their content:
///   JSON  {"16": 120, "300": 4} or {"steps": [[16, 120], [300, 4]]}
///   text  a token count a line, or a token count and a count with a comma or blanks between; a
///         first line of words and lines that begin with # are skipped
///   table the rows `| Unpadded Tokens | … | Count |` that vLLM logs with --cudagraph-metrics,
///         with anything between them
/// Counts of the same tokens are added. Fails (PW0731) on what is none of these, on token counts
/// outside 1..2^24 and counts outside 0..2^40, and where no step is left. `file` names the place.
Result<Histogram> read_histogram(std::string_view text, const std::string& file);

/// Measured seconds of a step: lines or JSON as above, with a time instead of the count. Ascending
/// by tokens. Fails (PW0731) on times that are negative, not finite, or above 10^6.
Result<std::vector<std::pair<std::int64_t, double>>> read_step_times(std::string_view text,
                                                                     const std::string& file);

/// `lognormal` (median 64, deviation of the logarithm 1), `bimodal` (normal about 24 and about 384)
/// and `uniform`, over 1..512; empty for another name. About a million steps each.
[[nodiscard]] std::optional<Histogram> histogram_named(std::string_view name);

}  // namespace pw
