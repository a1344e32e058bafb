// Machine code of a kernel as nvdisasm prints it: instructions by class, accesses by space and
// width. nvdisasm is part of the CUDA toolkit, and of the Python package nvidia-cuda-nvdisasm; it
// is looked for when first needed.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/diagnostic.hpp"

namespace pw::cuda {

/// Instructions in the text of a kernel, each counted once, however often it runs.
struct SassCounts {
  std::int64_t instructions = 0;                ///< without padding
  std::map<std::string, std::int64_t> classes;  ///< "float", "integer", … : see class_of
  /// Of global memory, by 8, 16, 32, 64 and 128 bits (wider ones count as 128).
  std::array<std::int64_t, 5> global_reads{}, global_writes{};
  std::int64_t shared = 0, local = 0;  ///< accesses
  std::int64_t barriers = 0, shuffles = 0;
  std::int64_t tensor = 0;  ///< products of tiles by tensor cores
};

/// What an instruction is for, by its opcode with modifiers: `FFMA.SAT` is "float".
[[nodiscard]] std::string_view class_of(std::string_view opcode);

/// Reads what `nvdisasm -c` prints of one kernel.
[[nodiscard]] SassCounts parse_sass(std::string_view text);

class Disassembler {
 public:
  /// $NVDISASM, then PATH, then bin/ under CUDA_HOME, CUDA_PATH and /usr/local/cuda. Never fails:
  /// ask `present`.
  static Disassembler find();
  [[nodiscard]] bool present() const { return !program_.empty(); }
  /// Its path, or where it was sought in vain.
  [[nodiscard]] const std::string& state() const { return state_; }
  /// PW1228 where it is absent or refuses the cubin.
  [[nodiscard]] Result<std::string> disassemble(const std::string& cubin) const;

 private:
  std::string program_, state_;
};

}  // namespace pw::cuda
