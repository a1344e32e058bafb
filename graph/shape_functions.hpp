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
};
/// Nothing means: the op has no result of this index.
using ShapeFunction = Result<std::optional<Shape>> (*)(const ShapeCall& call);

/// Null when there is none of that name.
ShapeFunction shape_function(std::string_view name);
std::vector<std::string> shape_function_names();

}  // namespace pw
