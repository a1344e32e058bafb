// The primitives defined over the prime field, by name.
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
  std::span<const TypeId> results;  ///< all extents known
};
/// Evaluates a primitive; nothing if it is undefined for these operands.
using Primitive = std::optional<std::vector<Tensor>> (*)(const PrimitiveCall& call);

/// Returns the primitive; null if there is none of this name.
[[nodiscard]] Primitive primitive_named(std::string_view name);

}  // namespace pw::discover
