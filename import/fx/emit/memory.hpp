// Private to the importer: tracks which tensors of a dump share memory. A tensor has its own
// storage or is a view of another. A write makes a new value, and tensors that share the memory are
// derived again when they are read. Plain data; reading and writing, which add nodes, are
// Versions' (versions.hpp).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graph/graph.hpp"

namespace pw::fx {

using TensorId = Id<struct TensorTag>;

/// Step from a base to a view of it: the op applied, and the result taken.
struct ViewStep {
  OpId op;
  AttributesId attributes;
  TypeId from;                  ///< of the operand
  std::vector<TypeId> results;  ///< of the node
  std::size_t result = 0;
};

struct Tensor {
  TensorId base;  ///< invalid: it has its own storage
  std::uint32_t storage = 0;
  std::vector<ViewStep> steps;  ///< from the base's contents to these
  ValueId value;                ///< its contents after `seen` writes to the storage
  std::size_t seen = 0;
  std::optional<Shape> strides;    ///< in elements; nothing: unknown
  std::string unsure;              ///< the target that shares its base's memory or copies; or empty
  std::string inexpressible = {};  ///< the target whose view cannot be written through; or empty
  std::string perhaps_itself = {};  ///< the target that returns its argument where it can; or empty
  TensorId now;  ///< the view that an op made of it in place, as `t_` does; invalid: none
};

struct Write {
  TensorId tensor;
  ValueId value;
  bool assumed = false;  ///< nothing states that the op writes
};

struct Storage {
  TensorId root;
  ValueId input;  ///< the graph's input of this storage; invalid: made in the graph
  std::vector<Write> writes;
};

/// Effect of a write to one tensor on another of the same storage.
enum class Touch : std::uint8_t {
  none,    ///< other elements
  all,     ///< it is the same tensor
  within,  ///< a part of it
  around,  ///< something that it is a part of, or overlaps
  unsure,  ///< it is unknown whether they share memory
};

struct Memory {
  IdVec<TensorId, Tensor> tensors;
  std::vector<Storage> storages;

  TensorId add_storage(ValueId value, std::optional<Shape> strides);
  TensorId add_view(TensorId base, std::vector<ViewStep> steps, ValueId value,
                    std::optional<Shape> strides);
  [[nodiscard]] Storage& storage_of(TensorId t) { return storages[tensors[t].storage]; }
  /// Returns the tensor after the ops that changed its shape in place.
  [[nodiscard]] TensorId now(TensorId t) const;
  /// Returns the target that returned either the tensor itself or a view of it, if one produced
  /// this tensor or another of the same memory; empty otherwise.
  [[nodiscard]] std::string perhaps_several_names(TensorId t) const;
  /// Returns the effect of a write to `written` on `read`. The context provides constant extents
  /// and bounds of views.
  [[nodiscard]] Touch touch(const Context& context, TensorId written, TensorId read) const;
  /// Returns true if two tensors may have elements in common.
  [[nodiscard]] bool may_overlap(const Context& context, TensorId a, TensorId b) const;
};

/// Returns the strides of a dense row-major tensor; nothing if a product of extents is too large.
std::optional<Shape> dense_strides(Dims& dims, const Shape& shape);
/// Returns true if the strides are those of a dense row-major tensor; extents of 1 do not matter.
bool is_dense(Dims& dims, const Shape& shape, const Shape& strides);
/// Returns the strides of `to` as a view of `from`. Nothing if it cannot be one, or if that is
/// unknown (`sure` is then false).
std::optional<Shape> viewed_strides(Dims& dims, const Shape& from, const Shape& strides,
                                    const Shape& to, bool& sure);

}  // namespace pw::fx
