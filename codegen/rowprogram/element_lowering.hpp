// Internal to rowprogram/: lowers one element of a value by demand. `element` returns the slot of
// an element, and places its computation in the outermost scope that has its variables.
#pragma once

#include <set>
#include <string>
#include <utility>

#include "codegen/rowprogram/addresses.hpp"
#include "codegen/rowprogram/loop_cuts.hpp"
#include "codegen/rowprogram/scopes.hpp"

namespace pw::rows {

/// Throws Opaque if a value has no row program, and Recut for a new cut of a loop.
class ElementLowering {
 public:
  /// `checks`: indices of gathers are checked.
  ElementLowering(const Graph& graph, RowProgram& program, Addresses& addresses, Scopes& scopes,
                  LoopCuts& cuts, bool checks);
  SlotId element(ValueId value, Position at);

 private:
  // elements.cpp: computation
  SlotId computed(NodeId node, std::size_t result, const Position& at);
  SlotId load(std::size_t argument, const Position& at);
  SlotId number(NodeId node);
  SlotId counted(NodeId node, const Position& at);
  SlotId pointwise(NodeId node, Primitive operation, const Position& at);
  SlotId reduction(NodeId node, Primitive operation, const Position& at);
  void check_reduction(NodeId node, const Position& at);
  /// Returns true if two values of a variable may give the same place.
  [[nodiscard]] bool repeats(IndexId place) const;
  /// Returns the extent that a reduction over a dim covers.
  IndexId covered(DimId dim);
  /// Returns the operand's element for a result's element at `at`, with broadcasting.
  SlotId broadcast(ValueId operand, const Position& at);

  // layout.cpp: data movement
  SlotId moved(NodeId node, std::size_t result, const Position& at);
  SlotId concatenated(NodeId node, std::size_t axis, std::size_t operand, Position at);
  SlotId gathered(NodeId node, const Position& at);
  SlotId indexed(NodeId node, const Position& at);
  /// Returns an index that counts from the end if it is negative.
  SlotId wrapped(SlotId index, IndexId extent);
  /// Returns true if a value is in memory, seen through ops that only change its layout.
  [[nodiscard]] bool is_cheap_place(ValueId value, int depth) const;
  [[nodiscard]] bool is_in_memory(ValueId value) const;
  void check(SlotId index, IndexId bound);

  const Graph& graph_;
  Context& context_;
  const std::string tokens_;
  RowProgram& program_;
  Addresses& addresses_;
  Scopes& scopes_;
  LoopCuts& cuts_;
  const bool checks_;
  IndexId valid_;  ///< the number of valid tokens, once read
  std::set<std::pair<SlotId, IndexId>> checked_;
};

}  // namespace pw::rows
