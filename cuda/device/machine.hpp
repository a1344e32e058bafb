// The resources of a GPU, and a cost model of a kernel's time on it: occupancy, bytes in flight,
// waves of blocks. It ranks the schedules of one kernel without a device; its times are estimates,
// not measurements.
#pragma once

#include <cstdint>
#include <string_view>

#include "cuda/device/nvrtc.hpp"
#include "cuda/kernels/emitter.hpp"

namespace pw::cuda {

struct Machine {
  std::string_view arch, name;
  int multiprocessors = 0;
  // Per multiprocessor. Registers of 4 bytes.
  int threads = 2048, blocks = 32, registers = 65536;
  std::int64_t shared_bytes = 0;
  double bandwidth = 0;     ///< memory bandwidth, bytes a second
  double latency = 700e-9;  ///< latency of a memory read, seconds
};

/// Returns the machine that an architecture is tuned for, or null if unknown. sm_80: A100 SXM 80
/// GB, sm_90: H100 SXM, sm_100: B200, sm_120: RTX PRO 6000. Multiprocessors and bandwidth are from
/// the data sheets, the rest from the table of compute capabilities in NVIDIA's CUDA programming
/// guide.
[[nodiscard]] const Machine* machine_of(std::string_view arch);

/// The work of a launch: rows of the kernel's domain, and the bytes of its arguments, each once.
struct Load {
  std::int64_t rows = 0;
  std::int64_t bytes = 0;
};

/// Returns the number of resident blocks per multiprocessor; 0 if a block does not fit.
[[nodiscard]] int resident_blocks(const Machine& machine, const Kernel& kernel, const Usage& usage);
/// Returns the resident blocks for given threads, registers per thread and shared memory, by the
/// rules of the toolkit's cuda_occupancy.h.
[[nodiscard]] int resident_blocks(const Machine& machine, int threads, int registers,
                                  std::int64_t shared_bytes);
/// Returns the estimated seconds; infinite if the kernel cannot be launched.
[[nodiscard]] double estimate(const Machine& machine, const Kernel& kernel, const Usage& usage,
                              const Load& load);

}  // namespace pw::cuda
