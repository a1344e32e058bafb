// Dense row-major tensors on the host, and views of them. Elements are stored in their own dtype.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "graph/dtype.hpp"

namespace pw {

using Extents = std::vector<std::int64_t>;
[[nodiscard]] std::int64_t element_count(const Extents& extents);

/// A non-owning view: row-major and contiguous.
struct TensorView {
  DType dtype = DType::f32;
  Extents extents;
  std::byte* data = nullptr;
  [[nodiscard]] std::int64_t count() const { return element_count(extents); }
  [[nodiscard]] std::size_t bytes() const {
    return static_cast<std::size_t>(count()) * static_cast<std::size_t>(size_of(dtype));
  }
};

/// A tensor that owns 64-byte aligned, zeroed memory.
class Tensor {
 public:
  Tensor() = default;
  Tensor(DType dtype, Extents extents);
  /// Creates a tensor in existing memory.
  Tensor(DType dtype, Extents extents, std::shared_ptr<std::byte[]> data)
      : dtype_(dtype), extents_(std::move(extents)), data_(std::move(data)) {}
  [[nodiscard]] TensorView view() const { return {dtype_, extents_, data_.get()}; }
  [[nodiscard]] DType dtype() const { return dtype_; }
  [[nodiscard]] const Extents& extents() const { return extents_; }
  [[nodiscard]] std::byte* data() const { return data_.get(); }
  [[nodiscard]] bool empty() const { return data_ == nullptr; }

 private:
  DType dtype_ = DType::f32;
  Extents extents_;
  std::shared_ptr<std::byte[]> data_;
};

}  // namespace pw
