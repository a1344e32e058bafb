// Device memory of one test.
#pragma once

#include <vector>

#include "cuda/device/driver.hpp"
#include "tests/backends_cuda/kernel_run.hpp"

namespace pw::test {

/// Released at the end.
class Memory {
 public:
  Memory(cuda::Driver& driver, const Context& context) : driver_(driver), context_(context) {}
  ~Memory() {
    for (cuda::Address a : blocks_) driver_.release(a);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  cuda::Address take(std::int64_t bytes) {
    blocks_.push_back(need(driver_.allocate(bytes), context_));
    return blocks_.back();
  }
  /// Every byte is this one.
  cuda::DeviceTensor take(DType dtype, const Extents& extents, int byte) {
    cuda::DeviceTensor out{dtype, extents, 0};
    out.address = take(out.bytes());
    need(driver_.fill(out.address, byte, out.bytes()), context_);
    return out;
  }
  cuda::DeviceTensor copy(const TensorView& from) {
    const cuda::DeviceTensor out = take(from.dtype, from.extents, 0);
    need(driver_.write(out.address, from.data, out.bytes()), context_);
    return out;
  }
  Tensor read(const cuda::DeviceTensor& from) {
    Tensor out(from.dtype, from.extents);
    need(driver_.read(out.data(), from.address, from.bytes()), context_);
    return out;
  }

 private:
  cuda::Driver& driver_;
  const Context& context_;
  std::vector<cuda::Address> blocks_;
};

}  // namespace pw::test
