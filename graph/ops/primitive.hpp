// The primitives: the ops that engines, checks, and proofs know individually, one row each. An op
// gets its Primitive once, when it is declared, so that no other code compares names. Rows are in
// the order of their classes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

// clang-format off: tables

/// X(name, operands): computed in the common dtype of the operands, which may be integers. Names
/// are those of rules/ops/primitive.pwr. Comparisons are contiguous, from eq to ge.
#define PW_NUMBER_PRIMITIVES(X)                                                                   \
  X(add, 2) X(sub, 2) X(mul, 2) X(div, 2) X(pow, 2) X(fmod, 2) X(remainder, 2) X(atan2, 2)        \
  X(maximum, 2) X(minimum, 2) X(eq, 2) X(ne, 2) X(lt, 2) X(le, 2) X(gt, 2) X(ge, 2) X(select, 3)  \
  X(neg, 1) X(abs, 1) X(floor, 1) X(ceil, 1) X(trunc, 1) X(round, 1)
/// X(name, operands): takes integers and b8 only; of b8 the lowest bit counts.
#define PW_INTEGER_PRIMITIVES(X)                                                                  \
  X(bitwise_and, 2) X(bitwise_or, 2) X(bitwise_xor, 2) X(shift_left, 2) X(shift_right, 2)         \
  X(bitwise_not, 1)
/// X(name): takes one real, as a function of the C library; integers are converted to reals. In
/// single precision all engines compute what the prelude does.
#define PW_LIBM_PRIMITIVES(X)                                                                     \
  X(sqrt) X(exp) X(log) X(tanh) X(sin) X(cos) X(tan) X(asin) X(acos) X(atan) X(sinh) X(cosh)      \
  X(asinh) X(acosh) X(atanh) X(expm1) X(log1p) X(log2) X(log10)
/// X(name): all primitives of one real.
#define PW_REAL_PRIMITIVES(X) X(rsqrt) PW_LIBM_PRIMITIVES(X)
/// X(name): reduces along one axis. Their kernels are in the files named reductions.
#define PW_REDUCTION_PRIMITIVES(X) X(sum) X(mean) X(amax) X(amin)
/// X(name): moves elements without computing.
#define PW_LAYOUT_PRIMITIVES(X)                                                                   \
  X(reshape) X(transpose) X(slice) X(split) X(cat) X(expand) X(reverse) X(pad_last) X(clone)      \
  X(detach)
/// X(name): takes no tensor: literals, sizes, and memory.
#define PW_SOURCE_PRIMITIVES(X) X(constant) X(full) X(empty) X(iota) X(extent)
/// X(name): reads or writes at indices.
#define PW_GATHER_PRIMITIVES(X) X(embedding) X(index) X(index_put)
/// X(name): searches, orders, or accumulates along one axis.
#define PW_SCAN_PRIMITIVES(X)                                                                     \
  X(prod) X(argmax) X(argmin) X(any) X(all) X(cumsum) X(cumprod) X(sort) X(topk) X(keep_topk)
/// X(name): sums products.
#define PW_PRODUCT_PRIMITIVES(X)                                                                  \
  X(mm) X(addmm) X(addmm_gelu) X(bmm) X(dot) X(grouped_mm) X(scaled_mm) X(convolution)            \
  X(transposed_convolution) X(convolution_weight_gradient) X(convolution_relu)                    \
  X(convolution_gelu) X(convolution_add_relu)
/// X(name): reads a window of the input for each element.
#define PW_WINDOW_PRIMITIVES(X)                                                                   \
  X(max_pool) X(max_unpool) X(avg_pool) X(avg_unpool) X(adaptive_avg_pool)                        \
  X(adaptive_avg_unpool) X(upsample_nearest) X(upsample_linear)
/// X(name): exchanges data between ranks.
#define PW_COLLECTIVE_PRIMITIVES(X) X(all_reduce) X(reduce_scatter) X(all_gather) X(shard)
/// X(name): attends, or stores keys and values.
#define PW_ATTENTION_PRIMITIVES(X)                                                                \
  X(unified_attention) X(unified_kv_cache_update) X(unified_mla_attention)                        \
  X(unified_mla_kv_cache_update) X(scaled_attention) X(scaled_attention_gradient)
// clang-format on

namespace pw {

enum class PrimitiveClass : std::uint8_t {
  none,
  pointwise,
  reduction,
  layout,
  source,
  gather,
  scan,
  product,
  window,
  collective,
  attention,
};

#define PW_NAME(name, ...) name,
enum class Primitive : std::uint8_t {
  none,  ///< any other op
  PW_NUMBER_PRIMITIVES(PW_NAME) PW_INTEGER_PRIMITIVES(PW_NAME) PW_REAL_PRIMITIVES(PW_NAME) cast,
  PW_REDUCTION_PRIMITIVES(PW_NAME) PW_LAYOUT_PRIMITIVES(PW_NAME) PW_SOURCE_PRIMITIVES(PW_NAME)
      PW_GATHER_PRIMITIVES(PW_NAME) PW_SCAN_PRIMITIVES(PW_NAME) PW_PRODUCT_PRIMITIVES(PW_NAME)
          PW_WINDOW_PRIMITIVES(PW_NAME) PW_COLLECTIVE_PRIMITIVES(PW_NAME)
              PW_ATTENTION_PRIMITIVES(PW_NAME) count
};
#undef PW_NAME
inline constexpr std::size_t kPrimitives = static_cast<std::size_t>(Primitive::count);

/// Returns the op's name; empty for none.
[[nodiscard]] std::string_view name(Primitive primitive);
/// Returns the primitive of that name; none for any other op.
[[nodiscard]] Primitive primitive_named(std::string_view name);
[[nodiscard]] PrimitiveClass class_of(Primitive primitive);
/// Returns true if an element of the result depends only on the operands' elements at its place.
[[nodiscard]] inline bool is_pointwise(Primitive primitive) {
  return class_of(primitive) == PrimitiveClass::pointwise;
}
[[nodiscard]] inline bool among(Primitive primitive, std::initializer_list<Primitive> several) {
  return std::find(several.begin(), several.end(), primitive) != several.end();
}

}  // namespace pw
