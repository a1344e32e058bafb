// Static figures of a kernel: registers, spills, occupancy, instructions, and the bytes that a
// launch moves compared with the minimum.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backends/kernel.hpp"
#include "cuda/compile.hpp"
#include "kernel_reports/sass.hpp"

namespace pw::cuda {

/// The accesses of one launch to one argument.
struct ArgumentTraffic {
  std::size_t argument = 0;
  bool result = false, by_row = false;  ///< by_row: each row accesses a different part
  AccessesByWidth accesses;  ///< accesses common to all threads of a team count once per team
  std::int64_t bytes = 0;    ///< size of the argument
  /// Average number of accesses to each byte: over all launches of a row, if rows share it.
  double passes = 0;
  bool scalar = false;  ///< one value for a row, a group of columns, or the whole launch
};

/// Bytes that a launch moves. `least`: each argument once, but for a shared table only the part
/// accessed. `moved`: by-row accesses with repetitions, all others once, because later rows hit the
/// caches.
struct LaunchTraffic {
  std::int64_t rows = 0, least = 0, moved = 0;
  AccessCounts accesses;
  std::vector<ArgumentTraffic> arguments;
  /// Returns the share of global-memory bytes in 16-byte accesses, excluding arguments with single
  /// values.
  [[nodiscard]] double wide_share() const;
};

/// Computes the traffic at these sizes; nothing if a size or the kernel's accesses are unknown.
[[nodiscard]] std::optional<LaunchTraffic> traffic_of(const Kernel& kernel, const Context& context,
                                                      const Symbols& symbols);

/// The quality of a kernel for one architecture.
struct Quality {
  std::string kernel, op, arch, error;  ///< error of the compiler or the disassembler
  int threads = 0, rows_per_block = 0, column_blocks = 1, team = 0;
  std::optional<Usage> usage;  ///< nothing if not compiled
  std::int64_t shared_bytes = 0;
  int resident = 0;      ///< blocks on a multiprocessor
  double occupancy = 0;  ///< fraction of a multiprocessor's warps
  std::optional<SassCounts> sass;
  std::optional<LaunchTraffic> traffic;
  double seconds = 0;  ///< lower bound by bandwidth, for `least`
  std::vector<ElementAccess> elements;
  /// Shortcomings with reasons; empty if there are none.
  std::vector<std::string> shortcomings;
};

/// Returns one entry for each target of the kernel. `disassembler` may be absent.
[[nodiscard]] std::vector<Quality> quality_of(const KernelReport& report, const Context& context,
                                              const Symbols& symbols,
                                              const Disassembler& disassembler);

}  // namespace pw::cuda
