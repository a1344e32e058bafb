// Runs the CUDA source of kernels on the host, unchanged: a prologue defines the names of CUDA, a
// C++ compiler found on PATH makes a shared object in a private folder, and the threads of a block
// run as fibers (see thread_block.hpp). For tests and comparisons.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <variant>

#include "base/diagnostic.hpp"
#include "codegen/cache/cache.hpp"
#include "codegen/shared_object.hpp"
#include "cuda/kernels/emitter.hpp"

namespace pw::cuda {

class HostKernels {
 public:
  /// Compiles all kernels, with extra C++ text after them if given, in one go. PW1222 without a
  /// compiler, PW1223 when it fails.
  static Result<HostKernels> build(std::span<const Kernel> kernels, std::string_view extra = {},
                                   CompileCache* cache = nullptr);

  /// Calls a kernel for all rows. Pointers in the order of `Kernel::arguments`; values of
  /// `Kernel::params`, rows first. Threads and blocks run in an order drawn from the seed. PW1225
  /// where threads race for shared memory, part at a barrier or an exchange, or leave a shared
  /// array. `counts` gets its accesses added.
  Status run(const std::string& kernel, std::span<void* const> pointers,
             std::span<const std::int64_t> params, std::uint64_t seed = 1,
             AccessCounts* counts = nullptr) const;
  /// A function of the extra text, by its C name; null when absent.
  [[nodiscard]] void* symbol(const std::string& name) const;

 private:
  void take_counts(AccessCounts* counts) const;

  struct Shape {
    int threads = 0, rows_per_block = 0, column_blocks = 1;
    std::int64_t shared_bytes = 0;
  };
  SharedObject library_;
  std::map<std::string, Shape> launches_;
};

/// The text that is compiled: prologue, prelude, kernels, and an entry for each.
[[nodiscard]] std::string host_source(std::span<const Kernel> kernels, std::string_view extra = {});

}  // namespace pw::cuda
