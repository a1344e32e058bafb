// Private to the importer: the contents of tensors that share memory.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "import/fx/emit/emitter.hpp"
#include "import/fx/emit/memory.hpp"

namespace pw::fx {

/// Lazy versioning of memory. A write creates a new value of its storage, and a view of the written
/// tensor is derived again when it is read. A read applies the writes since the view was last
/// derived, or derives it from its base. Invariant: a tensor's value holds its contents after
/// `seen` writes to its storage.
class Versions : EmitterPart {
 public:
  /// Creates an empty memory. `tracks`: strides are computed, as some tensor may be written.
  Versions(Emitter& emitter, bool tracks) : EmitterPart(emitter), tracks_(tracks) {}

  [[nodiscard]] Memory& memory() { return memory_; }
  [[nodiscard]] const Memory& memory() const { return memory_; }

  /// Returns a tensor with its own storage.
  [[nodiscard]] Value tensor(ValueId v);
  /// Returns the tensor of an input, whose writes are the graph's.
  [[nodiscard]] Value input_tensor(ValueId input);
  /// Returns the strides of a tensor in row-major order; nothing if its type is unknown.
  std::optional<Shape> dense_strides_of(ValueId value);

  /// Returns the present contents. PW0517 if they depend on whether an op copied.
  Result<ValueId> read(TensorId id, const Site& site);
  /// Resolves tensors to their present contents; a name refers to memory, which may have been
  /// written since.
  Status resolve(Value& value, const Site& site);
  /// Writes a tensor. `assumed`: nothing states that the op writes. PW0516 if no node expresses it.
  Status write(TensorId id, ValueId value, const Site& site, bool assumed = false);
  /// Returns true if a write to the tensor can be applied to the tensor that it is a view of.
  [[nodiscard]] bool can_be_written(TensorId id) const;

  /// Returns the tensor of a call's result: a result that only views connect to an argument is a
  /// view of it in memory too. `first_new`: the first node of the call.
  TensorId tensor_of_result(ValueId result, std::span<const Value* const> arguments,
                            std::size_t first_new, std::string_view target);
  /// Returns a view in memory whose elements were read one by one: nothing may be written to it or
  /// to its base that the other's readers would see.
  TensorId gathered_view(const Value& base, ValueId value, std::string_view target);
  /// Returns the strides of a new result: the layout of the operands; products and tables are
  /// dense.
  std::optional<Shape> fresh_strides(ValueId value, std::span<const Value* const> arguments);

 private:
  Result<ValueId> read_view(TensorId id, const Site& site);
  Result<ValueId> replay(TensorId id, std::size_t first, const Site& site);
  Result<ValueId> derive(ValueId value, const std::vector<ViewStep>& steps, const Site& site);
  [[nodiscard]] Touch touched(const Write& write, TensorId id) const;
  Result<ValueId> put_back(TensorId whole, ValueId old, const Write& write, const Site& site);
  tl::unexpected<Diagnostics> refuse_unsure(TensorId written, TensorId wanted, const Site& site);
  TensorId add_view(const Value& base, std::vector<ViewStep> steps, ValueId value,
                    std::string_view target);

  bool tracks_;
  Memory memory_;
};

}  // namespace pw::fx
