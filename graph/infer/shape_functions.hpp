// Native functions that result types of signatures may call to compute a shape. An explicit table;
// nothing registers itself.
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
  /// Whether two dims are one, under the facts: 8 * (n / 8) is n where 8 divides n.
  [[nodiscard]] bool same(DimId a, DimId b) const {
    return a == b ||
           (a.valid() && b.valid() && context.dims.prove(Compare::eq, a, b, facts) == Truth::yes);
  }
};
/// Nothing means: the op has no result of this index.
using ShapeFunction = Result<std::optional<Shape>> (*)(const ShapeCall& call);

/// Null when there is none of that name.
ShapeFunction shape_function(std::string_view name);
std::vector<std::string> shape_function_names();

}  // namespace pw
