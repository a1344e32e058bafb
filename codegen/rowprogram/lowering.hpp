// Internal to rowprogram/: the state of one lowering. Lowering is demand-driven: `element` returns
// the slot of one element of a value, and places its computation in the outermost scope that has
// its variables. Invariant: an access that is valid only under a branch condition stays inside that
// branch.
#pragma once

#include <map>
#include <set>
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

/// How a loop over one dim of a result is divided. Cuts make the operand of a concatenation known
/// inside the loop, and place a reduction over a group of columns outside the loop over the group.
/// Cuts are discovered during lowering; each discovery restarts it.
struct Cut {
  std::int64_t at = 0;    ///< nonzero: two loops, [0, at) and [at, extent)
  std::int64_t tile = 0;  ///< nonzero: a loop over groups of this size, and a loop inside
  std::unique_ptr<Cut> first, second;  ///< cuts of the two loops, or of the loop inside a group
};

class Lowering {
 public:
  Lowering(const Graph& graph, bool checks);
  /// Lowers the graph. Throws Opaque.
  RowProgram run();

 private:
  struct Recut {};  ///< thrown to restart after a new cut

  // lowering.cpp: domain, scopes
  RowProgram attempt();
  void set_arguments();
  [[nodiscard]] std::size_t domain_rank() const;
  void set_domain();
  std::size_t scope_of(const std::vector<VarId>& vars) const;
  SlotId emit(Statement statement, DType dtype, const std::vector<VarId>& vars);
  /// Runs `body` in a new scope opened inside scope `at`; deeper scopes are hidden meanwhile.
  template <class Body>
  Block inside(std::size_t at, std::vector<VarId> vars, Body body);

  // results.cpp: loops over results, and their cuts
  void store_results();
  struct Group {
    Shape shape;
    std::vector<std::size_t> outputs;
    std::vector<Cut> cuts;  ///< cut of each dim
  };
  void store(Group& group, Position& at);
  template <class Body>
  void looped(Cut& cut, IndexId extent, IndexId offset, const Body& body);
  template <class Body>
  void in_loop(Cut* cut, IndexId extent, const Body& body);
  /// Cuts a loop so that `place < bound` is decided in each part; returns if no cut does this.
  void cut_at(IndexId place, std::int64_t bound);
  /// Tiles each loop whose variable `place` divides by a constant, so that the quotient is the
  /// variable of an outer loop over groups.
  void cut_into_groups(IndexId place);
  void tile(VarId var, std::int64_t offset, std::int64_t size);
  /// Returns true if two values of a variable may give the same place.
  [[nodiscard]] bool repeats(IndexId place) const;

  // elements.cpp: computation
  SlotId element(ValueId value, Position at);
  SlotId computed(NodeId node, std::size_t result, const Position& at);
  SlotId load(std::size_t argument, const Position& at);
  SlotId number(NodeId node);
  SlotId pointwise(NodeId node, Primitive operation, const Position& at);
  SlotId reduction(NodeId node, Primitive operation, const Position& at);
  void check_reduction(NodeId node, const Position& at);
  /// Returns the extent that a reduction over a dim covers.
  IndexId covered(DimId dim);
  /// Returns the operand's element for a result's element at `at`, with broadcasting.
  SlotId broadcast(ValueId operand, const Position& at);

  // layout.cpp: data movement
  SlotId moved(NodeId node, std::size_t result, const Position& at);
  SlotId concatenated(NodeId node, std::size_t axis, std::size_t operand, Position at);
  SlotId gathered(NodeId node, const Position& at);
  void check(SlotId index, IndexId bound);
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
  const std::string tokens_;
  IndexId valid_;  ///< the number of valid tokens, once read
  RowProgram program_;
  std::vector<std::unique_ptr<Scope>> scopes_;
  IdVec<SlotId, std::vector<VarId>> slot_vars_;
  Position row_at_;  ///< the row's coordinates
  std::size_t statements_ = 0;
  std::vector<Group> groups_;     ///< results of one shape share their loops
  std::map<VarId, Cut*> cut_of_;  ///< cuts of the loops that can be cut
  bool cutting_ = true;
  const bool checks_;
  std::set<std::pair<SlotId, IndexId>> checked_;
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
