// Internal to rowprogram/: the open scopes of a lowering. Invariant: a statement is placed in the
// outermost scope that has its variables, so an access that is valid only under a branch condition
// stays inside that branch.
#pragma once

#include <iterator>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "codegen/rowprogram/row_program.hpp"

namespace pw::rows {

using Position = std::vector<IndexId>;  ///< a multi-index: one expression for each dim

/// A block under construction. A branch introduces the variables of its condition: dependent
/// computations stay inside, since they may address memory that exists only if the condition holds.
struct Scope {
  Block block;
  std::vector<VarId> vars;
  std::map<std::pair<ValueId, Position>, SlotId> known;
  /// Loops over results in `block`; their bodies are absent while they are open.
  std::vector<std::pair<VarId, std::unique_ptr<Scope>>> loops;
};

class Scopes {
 public:
  /// Opens the scope of a row.
  Scopes(RowProgram& program, VarId row);

  /// Places a statement by the variables of its slot. Throws Opaque if there are too many.
  SlotId emit(Statement statement, DType dtype, const std::vector<VarId>& vars);
  /// Returns the index of the outermost scope that has these variables.
  [[nodiscard]] std::size_t scope_of(const std::vector<VarId>& vars) const;
  [[nodiscard]] std::size_t scope_of(SlotId slot) const { return scope_of(slot_vars_[slot]); }
  [[nodiscard]] const std::vector<VarId>& vars(SlotId slot) const { return slot_vars_[slot]; }
  /// Returns the slot that holds an element; invalid if no visible scope has it.
  [[nodiscard]] SlotId known(const std::pair<ValueId, Position>& element) const;
  void remember(std::pair<ValueId, Position> element, SlotId slot);

  [[nodiscard]] Scope& operator[](std::size_t at) { return *scopes_[at]; }
  [[nodiscard]] Scope& innermost() { return *scopes_.back(); }
  void push(std::unique_ptr<Scope> scope) { scopes_.push_back(std::move(scope)); }
  [[nodiscard]] std::unique_ptr<Scope> pop();
  /// Runs `body` in a new scope opened inside scope `at`; deeper scopes are hidden meanwhile.
  template <class Body>
  Block inside(std::size_t at, std::vector<VarId> vars, Body body);

 private:
  RowProgram& program_;
  std::vector<std::unique_ptr<Scope>> scopes_;
  IdVec<SlotId, std::vector<VarId>> slot_vars_;
  std::size_t statements_ = 0;
};

template <class Body>
Block Scopes::inside(std::size_t at, std::vector<VarId> vars, Body body) {
  std::vector<std::unique_ptr<Scope>> hidden(
      std::make_move_iterator(scopes_.begin() + static_cast<std::ptrdiff_t>(at) + 1),
      std::make_move_iterator(scopes_.end()));
  scopes_.resize(at + 1);
  scopes_.push_back(std::make_unique<Scope>());
  scopes_.back()->vars = std::move(vars);
  body();
  Block block = std::move(scopes_.back()->block);
  scopes_.pop_back();
  for (auto& scope : hidden) scopes_.push_back(std::move(scope));
  return block;
}

}  // namespace pw::rows
