// The resources of a GPU, and a model of how long a kernel takes on it: residency, bytes in flight,
// waves of blocks. Good enough to rank schedules of one kernel without a device; its times are no
// measurements.
#pragma once

#include <cstdint>
#include <string_view>

#include "cuda/device/nvrtc.hpp"
#include "cuda/kernels/emitter.hpp"

namespace pw::cuda {

struct Machine {
  std::string_view arch, name;
  int multiprocessors = 0;
  // Of one multiprocessor. Registers of 4 bytes.
  int threads = 2048, blocks = 32, registers = 65536;
  std::int64_t shared_bytes = 0;
  double bandwidth = 0;     ///< of memory, bytes a second
  double latency = 700e-9;  ///< of a read from memory, seconds
};

/// The machine that an architecture is tuned for; null for one that is not known. sm_80: A100 SXM
/// 80 GB, sm_90: H100 SXM, sm_100: B200, sm_120: RTX PRO 6000 (multiprocessors and bandwidth by
/// their data sheets, the rest by the table of compute capabilities in NVIDIA's CUDA programming
/// guide).
[[nodiscard]] const Machine* machine_of(std::string_view arch);

/// What a launch works on: rows of the kernel's domain, and bytes of its arguments, each once.
struct Load {
  std::int64_t rows = 0;
  std::int64_t bytes = 0;
};

/// Blocks that a multiprocessor holds at once; 0 where one does not fit.
[[nodiscard]] int resident_blocks(const Machine& machine, const Kernel& kernel, const Usage& usage);
/// The same for blocks of so many threads, with so many registers each and so much shared memory,
/// by the rules of the toolkit's cuda_occupancy.h.
[[nodiscard]] int resident_blocks(const Machine& machine, int threads, int registers,
                                  std::int64_t shared_bytes);
/// Seconds, by the model; infinite where the kernel cannot be launched.
[[nodiscard]] double estimate(const Machine& machine, const Kernel& kernel, const Usage& usage,
                              const Load& load);

}  // namespace pw::cuda
