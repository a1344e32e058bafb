// Internal to cuda/: decides where each group of columns that a loop reads comes from: global
// memory, kept registers or shared memory (kept.hpp), a group that an outer team keeps, or a
// register of another thread of the warp.
#pragma once

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "cuda/kernels/kept.hpp"
#include "cuda/kernels/kept_values.hpp"
#include "cuda/kernels/team.hpp"
#include "cuda/kernels/team_size.hpp"

namespace pw::cuda {

/// An inner loop whose groups are also groups of one loop over both levels: in both, pass k of
/// thread t is group t + k * threads.
struct NestedLoop {
  const rows::Statement* outer;
  ColumnPasses flat;           ///< groups in the combined loop
  std::vector<GroupRead> own;  ///< groups in the inner loop
  int parts;                   ///< distance of a thread's passes within a group of threads
  bool whole;                  ///< every thread has a pass
};

/// The column loops of a block of statements, and the groups that stay on chip between them.
struct BlockPlan {
  std::map<const rows::Statement*, ColumnPasses> loops;
  std::map<const rows::Statement*, NestedLoop> nested;
  std::vector<Kept> kept;
  /// Returns the storage of a group of a loop; null if there is none.
  [[nodiscard]] const Kept* kept_of(const ColumnPasses& p, const GroupRead& group) const;
  /// Returns true if the loop reads kept registers.
  [[nodiscard]] bool reads_registers(const ColumnPasses& p) const;
};

/// A group that an outer team keeps for a loop inside its loops.
struct LentGroup {
  Kept kept;
  std::string pass;  ///< pass of the outer team
  int team = 1;
  std::string place;
};

/// Plans one block of statements after another, outer blocks first. Invariant: a group is planned
/// before any statement that reads it is emitted, so lent groups are complete for inner blocks.
class GroupStorage {
 public:
  GroupStorage(const rows::RowProgram& program, const std::vector<KeptValue>& values,
               Kernel& kernel)
      : program_(program),
        values_(values),
        kernel_(kernel),
        accesses_(program),
        size_(program),
        store_(program, kernel) {}

  [[nodiscard]] BlockPlan plan(const rows::Block& body, const Team& team);

  [[nodiscard]] AccessPlan& accesses() { return accesses_; }
  [[nodiscard]] TeamSize& size() { return size_; }
  /// Returns true if an argument is a kept value, which has no memory.
  [[nodiscard]] bool is_value(std::size_t argument) const;
  /// Returns true if a loop writes an argument, or computes the kept value of that argument.
  [[nodiscard]] bool writes(const rows::Statement& s, std::size_t argument) const;
  /// Returns the group of an outer team that serves a group of a loop; null if there is none.
  [[nodiscard]] const LentGroup* lent(const rows::Statement& s, const GroupRead& group) const;
  /// Returns the expression of a group in a register of this or another thread of the warp; null
  /// if there is none.
  [[nodiscard]] const std::string* across(const rows::Statement& s, const GroupRead& group) const;
  /// Returns true if the passes of a loop index registers, which requires unrolling.
  [[nodiscard]] bool is_unrolled(const rows::Statement& s) const {
    return unrolled_.count(&s) != 0;
  }
  /// Returns true if threads without a pass read the register as well.
  [[nodiscard]] bool is_cleared(const Kept& kept) const { return cleared_.count(kept.name) != 0; }

 private:
  using Key = std::tuple<const rows::Statement*, std::size_t, rows::IndexId>;

  [[nodiscard]] ColumnPasses passes_through(const rows::Statement& s, const Team& team);
  void add_nested(const rows::Statement& s, const Team& team, BlockPlan& plan,
                  std::vector<Reader>& readers);
  [[nodiscard]] std::vector<Kept> values_of(const BlockPlan& plan);
  void pass_across(const rows::Block& body, BlockPlan& plan, const Team& team);
  [[nodiscard]] bool pass_across(const rows::Statement& c, const ColumnPasses& narrow,
                                 const GroupRead& g, const rows::Statement& r, BlockPlan& plan,
                                 const Team& team);
  void lend(const BlockPlan& plan, const Team& team);

  const rows::RowProgram& program_;
  const std::vector<KeptValue>& values_;
  Kernel& kernel_;
  AccessPlan accesses_;
  TeamSize size_;
  KeptStore store_;
  std::map<Key, LentGroup> lent_;
  std::map<Key, std::string> across_;
  std::set<const rows::Statement*> unrolled_;
  std::set<std::string> cleared_;  ///< names of kept registers
};

}  // namespace pw::cuda
