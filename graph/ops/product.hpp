// Recognises matmuls by signature: two operands that share the contracted dim, `a: T[*r, k], b:
// T[k, m] -> y: U[*r, m]`. They run in libraries, and their cost depends on whole tiles.
#pragma once

#include <cstddef>
#include <optional>

#include "graph/op.hpp"

namespace pw {

struct Product {
  std::size_t a = 0, b = 0;  ///< operand indices
};
[[nodiscard]] std::optional<Product> product_of(const Op& op);

}  // namespace pw
