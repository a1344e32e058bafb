// Private to the importer: what the conversion of a statement depends on.
#pragma once

#include <cstdint>
#include <vector>

#include "base/strings.hpp"
#include "import/fx/emit/emitter.hpp"
#include "import/fx/emit/memory.hpp"
#include "import/fx/text/ast.hpp"
#include "import/fx/tuple_items.hpp"

namespace pw::fx {

/// Key of the current statement. Invariant: statements with equal keys are equal up to names, as a
/// key has the callee, the arguments with types and strides of tensors instead of names, and the
/// stated types.
class StatementKey : EmitterPart {
 public:
  /// Creates a key; all arguments must outlive it.
  StatementKey(Emitter& emitter, Memory& memory, const UniqueNames& names,
               const BoundNames<Value>& env, const TupleItems& items)
      : EmitterPart(emitter), memory_(memory), names_(names), env_(env), items_(items) {}

  /// Reads a statement; returns false if it must be converted, and nothing of it kept.
  bool read(const Statement& s);
  [[nodiscard]] const std::vector<std::uint64_t>& words() const { return words_; }
  [[nodiscard]] std::uint64_t hash() const { return hash_; }
  /// Returns the tensors that it reads, each once.
  [[nodiscard]] const std::vector<TensorId>& arguments() const { return arguments_; }
  /// Returns the names of the parts of its result, or null.
  [[nodiscard]] const TupleItems::Items* part_names() const { return part_names_; }

 private:
  bool add_expression(const Expr& e);
  bool add_name(const Expr& e);
  bool add_tensor(const Value& value);

  Memory& memory_;
  const UniqueNames& names_;
  const BoundNames<Value>& env_;
  const TupleItems& items_;
  Strings texts_;
  std::vector<std::uint64_t> words_;
  std::uint64_t hash_ = 0;
  std::vector<TensorId> arguments_;
  const TupleItems::Items* part_names_ = nullptr;
};

}  // namespace pw::fx
