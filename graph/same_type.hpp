// Equality of types for all sizes that the facts allow: bf16[n] and bf16[2*(n//2)] if n is even.
#pragma once

#include "graph/context.hpp"

namespace pw {

[[nodiscard]] inline bool same_type(Context& context, TypeId a, TypeId b, const Facts& facts) {
  if (a == b) return true;
  if (a == Types::unknown() || b == Types::unknown()) return false;
  const Type x = context.types[a], y = context.types[b];
  if (x.dtype != y.dtype || x.shape.size() != y.shape.size()) return false;
  for (std::size_t i = 0; i < x.shape.size(); ++i) {
    if (context.dims.prove(Compare::eq, x.shape[i], y.shape[i], facts) != Truth::yes) return false;
  }
  return true;
}

}  // namespace pw
