// Private to the importer: which tensors of a dump share memory. A tensor is a storage of its own
// or a view of another; a write makes a new value, and what shares memory with it is derived anew
// when it is read. Plain data; reading and writing, which add nodes, are Converter's
// (fx_memory.cpp).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graph/graph.hpp"

namespace pw::fx {

using TensorId = Id<struct TensorTag>;

/// A node that leads from a base to a view of it: what is applied, and which result is taken.
struct ViewStep {
  OpId op;
  AttributesId attributes;
  TypeId from;                  ///< of the operand
  std::vector<TypeId> results;  ///< of the node
  std::size_t result = 0;
};

struct Tensor {
  TensorId base;  ///< invalid: a storage of its own
  std::uint32_t storage = 0;
  std::vector<ViewStep> steps;  ///< from the base's contents to these
  ValueId value;                ///< its contents after `seen` writes to the storage
  std::size_t seen = 0;
  std::optional<Shape> strides;    ///< in elements; nothing: not known
  std::string unsure;              ///< the target that shares its base's memory or copies; or empty
  std::string inexpressible = {};  ///< the target whose view cannot be written through; or empty
  std::string perhaps_itself = {};  ///< the target that returns its argument where it can; or empty
  TensorId now;  ///< the view that an op made of it in place, as `t_` does; invalid: there is none
};

struct Write {
  TensorId tensor;
  ValueId value;
  bool assumed = false;  ///< nothing says that the op writes
};

struct Storage {
  TensorId root;
  ValueId input;  ///< the graph's input that it is; invalid: made in the graph
  std::vector<Write> writes;
};

/// What a write to one tensor means for another of the same storage.
enum class Touch : std::uint8_t {
  none,    ///< other elements
  all,     ///< it is the same tensor
  within,  ///< a part of it
  around,  ///< something that it is a part of, or overlaps
  unsure,  ///< whether they share memory is not known
};

struct Memory {
  IdVec<TensorId, Tensor> tensors;
  std::vector<Storage> storages;

  TensorId add_storage(ValueId value, std::optional<Shape> strides);
  TensorId add_view(TensorId base, std::vector<ViewStep> steps, ValueId value,
                    std::optional<Shape> strides);
  [[nodiscard]] Storage& storage_of(TensorId t) { return storages[tensors[t].storage]; }
  /// What the tensor is after the ops that changed its shape in place.
  [[nodiscard]] TensorId now(TensorId t) const;
  /// The target that returned the tensor itself or a view of it, where such a one has given the
  /// tensor or another of the same memory; empty: there is none.
  [[nodiscard]] std::string perhaps_several_names(TensorId t) const;
  /// `constants` reads extents and bounds of views.
  [[nodiscard]] Touch touch(const Context& context, TensorId written, TensorId read) const;
  /// Whether two tensors may have elements in common.
  [[nodiscard]] bool may_overlap(const Context& context, TensorId a, TensorId b) const;
};

/// Of a dense row-major tensor; nothing where a product of extents is too large.
std::optional<Shape> dense_strides(Dims& dims, const Shape& shape);
/// Whether these are a dense row-major tensor's; extents of 1 do not matter.
bool is_dense(Dims& dims, const Shape& shape, const Shape& strides);
/// The strides of `to` as a view of `from`. Nothing: it cannot be one, or that is not known (`sure`
/// is false then).
std::optional<Shape> viewed_strides(Dims& dims, const Shape& from, const Shape& strides,
                                    const Shape& to, bool& sure);

}  // namespace pw::fx
