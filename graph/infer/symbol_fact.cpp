#include "graph/infer/symbol_fact.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace pw {
namespace {

constexpr std::int64_t kMost = std::int64_t{1} << 40;

std::optional<FactProblem> out_of_range(std::string_view member, std::int64_t value,
                                        std::int64_t least) {
  if (value >= least && value <= kMost) return std::nullopt;
  return FactProblem{member, "PW1003",
                     fmt::format("`{}` must be from {} to 2^40, not {}", member, least, value), ""};
}

std::optional<FactProblem> wrong_role(const Facts& known, std::string_view symbol,
                                      const SymbolFact& fact) {
  if (!fact.role.empty() && fact.role != "tokens")
    return FactProblem{"role", "PW1008", "the only role is `tokens`", ""};
  const std::string other = known.tokens();
  if (fact.role == "tokens" && !other.empty() && other != symbol)
    return FactProblem{"role", "PW1008",
                       fmt::format("duplicate role `tokens`: `{}` has it already", other),
                       "only one symbol can count the tokens of a step"};
  if (fact.role == "tokens" && greatest_value(fact) < 1)
    return FactProblem{"", "PW1008", "no step has tokens: the maximum is 0", "raise the maximum"};
  return std::nullopt;
}

}  // namespace

std::int64_t least_value(const SymbolFact& fact) {
  const std::int64_t multiple = std::max<std::int64_t>(fact.multiple, 1);
  return (fact.min + multiple - 1) / multiple * multiple;
}
std::int64_t greatest_value(const SymbolFact& fact) {
  const std::int64_t multiple = std::max<std::int64_t>(fact.multiple, 1);
  return fact.max / multiple * multiple;
}

std::string print_range(const SymbolFact& fact) {
  std::string out = fmt::format("{}..{}", fact.min, fact.max);
  if (fact.multiple > 1) out += fmt::format(" by {}", fact.multiple);
  return out;
}

std::optional<FactProblem> problem_of(const Facts& known, std::string_view symbol,
                                      const SymbolFact& fact) {
  if (auto wrong = out_of_range("min", fact.min, 0)) return wrong;
  if (auto wrong = out_of_range("max", fact.max, 0)) return wrong;
  if (auto wrong = out_of_range("multiple", fact.multiple, 1)) return wrong;
  if (fact.min > fact.max)
    return FactProblem{
        "", "PW1008", fmt::format("the minimum {} exceeds the maximum {}", fact.min, fact.max), ""};
  if (least_value(fact) > greatest_value(fact))
    return FactProblem{
        "", "PW1008",
        fmt::format("no multiple of {} is from {} to {}", fact.multiple, fact.min, fact.max),
        "widen the range, or state a smaller multiple"};
  return wrong_role(known, symbol, fact);
}

}  // namespace pw
