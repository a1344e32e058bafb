// Internal to cuda/: emits the exchange of values between the lanes of a reduction.
#pragma once

#include <string>

#include "cuda/kernels/team.hpp"
#include "cuda/kernels/thread_text.hpp"

namespace pw::cuda {

/// Combines the lanes of reductions. Values of other warps go through slots in shared memory, which
/// reductions use in turn: by the time a slot is used again, enough barriers have passed that all
/// threads have read the earlier values. Hence one barrier for each reduction.
class Exchange {
 public:
  Exchange(Kernel& kernel, KernelText& text) : kernel_(kernel), text_(text) {}

  /// Returns the slot for the next reduction, declared on first use.
  [[nodiscard]] std::string next_slot(rows::Unit unit, int threads);
  /// Returns the declarations of all slots.
  [[nodiscard]] const std::string& declarations() const { return declarations_; }

  /// Combines lanes 32 apart, of a block of `block_threads`. `lanes` < 0: their number is the
  /// variable n<slot>.
  void combine_warps(const rows::Statement& s, std::int64_t lanes, const Team& team,
                     int block_threads, int depth);
  /// Combines the lanes of a warp pairwise, the farthest first.
  void combine_within_warp(const rows::Statement& s, std::int64_t lanes, const Team& team,
                           int depth);
  /// Combines the lanes that several groups of threads have stored in turn.
  void combine_turns(const rows::Statement& s, const std::string& slot, const Team& team,
                     int depth);

 private:
  void record(const rows::Statement& s, std::int64_t lanes);
  void record_turns(const rows::Statement& s, int groups);
  void barrier(int depth);

  Kernel& kernel_;
  KernelText& text_;
  int used_ = 0;
  std::string declarations_;
};

}  // namespace pw::cuda
