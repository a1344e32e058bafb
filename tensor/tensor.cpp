#include "tensor/tensor.hpp"

#include <cstring>
#include <new>

#include "base/assert.hpp"

namespace pw {

std::int64_t element_count(const Extents& extents) {
  std::int64_t count = 1;
  for (std::int64_t extent : extents) {
    PW_ASSERT(extent >= 0 && !__builtin_mul_overflow(count, extent, &count),
              "an extent is negative, or their product is too large");
  }
  return count;
}

Tensor::Tensor(DType dtype, Extents extents) : dtype_(dtype), extents_(std::move(extents)) {
  constexpr std::align_val_t kAlign{64};
  const std::size_t bytes =
      static_cast<std::size_t>(element_count(extents_)) * static_cast<std::size_t>(size_of(dtype_));
  auto* data = static_cast<std::byte*>(
      ::operator new[](bytes + 1, kAlign));  // never a null pointer for an empty tensor
  std::memset(data, 0, bytes + 1);
  data_ = std::shared_ptr<std::byte[]>(
      data, [](std::byte* p) { ::operator delete[](p, std::align_val_t{64}); });
}

}  // namespace pw
