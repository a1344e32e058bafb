// The sizes that attributes and expressions are: dims, or integers.
#pragma once

#include <optional>

#include "graph/build.hpp"

namespace pw {

/// Returns the size that an attribute is; nothing if it is not one.
[[nodiscard]] inline std::optional<DimId> dim_value(Dims& dims, const Attribute& attribute) {
  if (const auto* number = std::get_if<std::int64_t>(&attribute)) return dims.constant(*number);
  if (const auto* dim = std::get_if<DimId>(&attribute)) return *dim;
  return std::nullopt;
}

/// Returns the size that an expression computes; nothing if it has no value, or is not a size.
[[nodiscard]] inline std::optional<DimId> dim_value(Context& context, const Graph* graph,
                                                    const Expr& expr, const Env& env) {
  const Result<Attribute> value = evaluate(context, graph, expr, env);
  return value ? dim_value(context.dims, *value) : std::nullopt;
}

}  // namespace pw
