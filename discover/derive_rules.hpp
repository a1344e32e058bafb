// How many rules of a set others derive: on graphs that a rule matches, both its sides come to be
// one under equality saturation with the others (Nandi et al., "Rewrite Rule Inference Using
// Equality Saturation", 2021).
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
    std::string reason;  ///< not derived: because no graph could be made, or the sides stay apart
  };
  std::vector<Row> rows;  ///< in the order of the rules
  std::size_t given = 0;  ///< rules that it was tried with
  std::size_t used = 0;   ///< of these, a set that is enough; none of it can be left out
  [[nodiscard]] std::size_t count() const;
};

/// Every graph that is made for a rule must come out; each is of the context of `others`, which is
/// left without what was not used.
[[nodiscard]] Derived derive_rules(const LoadedRules& rules, discover::Derivations& others,
                                   std::uint64_t seed);

}  // namespace pw
