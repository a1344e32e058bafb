// The primitives that have a meaning over the prime field: one table by name.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "discover/evaluate.hpp"

namespace pw::discover {

struct PrimitiveCall {
  const Context& context;
  std::span<const Tensor* const> operands;
  std::span<const TypeId> types;
  AttributesId attributes;
  std::span<const TypeId> results;  ///< all of known extents
};
/// Nothing: not at these operands.
using Primitive = std::optional<std::vector<Tensor>> (*)(const PrimitiveCall& call);

/// Null when there is none of that name.
[[nodiscard]] Primitive primitive_named(std::string_view name);

}  // namespace pw::discover
