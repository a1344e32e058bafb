// Exports Expressions and the C++ types of dtypes.
#include "backends/cuda/expressions.hpp"

#include <charconv>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace pw::cuda {
namespace {

using rows::Operation;
using rows::SlotId;
using rows::Statement;
using rows::Unit;

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

std::string literal(double value, DType dtype) {
  if (dtype == DType::b8) return value != 0 ? "true" : "false";
  if (is_float(dtype)) return real_literal(value, dtype != DType::f64);
  if (value >= 9223372036854775807.0) return "9223372036854775807ll";
  if (value <= -9223372036854775808.0) return "(-9223372036854775807ll - 1)";
  return fmt::format("{}ll", static_cast<std::int64_t>(value));
}

std::string_view comparison(Operation operation) {
  constexpr std::string_view kSigns[] = {"==", "!=", "<", "<=", ">", ">="};
  const bool compares = operation >= Operation::eq && operation <= Operation::ge;
  return compares ? kSigns[static_cast<int>(operation) - static_cast<int>(Operation::eq)]
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
  switch (dtype) {
    case DType::b8: return "bool";
    case DType::f8e4m3:
    case DType::f8e5m2:
    case DType::f16:
    case DType::bf16:
    case DType::f32: return "float";
    case DType::i8:
    case DType::u8:
    case DType::i32:
    case DType::i64:
    case DType::f64: break;
  }
  return storage(dtype);
}

std::string_view type_of(Unit unit) {
  return unit == Unit::f32 ? "float" : unit == Unit::f64 ? "double" : "long long";
}

bool is_narrow(DType dtype) {
  return dtype == DType::f8e4m3 || dtype == DType::f8e5m2 || dtype == DType::f16 ||
         dtype == DType::bf16;
}

std::string Expressions::slot(SlotId id) { return fmt::format("v{}", id.index); }
std::string Expressions::bits(SlotId id) { return fmt::format("b{}", id.index); }

std::string Expressions::in_unit(SlotId id, Unit unit) const {
  return held(dtype(id)) == type_of(unit) ? slot(id)
                                          : fmt::format("({}){}", type_of(unit), slot(id));
}

std::string Expressions::given(SlotId id, const std::string& text) const {
  const DType to = dtype(id);
  std::string out = fmt::format("const {} {} = {};", held(to), slot(id), text);
  if (is_narrow(to))
    out += fmt::format(" const {} {} = pw_to_{}({});", storage(to), bits(id), name(to), slot(id));
  return out;
}

std::string Expressions::loaded(SlotId id, const std::string& element) const {
  const DType from = dtype(id);
  if (from == DType::b8) return given(id, element + " != 0");
  if (!is_narrow(from)) return given(id, element);
  return fmt::format("const {} {} = {}; const float {} = pw_from_{}({});", storage(from), bits(id),
                     element, slot(id), name(from), bits(id));
}

std::string Expressions::rounded(SlotId id, const std::string& text, Unit unit) const {
  const DType to = dtype(id);
  if (to == DType::b8) return given(id, fmt::format("({}) != 0", text));
  if (is_narrow(to)) {
    const char* form = unit == Unit::f32   ? "pw_to_{0}({1})"
                       : unit == Unit::f64 ? "pw_to_{0}(pw_odd({1}))"
                                           : "pw_to_{0}(pw_odd((double)({1})))";
    return loaded(id, fmt::format(fmt::runtime(form), name(to), text));
  }
  if (held(to) == type_of(unit)) return given(id, text);
  if (is_integer(to) && unit != Unit::i64)
    return given(id, fmt::format("pw_saturate<{}>({})", held(to), text));
  return given(id, fmt::format("({})({})", held(to), text));
}

std::string Expressions::stored(SlotId id) const {
  return is_narrow(dtype(id)) ? bits(id) : slot(id);
}

std::string Expressions::defined(const Statement& s) const {
  if (s.kind == Statement::Kind::constant) return given(s.slot, literal(s.real, dtype(s.slot)));
  std::vector<std::string> x;
  for (SlotId o : s.operands) x.push_back(in_unit(o, s.unit));
  if (const auto sign = comparison(s.operation); !sign.empty())
    return given(s.slot, fmt::format("{} {} {}", x[0], sign, x[1]));
  if (s.operation == Operation::cast) return rounded(s.slot, x[0], s.unit);
  if (s.operation == Operation::select)
    return rounded(s.slot, fmt::format("({} ? {} : {})", slot(s.operands[0]), x[1], x[2]), s.unit);
  if (s.operation == Operation::and_)
    return rounded(s.slot, fmt::format("({} & {})", x[0], x[1]), s.unit);
  if (s.operation == Operation::or_)
    return rounded(s.slot, fmt::format("({} | {})", x[0], x[1]), s.unit);
  if (s.operation == Operation::not_) {
    return dtype(s.slot) == DType::b8 ? given(s.slot, "!" + slot(s.operands[0]))
                                      : rounded(s.slot, "~" + x[0], s.unit);
  }
  return rounded(s.slot, fmt::format("pw_{}({})", name(s.operation), fmt::join(x, ", ")), s.unit);
}

}  // namespace pw::cuda
