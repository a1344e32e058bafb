// For tests: libcuda and cuBLASLt as one library of the host's, made when a test runs. Memory is
// the host's; graphs and captures are recorded, and replayed in an order drawn anew each time, as
// far as edges allow. A product is computed by the column-major definition, from its descriptors
// alone, in two nodes: sums to the workspace, then what is stored.
#pragma once

#include <memory>
#include <string>

#include "codegen/toolchain.hpp"
#include "cuda/device/cuda_driver.hpp"

namespace pw::test {

class StandIn {
 public:
  /// The source describes which calls are checked, and how to make them fail. Without a C++
  /// compiler there is none.
  StandIn();
  [[nodiscard]] bool present() const { return !path_.empty(); }
  [[nodiscard]] std::unique_ptr<cuda::CudaDriver> driver(bool strict = false) const;
  [[nodiscard]] const std::string& path() const { return path_; }
  /// Searches for an algorithm, and products that were set going, since the library was made.
  [[nodiscard]] int searches() const;
  [[nodiscard]] int products() const;
  /// A counter: allocations, waits, loads (of modules), copies_of_host, launches.
  [[nodiscard]] int counter(const std::string& name) const;
  /// A function of the library.
  template <class Function>
  [[nodiscard]] Function* function(const char* name) const {
    return reinterpret_cast<Function*>(find(name));
  }

 private:
  [[nodiscard]] void* find(const char* name) const;
  PrivateFolder folder_;
  std::string path_;
};

}  // namespace pw::test
