// Internal to rowprogram/: the state of one lowering. Elements are pulled: `element` returns the
// slot that holds one element of a value, and places what computes it in the outermost scope in
// which its variables are known.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "backends/rowprogram/row_program.hpp"

namespace pw::rows {

using Position = std::vector<IndexId>;  ///< a multi-index: one expression a dim

/// A block under construction. A branch "introduces" the variables of its condition: what depends
/// on them stays inside, since it may address memory that only exists where the condition holds.
struct Scope {
  Block block;
  std::vector<VarId> vars;
  std::map<std::pair<ValueId, Position>, SlotId> known;
};

class Lowering {
 public:
  explicit Lowering(const Graph& graph);
  /// Throws Opaque.
  RowProgram run();

 private:
  // lowering.cpp: domain, scopes, results
  [[nodiscard]] std::size_t domain_rank() const;
  void set_domain();
  void store_results();
  void store_group(const Shape& shape, const std::vector<std::size_t>& outputs);
  std::size_t scope_of(const std::vector<VarId>& vars) const;
  SlotId emit(Statement statement, DType dtype, const std::vector<VarId>& vars);
  /// Runs `body` in a new scope opened inside scope `at`; deeper scopes are out of sight meanwhile.
  template <class Body>
  Block inside(std::size_t at, std::vector<VarId> vars, Body body);

  // elements.cpp: what computes
  SlotId element(ValueId value, Position at);
  SlotId computed(NodeId node, std::size_t result, const Position& at);
  SlotId load(std::size_t argument, const Position& at);
  SlotId number(NodeId node);
  SlotId pointwise(NodeId node, Operation operation, const Position& at);
  SlotId reduction(NodeId node, Operation operation, const Position& at);
  void check_reduction(NodeId node, const Position& at) const;
  /// The operand's element that a result's element at `at` reads, with broadcasting.
  SlotId broadcast(ValueId operand, const Position& at);

  // layout.cpp: what only moves
  SlotId moved(NodeId node, std::size_t result, const Position& at);
  SlotId concatenated(NodeId node, std::size_t axis, std::size_t operand, Position at);
  SlotId gathered(NodeId node, const Position& at);
  Position reshaped(const Shape& from, const Shape& to, const Position& at);

  IndexId extent(DimId dim);
  IndexId linear(const Shape& shape, const Position& at);
  [[nodiscard]] const Shape& shape(ValueId value) const {
    return context_.types[graph_.type(value)].shape;
  }
  [[nodiscard]] DType dtype(ValueId value) const {
    return context_.types[graph_.type(value)].dtype;
  }
  [[nodiscard]] std::size_t axis(NodeId node, std::string_view name, std::size_t rank) const;
  [[nodiscard]] bool is_one(DimId dim) const { return context_.dims.value(dim) == 1; }
  [[nodiscard]] std::vector<VarId> vars_of(const Position& at) const;
  [[noreturn]] void refuse(std::string reason) const { throw Opaque{std::move(reason)}; }

  const Graph& graph_;
  Context& context_;
  RowProgram program_;
  std::vector<std::unique_ptr<Scope>> scopes_;
  IdVec<SlotId, std::vector<VarId>> slot_vars_;
  Position row_at_;               ///< the row's coordinates
  std::vector<VarId> innermost_;  ///< of the loop being built; none or one
  std::size_t statements_ = 0;
};

template <class Body>
Block Lowering::inside(std::size_t at, std::vector<VarId> vars, Body body) {
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
