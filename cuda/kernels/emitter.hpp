// Emits header-free CUDA C++ from a row program. A team of threads processes a row: a warp or part
// of one up to 256 columns, with several rows a block, and a whole block beyond. Loops over columns
// have groups of 8, reductions follow the fixed tree, and loops around either are distributed over
// parts of the team. Data that a later loop reads again stays in registers up to about 8k columns,
// in shared memory up to about 32k; beyond that it is read twice. Names are generated; of a graph's
// text only the op's name appears, in a comment, reduced to letters, digits and _.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/prelude.hpp"
#include "codegen/rowprogram/row_program.hpp"
#include "cuda/kernels/access_counts.hpp"

namespace pw::cuda {

/// Distribution of rows beyond what their width decides. A schedule changes a kernel's speed and
/// none of its bits: reductions follow the row program's tree under every schedule.
struct Schedule {
  int block = 256;      ///< threads of a block with several rows: a power of two, 32 to 1024
  int passes = 1;       ///< groups of 8 columns per thread in a row that several blocks share
  int resident = 0;     ///< minimum resident blocks per multiprocessor, which limits registers.
                        ///< 0: as many as its threads allow without spills
  int kept_words = 48;  ///< maximum registers of 4 bytes for reused data
  friend bool operator==(const Schedule&, const Schedule&) = default;
};

/// An access that is not by groups of columns.
struct ElementAccess {
  std::size_t argument = 0;
  bool store = false;
  std::string why;
  friend bool operator==(const ElementAccess&, const ElementAccess&) = default;
};

/// An argument that no kernel writes, with its bytes.
struct ConstantArgument {
  std::size_t argument = 0;
  std::int64_t bytes = 0;
};

struct Kernel {
  std::string name;               ///< k_ and a hash of the program: equal programs have equal names
  std::string op;                 ///< for people
  std::vector<TypeId> arguments;  ///< pointers in order: non-literal operands that exist,
                                  ///< then results; each aligned to 16 bytes
  std::size_t results = 0;        ///< how many of them, at the end
  bool reads_valid = false;       ///< the last operand is the number of valid tokens
  std::size_t paged = 0;          ///< the last results: pages of which few rows are written
  int phases = 1;                 ///< whose blocks wait for those of the phase before
  std::size_t first_reads = 0;    ///< if there are several, the operands of the first one
  /// An argument that is 0 before and after the launch.
  std::optional<std::size_t> zero = std::nullopt;
  std::vector<DimId>
      params;          ///< `long long` each, after the pointers: rows, then other symbol values
  std::string source;  ///< the kernel alone; needs the prelude before it
  bool exact = false;  ///< compiled as a strict target, whatever the target is

  // Launch configuration: a block of `threads` for each `rows_per_block` rows, `column_blocks` of
  // them (the grid's y), with `shared_bytes` of dynamic shared memory (more than 48 KiB must be
  // enabled).
  int threads = 0, rows_per_block = 0, column_blocks = 1;
  std::int64_t shared_bytes = 0;
  Schedule schedule;
  std::vector<ConstantArgument> prefetched = {};  ///< before its wait, see waiting()
  // Statistics of the text: reads and writes by groups of columns (16 bytes if the group has them),
  // and accesses element by element, once for each reason.
  int group_reads = 0, group_writes = 0;
  int again_reads = 0;  ///< of group_reads: data that an earlier phase has read
  std::vector<ElementAccess> elements;
  int team = 0;                  ///< threads of a row
  int barriers = 0;              ///< in the text
  int kept_words = 0;            ///< registers of 4 bytes that hold reused data
  std::int64_t again_bytes = 0;  ///< bytes of a row that are read by groups more than once
  /// All accesses of the text; null if it was written without them.
  std::shared_ptr<const AccessTree> accesses;
};

[[nodiscard]] Kernel emit(const rows::RowProgram& program, const Schedule& schedule = {});
/// A kernel without a row program. Its text from the parameter list on is `signature body`.
/// Pointers follow `arguments`, of which the last `results` are written; then `long long rows`.
struct WrittenKernel {
  std::string op;
  std::vector<TypeId> arguments;
  std::size_t results = 1;
  DimId rows;
  int threads = 0, rows_per_block = 1, column_blocks = 1;
  int resident = 1;  ///< minimum resident blocks per multiprocessor, which limits registers
  std::string signature, body;
  std::string why;                   ///< reason for access by elements
  std::vector<AccessNode> accesses;  ///< its accesses; empty: not stated, unless there are others
  std::optional<AccessesByData> by_data;
  [[nodiscard]] int team() const { return std::max(threads / rows_per_block, 1); }
  /// Adds `times` accesses of all column blocks for each row, or for each block of rows, present or
  /// not. Call it once the kernel's shape is known.
  void add_by_row(AccessNode access, std::int64_t times);
  void add_by_block(AccessNode access, std::int64_t times);
  /// Adds an argument, and a pointer of that name to the signature.
  void add_pointer(const Context& context, TypeId type, std::string_view name, bool is_written);
};
[[nodiscard]] Kernel written(const WrittenKernel& text);
/// Returns the kernel, under another name, with IEEE arithmetic that keeps every rounding on any
/// target. For graphs that decide by computed numbers: see rows::any_decides.
[[nodiscard]] Kernel exact(Kernel kernel);
/// Returns the kernel with a wait for earlier kernels as its first statement, under another name.
/// Launched with a programmatic edge, it may start before its predecessor ends; launched otherwise,
/// the wait is over at once. Below sm_90 the wait does nothing. Before the wait, the blocks
/// together bring `constants` into the second-level cache, up to kMostPrefetched bytes of each.
[[nodiscard]] Kernel waiting(Kernel kernel, const std::vector<ConstantArgument>& constants = {});
inline constexpr std::int64_t kMostPrefetched = std::int64_t{16} << 20;  // a third of an H100's L2
/// Returns true if each thread waits for earlier kernels before it does anything else but prefetch,
/// which neither reads nor writes, and if its pointers exist only after the wait, so that the
/// compiler cannot move a read before it. This proves that the kernel may start early: whatever it
/// reads or writes, its predecessor has completed.
[[nodiscard]] bool waits_first(const Kernel& kernel);
/// Returns the text after prelude(): functions that the threads of a team call together.
[[nodiscard]] std::string_view team_prelude();
/// Returns the members of the table through which kernels on the host call their block.
[[nodiscard]] std::string_view host_api();
/// Returns a complete .cu file of one kernel.
[[nodiscard]] std::string source_file(const Kernel& kernel);
/// Returns the text with letters, digits and _ kept and all else replaced by _; at most 64
/// characters.
[[nodiscard]] std::string sanitised(std::string_view text);

}  // namespace pw::cuda
