// NVRTC, NVIDIA's run-time compiler, loaded when first asked for: no headers, no link-time
// dependency. The same binary runs with and without it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/diagnostic.hpp"

namespace pw::cuda {

/// What ptxas says of one kernel.
struct Usage {
  int registers = -1;                                         ///< -1: not reported
  std::int64_t stack = 0, spill_stores = 0, spill_loads = 0;  ///< bytes
  [[nodiscard]] bool spills() const { return spill_stores != 0 || spill_loads != 0; }
};

/// Accesses to global memory in the PTX of one kernel, each instruction once.
struct Traffic {
  int wide_reads = 0, wide_writes = 0;      ///< of 8 or 16 bytes at once, as vectors of words
  int narrow_reads = 0, narrow_writes = 0;  ///< of one element
};

struct Cubin {
  std::string bytes;
  Usage usage;
  Traffic traffic;
  std::string log;
  /// Of static shared memory, as ptxas says.
  [[nodiscard]] std::int64_t shared_bytes() const;
};

/// Reads the usage of the (one) kernel of a program out of its log.
[[nodiscard]] Usage parse_usage(std::string_view log);

/// Counts the accesses in a PTX text.
[[nodiscard]] Traffic parse_traffic(std::string_view ptx);

/// What a kernel is compiled for. Strict: IEEE division and square root, and no contraction, so
/// that its bits are the interpreter's; else division and root may be off in the last two bits, and
/// a product and a sum may be one rounding.
struct Target {
  std::string arch = "sm_90";
  bool strict = true;
};

class Nvrtc {
 public:
  /// Looks for libnvrtc.so.13, then .12, by the loader's path, then under CUDA_HOME, CUDA_PATH and
  /// /usr/local/cuda. Never fails: ask `present`.
  static Nvrtc open();

  [[nodiscard]] bool present() const { return library_ != nullptr; }
  /// "13.0 at /…/libnvrtc.so.13", or why it is absent.
  [[nodiscard]] const std::string& state() const { return state_; }
  [[nodiscard]] const std::string& version() const { return version_; }
  /// The library's version, path, size and time of change: another build, another identity.
  [[nodiscard]] std::string identity() const;
  /// "sm_75", …: what it compiles for, ascending. None where it is absent.
  [[nodiscard]] std::vector<std::string> architectures() const;
  /// Source → cubin. Errors carry NVRTC's log. May be called from several threads.
  [[nodiscard]] Result<Cubin> compile(const std::string& source, const std::string& name,
                                      const Target& target = {}) const;

  struct Library;

 private:
  [[nodiscard]] Result<Cubin> compile_with(const std::string& source, const std::string& name,
                                           const std::vector<std::string>& options) const;

  std::shared_ptr<const Library> library_;
  std::string state_, version_;
};

/// The options a kernel is compiled with; nothing is flushed to zero.
[[nodiscard]] std::vector<std::string> nvrtc_options(const Target& target);

}  // namespace pw::cuda
