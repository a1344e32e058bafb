// The scalar part of every emitter: C++ text over the prelude for the elements, values and
// operations of a row program. Names are generated from ids alone.
#pragma once

#include <string>
#include <string_view>

#include "codegen/rowprogram/row_program.hpp"

namespace pw::rows::cxx {

/// Returns the type of elements in memory.
[[nodiscard]] std::string_view storage(DType dtype);
/// Returns the type of values in registers: narrow floats are held as rounded floats.
[[nodiscard]] std::string_view held(DType dtype);
[[nodiscard]] std::string_view type_of(Unit unit);
/// Returns true for bf16, f16 and fp8, which are computed in f32 and rounded by the prelude.
[[nodiscard]] bool is_narrow(DType dtype);

[[nodiscard]] std::string slot(SlotId id);  ///< v7
/// Returns a slot's value as an operand of a computation in `unit`.
[[nodiscard]] std::string in_unit(const RowProgram& program, SlotId id, Unit unit);
/// Returns `text`, computed in `unit`, in the form held for `dtype`. This is the rounding point.
[[nodiscard]] std::string rounded(const std::string& text, Unit unit, DType dtype);
/// Returns the float that `rounded` rounds. Only for narrow types.
[[nodiscard]] std::string before_rounding(const std::string& text, Unit unit);
[[nodiscard]] std::string literal(double value, DType dtype);
/// Returns the text of a `compute` statement before it is rounded to the slot's dtype.
[[nodiscard]] std::string computed(const RowProgram& program, const Statement& statement);
/// Returns true if that text needs no rounding: comparisons and `not` of b8.
[[nodiscard]] bool is_truth(const RowProgram& program, const Statement& statement);
/// Returns an element in its held form.
[[nodiscard]] std::string loaded(DType from, const std::string& element);

}  // namespace pw::rows::cxx
