// Runs the CUDA source of kernels on the host, unchanged. A prologue defines CUDA's names, a C++
// compiler from PATH makes a shared object in a private folder, and the threads of a block run as
// fibers (see thread_block.hpp). For tests and comparisons.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/diagnostic.hpp"
#include "codegen/cache/cache.hpp"
#include "codegen/shared_object.hpp"
#include "cuda/kernels/emitter.hpp"

namespace pw::cuda {

class HostKernels {
 public:
  /// Compiles all kernels at once, followed by extra C++ text if given. Fails with PW1222 without a
  /// compiler, and with PW1223 if it fails.
  static Result<HostKernels> build(std::span<const Kernel> kernels, std::string_view extra = {},
                                   CompileCache* cache = nullptr);

  /// Calls a kernel for all rows. Pointers follow `Kernel::arguments`, values `Kernel::params`,
  /// rows first. Threads and blocks run in an order drawn from the seed. Fails with PW1225 if
  /// threads race for shared memory, diverge at a barrier or exchange, or exceed a shared array.
  /// Adds accesses to `counts`. With `earlier` the launch starts before its predecessor ends:
  /// `earlier` completes it at the first wait. A thread that accesses memory before it waits, or
  /// does not wait, is a fault.
  Status run(const std::string& kernel, std::span<void* const> pointers,
             std::span<const std::int64_t> params, std::uint64_t seed = 1,
             AccessCounts* counts = nullptr, const std::function<Status()>& earlier = {}) const;
  /// Returns the order in which a run of a compiled kernel for so many rows starts its blocks. A
  /// block's number is x + y * (blocks in x); one that another awaits may start earlier.
  [[nodiscard]] std::vector<unsigned> block_order(const std::string& kernel, std::int64_t rows,
                                                  std::uint64_t seed) const;
  /// Returns a function of the extra text by its C name, or null.
  [[nodiscard]] void* symbol(const std::string& name) const;

 private:
  void take_counts(AccessCounts* counts) const;

  struct Shape {
    int threads = 0, rows_per_block = 0, column_blocks = 1;
    std::int64_t shared_bytes = 0;
    [[nodiscard]] unsigned blocks(std::int64_t rows) const {
      return static_cast<unsigned>((rows + rows_per_block - 1) / rows_per_block);
    }
  };
  SharedObject library_;
  std::map<std::string, Shape> launches_;
};

/// Returns the compiled text: prologue, prelude, kernels, and an entry for each.
[[nodiscard]] std::string host_source(std::span<const Kernel> kernels, std::string_view extra = {});

}  // namespace pw::cuda
