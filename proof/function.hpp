// The functions of terms: the primitives that compute one element from others, and those that only
// proofs know.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <string_view>

#include "graph/ops/primitive.hpp"

/// X(name): functions that are neither pointwise primitives nor reductions. A join adds or
/// multiplies the parts of a reduction whose range was cut; `ranks` is the sum over all ranks.
#define PW_TERM_FUNCTIONS(X) \
  X(prod)                    \
  X(dot)                     \
  X(addmm)                   \
  X(join_sum)                \
  X(join_product)            \
  X(ranks)

namespace pw::proof {

#define PW_NAME(name, ...) name,
/// Begins with the enumerators of Primitive.
enum class Function : std::uint8_t {
  none,  ///< of a term that applies none
  PW_NUMBER_PRIMITIVES(PW_NAME) PW_INTEGER_PRIMITIVES(PW_NAME) PW_REAL_PRIMITIVES(PW_NAME) cast,
  PW_REDUCTION_PRIMITIVES(PW_NAME) PW_TERM_FUNCTIONS(PW_NAME)
};
#undef PW_NAME
static_assert(static_cast<int>(Function::amin) == static_cast<int>(Primitive::amin));

/// Returns the function's name; empty for none. Inline, because libpw_z3.so does not link the
/// project.
[[nodiscard]] inline std::string_view name(Function function) {
#define PW_NAME(name, ...) #name,
  static constexpr std::string_view kNames[] = {
      "",
      PW_NUMBER_PRIMITIVES(PW_NAME) PW_INTEGER_PRIMITIVES(PW_NAME)
          PW_REAL_PRIMITIVES(PW_NAME) "cast",
      PW_REDUCTION_PRIMITIVES(PW_NAME) PW_TERM_FUNCTIONS(PW_NAME)};
#undef PW_NAME
  static_assert(std::size(kNames) == static_cast<std::size_t>(Function::ranks) + 1);
  return kNames[static_cast<std::size_t>(function)];
}
/// Returns the function of a pointwise primitive or a reduction; none for any other.
[[nodiscard]] inline Function function_of(Primitive primitive) {
  if (primitive == Primitive::prod) return Function::prod;
  return primitive <= Primitive::amin ? static_cast<Function>(primitive) : Function::none;
}
/// Returns true if the function is one of several.
[[nodiscard]] inline bool among(Function function, std::initializer_list<Function> several) {
  return std::find(several.begin(), several.end(), function) != several.end();
}

}  // namespace pw::proof
