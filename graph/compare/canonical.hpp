// Canonical spelling of attributes and numbers: the axes of a transpose in ascending order, bounds
// of a slice within its extent, rank-0 tensors of one number as constants. Equal nodes then have
// equal attributes, so that `cse` and the matcher recognise them.
#pragma once

#include <span>
#include <string_view>

#include "graph/graph.hpp"

namespace pw {

/// Brings complete attributes into canonical form.
void make_canonical(Context& context, const Op& op, AttributeList& attributes,
                    std::span<const TypeId> operands);

/// Returns the other of two axes that may be swapped without changing the op's result: `dim1` for
/// `dim0` of a transpose. Empty for every other attribute.
[[nodiscard]] std::string_view twin_axis(const Op& op, std::string_view attribute);

/// Returns a value for an attribute of `node` in canonical form: an axis counted from the front, a
/// bound of a slice within the extent.
[[nodiscard]] Attribute as_in_node(const Graph& graph, NodeId node, std::string_view attribute,
                                   Attribute value);

/// Replaces each rank-0 `full` by a `constant`, unless it is an output or is written in place. A
/// pointwise op that combines a one-element `full` with an operand of the same dtype and at least
/// the same rank then reads a `constant`.
void settle_numbers(Graph& graph);

/// Returns `value` rounded to the dtype.
[[nodiscard]] double as_held(DType dtype, double value);

/// Returns the dtype in which `user` reads the number in operand `slot`. A pointwise primitive
/// computes in f32, f64 or its integer type; any other op reads the operand's own type.
[[nodiscard]] DType number_dtype(const Graph& graph, NodeId user, std::size_t slot);

/// Returns the constant `number` as `user` reads it in operand `slot`.
[[nodiscard]] double number_read(const Graph& graph, NodeId user, std::size_t slot, NodeId number);

}  // namespace pw
