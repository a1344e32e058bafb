#include "cuda/device/machine.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace pw::cuda {
namespace {

constexpr std::int64_t kKiB = 1024;
constexpr std::array<Machine, 4> kMachines{{
    {"sm_80", "A100 SXM 80 GB", 108, 2048, 32, 65536, 164 * kKiB, 2.039e12, 700e-9},
    {"sm_90", "H100 SXM", 132, 2048, 32, 65536, 228 * kKiB, 3.35e12, 700e-9},
    {"sm_100", "B200", 148, 2048, 32, 65536, 228 * kKiB, 8e12, 700e-9},
    {"sm_120", "RTX PRO 6000 Blackwell", 188, 1536, 24, 65536, 100 * kKiB, 1.792e12, 700e-9},
}};

constexpr int kWarpThreads = 32;
constexpr int kMostRegisters = 255;         // of a thread, if the compiler did not report it
constexpr int kRegisterUnit = 256;          // a warp gets a multiple of this number
constexpr std::int64_t kBlockBytes = kKiB;  // of shared memory, the system's own
constexpr int kParts = 4;                   // of a multiprocessor, each with its registers
constexpr std::int64_t kSharedUnit = 128;
constexpr double kLaunch = 2e-6;  // from one node of a replayed graph to the next
constexpr double kBarrier = 40e-9;
constexpr double kAgain = 1.0 / 3;  // of the cost of memory, for what the caches still have

int up(int n, int unit) { return (n + unit - 1) / unit * unit; }

/// Bytes that a thread waits for at once: reads of one pass, or all passes where they are kept.
double under_way(const Kernel& kernel) {
  constexpr double kMost = 128;  // the queue of a multiprocessor is full then
  const double reads = 16.0 * std::clamp(kernel.group_reads - kernel.again_reads, 1, 4);
  return std::min(std::max(reads, 4.0 * kernel.kept_words), kMost);
}

}  // namespace

const Machine* machine_of(std::string_view arch) {
  const auto found = std::find_if(kMachines.begin(), kMachines.end(),
                                  [&](const Machine& m) { return m.arch == arch; });
  return found == kMachines.end() ? nullptr : found;
}

int resident_blocks(const Machine& machine, const Kernel& kernel, const Usage& usage) {
  // Exchange slots of reductions: one value per thread and barrier, unless slots are reused.
  const std::int64_t meeting =
      std::int64_t{8} * std::min(kernel.team, 256) * std::min(kernel.barriers, 8);
  return resident_blocks(machine, kernel.threads,
                         usage.registers > 0 ? usage.registers : kMostRegisters,
                         kernel.shared_bytes + meeting);
}

int resident_blocks(const Machine& machine, int threads, int registers, std::int64_t shared_bytes) {
  const int warps = up(threads, kWarpThreads) / kWarpThreads;
  const int of_warp = up(registers * kWarpThreads, kRegisterUnit);
  const int room = machine.registers / kParts / of_warp * kParts;  // warps, each in one part
  const std::int64_t shared =
      (shared_bytes + kBlockBytes + kSharedUnit - 1) / kSharedUnit * kSharedUnit;
  return static_cast<int>(
      std::min<std::int64_t>({machine.blocks, machine.threads / (warps * kWarpThreads),
                              room / warps, machine.shared_bytes / shared}));
}

double estimate(const Machine& machine, const Kernel& kernel, const Usage& usage,
                const Load& load) {
  const int resident = resident_blocks(machine, kernel, usage);
  if (resident == 0 || load.rows == 0) return std::numeric_limits<double>::infinity();
  const std::int64_t by_rows = (load.rows + kernel.rows_per_block - 1) / kernel.rows_per_block;
  const double blocks = static_cast<double>(by_rows) * kernel.column_blocks;
  const double bytes = static_cast<double>(load.bytes) +
                       kAgain * static_cast<double>(kernel.again_bytes * load.rows);
  const double each = bytes / blocks;
  const auto seconds = [&](double on_one) {  // of blocks that one multiprocessor runs together
    const double waiting = on_one * kernel.threads * under_way(kernel);
    const double rate =
        std::min(machine.bandwidth / machine.multiprocessors, waiting / machine.latency);
    return std::max(machine.latency, on_one * each / rate) + kBarrier * kernel.barriers;
  };
  const double on_one = blocks / machine.multiprocessors;
  const double waves = std::floor(on_one / resident);
  const double rest = on_one - waves * resident;
  return kLaunch + waves * seconds(resident) + (rest > 0 ? seconds(std::ceil(rest)) : 0);
}

}  // namespace pw::cuda
