// Result types under the facts of a graph about its symbols.
#pragma once

#include <span>
#include <vector>

#include "graph/build.hpp"

namespace pw {

/// Infers types as infer_types of graph/build.hpp does, and treats dims that are equal under the
/// facts as equal: reshaping `n` to `[n / 8, 8]` is valid if 8 divides n.
Result<std::vector<TypeId>> infer_types(Context& context, const Facts& facts, OpId op,
                                        std::span<const TypeId> operands, AttributesId attributes,
                                        int result_count = -1, Span span = {});

}  // namespace pw
