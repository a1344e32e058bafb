// Native functions that result types of signatures may call to compute a shape. The table is
// explicit; there is no registration.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "graph/context.hpp"

namespace pw {

struct ShapeCall {
  Context& context;
  std::span<const Attribute> arguments;  ///< sequences as vector<DimId>
  std::span<const TypeId> operands;      ///< of the op
  int result_index;                      ///< for variadic results
  Span span;
  const Facts& facts;  ///< of the graph's symbols
  /// Returns true if two dims are equal under the facts: 8 * (n / 8) is n if 8 divides n.
  [[nodiscard]] bool same(DimId a, DimId b) const {
    return a == b ||
           (a.valid() && b.valid() && context.dims.prove(Compare::eq, a, b, facts) == Truth::yes);
  }
};
/// Computes a shape; nothing if the op has no result of this index.
using ShapeFunction = Result<std::optional<Shape>> (*)(const ShapeCall& call);

/// Returns the function of that name, or null.
ShapeFunction shape_function(std::string_view name);

}  // namespace pw
