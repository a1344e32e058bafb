// Products and convolutions in f32 whose weights are packed once, as nodes of a graph: the ops that
// stand for them, and what runs them.
#pragma once

#include <optional>

#include "backends/cpu/frozen.hpp"

namespace pw::cpu {

/// The op for a node whose weight can be packed: of the same operands and attributes, and without a
/// body; invalid where it cannot. Its name is none that a graph's text can have.
[[nodiscard]] OpId packed_op(const Graph& graph, NodeId node);
/// Which operand of a node of such an op is packed; none for other nodes.
[[nodiscard]] std::optional<std::size_t> packed_operand(const Graph& graph, NodeId node);
/// Runs nodes of such ops, and pools whose images have their channels together; gives nothing for
/// others. A result of a convolution has its channels together.
[[nodiscard]] RunCall packed_call(const Graph& graph, NodeId node, const ConstantParts& parts,
                                  FrozenSlots& slots, RunCall otherwise);

}  // namespace pw::cpu
