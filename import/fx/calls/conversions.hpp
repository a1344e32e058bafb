// Private to the importer: conversions of known calls into nodes, by family. Each returns the
// results of a row of the table, or nothing if the row does not apply; what it added until then is
// unused. A conversion needs an emitter only.
#pragma once

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "import/fx/emit/emitter.hpp"

namespace pw::fx {

// Views, slices, fills, casts and reductions: special.cpp
Conversion convert_view, convert_flatten, convert_unsqueeze, convert_squeeze, convert_t,
    convert_permute, convert_slice, convert_select, convert_split, convert_expand, convert_make,
    convert_to_copy, convert_type_of, convert_copy, convert_reduce, convert_var_mean;

// Parts of an axis: scatter.cpp
Conversion convert_narrow, convert_select_scatter;

// PyTorch's type promotion: promotion.cpp
Conversion convert_cat, convert_scalar, convert_stack, convert_unbind;

// Elements chosen by tensors of indices: indexing.cpp
Conversion convert_index, convert_index_put, convert_gather, convert_scatter, convert_flip;

// Axes made, repeated, padded, and several of them reduced: padding.cpp
Conversion convert_arange, convert_repeat, convert_pad, convert_pad_edges, convert_diagonal,
    convert_any_of_axes, convert_variance, convert_convolution;

// Ops that PyTorch itself composes of others: composite.cpp
Conversion convert_matmul, convert_repeat_interleave, convert_roll, convert_conv_transpose,
    convert_unflatten, convert_im2col;

// PyTorch's own primitives: prims.cpp
Conversion convert_iota, convert_expand_dims, convert_split_dim, convert_broadcast_in_dim,
    convert_slices;

// Products over axes that letters name: einsum.cpp
Conversion convert_einsum, convert_tensordot;

// Elements at calculated places, and several tensors of one shape: windows.cpp
Conversion convert_unfold, convert_diagonal_scatter, convert_movedim, convert_broadcast,
    convert_meshgrid, convert_vector_norm;

// vLLM's targets: vllm.cpp
Conversion convert_ir_norm, convert_rotary, convert_attention, convert_scaled_product,
    convert_var_mean_of_axis;

// Calls whose arguments are renamed only: direct_call.cpp

/// Converts a call whose arguments are all operands and attributes of the op.
Conversion apply_direct;
/// Returns the operands of the op; nothing if an argument is not one.
std::optional<std::vector<ValueId>> operands_of(const KnownCall& call, const Op& op);
/// Returns the attributes of the op; nothing if an argument is not one.
std::optional<NamedAttributes> attributes_of(const KnownCall& call, const Op& op);

// Parts of several families

Applied reshape_to(const KnownCall& call, ValueId x, Shape shape);
Applied cast(const KnownCall& call, ValueId x, DType dtype);
/// Casts the operands of a call to their common type where PyTorch computes in that type and the op
/// of the library would compute with other numbers. Returns false if the library lacks the type.
Result<bool> to_common_type(Emitter& emitter, std::string_view target, Arguments& arguments,
                            const Site& site);
/// Returns the number that fills a tensor of the dtype: a negative one wraps around in u8. Nothing
/// if PyTorch rejects the number.
std::optional<Attribute> fill_of(const Dims& dims, const Value& number, DType dtype);
/// Replaces every stride-th element of an axis from `start` on by those of `src`.
Applied strided_scatter(const KnownCall& call, ValueId x, ValueId src, std::size_t axis,
                        DimId start, std::int64_t stride);
/// Makes axis to[i] axis i; the last of the exchanges has the name.
Applied permuted(const KnownCall& call, ValueId x, const std::vector<std::size_t>& to);
/// Makes axis to[i] axis i.
ValueId in_order(Maker& make, ValueId x, const std::vector<std::size_t>& to);
/// Returns the slice of an axis from `start` to `end`.
ValueId part_of_axis(Maker& make, ValueId x, std::size_t axis, DimId start, DimId end);
/// Reverses an axis of this extent, by indices -1, -2, …, which count from the end.
ValueId flipped(Maker& make, ValueId x, DimId extent, std::size_t axis);
/// Returns offset + i · strides[0] + j · strides[1] + …, in i64, of that many of each.
std::optional<ValueId> places_of(Maker& make, const Shape& sizes, const Shape& strides,
                                 std::int64_t offset);
using Pads = std::vector<std::pair<DimId, DimId>>;  ///< before and after, the last axis first
/// Pads x with one value; negative amounts crop it. Nothing if the amounts are unknown.
std::optional<ValueId> padded(Maker& make, ValueId x, const Pads& pads, const Attribute& value);
/// Returns the listed axes, or all; the last one first. Nothing if one does not exist, or is
/// repeated.
std::optional<std::vector<std::size_t>> listed_axes(Emitter& emitter, const Value* dim,
                                                    std::size_t rank);
/// Returns a number for each axis: one is that of all.
std::optional<Shape> of_each_axis(Emitter& emitter, const Value* given, std::size_t axes,
                                  std::int64_t otherwise);
/// Replaces a tensor's sizes by the best-known equal ones, as slices of all of it. Returns true if
/// an argument changed.
bool unify_sizes(Emitter& emitter, Bound& bound, const Site& site);

}  // namespace pw::fx
