// Internal to cuda/: the text of single statements of a row program, wherever they stand in a
// kernel.
#pragma once

#include <string>

#include "codegen/rowprogram/cxx.hpp"
#include "codegen/rowprogram/row_program.hpp"

namespace pw::cuda {

// Values in registers: narrow floats are held as floats that are already rounded, and beside them
// as the bits they have in memory.
using rows::cxx::held;
using rows::cxx::is_narrow;
using rows::cxx::storage;
using rows::cxx::type_of;

class Expressions {
 public:
  explicit Expressions(const rows::RowProgram& program) : program_(program) {}

  static std::string slot(rows::SlotId id);  ///< the value: "v7"
  static std::string bits(rows::SlotId id);  ///< as it is in memory, of narrow floats: "b7"
  /// What it is rounded from, of narrow floats that are computed: "x7".
  static std::string unrounded(rows::SlotId id);
  [[nodiscard]] DType dtype(rows::SlotId id) const { return program_.slots[id]; }
  [[nodiscard]] std::string in_unit(rows::SlotId id, rows::Unit unit) const;

  /// Declares the slot of a statement from a text computed in `unit`: the rounding point.
  [[nodiscard]] std::string rounded(rows::SlotId slot, const std::string& text,
                                    rows::Unit unit) const;
  /// Declares it from an element as it is in memory.
  [[nodiscard]] std::string loaded(rows::SlotId slot, const std::string& element) const;
  /// Declares it from a text that holds it already, and is rounded.
  [[nodiscard]] std::string given(rows::SlotId slot, const std::string& text) const;
  /// Of a constant or compute statement.
  [[nodiscard]] std::string defined(const rows::Statement& s) const;
  /// The slot as it goes into memory.
  [[nodiscard]] std::string stored(rows::SlotId slot) const;

 private:
  const rows::RowProgram& program_;
};

}  // namespace pw::cuda
