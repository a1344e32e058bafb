#include "cuda/kernels/matmul/tensor_machine.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "cuda/device/machine.hpp"

namespace pw::cuda {
namespace {

constexpr std::int64_t kKibi = 1024;

// Constants of known machines. Multiprocessors, clocks (boost), bandwidth and dense peaks are from
// NVIDIA's data sheets (A100 SXM 80 GB: 312 TFLOPS; H100 SXM: 989; B200: 2250; RTX 5090: 209.5, fp8
// twice as many with f32 sums at half rate). Shared memory is from the table of compute
// capabilities in the CUDA programming guide. `wgmma` and `tcgen05` reach these peaks on sm_90 and
// sm_100; `mma.sync` reaches 62.9 % of it on H100 (Luo et al., "Benchmarking and Dissecting the
// Nvidia Hopper GPU Architecture via Microbenchmarking", 2024). For B200 nothing is published; the
// rate of an H100 multiprocessor at B200's clock is assumed.
//
// Bandwidth of the second-level cache: 4.83 TB/s measured on A100, of 5120 bytes a cycle in its
// white paper (by Nsight Compute, in NVIDIA's developer forum); 10.7 TB/s on H100 by the fit to
// products. B200 has one in each of two dies; twice H100's rate is assumed. For RTX 5090 three
// times its memory bandwidth is assumed. Its size: 40 and 50 MB by NVIDIA's white papers of A100
// and H100, 96 MB by that of RTX 5090, and for B200 the 126 MB that the driver reports.
constexpr double kHopper = 0.629, kHopperCache = 10.7e12;
constexpr double kHopperPeak = 989.4e12, kHopperFlops = kHopperPeak * kHopper;
constexpr double kBlackwellFlops = kHopperFlops * 148 / 132 * 1.85 / 1.755;
constexpr std::array<TensorMachine, 4> kTensorMachines{{
    {"sm_80", "A100 SXM 80 GB", 108, 163 * kKibi, 1.41e9, 2.039e12, 4.83e12, 40e6, 312e12, 0, 144,
     0},
    {"sm_90", "H100 SXM", 132, 227 * kKibi, 1.755e9, 3.35e12, kHopperCache, 50e6, kHopperFlops,
     kHopperFlops, 64, 32, kHopperPeak},
    {"sm_100", "B200", 148, 227 * kKibi, 1.85e9, 8e12, 2 * kHopperCache, 126e6, kBlackwellFlops,
     kBlackwellFlops, 64, 32},
    {"sm_120", "RTX 5090", 170, 99 * kKibi, 2.407e9, 1.792e12, 3 * 1.792e12, 96e6, 209.5e12, 419e12,
     144, 0},
}};

constexpr std::int64_t kOfEveryBlock = 99 * kKibi;  // limit for a block on every architecture

}  // namespace

std::int64_t TensorMachine::resident(int block_threads, int registers,
                                     std::int64_t block_shared_bytes) const {
  if (block_shared_bytes > block_bytes) return 0;
  return resident_blocks(*machine_of(arch), block_threads, registers, block_shared_bytes);
}

const TensorMachine* tensor_machine(std::string_view arch) {
  const auto found = std::find_if(kTensorMachines.begin(), kTensorMachines.end(),
                                  [&](const TensorMachine& m) { return m.arch == arch; });
  return found == kTensorMachines.end() ? nullptr : &*found;
}

TensorMachine tensor_machine_or_nearest(std::string_view arch) {
  if (const TensorMachine* known = tensor_machine(arch)) return *known;
  const int number = arch_number(arch);
  TensorMachine out = *tensor_machine(number >= 120   ? "sm_120"
                                      : number >= 100 ? "sm_100"
                                      : number >= 90  ? "sm_90"
                                                      : "sm_80");
  out.block_bytes = std::min(out.block_bytes, kOfEveryBlock);
  if (out.byte_flops == 0) out.byte_flops = out.flops;
  return out;
}

int arch_number(std::string_view arch) {
  int out = 0;
  if (arch.substr(0, 3) == "sm_") std::from_chars(arch.data() + 3, arch.data() + arch.size(), out);
  return out;
}

}  // namespace pw::cuda
