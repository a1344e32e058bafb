// Counts how many rules of a set other rules derive. On graphs that a rule matches, equality
// saturation with the other rules must merge both sides (Nandi et al., "Rewrite Rule Inference
// Using Equality Saturation", 2021).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "discover/derive.hpp"
#include "pipeline/load.hpp"

namespace pw {

struct Derived {
  struct Row {
    std::string rule;
    bool derived = false;
    std::string
        reason;  ///< if not derived: no graph could be generated, or the sides remain distinct
  };
  std::vector<Row> rows;  ///< in the order of the rules
  std::size_t given = 0;  ///< rules available
  std::size_t used = 0;   ///< size of a minimal sufficient subset
  [[nodiscard]] std::size_t count() const;
};

/// Requires every graph generated for a rule to be derived. Each graph belongs to the context of
/// `others`. Excludes unused rules from `others`.
[[nodiscard]] Derived derive_rules(const LoadedRules& rules, discover::Derivations& others,
                                   std::uint64_t seed);

}  // namespace pw
