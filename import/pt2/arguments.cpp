#include "import/pt2/arguments.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/printable.hpp"
#include "base/try.hpp"
#include "import/pt2/dtypes.hpp"

namespace pw::pt2 {
namespace {

using fx::Expr;

constexpr std::array<std::string_view, 5> kModules{"torch", "operator", "_operator", "math",
                                                   "self"};

struct Reading {
  Span span;
  const GraphTaker* take;
};
using Reader = Result<Expr> (*)(const Part&, const Reading&);

Result<Expr> none(const Part&, const Reading& in) { return make_expr(Expr::Kind::none, in.span); }

Result<Expr> integer(const Part& part, const Reading& in) {
  Expr out = make_expr(Expr::Kind::integer, in.span);
  out.integer = PW_TRY(part.integer());
  return out;
}

Result<Expr> real(const Part& part, const Reading& in) {
  Expr out = make_expr(Expr::Kind::real, in.span);
  out.real = PW_TRY(part.real());
  return out;
}

Result<Expr> boolean(const Part& part, const Reading& in) {
  Expr out = make_expr(Expr::Kind::boolean, in.span);
  out.integer = PW_TRY(part.boolean()) ? 1 : 0;
  return out;
}

Result<Expr> text(const Part& part, const Reading& in) {
  return make_expr(Expr::Kind::string, in.span, PW_TRY(part.text()));
}

Result<Expr> reference(const Part& name, const Reading& in) {
  return make_expr(Expr::Kind::name, in.span, PW_TRY(read_value_name(name)));
}

Result<Expr> tensor(const Part& part, const Reading& in) {
  return reference(PW_TRY(part.member("name")), in);
}

/// Reads a tensor or nothing; a symbolic number or a plain one.
Result<Expr> either(const Part& part, const Reading& in) {
  const auto [kind, value] = PW_TRY(part.choice());
  if (kind == "as_none") return none(value, in);
  if (kind == "as_tensor") return tensor(value, in);
  if (kind == "as_name") return reference(value, in);
  if (kind == "as_int") return integer(value, in);
  if (kind == "as_float") return real(value, in);
  if (kind == "as_bool") return boolean(value, in);
  return value.wrong(fmt::format("an argument of kind `{}` is not supported here", printable(kind)),
                     "", "PW0532");
}

template <Reader one>
Result<Expr> each(const Part& part, const Reading& in) {
  Expr out = make_expr(Expr::Kind::list, in.span);
  for (const Part& item : PW_TRY(part.items())) out.args.push_back(PW_TRY(one(item, in)));
  return out;
}

/// Returns one of PyTorch's own names, by its number.
Result<Expr> torch_name(const Part& part, std::string_view name, const Reading& in) {
  if (name.empty())
    return part.wrong("invalid number: PyTorch defines no such value", "", "PW0532");
  return make_expr(Expr::Kind::name, in.span, std::string(name));
}

Result<Expr> dtype(const Part& part, const Reading& in) {
  const ScalarType* type = scalar_type(PW_TRY(part.integer()));
  return torch_name(part, type == nullptr ? "" : type->torch, in);
}

Result<Expr> layout(const Part& part, const Reading& in) {
  return torch_name(part, layout_name(PW_TRY(part.integer())), in);
}

Result<Expr> memory_format(const Part& part, const Reading& in) {
  return torch_name(part, memory_format_name(PW_TRY(part.integer())), in);
}

Result<Expr> device(const Part& part, const Reading& in) {
  Expr out = make_expr(Expr::Kind::call, in.span, "device");
  out.keywords.emplace_back("type");
  out.args.push_back(PW_TRY(text(PW_TRY(part.member("type")), in)));
  return out;
}

Result<Expr> complex_number(const Part& part, const Reading& in) {
  const double re = PW_TRY(PW_TRY(part.member("real")).real());
  const double im = PW_TRY(PW_TRY(part.member("imag")).real());
  return make_expr(Expr::Kind::string, in.span, fmt::format("complex({}, {})", re, im));
}

Result<Expr> object(const Part& part, const Reading& in) {
  const std::string type = PW_TRY(PW_TRY(part.member("class_fqn")).text());
  return make_expr(Expr::Kind::string, in.span, "object of " + type);
}

Result<Expr> op(const Part& part, const Reading& in) {
  std::string name = PW_TRY(part.text());
  const auto fits = [](char c) {
    return c == '.' || c == '_' || std::isalnum(static_cast<unsigned char>(c)) != 0;
  };
  const bool of_torch = name.starts_with("torch.") && std::ranges::all_of(name, fits);
  return make_expr(of_torch ? Expr::Kind::name : Expr::Kind::string, in.span, std::move(name));
}

Result<Expr> subgraph(const Part& part, const Reading& in) {
  return make_expr(Expr::Kind::name, in.span, "self." + PW_TRY((*in.take)(part)));
}

Result<Expr> argument(const Part& part, const Reading& in);

Result<Expr> dictionary(const Part& part, const Reading& in) {
  Expr out = make_expr(Expr::Kind::call, in.span, "dict");
  for (const auto& [name, value] : PW_TRY(part.members())) {
    out.keywords.push_back(name);
    out.args.push_back(PW_TRY(argument(value, in)));
  }
  return out;
}

struct Form {
  std::string_view name;
  Reader read;
};
constexpr Form kForms[] = {
    {"as_none", none},
    {"as_tensor", tensor},
    {"as_tensors", each<tensor>},
    {"as_nested_tensors", each<each<tensor>>},
    {"as_optional_tensor", either},
    {"as_optional_tensors", each<either>},
    {"as_int", integer},
    {"as_ints", each<integer>},
    {"as_int_lists", each<each<integer>>},
    {"as_float", real},
    {"as_floats", each<real>},
    {"as_float_lists", each<each<real>>},
    {"as_bool", boolean},
    {"as_bools", each<boolean>},
    {"as_string", text},
    {"as_strings", each<text>},
    {"as_sym_int", either},
    {"as_sym_ints", each<either>},
    {"as_sym_float", either},
    {"as_sym_floats", each<either>},
    {"as_sym_bool", either},
    {"as_sym_bools", each<either>},
    {"as_scalar_type", dtype},
    {"as_layout", layout},
    {"as_memory_format", memory_format},
    {"as_device", device},
    {"as_complex", complex_number},
    {"as_custom_obj", object},
    {"as_operator", op},
    {"as_graph", subgraph},
    {"as_string_to_argument", dictionary},
};

Result<Expr> argument(const Part& part, const Reading& in) {
  const auto [name, value] = PW_TRY(part.choice());
  for (const Form& form : kForms)
    if (form.name == name) return form.read(value, in);
  return part.wrong(
      fmt::format("unknown kind of argument `{}`", printable(std::string_view(name).substr(0, 80))),
      "the archive may be from a later PyTorch", "PW0532");
}

}  // namespace

Expr make_expr(Expr::Kind kind, const Span& span, std::string text) {
  Expr out;
  out.kind = kind;
  out.span = span;
  out.text = std::move(text);
  return out;
}

Result<Expr> read_argument(const Part& part, const Span& span, const GraphTaker& take) {
  return argument(part, {span, &take});
}

Result<std::string> read_value_name(const Part& part) {
  std::string name = PW_TRY(part.text());
  const bool taken = std::ranges::find(kModules, name) != kModules.end();
  if (fx::is_word(name) && !taken) return name;
  return part.wrong(
      fmt::format("`{}` cannot name a value", printable(std::string_view(name).substr(0, 80))));
}

}  // namespace pw::pt2
