// Exports emit, source_file and sanitised.
#include "backends/cuda/emitter.hpp"

#include <charconv>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/hash.hpp"

namespace pw::cuda {
namespace {

using rows::Block;
using rows::Operation;
using rows::SlotId;
using rows::Statement;
using rows::Unit;

constexpr std::int64_t kChunk = 8;  // columns that a lane adds in a row

/// The type of elements in memory.
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

/// The type of values in registers: narrow floats are held as floats that are already rounded.
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

/// `text`, computed in `unit`, as it is held for `dtype`: the rounding point.
std::string rounded(const std::string& text, Unit unit, DType dtype) {
  if (dtype == DType::b8) return fmt::format("({}) != 0", text);
  if (is_narrow(dtype)) {
    const char* form = unit == Unit::f32   ? "pw_round_{0}({1})"
                       : unit == Unit::f64 ? "pw_round_{0}(pw_odd({1}))"
                                           : "pw_round_{0}(pw_odd((double)({1})))";
    return fmt::format(fmt::runtime(form), name(dtype), text);
  }
  if (held(dtype) == type_of(unit)) return text;
  if (is_integer(dtype) && unit != Unit::i64)
    return fmt::format("pw_saturate<{}>({})", held(dtype), text);
  return fmt::format("({})({})", held(dtype), text);
}

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

class Emitter {
 public:
  explicit Emitter(const rows::RowProgram& program) : program_(program) {}

  std::string body() {
    block(program_.body, 1);
    return std::move(out_);
  }

 private:
  std::string index(rows::IndexId id) const { return program_.indices.print(id); }
  static std::string slot(SlotId id) { return fmt::format("v{}", id.index); }
  static std::string variable(rows::VarId id) { return fmt::format("i{}", id.index); }
  DType dtype(SlotId id) const { return program_.slots[id]; }
  void line(int depth, const std::string& text) {
    out_ += std::string(static_cast<std::size_t>(depth) * 2, ' ') + text + "\n";
  }
  void block(const Block& statements, int depth) {
    for (const Statement& s : statements) statement(s, depth);
  }

  std::string in_unit(SlotId id, Unit unit) const {
    return held(dtype(id)) == type_of(unit) ? slot(id)
                                            : fmt::format("({}){}", type_of(unit), slot(id));
  }

  std::string loaded(const Statement& s) const {
    const std::string element = fmt::format("p{}[{}]", s.argument, index(s.index));
    const DType from = program_.type(s.argument).dtype;
    if (from == DType::b8) return element + " != 0";
    return is_narrow(from) ? fmt::format("pw_from_{}({})", name(from), element) : element;
  }

  std::string stored(const Statement& s) const {
    const DType to = program_.type(s.argument).dtype;
    const std::string value = slot(s.operands[0]);
    return is_narrow(to) ? fmt::format("pw_to_{}({})", name(to), value) : value;
  }

  std::string computed(const Statement& s) const {
    std::vector<std::string> x;
    for (SlotId o : s.operands) x.push_back(in_unit(o, s.unit));
    const DType to = dtype(s.slot);
    if (const auto sign = comparison(s.operation); !sign.empty())
      return fmt::format("{} {} {}", x[0], sign, x[1]);
    if (s.operation == Operation::cast) return rounded(x[0], s.unit, to);
    if (s.operation == Operation::select)
      return rounded(fmt::format("({} ? {} : {})", slot(s.operands[0]), x[1], x[2]), s.unit, to);
    if (s.operation == Operation::and_)
      return rounded(fmt::format("({} & {})", x[0], x[1]), s.unit, to);
    if (s.operation == Operation::or_)
      return rounded(fmt::format("({} | {})", x[0], x[1]), s.unit, to);
    if (s.operation == Operation::not_)
      return to == DType::b8 ? "!" + slot(s.operands[0]) : rounded("~" + x[0], s.unit, to);
    return rounded(fmt::format("pw_{}({})", name(s.operation), fmt::join(x, ", ")), s.unit, to);
  }

  void loop(rows::VarId var, const std::string& from, const std::string& to, int depth) {
    line(depth,
         fmt::format("for (long long {0} = {1}; {0} < {2}; ++{0}) {{", variable(var), from, to));
  }

  void reduce(const Statement& s, int depth) {
    const std::string type(type_of(s.unit)), id = std::to_string(s.slot.index);
    const bool mean = s.operation == Operation::mean;
    const std::string function = fmt::format("pw_{}<{}>", mean ? "sum" : name(s.operation), type);
    const rows::IndexId extent = program_.indices.extent(s.var);
    const std::string width = index(extent);
    const auto accumulate = [&](int at) {
      block(s.first, at);
      line(at,
           fmt::format("a{0} = {1}::of(a{0}, {2});", id, function, in_unit(s.operands[0], s.unit)));
    };
    line(depth, fmt::format("{} v{};", held(dtype(s.slot)), id));
    line(depth, "{");
    std::string total = "a" + id;
    if (program_.indices.interval(extent).high <= kChunk) {
      line(depth + 1, fmt::format("{} a{} = {}::start();", type, id, function));
      loop(s.var, "0", width, depth + 1);
      accumulate(depth + 2);
      line(depth + 1, "}");
    } else {
      total = fmt::format("t{}.total", id);
      line(depth + 1, fmt::format("pw_tree<{}, {}> t{};", type, function, id));
      line(depth + 1, fmt::format("const long long l{} = pw_lanes({});", id, width));
      line(depth + 1, fmt::format("for (long long q{0} = 0; q{0} < l{0}; ++q{0}) {{", id));
      line(depth + 2, fmt::format("{} a{} = {}::start();", type, id, function));
      line(
          depth + 2,
          fmt::format(
              "for (long long c{0} = pw_lane(q{0}, l{0}) * {1}; c{0} < {2}; c{0} += l{0} * {1}) {{",
              id, kChunk, width));
      line(depth + 3, fmt::format("const long long e{0} = c{0} + {1} < {2} ? c{0} + {1} : {2};", id,
                                  kChunk, width));
      loop(s.var, "c" + id, "e" + id, depth + 3);
      accumulate(depth + 4);
      line(depth + 3, "}");
      line(depth + 2, "}");
      line(depth + 2, fmt::format("t{0}.push(q{0}, a{0});", id));
      line(depth + 1, "}");
    }
    // An empty mean of integers divides by zero; pw_div says what that gives.
    if (mean) total = fmt::format("pw_div({}, ({}){})", total, type, fmt::format("({})", width));
    line(depth + 1, fmt::format("v{} = {};", id, rounded(total, s.unit, dtype(s.slot))));
    line(depth, "}");
  }

  void branch(const Statement& s, int depth) {
    line(depth, fmt::format("{} {};", held(dtype(s.slot)), slot(s.slot)));
    line(depth, fmt::format("if ({} < {}) {{", index(s.index), index(s.bound)));
    block(s.first, depth + 1);
    line(depth + 1, fmt::format("{} = {};", slot(s.slot), slot(s.operands[0])));
    line(depth, "} else {");
    block(s.second, depth + 1);
    line(depth + 1, fmt::format("{} = {};", slot(s.slot), slot(s.operands[1])));
    line(depth, "}");
  }

  void statement(const Statement& s, int depth) {
    const auto define = [&](const std::string& value) {
      line(depth, fmt::format("const {} {} = {};", held(dtype(s.slot)), slot(s.slot), value));
    };
    switch (s.kind) {
      case Statement::Kind::constant: return define(literal(s.real, dtype(s.slot)));
      case Statement::Kind::load: return define(loaded(s));
      case Statement::Kind::compute: return define(computed(s));
      case Statement::Kind::reduce: return reduce(s, depth);
      case Statement::Kind::branch: return branch(s, depth);
      case Statement::Kind::store:
        return line(depth, fmt::format("p{}[{}] = {};", s.argument, index(s.index), stored(s)));
      case Statement::Kind::loop:
        loop(s.var, "0", index(program_.indices.extent(s.var)), depth);
        block(s.first, depth + 1);
        return line(depth, "}");
    }
  }

  const rows::RowProgram& program_;
  std::string out_;
};

}  // namespace

std::string sanitised(std::string_view text) {
  std::string out;
  for (char c : text.substr(0, 64)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    out += plain ? c : '_';
  }
  return out;
}

Kernel emit(const rows::RowProgram& program) {
  Kernel kernel;
  kernel.op = program.op;
  kernel.params = program.params;
  std::vector<std::string> signature;
  for (std::size_t i = 0; i < program.arguments.size(); ++i) {
    const rows::Argument& a = program.arguments[i];
    kernel.arguments.push_back(a.type);
    kernel.results += a.result ? 1 : 0;
    signature.push_back(fmt::format("{}{}* __restrict__ p{}", a.result ? "" : "const ",
                                    storage(program.type(i).dtype), i));
  }
  signature.emplace_back("long long rows");
  for (std::size_t i = 1; i < program.params.size(); ++i)
    signature.push_back(fmt::format("long long d{}", i));
  const std::string body = fmt::format(
      "({}) {{\n"
      "  const long long row = (long long)blockIdx.x * blockDim.x + threadIdx.x;\n"
      "  if (row >= rows) return;\n"
      "{}}}\n",
      fmt::join(signature, ", "), Emitter(program).body());
  kernel.name = fmt::format("k_{:016x}", hash_text(body));
  kernel.source = fmt::format("// {}\nextern \"C\" __global__ void {}{}", sanitised(program.op),
                              kernel.name, body);
  return kernel;
}

std::string source_file(const Kernel& kernel) {
  return fmt::format("{}\n{}", prelude(), kernel.source);
}

}  // namespace pw::cuda
