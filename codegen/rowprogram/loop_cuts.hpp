// Internal to rowprogram/: divisions of loops over results, which lowering discovers.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "codegen/rowprogram/row_program.hpp"

namespace pw::rows {

/// How a loop over one dim of a result is divided. Cuts make the operand of a concatenation known
/// inside the loop, and place a reduction over a group of columns outside the loop over the group.
/// Cuts are discovered during lowering; each discovery restarts it.
struct Cut {
  std::int64_t at = 0;    ///< nonzero: two loops, [0, at) and [at, extent)
  std::int64_t tile = 0;  ///< nonzero: a loop over groups of this size, and a loop inside
  std::unique_ptr<Cut> first, second;  ///< cuts of the two loops, or of the loop inside a group
};

/// The loops that can be cut at present. A new cut throws Recut, which restarts the lowering.
class LoopCuts {
 public:
  struct Recut {};

  /// `cutting`: false if loops stay whole.
  LoopCuts(const RowProgram& program, bool cutting) : program_(program), cutting_(cutting) {}

  [[nodiscard]] bool cutting() const { return cutting_; }
  void open(VarId loop, Cut& cut) { cut_of_[loop] = &cut; }
  void close(VarId loop) { cut_of_.erase(loop); }
  /// Cuts a loop so that `place < bound` is decided in each part; returns if no cut does this.
  void cut_at(IndexId place, std::int64_t bound);
  /// Tiles each loop whose variable `place` divides by a constant, so that the quotient is the
  /// variable of an outer loop over groups.
  void cut_into_groups(IndexId place);

 private:
  void tile(VarId var, std::int64_t offset, std::int64_t size);

  const RowProgram& program_;
  const bool cutting_;
  std::map<VarId, Cut*> cut_of_;
};

}  // namespace pw::rows
