// NVRTC, NVIDIA's run-time compiler, loaded on first use: it requires neither headers nor a
// link-time dependency, so one binary runs with and without it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/diagnostic.hpp"

namespace pw::cuda {

/// Resource usage of one kernel as ptxas reports it.
struct Usage {
  int registers = -1;                                         ///< -1: not reported
  std::int64_t stack = 0, spill_stores = 0, spill_loads = 0;  ///< bytes
  [[nodiscard]] bool spills() const { return spill_stores != 0 || spill_loads != 0; }
};

/// Accesses to global memory in the PTX of one kernel, each instruction once.
struct Traffic {
  int wide_reads = 0, wide_writes = 0;      ///< 8 or 16 bytes at once, as vectors of words
  int narrow_reads = 0, narrow_writes = 0;  ///< one element
};

struct Cubin {
  std::string bytes;
  Usage usage;
  Traffic traffic;
  std::string log;
  /// Returns the bytes of static shared memory that ptxas reports.
  [[nodiscard]] std::int64_t shared_bytes() const;
};

/// Parses the usage of a program's only kernel from its log.
[[nodiscard]] Usage parse_usage(std::string_view log);

/// Counts the accesses in a PTX text.
[[nodiscard]] Traffic parse_traffic(std::string_view ptx);

/// Compilation target. Strict: IEEE division and square root without contraction, so that the bits
/// equal the interpreter's. Otherwise division and root may be off in the last two bits, and a
/// product and a sum may round once.
struct Target {
  std::string arch = "sm_90";
  bool strict = true;
};

class Nvrtc {
 public:
  /// Opens libnvrtc.so.13, then .12, from the loader's path, then from CUDA_HOME, CUDA_PATH and
  /// /usr/local/cuda. Never fails: check `present`.
  static Nvrtc open();

  [[nodiscard]] bool present() const { return library_ != nullptr; }
  /// Returns "13.0 at /…/libnvrtc.so.13", or why it is absent.
  [[nodiscard]] const std::string& state() const { return state_; }
  [[nodiscard]] const std::string& version() const { return version_; }
  /// Returns the library's version, path, size and modification time; it changes with the library.
  [[nodiscard]] std::string identity() const;
  /// Returns the supported architectures, "sm_75", …, ascending; empty if NVRTC is absent.
  [[nodiscard]] std::vector<std::string> architectures() const;
  /// Compiles a source to a cubin. Errors carry NVRTC's log. Thread-safe.
  [[nodiscard]] Result<Cubin> compile(const std::string& source, const std::string& name,
                                      const Target& target = {}) const;

  struct Library;

 private:
  [[nodiscard]] Result<Cubin> compile_with(const std::string& source, const std::string& name,
                                           const std::vector<std::string>& options) const;

  std::shared_ptr<const Library> library_;
  std::string state_, version_;
};

/// Returns the compiler options for a target; denormals are never flushed to zero.
[[nodiscard]] std::vector<std::string> nvrtc_options(const Target& target);

}  // namespace pw::cuda
