// Internal to cuda/: groups of columns that several phases of a row read, and where they stay in
// between: in registers, then in shared memory, each thread its own.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cuda/kernels/access.hpp"
#include "cuda/kernels/emitter.hpp"

namespace pw::cuda {

/// A loop over columns as a team passes through it: thread p takes group p + k * lanes in pass k.
struct ColumnPasses {
  ColumnLoop loop;
  int lanes = 1;
  std::int64_t passes = 0;  ///< 0: not known beforehand
};

/// A loop that reads groups: one of the block of statements itself, or one within a loop of it,
/// which reads the groups of its parent's passes (`nested`: it never reads them first).
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
  std::int64_t slot = 0;  ///< of shared memory, in units of passes * lanes * 16 bytes
  const rows::Statement* first = nullptr;  ///< the loop that reads it from global memory
  [[nodiscard]] bool serves(const ColumnPasses& p) const {
    return p.lanes == lanes && p.passes == passes;
  }
};

/// Registers of 4 bytes that a thread of a team may keep.
[[nodiscard]] int most_kept_words(const Schedule& schedule, int team);

/// Chooses over the phases of a whole kernel: each choice takes of what is left.
class KeptStore {
 public:
  explicit KeptStore(const rows::RowProgram& program, Kernel& kernel)
      : program_(program), kernel_(kernel) {}
  /// Of the loops of one block of statements, in its order; `lent`: groups that an outer team keeps
  /// for a loop already. `whole`: the team is the block of threads, and passes here once.
  std::vector<Kept> choose(
      const std::vector<Reader>& readers,
      const std::function<bool(const rows::Statement*, const GroupRead&)>& lent, int team,
      bool whole);

 private:
  const rows::RowProgram& program_;
  Kernel& kernel_;
  int count_ = 0;
  std::int64_t units_ = 0;  ///< of 16 bytes a thread
};

}  // namespace pw::cuda
