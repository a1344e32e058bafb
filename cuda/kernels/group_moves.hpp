// Internal to cuda/: emits the moves of column groups between memory and a thread's registers, and
// records them in the kernel's statistics.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cuda/kernels/group_storage.hpp"
#include "cuda/kernels/teams.hpp"
#include "cuda/kernels/thread_text.hpp"

namespace pw::cuda {

/// A loop over columns that a team executes.
struct TeamLoop {
  const rows::Statement& statement;
  const ColumnPasses& passes;
  const BlockPlan& plan;
  const Team& team;
};

class GroupMoves {
 public:
  GroupMoves(const rows::RowProgram& program, Kernel& kernel, KernelText& text,
             GroupStorage& storage)
      : program_(program), kernel_(kernel), text_(text), storage_(storage) {}

  /// Keeps a result in shared memory. Call it before anything is emitted.
  void stage(const StagedResult& staged) { staged_ = staged; }

  /// Returns the prefix of the names of a loop's groups.
  [[nodiscard]] static std::string names(const rows::Statement& s);
  /// Returns the arguments of which a loop rounds two columns at once.
  [[nodiscard]] std::set<std::size_t> packed(const rows::Statement& s,
                                             const ColumnLoop& loop) const;

  /// Declares the registers that read_ahead() fills and no kept storage holds.
  void declare_ahead(const TeamLoop& loop, int depth);
  /// Emits the loads of a reduction before it begins, into kept storage or its own registers.
  void read_ahead(const TeamLoop& loop, int depth);
  /// Declares the groups that come from registers of this or another thread of the warp.
  void read_across(const TeamLoop& loop, int depth);
  /// Declares the other groups of a pass; `read_before`: read_ahead() has loaded them.
  void read(const TeamLoop& loop, int depth, bool read_before);
  void write(const TeamLoop& loop, int depth);

 private:
  void read_ahead(const TeamLoop& loop, std::size_t g, int depth);
  void read_group(const TeamLoop& loop, std::size_t g, int depth, bool read_before);
  void read_shared(const Kept& kept, bool first, const TeamLoop& loop, std::size_t g, int depth);
  void read_lent(const LentGroup& lent, const GroupRead& group, const std::string& name, int depth);
  void write_group(const TeamLoop& loop, std::size_t g, int depth);
  [[nodiscard]] bool is_packed(const rows::Statement& loop, std::size_t argument) const;
  [[nodiscard]] bool paired(const ColumnPasses& p, const GroupRead& group, const Team& team) const;
  [[nodiscard]] std::string global_read(const GroupRead& group) const;
  void count_read(const ColumnPasses& p, const GroupRead& group);
  void record_words(Space space, bool write, int words, std::size_t argument = 0);
  void record_pair(std::size_t argument);

  const rows::RowProgram& program_;
  Kernel& kernel_;
  KernelText& text_;
  GroupStorage& storage_;
  std::optional<StagedResult> staged_;
  std::vector<GroupRead> read_;  ///< groups that an earlier phase has read
};

}  // namespace pw::cuda
