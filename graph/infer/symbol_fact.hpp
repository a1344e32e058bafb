// The facts of one symbol taken together: the values that it can have, or why it can have none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "graph/dim.hpp"

namespace pw {

/// The smallest and the largest value: multiples inside the stated range.
[[nodiscard]] std::int64_t least_value(const SymbolFact& fact);
[[nodiscard]] std::int64_t greatest_value(const SymbolFact& fact);
/// "8..64 by 8".
[[nodiscard]] std::string print_range(const SymbolFact& fact);

/// Why a stated fact cannot stand.
struct FactProblem {
  std::string_view member;  ///< "min", "max", "multiple", "role"; empty: several together
  std::string_view code;    ///< PW1003, PW1008
  std::string message, help;
};
/// Of a fact that is to be `symbol`'s beside those that are known already: bounds from 0 to 2^40
/// with a multiple between them, one tokens symbol, and at least one token.
[[nodiscard]] std::optional<FactProblem> problem_of(const Facts& known, std::string_view symbol,
                                                    const SymbolFact& fact);

}  // namespace pw
