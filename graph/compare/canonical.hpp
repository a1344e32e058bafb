// One spelling for what attributes and numbers can say in several: the axes of a transpose in
// ascending order, bounds of a slice within its extent, rank-0 tensors of one number as constants.
// Equal nodes then have equal attributes, so that `cse` and the matcher see that they are equal.
#pragma once

#include <span>
#include <string_view>

#include "graph/graph.hpp"

namespace pw {

/// Brings complete attributes into their one spelling.
void make_canonical(Context& context, const Op& op, AttributeList& attributes,
                    std::span<const TypeId> operands);

/// The other of two axes that may be exchanged without changing what the op computes: `dim1` for
/// `dim0` of a transpose. Empty for every other attribute.
[[nodiscard]] std::string_view twin_axis(const Op& op, std::string_view attribute);

/// A value for an attribute of `node` in the spelling that nodes have: an axis counted from the
/// front, a bound of a slice within the extent.
[[nodiscard]] Attribute as_in_node(const Graph& graph, NodeId node, std::string_view attribute,
                                   Attribute value);

/// Replaces each rank-0 `full` by a `constant`, unless it is an output or is written in place. A
/// pointwise op that reads a `full` of one element beside an operand of its dtype and of at least
/// its rank reads a `constant` instead.
void settle_numbers(Graph& graph);

/// The number that a tensor of the dtype holds for `value`.
[[nodiscard]] double as_held(DType dtype, double value);

/// The dtype in which `user` reads the number that is its operand `slot`: a pointwise primitive
/// computes in f32 or f64 or in its integer type, any other op reads the operand's own type.
[[nodiscard]] DType number_dtype(const Graph& graph, NodeId user, std::size_t slot);

/// The number as `user` reads it: the constant `number`, which is its operand `slot`.
[[nodiscard]] double number_read(const Graph& graph, NodeId user, std::size_t slot, NodeId number);

}  // namespace pw
