// Internal to cuda/: divides a row program among the threads of a team, and emits the text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cuda/kernels/emitter.hpp"

namespace pw::cuda {

/// Returns the body of the kernel, and fills its launch configuration and statistics.
std::string emit_body(const rows::RowProgram& program, Kernel& kernel);

/// A result that goes to the shared memory `kept` instead of its argument: group c of 8 columns of
/// row `row0` + r is word r * groups + c of 16 bytes.
struct StagedResult {
  std::size_t argument = 0;
  std::int64_t groups = 0;
};
/// The text of one row, `row`, for all threads of a block. Threads store results other than the
/// staged one if `first` is true. A barrier must follow.
struct RowsInBlock {
  int threads = 0;
  std::string declarations, body;
};
/// Returns the text for blocks of at most 512 threads. Nothing if rows are narrower than two warps,
/// need shared memory of their own, or store the staged result element by element.
std::optional<RowsInBlock> emit_in_block(const rows::RowProgram& program,
                                         const StagedResult& staged);

}  // namespace pw::cuda
