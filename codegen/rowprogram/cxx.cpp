// C++ expressions over the prelude for elements, values and operations. Invariant: a value that is
// held for a narrow dtype is already rounded to it, so `rounded` is the only place that rounds, and
// emitters may keep or drop round trips without changing the meaning. Each function is
// constant-time text formatting.
#include "codegen/rowprogram/cxx.hpp"

#include <charconv>
#include <cmath>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace pw::rows::cxx {
namespace {

std::string real_literal(double value, bool single) {
  if (std::isnan(value)) return single ? "pw_float(0x7fc00000u)" : "(double)pw_float(0x7fc00000u)";
  if (std::isinf(value))
    return fmt::format("{}pw_float(0x{}u)", single ? "" : "(double)",
                       value > 0 ? "7f800000" : "ff800000");
  char text[40];
  const auto end = single ? std::to_chars(text, text + 32, static_cast<float>(value))
                          : std::to_chars(text, text + 32, value);
  std::string out(text, end.ptr);
  if (out.find_first_of(".e") == std::string::npos) out += ".0";
  return single ? out + "f" : out;
}

std::string_view comparison(Primitive operation) {
  constexpr std::string_view kSigns[] = {"==", "!=", "<", "<=", ">", ">="};
  const bool compares = operation >= Primitive::eq && operation <= Primitive::ge;
  return compares ? kSigns[static_cast<int>(operation) - static_cast<int>(Primitive::eq)]
                  : std::string_view();
}

}  // namespace

std::string_view storage(DType dtype) {
  switch (dtype) {
    case DType::b8:
    case DType::u8:
    case DType::f8e4m3:
    case DType::f8e5m2: return "unsigned char";
    case DType::i8: return "signed char";
    case DType::i32: return "int";
    case DType::i64: return "long long";
    case DType::f16:
    case DType::bf16: return "unsigned short";
    case DType::f32: return "float";
    case DType::f64: return "double";
  }
  return "";
}

std::string_view held(DType dtype) {
  if (dtype == DType::b8) return "bool";
  return is_narrow(dtype) ? "float" : storage(dtype);
}

std::string_view type_of(Unit unit) {
  return unit == Unit::f32 ? "float" : unit == Unit::f64 ? "double" : "long long";
}

bool is_narrow(DType dtype) {
  return dtype == DType::f8e4m3 || dtype == DType::f8e5m2 || dtype == DType::f16 ||
         dtype == DType::bf16;
}

std::string slot(SlotId id) { return fmt::format("v{}", id.index); }

std::string in_unit(const RowProgram& program, SlotId id, Unit unit) {
  return held(program.slots[id]) == type_of(unit) ? slot(id)
                                                  : fmt::format("({}){}", type_of(unit), slot(id));
}

std::string before_rounding(const std::string& text, Unit unit) {
  if (unit == Unit::f32) return text;
  return unit == Unit::f64 ? "pw_odd(" + text + ")" : "pw_odd((double)(" + text + "))";
}

std::string rounded(const std::string& text, Unit unit, DType dtype) {
  if (dtype == DType::b8) return fmt::format("({}) != 0", text);
  if (is_narrow(dtype))
    return fmt::format("pw_round_{}({})", name(dtype), before_rounding(text, unit));
  if (held(dtype) == type_of(unit)) return text;
  if (is_integer(dtype) && unit != Unit::i64)
    return fmt::format("pw_saturate<{}>({})", held(dtype), text);
  return fmt::format("({})({})", held(dtype), text);
}

std::string literal(double value, DType dtype) {
  if (dtype == DType::b8) return value != 0 ? "true" : "false";
  if (is_float(dtype)) return real_literal(value, dtype != DType::f64);
  if (value >= 9223372036854775807.0) return "9223372036854775807ll";
  if (value <= -9223372036854775808.0) return "(-9223372036854775807ll - 1)";
  return fmt::format("{}ll", static_cast<std::int64_t>(value));
}

bool is_truth(const RowProgram& program, const Statement& s) {
  return !comparison(s.operation).empty() ||
         (s.operation == Primitive::bitwise_not && program.slots[s.slot] == DType::b8);
}

std::string computed(const RowProgram& program, const Statement& s) {
  std::vector<std::string> x;
  for (SlotId o : s.operands) x.push_back(in_unit(program, o, s.unit));
  if (const auto sign = comparison(s.operation); !sign.empty())
    return fmt::format("{} {} {}", x[0], sign, x[1]);
  if (s.operation == Primitive::cast) return x[0];
  if (s.operation == Primitive::select)
    return fmt::format("({} ? {} : {})", slot(s.operands[0]), x[1], x[2]);
  if (s.operation == Primitive::bitwise_and) return fmt::format("({} & {})", x[0], x[1]);
  if (s.operation == Primitive::bitwise_or) return fmt::format("({} | {})", x[0], x[1]);
  if (s.operation == Primitive::bitwise_xor) return fmt::format("({} ^ {})", x[0], x[1]);
  if (s.operation == Primitive::bitwise_not)
    return is_truth(program, s) ? "!" + slot(s.operands[0]) : "~" + x[0];
  std::string out = fmt::format("pw_{}({})", name(s.operation), fmt::join(x, ", "));
  const bool lowest = s.operation == Primitive::shift_left || s.operation == Primitive::shift_right;
  return lowest && program.slots[s.slot] == DType::b8 ? out + " & 1" : out;
}

std::string loaded(DType from, const std::string& element) {
  if (from == DType::b8) return element + " != 0";
  return is_narrow(from) ? fmt::format("pw_from_{}({})", name(from), element) : element;
}

}  // namespace pw::rows::cxx
