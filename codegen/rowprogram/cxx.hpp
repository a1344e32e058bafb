// The scalar part of every emitter: how elements, values and operations of a row program are
// written in C++ over the prelude. Names are made here from ids alone.
#pragma once

#include <string>
#include <string_view>

#include "codegen/rowprogram/row_program.hpp"

namespace pw::rows::cxx {

/// The type of elements in memory.
[[nodiscard]] std::string_view storage(DType dtype);
/// The type of values in registers: narrow floats are held as floats that are already rounded.
[[nodiscard]] std::string_view held(DType dtype);
[[nodiscard]] std::string_view type_of(Unit unit);
/// bf16, f16 and fp8: computed in f32, rounded by the prelude.
[[nodiscard]] bool is_narrow(DType dtype);

[[nodiscard]] std::string slot(SlotId id);  ///< v7
/// A slot's value as an operand of a computation in `unit`.
[[nodiscard]] std::string in_unit(const RowProgram& program, SlotId id, Unit unit);
/// `text`, computed in `unit`, as it is held for `dtype`: the rounding point.
[[nodiscard]] std::string rounded(const std::string& text, Unit unit, DType dtype);
/// The float that `rounded` rounds: for narrow types, and nothing else.
[[nodiscard]] std::string before_rounding(const std::string& text, Unit unit);
[[nodiscard]] std::string literal(double value, DType dtype);
/// What a `compute` statement computes, before it is rounded to the slot's dtype.
[[nodiscard]] std::string computed(const RowProgram& program, const Statement& statement);
/// Whether that is complete as it is: comparisons and `not` of b8.
[[nodiscard]] bool is_truth(const RowProgram& program, const Statement& statement);
/// An element as it is held.
[[nodiscard]] std::string loaded(DType from, const std::string& element);

}  // namespace pw::rows::cxx
