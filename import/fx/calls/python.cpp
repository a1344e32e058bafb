#include "import/fx/calls/python.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include <fmt/format.h>

#include "base/printable.hpp"
#include "base/try.hpp"
#include "graph/text/type_text.hpp"

namespace pw::fx {
namespace {

// Calls that affect the run, not the computation. A path that ends in `*` matches every path with
// that prefix.
constexpr std::string_view kBookkeeping[] = {
    "torch._C._set_grad_enabled",
    "torch._C._log_api_usage_once",
    "torch.set_grad_enabled",
    "torch.autograd.grad_mode.*",
    "torch.amp.autocast_mode._enter_autocast",
    "torch.amp.autocast_mode._exit_autocast",
    "torch.autograd.graph.*",
    "torch.autograd._profiler_enabled",
    "torch.profiler.*",
    "torch.cuda.synchronize",
    "torch.ops.profiler.*",
};
constexpr std::string_view kRanges[] = {
    "torch.sym_constrain_range*",
    "torch.ops.aten.sym_constrain_range*",
};
constexpr std::string_view kAsserts[] = {
    "torch._check*",
    "torch._assert*",
    "torch.ops.aten._assert_*",
    "torch.ops.aten._functional_assert*",
    "_assert*",
};

// Returns a positional argument, or the one with a keyword; null if there is neither.
const Value* argument_at(const Arguments& arguments, std::size_t position, std::string_view name) {
  const std::vector<Value>& args = arguments.positional;
  return position < args.size() ? &args[position] : keyword(arguments, name);
}

bool named(std::string_view callee, std::string_view pattern) {
  return pattern.ends_with("*") ? callee.starts_with(pattern.substr(0, pattern.size() - 1))
                                : callee == pattern;
}
bool named_in(std::string_view callee, std::span<const std::string_view> patterns) {
  return std::ranges::any_of(patterns,
                             [&](std::string_view pattern) { return named(callee, pattern); });
}

const std::map<std::string_view, std::string_view> kInfix = {
    {"add", "+"}, {"sub", "-"},    {"mul", "*"},     {"truediv", "/"}, {"floordiv", "//"},
    {"mod", "%"}, {"pow", "**"},   {"eq", "=="},     {"ne", "!="},     {"lt", "<"},
    {"le", "<="}, {"gt", ">"},     {"ge", ">="},     {"and_", "&"},    {"or_", "|"},
    {"xor", "^"}, {"matmul", "@"}, {"lshift", "<<"}, {"rshift", ">>"},
};
const std::map<std::string_view, std::string_view> kInPlace = {
    {"iadd", "+"},    {"isub", "-"},     {"imul", "*"},     {"itruediv", "/"}, {"ifloordiv", "//"},
    {"imod", "%"},    {"ipow", "**"},    {"iand", "&"},     {"ior", "|"},      {"ixor", "^"},
    {"imatmul", "@"}, {"ilshift", "<<"}, {"irshift", ">>"},
};

// The op of each operator on tensors, by the method of the same name.
const std::map<std::string_view, std::string_view> kMethods = {
    {"+", "add"},
    {"-", "sub"},
    {"*", "mul"},
    {"/", "div"},
    {"//", "floor_divide"},
    {"%", "remainder"},
    {"**", "pow"},
    {"==", "eq"},
    {"!=", "ne"},
    {"<", "lt"},
    {"<=", "le"},
    {">", "gt"},
    {">=", "ge"},
    {"&", "bitwise_and"},
    {"|", "bitwise_or"},
    {"^", "bitwise_xor"},
    {"@", "matmul"},
    {"<<", "bitwise_left_shift"},
    {">>", "bitwise_right_shift"},
};

Value boolean(bool b) {
  Value out;
  out.kind = Value::Kind::boolean;
  out.boolean = b;
  return out;
}
Value real(double x) {
  Value out;
  out.kind = Value::Kind::real;
  out.real = x;
  return out;
}
Value other(std::string text) {
  Value out;
  out.kind = Value::Kind::other;
  out.text = std::move(text);
  return out;
}

Value truth_of(SizeConditions comparisons) {
  if (comparisons.empty()) return boolean(true);
  Value out = other("bool");
  out.comparisons = std::make_shared<const SizeConditions>(std::move(comparisons));
  return out;
}

// Returns the comparisons that are all true if the value is; nothing if they are not known.
std::optional<SizeConditions> comparisons_of(const Value& v) {
  if (v.kind == Value::Kind::boolean && v.boolean) return SizeConditions();
  return v.comparisons ? std::optional(*v.comparisons) : std::nullopt;
}

bool is_tensor(const Value& v) { return v.kind == Value::Kind::tensor; }

Compare negate(Compare op) {
  switch (op) {
    case Compare::eq: return Compare::ne;
    case Compare::ne: return Compare::eq;
    case Compare::lt: return Compare::ge;
    case Compare::le: return Compare::gt;
    case Compare::gt: return Compare::le;
    case Compare::ge: return Compare::lt;
  }
  return op;
}

std::optional<double> as_operand(const Value& v, const Dims& dims) {
  if (v.kind == Value::Kind::boolean) return v.boolean ? 1.0 : 0.0;
  return as_real(dims, v);
}

std::optional<bool> compare(std::string_view op, double a, double b) {
  if (op == "==") return a == b;
  if (op == "!=") return a != b;
  if (op == "<") return a < b;
  if (op == "<=") return a <= b;
  if (op == ">") return a > b;
  if (op == ">=") return a >= b;
  return std::nullopt;
}

std::optional<double> calculate(std::string_view op, double a, double b) {
  if (op == "+") return a + b;
  if (op == "-") return a - b;
  if (op == "*") return a * b;
  if (op == "**") return std::pow(a, b);
  if (b == 0) return std::nullopt;
  if (op == "/") return a / b;
  if (op == "//") return std::floor(a / b);
  if (op == "%") return a - b * std::floor(a / b);
  return std::nullopt;
}

std::optional<Compare> comparison(std::string_view op) {
  static const std::map<std::string_view, Compare> kAll = {
      {"==", Compare::eq}, {"!=", Compare::ne}, {"<", Compare::lt},
      {"<=", Compare::le}, {">", Compare::gt},  {">=", Compare::ge}};
  auto it = kAll.find(op);
  return it == kAll.end() ? std::nullopt : std::optional(it->second);
}

}  // namespace

// Returns what a call that may raise requires of sizes; nothing if that is not known.
std::optional<SizeConditions> PythonCalls::required(const std::string& callee,
                                                    const Arguments& arguments) {
  const std::vector<Value>& args = arguments.positional;
  if (args.empty()) return std::nullopt;
  if (callee.find("_assert_tensor_metadata") != std::string::npos) return metadata(arguments);
  if (!named_in(callee, kRanges)) return comparisons_of(args[0]);
  if (args[0].kind != Value::Kind::integer) return std::nullopt;
  SizeConditions out;
  const auto add = [&](Compare op, const Value* bound) {
    if (bound != nullptr && bound->kind == Value::Kind::integer)
      out.push_back({op, args[0].dim, bound->dim, ""});
  };
  add(Compare::ge, argument_at(arguments, 1, "min"));
  add(Compare::le, argument_at(arguments, 2, "max"));
  return out;
}

// Compares the stated dtype and sizes with the type of the tensor. Strides, devices and layouts
// are not part of the graph.
std::optional<SizeConditions> PythonCalls::metadata(const Arguments& arguments) {
  const Value& x = arguments.positional[0];
  const Type* type = is_tensor(x) ? emitter_.type_of(x.tensor) : nullptr;
  if (type == nullptr) return std::nullopt;
  const Value* dtype = argument_at(arguments, 3, "dtype");
  if (dtype != nullptr && dtype->kind != Value::Kind::none &&
      (dtype->kind != Value::Kind::dtype || dtype->dtype != type->dtype))
    return std::nullopt;
  const Value* size = argument_at(arguments, 1, "size");
  if (size == nullptr || size->kind == Value::Kind::none) return SizeConditions();
  const std::optional<Shape> stated = as_shape(*size);
  if (!stated || stated->size() != type->shape.size()) return std::nullopt;
  SizeConditions out;
  for (std::size_t i = 0; i < stated->size(); ++i)
    if (type->shape[i] != (*stated)[i])
      out.push_back({Compare::eq, type->shape[i], (*stated)[i], ""});
  return out;
}

// Handles a call that computes nothing. What those that may raise require is checked by each run
// if it is a condition on sizes, and reported otherwise.
bool PythonCalls::bookkeeping(const std::string& callee, const Arguments& arguments,
                              const Site& site) {
  const std::vector<Value>& args = arguments.positional;
  const bool raises = named_in(callee, kRanges) || named_in(callee, kAsserts);
  if (!raises && !named_in(callee, kBookkeeping)) return false;
  emitter_.effects().once();
  if (!raises) {
    ++report_.dropped[callee];
    return true;
  }
  std::string line = callee;
  const auto text =
      std::ranges::find_if(args, [](const Value& v) { return v.kind == Value::Kind::string; });
  if (text != args.end()) line += fmt::format(" ({})", printable(text->text));
  if (!site.source.empty()) line += " at " + site.source;
  const std::optional<SizeConditions> needed = required(callee, arguments);
  if (!needed) {
    report_.unchecked.push_back(std::move(line));
    return true;
  }
  for (const SizeCondition& c : *needed) report_.checked.push_back({c.op, c.left, c.right, line});
  if (needed->empty()) ++report_.dropped[callee];
  return true;
}

// A number on the left: 2 * x, 1 - x, 3 < x.
Result<Value> PythonCalls::of_number(std::string_view op, std::string_view method, const Value& a,
                                     const Value& x, const Site& site) {
  static const std::map<std::string_view, std::string_view> kTurned = {
      {"==", "=="}, {"!=", "!="}, {"<", ">"}, {"<=", ">="}, {">", "<"},
      {">=", "<="}, {"&", "&"},   {"|", "|"}, {"^", "^"}};
  if (auto it = kTurned.find(op); it != kTurned.end())
    return torch_.call(std::string(kMethods.find(it->second)->second), true, {{x, a}, {}}, site);
  if (op == "+" || op == "-" || op == "*" || op == "/")
    return calls_.call(fmt::format("aten.{}.Tensor", method), {{a, x}, {}}, site);
  if (op == "%") return calls_.call("aten.remainder.Scalar_Tensor", {{a, x}, {}}, site);
  return torch_.call(std::string(method), true, {{a, x}, {}}, site);
}

Result<Value> PythonCalls::infix(std::string_view op, const Value& a, const Value& b, Span span,
                                 const Site& site) {
  Dims& dims = context_.dims;
  if (is_tensor(a) || is_tensor(b)) {
    auto it = kMethods.find(op);
    if (it != kMethods.end() && !is_tensor(a)) return of_number(op, it->second, a, b, site);
    if (it != kMethods.end()) return torch_.call(std::string(it->second), true, {{a, b}, {}}, site);
    return fail(span, "PW0512", "`" + std::string(op) + "` cannot be applied here");
  }
  if (a.kind == Value::Kind::integer && b.kind == Value::Kind::integer) {
    if (std::optional<Compare> c = comparison(op)) {
      const Truth truth = dims.prove(*c, a.dim, b.dim, graph_.facts);
      return truth == Truth::unknown ? truth_of({{*c, a.dim, b.dim, ""}})
                                     : boolean(truth == Truth::yes);
    }
    DimId d;
    if (op == "+") d = dims.add(a.dim, b.dim);
    if (op == "-") d = dims.sub(a.dim, b.dim);
    if (op == "*") d = dims.mul(a.dim, b.dim);
    if (op == "//") d = dims.div(a.dim, b.dim);
    if (op == "%") d = dims.mod(a.dim, b.dim);
    if (op == "**" && dims.value(b.dim).value_or(-1) >= 0 && *dims.value(b.dim) <= 16) {
      d = dims.constant(1);
      for (std::int64_t i = 0; i < *dims.value(b.dim); ++i) d = dims.mul(d, a.dim);
    }
    if (d.valid()) {
      Value out = integer(context_.dims, 0);
      out.dim = d;
      return out;
    }
  }
  std::optional<double> x = as_operand(a, dims), y = as_operand(b, dims);
  if (x && y) {
    if (std::optional<bool> truth = compare(op, *x, *y)) return boolean(*truth);
    if (a.kind == Value::Kind::boolean && b.kind == Value::Kind::boolean) {
      if (op == "&") return boolean(a.boolean && b.boolean);
      if (op == "|") return boolean(a.boolean || b.boolean);
    }
    if (std::optional<double> value = calculate(op, *x, *y)) return real(*value);
  }
  if (a.kind == Value::Kind::list && b.kind == Value::Kind::list && op == "+") {
    Value out = a;
    out.items.insert(out.items.end(), b.items.begin(), b.items.end());
    return out;
  }
  if (op == "&")
    if (auto left = comparisons_of(a), right = comparisons_of(b); left && right) {
      left->insert(left->end(), right->begin(), right->end());
      return truth_of(std::move(*left));
    }
  if (comparison(op) || a.kind == Value::Kind::other || b.kind == Value::Kind::other)
    return other("unknown");  // of a symbol's value; only checks read it
  return fail(span, "PW0512", "`" + std::string(op) + "` of these numbers is not a dim");
}

Result<Value> PythonCalls::unary(std::string_view op, const Value& x, const Site& site) {
  if (is_tensor(x)) {
    if (op == "pos") return x;
    const char* name = op == "neg"    ? "neg"
                       : op == "abs"  ? "abs"
                       : op == "not_" ? "logical_not"
                                      : "bitwise_not";
    return torch_.call(name, true, {{x}, {}}, site);
  }
  if (op == "pos") return x;
  if (op == "neg" && x.kind == Value::Kind::integer) {
    Value out = x;
    out.dim = context_.dims.sub(context_.dims.constant(0), x.dim);
    if (out.dim.valid()) return out;
  }
  if (op == "neg" && x.kind == Value::Kind::real) return real(-x.real);
  if ((op == "not_" || op == "invert") && x.kind == Value::Kind::boolean)
    return boolean(!x.boolean);
  if (op == "not_" && x.comparisons && x.comparisons->size() == 1) {
    const SizeCondition& only = x.comparisons->front();
    return truth_of({{negate(only.op), only.left, only.right, ""}});
  }
  if (std::optional<Value> out = op == "abs" ? number("abs", {x}) : std::nullopt) return *out;
  return other("unknown");
}

// Functions of numbers, as `math` and torch's symbolic ones have them.
std::optional<Value> PythonCalls::number(std::string_view function, const std::vector<Value>& of) {
  Dims& dims = context_.dims;
  auto whole = [&](double x) -> std::optional<Value> {
    if (!(std::abs(x) < 9e15)) return std::nullopt;
    return integer(context_.dims, static_cast<std::int64_t>(x));
  };
  auto ints = [&] {
    return std::ranges::all_of(of, [](const Value& v) { return v.kind == Value::Kind::integer; });
  };
  if ((function == "max" || function == "min") && of.size() == 2 && ints()) {
    Value out = of[0];
    out.dim = function == "max" ? dims.max(of[0].dim, of[1].dim) : dims.min(of[0].dim, of[1].dim);
    if (!out.dim.valid()) return std::nullopt;
    out.dim = dims.decided(out.dim, graph_.facts);
    return out;
  }
  if (of.size() == 1 && of[0].kind == Value::Kind::integer && function == "int") return of[0];
  if (of.size() == 1 && of[0].kind == Value::Kind::string && function == "float") {
    const std::string& text = of[0].text;
    if (text == "inf" || text == "Infinity") return real(INFINITY);
    if (text == "-inf" || text == "-Infinity") return real(-INFINITY);
    if (text == "nan") return real(NAN);
  }
  std::vector<double> x;
  for (const Value& v : of) {
    std::optional<double> r = as_operand(v, dims);
    if (!r) return std::nullopt;
    x.push_back(*r);
  }
  if (x.size() == 2) {
    if (function == "max") return real(std::max(x[0], x[1]));
    if (function == "min") return real(std::min(x[0], x[1]));
    if (function == "pow") return real(std::pow(x[0], x[1]));
  }
  if (x.size() != 1) return std::nullopt;
  if (function == "float") return real(x[0]);
  if (function == "bool") return boolean(x[0] != 0);
  if (function == "int" || function == "trunc") return whole(std::trunc(x[0]));
  if (function == "floor") return whole(std::floor(x[0]));
  if (function == "ceil") return whole(std::ceil(x[0]));
  if (function == "abs" && ints()) return whole(std::abs(x[0]));
  if (function == "abs" || function == "fabs") return real(std::abs(x[0]));
  if (function == "sqrt" && x[0] >= 0) return real(std::sqrt(x[0]));
  if (function == "exp") return real(std::exp(x[0]));
  if (function == "log" && x[0] > 0) return real(std::log(x[0]));
  return std::nullopt;
}

Result<Value> PythonCalls::attribute(const Value& x, const std::string& name, const Site& site) {
  if (x.kind == Value::Kind::other) return other(x.text + "." + name);
  if (!is_tensor(x)) {
    if (name == "real") return x;
    return other("." + name);
  }
  if (name == "shape") return torch_.call("size", true, {{x}, {}}, site);
  if (name == "ndim") return torch_.call("dim", true, {{x}, {}}, site);
  if (name == "T" || name == "mT")
    return torch_.call(name == "T" ? "numpy_T" : "mT", true, {{x}, {}}, site);
  if (name == "data") return calls_.call("aten.detach", {{x}, {}}, site);
  const Type* type = emitter_.type_of(x.tensor);
  if (name == "dtype" && type) {
    Value out;
    out.kind = Value::Kind::dtype;
    out.dtype = type->dtype;
    return out;
  }
  return other("." + name);  // device, layout, is_cuda …: no tensor depends on it
}

namespace {

constexpr std::string_view kOperator = "operator.";
using Maybe = std::optional<Value>;

Result<Maybe> as_maybe(Result<Value> value) {
  if (!value) return forward(value);
  return Maybe(std::move(*value));
}

}  // namespace

// Converts a call of the module operator.
Result<std::optional<Value>> PythonCalls::operator_call(const std::string& callee,
                                                        const Arguments& arguments,
                                                        const Site& site) {
  const std::vector<Value>& args = arguments.positional;
  const std::string name = callee.substr(kOperator.size());
  if (auto it = kInfix.find(name); it != kInfix.end() && args.size() == 2)
    return as_maybe(infix(it->second, args[0], args[1], site.span, site));
  if (auto it = kInPlace.find(name); it != kInPlace.end() && args.size() == 2) {
    Site plain{site.span, site.source, true, {}, {}};  // the name is the left operand's already
    if (!is_tensor(args[0])) return as_maybe(infix(it->second, args[0], args[1], site.span, plain));
    const std::string method(kMethods.find(it->second)->second);
    Value written = PW_TRY(torch_.call(method + "_", true, arguments, plain));
    return Maybe(is_tensor(written) ? written : args[0]);
  }
  if (name == "setitem" && args.size() == 3)
    return as_maybe(subscripts_.set(args[0], args[1], args[2], site));
  if (args.size() == 1) return as_maybe(unary(name, args[0], site));
  return as_maybe(unknown_.keep(callee, arguments, site));
}

// Converts a call of a Python function on numbers.
Result<std::optional<Value>> PythonCalls::number_call(const std::string& callee,
                                                      const Arguments& arguments,
                                                      const Site& site) {
  const std::vector<Value>& args = arguments.positional;
  std::string name = callee.substr(
      callee.find_last_of("._") == std::string::npos ? 0 : callee.find_last_of("._") + 1);
  if (name == "len" && args.size() == 1 && args[0].kind == Value::Kind::list)
    return Maybe(integer(context_.dims, static_cast<std::int64_t>(args[0].items.size())));
  if (std::optional<Value> out = number(name, args)) return Maybe(*out);
  if (name == "not" && args.size() == 1) return as_maybe(unary("not_", args[0], site));
  const bool tensors = std::ranges::any_of(args, is_tensor);
  if (!tensors) return Maybe(other("unknown"));
  return as_maybe(unknown_.keep(callee, arguments, site));
}

// Converts a call of a function of torch, by the module where it is.
Result<std::optional<Value>> PythonCalls::named_in_torch(const std::string& callee,
                                                         const Arguments& arguments,
                                                         const Site& site) {
  for (std::string_view lead :
       {"torch.nn.functional.", "torch.functional.", "torch._C._nn.", "torch._C._special.",
        "torch._C._fft.", "torch._C._linalg.", "torch.Tensor."})
    if (callee.starts_with(lead))
      return as_maybe(
          torch_.call(callee.substr(lead.size()), lead == "torch.Tensor.", arguments, site));
  for (std::string_view lead : {"torch.special.", "torch.fft.", "torch.linalg."})
    if (callee.starts_with(lead)) {
      std::string name = callee.substr(6);
      name[name.find('.')] = '_';
      return as_maybe(torch_.call(name, false, arguments, site));
    }
  constexpr std::string_view kTorch = "torch.", kAten = "torch.ops.aten.";
  if (callee.starts_with(kAten) && callee.find('.', kAten.size()) == std::string::npos &&
      !known_.table().find(callee.substr(10)))
    return as_maybe(torch_.call(callee.substr(kAten.size()), false, arguments, site));
  if (callee.starts_with(kTorch) && callee.find('.', kTorch.size()) == std::string::npos &&
      callee != "torch.Size" && callee != "torch.device")
    return as_maybe(torch_.call(callee.substr(kTorch.size()), false, arguments, site));
  return Maybe();
}

Result<std::optional<Value>> PythonCalls::call(const std::string& callee,
                                               const Arguments& arguments, const Site& site) {
  const std::vector<Value>& args = arguments.positional;
  if (callee == "slice") {
    Value out = other("slice");
    out.items = args;
    if (out.items.size() == 1) out.items.insert(out.items.begin(), Value());
    out.items.resize(3);
    return Maybe(out);
  }
  if (callee == "dict") {
    Value out;
    out.kind = Value::Kind::list;
    for (const auto& [key, value] : arguments.keywords) {
      out.keys.push_back(key);
      out.items.push_back(value);
    }
    return Maybe(out);
  }
  if (bookkeeping(callee, arguments, site)) {
    const bool casts = callee.ends_with("_enter_autocast") && args.size() > 2 &&
                       args[2].kind == Value::Kind::boolean && args[2].boolean;
    const std::string line = "an autocast region: its ops keep the types stated in the dump";
    if (casts && std::ranges::find(report_.notes, line) == report_.notes.end())
      report_.notes.push_back(line);
    return Maybe(Value());
  }
  if (callee == "torch._C._autograd._get_data_attr" && args.size() == 1 && is_tensor(args[0]))
    return as_maybe(calls_.call("aten.detach", {{args[0]}, {}}, site));
  if (callee == "getattr" && args.size() >= 2 && args[1].kind == Value::Kind::string)
    return as_maybe(attribute(args[0], args[1].text, site));
  if (callee.starts_with("fx_pytree.") || callee.starts_with("pytree.") ||
      callee.starts_with("torch.fx._pytree.") || callee.starts_with("torch.utils._pytree.")) {
    if (!args.empty()) return Maybe(args[0]);
  }
  if (callee.starts_with("."))
    return as_maybe(torch_.call(callee.substr(1), true, arguments, site));

  constexpr std::string_view kMath = "math.", kSym = "torch.sym_";
  if (callee.starts_with(kOperator)) return operator_call(callee, arguments, site);
  if (callee.starts_with(kMath) || callee.starts_with(kSym) || callee == "int" ||
      callee == "float" || callee == "bool" || callee == "max" || callee == "min" ||
      callee == "abs" || callee == "len")
    return number_call(callee, arguments, site);
  return named_in_torch(callee, arguments, site);
}

}  // namespace pw::fx
