// From a row program to CUDA C++ without headers. A team of threads has a row: a warp or a part of
// one to 256 columns, with several rows a block; a block beyond. Loops over columns go by groups of
// 8, reductions follow the fixed tree, loops around either are spread over parts of the team. What
// a later loop reads again stays in registers to about 8k columns, in shared memory to about 32k;
// beyond, it is read twice. Names in the text are made here; nothing of a graph's names or strings
// gets in, but for the op's name in a comment, reduced to letters, digits and _.
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

/// How rows are shared out beyond what their width decides. It changes how fast a kernel is, and
/// none of its bits: reductions follow the row program's tree whoever computes it.
struct Schedule {
  int block = 256;      ///< threads of a block that holds several rows: a power of two, 32 to 1024
  int passes = 1;       ///< groups of 8 columns a thread takes of a row that several blocks share
  int resident = 0;     ///< blocks that a multiprocessor must have room for; bounds the registers.
                        ///< 0: as many as its threads make, where that spills nothing
  int kept_words = 48;  ///< registers of 4 bytes, at most, for what is read again
  friend bool operator==(const Schedule&, const Schedule&) = default;
};

/// An access that is not by groups of columns.
struct ElementAccess {
  std::size_t argument = 0;
  bool store = false;
  std::string why;
  friend bool operator==(const ElementAccess&, const ElementAccess&) = default;
};

struct Kernel {
  std::string name;               ///< k_ and a hash of the program: equal programs have equal names
  std::string op;                 ///< for people
  std::vector<TypeId> arguments;  ///< pointers, in order: operands that exist and are no literals,
                                  ///< then results; each aligned to 16 bytes
  std::size_t results = 0;        ///< how many of them, at the end
  bool reads_valid = false;       ///< the last operand is the number of valid tokens
  std::optional<std::size_t> zero = std::nullopt;  ///< an argument that is 0 before and after
  std::vector<DimId>
      params;          ///< `long long` each, after the pointers: rows, then other symbol values
  std::string source;  ///< the kernel alone; needs the prelude before it

  // How it is launched: a block of `threads` for each `rows_per_block` rows, `column_blocks` such
  // (the grid's y), with `shared_bytes` of dynamic shared memory (above 48 KiB a kernel must be
  // allowed them).
  int threads = 0, rows_per_block = 0, column_blocks = 1;
  std::int64_t shared_bytes = 0;
  Schedule schedule;
  // What the text does: reads and writes by groups of columns (16 bytes where the group has them),
  // and those element by element, once for each reason.
  int group_reads = 0, group_writes = 0;
  int again_reads = 0;  ///< of group_reads: of what an earlier phase has read
  std::vector<ElementAccess> elements;
  int team = 0;                  ///< threads a row
  int barriers = 0;              ///< in the text
  int kept_words = 0;            ///< registers of 4 bytes that hold what is read again
  std::int64_t again_bytes = 0;  ///< a row, read by groups more than once
  /// All accesses of the text; null where it was written without saying.
  std::shared_ptr<const AccessTree> accesses;
};

[[nodiscard]] Kernel emit(const rows::RowProgram& program, const Schedule& schedule = {});
/// A kernel that is no row program: its text, from the parameter list on, is `signature body`.
/// Pointers stand in the order of `arguments`, the last `results` of them written; then `long long
/// rows`.
struct WrittenKernel {
  std::string op;
  std::vector<TypeId> arguments;
  std::size_t results = 1;
  DimId rows;
  int threads = 0, rows_per_block = 1, column_blocks = 1;
  int resident = 1;  ///< blocks that a multiprocessor must have room for; bounds the registers
  std::string signature, body;
  std::string why;                   ///< its accesses are by elements
  std::vector<AccessNode> accesses;  ///< what they are; empty, and no others: not said
  std::optional<AccessesByData> by_data;
  [[nodiscard]] int team() const { return std::max(threads / rows_per_block, 1); }
  /// Adds accesses, of all column blocks so many for each row, or for each block of rows, be they
  /// there or not. Once its shape is known.
  void add_by_row(AccessNode access, std::int64_t times);
  void add_by_block(AccessNode access, std::int64_t times);
  /// Adds an argument, and a pointer of that name to the signature.
  void add_pointer(const Context& context, TypeId type, std::string_view name, bool is_written);
};
[[nodiscard]] Kernel written(const WrittenKernel& text);
/// Returns the text after prelude(): functions that the threads of a team call together.
[[nodiscard]] std::string_view team_prelude();
/// Members of the table by which kernels on the host call their block.
[[nodiscard]] std::string_view host_api();
/// A whole .cu file of one kernel.
[[nodiscard]] std::string source_file(const Kernel& kernel);
/// Letters, digits and _ are kept, anything else becomes _; at most 64 characters.
[[nodiscard]] std::string sanitised(std::string_view text);

}  // namespace pw::cuda
