// Internal to cuda/: chooses where column groups that several phases of a row read stay in between:
// registers first, then shared memory. Each thread stores its own groups, so no barrier is needed.
// The choice is greedy in the order of the phases.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cuda/kernels/access.hpp"
#include "cuda/kernels/emitter.hpp"

namespace pw::cuda {

/// A loop over columns as a team executes it: thread p has group p + k * lanes in pass k.
struct ColumnPasses {
  ColumnLoop loop;
  int lanes = 1;
  std::int64_t passes = 0;  ///< 0: unknown at compile time
};

/// A loop that reads groups. It is a statement of the block itself, or inside one of its loops,
/// where it reads the groups of its parent's passes (`nested`: it never reads them first).
struct Reader {
  const rows::Statement* statement = nullptr;
  const ColumnPasses* passes = nullptr;
  bool nested = false;
};

struct Kept {
  std::string name;
  GroupRead group;
  int lanes = 1;
  std::int64_t passes = 0;
  bool shared = false;
  std::int64_t slot = 0;  ///< shared-memory offset in units of passes * lanes * 16 bytes
  const rows::Statement* first = nullptr;  ///< the loop that reads it from global memory
  [[nodiscard]] bool serves(const ColumnPasses& p) const {
    return p.lanes == lanes && p.passes == passes;
  }
};

/// Returns the maximum registers of 4 bytes that a thread of a team may use.
[[nodiscard]] int most_kept_words(const Schedule& schedule, int team);

/// Chooses over the phases of a whole kernel; each choice uses the remaining capacity.
class KeptStore {
 public:
  explicit KeptStore(const rows::RowProgram& program, Kernel& kernel)
      : program_(program), kernel_(kernel) {}
  /// Chooses for the loops of one block of statements, in order. `lent`: groups that an outer team
  /// already holds for a loop. `whole`: the team is the thread block and executes this block once.
  std::vector<Kept> choose(
      const std::vector<Reader>& readers,
      const std::function<bool(const rows::Statement*, const GroupRead&)>& lent, int team,
      bool whole);

 private:
  const rows::RowProgram& program_;
  Kernel& kernel_;
  int count_ = 0;
  std::int64_t units_ = 0;  ///< units of 16 bytes a thread
};

}  // namespace pw::cuda
