// Instruction statistics of kernels from nvdisasm's output: instructions by class, accesses by
// space and width. nvdisasm is part of the CUDA toolkit and of the Python package
// nvidia-cuda-nvdisasm; it is located on first use.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/diagnostic.hpp"

namespace pw::cuda {

/// Static instruction counts of a kernel.
struct SassCounts {
  std::int64_t instructions = 0;                ///< without padding
  std::map<std::string, std::int64_t> classes;  ///< "float", "integer", … : see class_of
  /// Global-memory accesses of 8, 16, 32, 64, and 128 bits (wider ones count as 128).
  std::array<std::int64_t, 5> global_reads{}, global_writes{};
  std::int64_t shared = 0, local = 0;  ///< accesses
  std::int64_t barriers = 0, shuffles = 0;
  std::int64_t tensor = 0;  ///< tensor-core matrix instructions
};

/// Returns the class of an opcode with modifiers: "float" for `FFMA.SAT`.
[[nodiscard]] std::string_view class_of(std::string_view opcode);

/// Parses the output of `nvdisasm -c` for one kernel.
[[nodiscard]] SassCounts parse_sass(std::string_view text);

class Disassembler {
 public:
  /// Searches $NVDISASM, then PATH, then bin/ in CUDA_HOME, CUDA_PATH, and /usr/local/cuda. Never
  /// fails; check `present`.
  static Disassembler find();
  [[nodiscard]] bool present() const { return !program_.empty(); }
  /// Returns its path, or the locations that were searched.
  [[nodiscard]] const std::string& state() const { return state_; }
  /// Fails with PW1228 if the tool is absent or rejects the cubin.
  [[nodiscard]] Result<std::string> disassemble(const std::string& cubin) const;

 private:
  std::string program_, state_;
};

}  // namespace pw::cuda
