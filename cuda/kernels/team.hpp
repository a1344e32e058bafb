// Internal to cuda/: the threads that share a row, or a pass of a loop in the row.
#pragma once

#include <cstdint>
#include <string>

#include "codegen/rowprogram/row_program.hpp"
#include "cuda/kernels/access_counts.hpp"

namespace pw::cuda {

struct Team {
  int size = 1;
  std::string place = "t";  ///< expression of a thread's index in the team
  std::string live;         ///< condition under which it may store; empty: always
  bool repeated = false;    ///< its statements run several times in one block
  bool whole_warps = true;  ///< all threads of a warp execute its statements
  int groups = 1;  ///< number of 256-thread groups; each has neighbouring passes of wide loops
  int blocks = 1;  ///< number of blocks among which the passes of its loops are divided
  [[nodiscard]] bool spread() const { return blocks > 1; }

  /// Returns the index of a thread's first column group if it has `passes` passes of a loop that
  /// the whole team shares. The next pass is one group of threads further on.
  [[nodiscard]] std::string first_group(std::int64_t passes) const;
  /// Returns the record of a loop whose passes are divided among `lanes` threads.
  [[nodiscard]] AccessNode shared_loop(AccessNode::Share share, rows::VarId var,
                                       std::int64_t lanes) const;
};

}  // namespace pw::cuda
