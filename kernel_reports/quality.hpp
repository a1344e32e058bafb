// What is known of a kernel without a device: registers, spills, occupancy, instructions, and the
// bytes that a launch moves, beside those that it must.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backends/kernel.hpp"
#include "cuda/compile.hpp"
#include "kernel_reports/sass.hpp"

namespace pw::cuda {

/// How one argument is accessed by a launch.
struct ArgumentTraffic {
  std::size_t argument = 0;
  bool result = false, by_row = false;  ///< by_row: another part of it for each row
  AccessesByWidth accesses;             ///< what all threads of a team touch alike once a team
  std::int64_t bytes = 0;               ///< of the argument
  /// How often each byte is touched: of all of it, or, where rows share it, by each row.
  double passes = 0;
  bool scalar = false;  ///< one value a row or a group of columns, or one at all
};

/// What a launch of some rows moves. `least`: each argument once, but of a table that rows share no
/// more than they touch. `moved`: what is touched by row as often as it is, the rest once, since
/// later rows find it in the caches.
struct LaunchTraffic {
  std::int64_t rows = 0, least = 0, moved = 0;
  AccessCounts accesses;
  std::vector<ArgumentTraffic> arguments;
  /// Bytes of global memory by accesses of 16 bytes, of all that are no single values of a row.
  [[nodiscard]] double wide_share() const;
};

/// At these sizes. Nothing where a size or the kernel's accesses are not known.
[[nodiscard]] std::optional<LaunchTraffic> traffic_of(const Kernel& kernel, const Context& context,
                                                      const Symbols& symbols);

/// A kernel for one architecture.
struct Quality {
  std::string kernel, op, arch, error;  ///< error: the compiler's, or the disassembler's
  int threads = 0, rows_per_block = 0, column_blocks = 1, team = 0;
  std::optional<Usage> usage;  ///< nothing: not compiled
  std::int64_t shared_bytes = 0;
  int resident = 0;      ///< blocks of a multiprocessor
  double occupancy = 0;  ///< of a multiprocessor's warps
  std::optional<SassCounts> sass;
  std::optional<LaunchTraffic> traffic;
  double seconds = 0;  ///< that bandwidth alone takes for `least`
  std::vector<ElementAccess> elements;
  /// Where it falls short, each with its reason; empty: nowhere.
  std::vector<std::string> shortcomings;
};

/// One entry for each target of the kernel. `disassembler` may be absent.
[[nodiscard]] std::vector<Quality> quality_of(const KernelReport& report, const Context& context,
                                              const Symbols& symbols,
                                              const Disassembler& disassembler);

}  // namespace pw::cuda
