// The primitives defined over the prime field.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "discover/evaluate.hpp"
#include "graph/ops/primitive.hpp"

namespace pw::discover {

struct PrimitiveCall {
  const Context& context;
  std::span<const Tensor* const> operands;
  std::span<const TypeId> types;
  AttributesId attributes;
  std::span<const TypeId> results;  ///< all extents known
};
/// Evaluates a primitive; nothing if it is undefined for these operands.
using Definition = std::optional<std::vector<Tensor>> (*)(const PrimitiveCall& call);

/// Returns the primitive's definition; null if it has none.
[[nodiscard]] Definition definition_of(Primitive primitive);

}  // namespace pw::discover
