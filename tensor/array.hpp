// Strided arrays, the operands of kernels. An array may be a view of another's memory; results of
// kernels are fresh and row-major. Strides count elements, and are 0 along broadcast dims.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "tensor/tensor.hpp"

namespace pw {

/// The dtype that stores a compute type without conversion.
template <class T>
constexpr DType kStoredAs = std::is_same_v<T, float>    ? DType::f32
                            : std::is_same_v<T, double> ? DType::f64
                                                        : DType::i64;

struct Array {
  DType dtype = DType::f32;
  Extents extents;
  Extents strides;
  std::byte* data = nullptr;
  std::shared_ptr<void> owner;  ///< keeps the memory alive; empty for memory of the caller

  [[nodiscard]] std::int64_t count() const { return element_count(extents); }
  [[nodiscard]] std::int64_t rank() const { return static_cast<std::int64_t>(extents.size()); }
  [[nodiscard]] bool contiguous() const;
  /// Returns the address of an element offset.
  [[nodiscard]] std::byte* at(std::int64_t offset) const { return data + offset * size_of(dtype); }
};

[[nodiscard]] Extents row_major(const Extents& extents);
/// Returns an array in fresh, uninitialised memory.
[[nodiscard]] Array make_array(DType dtype, const Extents& extents);
[[nodiscard]] Array array_of(const TensorView& view);
/// Returns the array itself if it is row-major, else a copy.
[[nodiscard]] Array contiguous(const Array& array);
/// Copies elements, with dtype conversion like `store`; extents must be equal.
void copy(const Array& from, const Array& to);
/// Returns strides that read `array` as if it had the (broadcast) shape.
[[nodiscard]] Extents broadcast_strides(const Array& array, const Extents& shape);

/// One innermost run of an iteration over several arrays: an element offset and a step for each
/// array.
struct Run {
  std::span<const std::int64_t> offsets, steps;
  std::int64_t length = 0;
};
/// Walks `shape` in row-major order. Neighbouring dims are merged if every array allows it, and
/// runs are cut at `limit`.
void for_each_run(const Extents& shape, std::span<const Extents> strides, std::int64_t limit,
                  const std::function<void(const Run&)>& visit);

/// Converts a run between storage and a compute type. Reals to integers truncate and saturate;
/// integers wrap.
void load_run(DType dtype, const std::byte* data, std::int64_t step, std::int64_t n, float* out);
void load_run(DType dtype, const std::byte* data, std::int64_t step, std::int64_t n, double* out);
void load_run(DType dtype, const std::byte* data, std::int64_t step, std::int64_t n,
              std::int64_t* out);
/// Returns the elements in row-major order, read like load_run.
template <class T>
[[nodiscard]] std::vector<T> elements_of(const Array& array) {
  const Array packed = contiguous(array);
  std::vector<T> values(static_cast<std::size_t>(packed.count()));
  load_run(packed.dtype, packed.data, 1, packed.count(), values.data());
  return values;
}
void store_run(DType dtype, std::byte* data, std::int64_t step, std::int64_t n, const float* in);
void store_run(DType dtype, std::byte* data, std::int64_t step, std::int64_t n, const double* in);
void store_run(DType dtype, std::byte* data, std::int64_t step, std::int64_t n,
               const std::int64_t* in);

}  // namespace pw
