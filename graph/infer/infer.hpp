// Result types under what a graph knows of its symbols.
#pragma once

#include <span>
#include <vector>

#include "graph/build.hpp"

namespace pw {

/// As infer_types of graph/build.hpp, where dims that are one under the facts are the same: a
/// reshape of `n` to `[n / 8, 8]` is one where 8 divides n.
Result<std::vector<TypeId>> infer_types(Context& context, const Facts& facts, OpId op,
                                        std::span<const TypeId> operands, AttributesId attributes,
                                        int result_count = -1, Span span = {});

}  // namespace pw
