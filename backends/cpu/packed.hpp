// f32 products and convolutions whose weights are packed once: the internal ops for such nodes, and
// their kernels.
#pragma once

#include <optional>

#include "backends/cpu/frozen.hpp"

namespace pw::cpu {

/// Returns the packed op for a node whose weight can be packed, or an invalid id. The op has the
/// node's operands and attributes and no body. Its name cannot occur in a graph's text.
[[nodiscard]] OpId packed_op(const Graph& graph, NodeId node);
/// Returns the index of the packed operand of such a node; nothing for other nodes.
[[nodiscard]] std::optional<std::size_t> packed_operand(const Graph& graph, NodeId node);
/// Returns the kernel for such nodes and for pools over channels-last images; empty for other
/// nodes. Convolution results are channels-last.
[[nodiscard]] RunCall packed_call(const Graph& graph, NodeId node, const ConstantParts& parts,
                                  FrozenSlots& slots, RunCall otherwise);

}  // namespace pw::cpu
