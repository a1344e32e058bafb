// Termination proofs: a non-negative integer weight for each op, so that every rule removes more
// weight than it adds. Found, or shown not to exist, in exact arithmetic.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rewriter/analysis/effects.hpp"

namespace pw {

struct Certificate {
  /// Weight by op; nothing if there are no such weights. Other ops weigh nothing.
  std::optional<std::map<std::string, std::int64_t>> weights;
  /// Without weights: rules with multiplicities that together remove nothing beyond what they add.
  /// Empty if numbers overflowed.
  std::vector<std::pair<RuleId, std::int64_t>> balance;
};
Certificate find_certificate(const std::vector<Effect>& effects);

/// Result of max t with M w >= t for every row, w >= 0, sum w <= 1, by the exact simplex; declared
/// here for tests. Either weights with M w >= 1, or a combination of the rows with no positive sum.
struct RowWeights {
  enum class Kind : std::uint8_t { weights, combination, overflow } kind = Kind::overflow;
  std::vector<std::int64_t> numbers;  ///< by column, or by row
};
RowWeights weigh(const std::vector<std::vector<std::int64_t>>& rows);

}  // namespace pw
