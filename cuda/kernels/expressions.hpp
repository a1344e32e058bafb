// Internal to cuda/: emits single statements of a row program, independent of their place in a
// kernel.
#pragma once

#include <string>

#include "codegen/rowprogram/cxx.hpp"
#include "codegen/rowprogram/row_program.hpp"

namespace pw::cuda {

// Values in registers: a narrow float is held as a rounded float, and also as its bits in memory.
using rows::cxx::held;
using rows::cxx::is_narrow;
using rows::cxx::storage;
using rows::cxx::type_of;

class Expressions {
 public:
  explicit Expressions(const rows::RowProgram& program) : program_(program) {}

  static std::string slot(rows::SlotId id);  ///< the value: "v7"
  static std::string bits(rows::SlotId id);  ///< bits of a narrow float in memory: "b7"
  /// Returns the unrounded value of a computed narrow float: "x7".
  static std::string unrounded(rows::SlotId id);
  [[nodiscard]] DType dtype(rows::SlotId id) const { return program_.slots[id]; }
  [[nodiscard]] std::string in_unit(rows::SlotId id, rows::Unit unit) const;

  /// Declares a statement's slot from a text computed in `unit`: the rounding point.
  [[nodiscard]] std::string rounded(rows::SlotId slot, const std::string& text,
                                    rows::Unit unit) const;
  /// Declares a slot from an element in its memory form.
  [[nodiscard]] std::string loaded(rows::SlotId slot, const std::string& element) const;
  /// Declares a slot from a text with an already rounded value.
  [[nodiscard]] std::string given(rows::SlotId slot, const std::string& text) const;
  /// Declares the slot of a constant or compute statement.
  [[nodiscard]] std::string defined(const rows::Statement& s) const;
  /// Returns the slot in its memory form.
  [[nodiscard]] std::string stored(rows::SlotId slot) const;

 private:
  const rows::RowProgram& program_;
};

}  // namespace pw::cuda
