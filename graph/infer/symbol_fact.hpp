// Consistency of the facts of one symbol: the values that it can have, or why there are none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "graph/dim.hpp"

namespace pw {

/// Returns the smallest value: the first multiple inside the stated range. Its pair returns the
/// largest.
[[nodiscard]] std::int64_t least_value(const SymbolFact& fact);
[[nodiscard]] std::int64_t greatest_value(const SymbolFact& fact);
/// Returns a range as text: "8..64 by 8".
[[nodiscard]] std::string print_range(const SymbolFact& fact);

/// Reason why a stated fact is invalid.
struct FactProblem {
  std::string_view member;  ///< "min", "max", "multiple", "role"; empty: several together
  std::string_view code;    ///< PW1003, PW1008
  std::string message, help;
};
/// Checks a new fact of `symbol` together with the known ones: bounds from 0 to 2^40 with a
/// multiple between them, one tokens symbol, and at least one token.
[[nodiscard]] std::optional<FactProblem> problem_of(const Facts& known, std::string_view symbol,
                                                    const SymbolFact& fact);

}  // namespace pw
