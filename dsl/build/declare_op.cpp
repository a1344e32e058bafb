#include "dsl/build/declare_op.hpp"

#include <array>
#include <set>

#include "dsl/syntax/suggest.hpp"
#include "graph/dtype_names.hpp"
#include "graph/text/text.hpp"

namespace pw {
namespace {

constexpr std::array<AttributeKind, 10> kKinds{
    AttributeKind::int_,   AttributeKind::float_, AttributeKind::bool_, AttributeKind::str,
    AttributeKind::dtype,  AttributeKind::axis,   AttributeKind::ints,  AttributeKind::dims,
    AttributeKind::floats, AttributeKind::strs};

struct NamedTrait {
  std::string_view name;
  bool Traits::* flag;
};
constexpr std::array<NamedTrait, 8> kTraits{{{"commutative", &Traits::commutative},
                                             {"associative", &Traits::associative},
                                             {"view", &Traits::view},
                                             {"collective", &Traits::collective},
                                             {"effect", &Traits::effect},
                                             {"splitting", &Traits::splitting},
                                             {"rowwise", &Traits::rowwise},
                                             {"pointwise", &Traits::pointwise}}};
constexpr std::array kCapturable{Capturable::decode, Capturable::uniform, Capturable::always};

void set_trait(Traits& traits, const std::string& word, Span span, Diagnostics& out) {
  for (const NamedTrait& trait : kTraits) {
    if (trait.name == word) {
      traits.*trait.flag = true;
      return;
    }
  }
  for (const Capturable capturable : kCapturable) {
    if (name(capturable) != word) continue;
    if (traits.capturable != Capturable::never)
      out.push_back(error_at(span, "PW0210",
                             "a second trait beside " + in_ticks(name(traits.capturable)) +
                                 " already states when it is captured",
                             "leave one of them out"));
    traits.capturable = capturable;
    return;
  }
  out.push_back(
      error_at(span, "PW0210", "unknown trait " + in_ticks(word),
               did_you_mean(word, trait_names(),
                            "traits are commutative, associative, view, collective, effect, "
                            "splitting, rowwise, pointwise, capturable, capturable_uniform, "
                            "capturable_decode")));
}

}  // namespace

std::vector<std::string> trait_names() {
  std::vector<std::string> names;
  for (const NamedTrait& trait : kTraits) names.emplace_back(trait.name);
  for (const Capturable capturable : kCapturable) names.emplace_back(name(capturable));
  return names;
}

bool is_trait(std::string_view word) {
  const std::vector<std::string> names = trait_names();
  return std::find(names.begin(), names.end(), word) != names.end();
}

bool has_trait(const Op& op, std::string_view trait) {
  for (const NamedTrait& known : kTraits)
    if (known.name == trait) return op.traits.*known.flag;
  return op.traits.capturable != Capturable::never && name(op.traits.capturable) == trait;
}

namespace {

/// Names of operands and attributes, which share a namespace; results may not reuse an operand's
/// name either.
class UniqueNames {
 public:
  explicit UniqueNames(Diagnostics& out) : out_(out) {}
  void add(const std::string& name, Span span) {
    if (name.empty()) return;
    if (!seen_.insert(name).second)
      out_.push_back(error_at(span, "PW0211", in_ticks(name) + " is declared twice in this op",
                              "give it another name"));
  }

 private:
  Diagnostics& out_;
  std::set<std::string> seen_;
};

void lower_attributes(Context& context, const ast::OpItem& item, Op& op, Diagnostics& out) {
  for (const ast::AttributeDecl& decl : item.attributes) {
    auto kind = attribute_kind_named(decl.kind);
    if (!kind) {
      std::vector<std::string> names;
      for (AttributeKind k : kKinds) names.emplace_back(name(k));
      out.push_back(error_at(
          decl.span, "PW0212", "unknown kind of attribute " + in_ticks(decl.kind),
          did_you_mean(
              decl.kind, names,
              "the kinds are int, float, bool, str, dtype, axis, ints, dims, floats, strs")));
      continue;
    }
    AttributeDecl lowered{decl.name, decl.span, *kind, decl.nullable, {}};
    if (decl.value)
      lowered.default_value =
          literal_attribute(*decl.value, *kind, decl.nullable, context.dims, out);
    op.attributes.push_back(std::move(lowered));
  }
}

void lower_results(const ast::OpItem& item, Op& op, Diagnostics& out) {
  op.results = item.results;
  for (std::size_t i = 0; i < op.results.size(); ++i) {
    ResultDecl& result = op.results[i];
    if (i < item.result_from.size() && !item.result_from[i].empty()) {
      const int operand = op.operand_index(item.result_from[i]);
      if (operand >= 0) {
        result.from = operand;
      } else {
        std::vector<std::string> names;
        for (const OperandDecl& o : op.operands) names.push_back(o.name);
        out.push_back(error_at(
            result.span, "PW0213",
            "`from " + item.result_from[i] + "` does not name an operand of " + in_ticks(op.name),
            did_you_mean(item.result_from[i], names,
                         "`from` names the operand that the result aliases")));
      }
    }
    if ((!result.type || result.type->any_shape) && item.body.empty() && !item.imported)
      out.push_back(error_at(result.span.valid() ? result.span : item.name_span, "PW0214",
                             "a result of " + in_ticks(op.name) +
                                 " has neither a complete type nor a body to infer it from",
                             "write its type, as in `-> y: T[*s]`"));
    if (result.name.empty() && !item.body.empty())
      out.push_back(error_at(result.span.valid() ? result.span : item.name_span, "PW0215",
                             "a result of an op with a body needs a name",
                             "write `-> y: …` and bind `y` in the body"));
  }
}

void check_variadics(const Op& op, Diagnostics& out) {
  for (std::size_t i = 0; i + 1 < op.operands.size(); ++i) {
    if (op.operands[i].variadic)
      out.push_back(error_at(op.operands[i].span, "PW0216", "only the last operand may be variadic",
                             "move " + in_ticks(op.operands[i].name + "...") + " to the end"));
  }
  for (std::size_t i = 0; i + 1 < op.results.size(); ++i) {
    if (op.results[i].variadic)
      out.push_back(error_at(op.results[i].span, "PW0216", "only the last result may be variadic",
                             "move " + in_ticks(op.results[i].name + "...") + " to the end"));
  }
}

bool same_text(const std::vector<Statement>& a, const std::vector<Statement>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (print(a[i]) != print(b[i])) return false;
  }
  return true;
}

void no_literal(const Expr& expr, AttributeKind kind, Diagnostics& out) {
  const bool dtype = kind == AttributeKind::dtype && expr.kind == Expr::Kind::path;
  out.push_back(error_at(
      expr.span, "PW0217", "this is not a literal of kind " + in_ticks(name(kind)),
      dtype ? dtype_hint(expr.text)
            : "a default is a number, a string, true, false, a dtype, none, or a list of them"));
}

std::optional<Attribute> literal_number(const Expr& expr) {
  if (expr.kind == Expr::Kind::integer) return Attribute(expr.integer);
  if (expr.kind == Expr::Kind::real) return Attribute(expr.real);
  if (expr.kind != Expr::Kind::negate || expr.args.size() != 1) return {};
  const Expr& inner = expr.args.front();
  if (inner.kind == Expr::Kind::integer) return Attribute(-inner.integer);
  if (inner.kind == Expr::Kind::real) return Attribute(-inner.real);
  return {};
}

std::optional<std::int64_t> literal_int(const Expr& expr) {
  auto number = literal_number(expr);
  if (!number || !std::holds_alternative<std::int64_t>(*number)) return {};
  return std::get<std::int64_t>(*number);
}

std::optional<double> literal_real(const Expr& expr) {
  auto number = literal_number(expr);
  if (!number) return {};
  if (const auto* integer = std::get_if<std::int64_t>(&*number))
    return static_cast<double>(*integer);
  return std::get<double>(*number);
}

/// Reads all elements of a list literal by `read`; nothing if one fails.
template <class T, class Read>
std::optional<std::vector<T>> literal_list(const Expr& expr, Read read) {
  if (expr.kind != Expr::Kind::list) return {};
  std::vector<T> values;
  for (const Expr& element : expr.args) {
    auto value = read(element);
    if (!value) return {};
    values.push_back(std::move(*value));
  }
  return values;
}

template <class T>
std::optional<Attribute> boxed(std::optional<T> value) {
  if (!value) return {};
  return Attribute(std::move(*value));
}

std::optional<Attribute> literal_of_kind(const Expr& expr, AttributeKind kind, Dims& dims) {
  switch (kind) {
    case AttributeKind::int_:
    case AttributeKind::axis: return boxed(literal_int(expr));
    case AttributeKind::float_: return boxed(literal_real(expr));
    case AttributeKind::bool_:
      if (expr.kind != Expr::Kind::boolean) return {};
      return Attribute(expr.integer != 0);
    case AttributeKind::str:
      if (expr.kind != Expr::Kind::string) return {};
      return Attribute(expr.text);
    case AttributeKind::dtype:
      if (expr.kind != Expr::Kind::path) return {};
      return boxed(dtype_named(expr.text));
    case AttributeKind::ints:
    case AttributeKind::dims:
      return boxed(literal_list<DimId>(expr, [&](const Expr& e) -> std::optional<DimId> {
        auto value = literal_int(e);
        if (!value) return {};
        return dims.constant(*value);
      }));
    case AttributeKind::floats: return boxed(literal_list<double>(expr, literal_real));
    case AttributeKind::strs:
      return boxed(literal_list<std::string>(expr, [](const Expr& e) -> std::optional<std::string> {
        if (e.kind != Expr::Kind::string) return {};
        return e.text;
      }));
  }
  return {};
}

}  // namespace

std::optional<AttributeKind> attribute_kind_named(std::string_view word) {
  for (AttributeKind kind : kKinds) {
    if (name(kind) == word) return kind;
  }
  return {};
}

std::optional<Attribute> literal_attribute(const Expr& expr, AttributeKind kind, bool nullable,
                                           Dims& dims, Diagnostics& out) {
  if (expr.kind == Expr::Kind::none) {
    if (nullable) return Attribute(None{});
    out.push_back(error_at(expr.span, "PW0217",
                           "none is not a value of kind " + in_ticks(name(kind)),
                           "write `" + std::string(name(kind)) + "?` to allow none"));
    return {};
  }
  auto value = literal_of_kind(expr, kind, dims);
  if (!value) no_literal(expr, kind, out);
  return value;
}

std::optional<Op> lower_op(Context& context, const ast::OpItem& item, Diagnostics& out) {
  const std::size_t before = out.size();
  Op op;
  op.name = item.name;
  op.span = item.name_span;
  op.operands = item.operands;
  op.body = item.body;
  op.imported = item.imported;
  if (dtype_named(op.name))
    out.push_back(error_at(item.name_span, "PW0218",
                           in_ticks(op.name) + " is a dtype, so it cannot be the name of an op"));
  UniqueNames names(out);
  for (const OperandDecl& operand : op.operands) names.add(operand.name, operand.span);
  for (const ast::AttributeDecl& attribute : item.attributes)
    names.add(attribute.name, attribute.span);
  for (const ResultDecl& result : item.results) names.add(result.name, result.span);
  for (const auto& [word, span] : item.traits) set_trait(op.traits, word, span, out);
  if (op.traits.commutative && op.operands.size() < 2)
    out.push_back(error_at(
        item.name_span, "PW0210",
        "`commutative` swaps the first two operands, and " + in_ticks(op.name) + " has fewer"));
  lower_attributes(context, item, op, out);
  lower_results(item, op, out);
  check_variadics(op, out);
  if (out.size() != before) return {};
  return op;
}

OpId declare_op(Context& context, const ast::OpItem& item, Diagnostics& out, bool local) {
  auto op = lower_op(context, item, out);
  if (!op) return {};
  op->local = local;
  const OpId known = context.ops.find(op->name);
  if (known.valid() && context.ops[known].has_body() && op->has_body() &&
      !same_text(context.ops[known].body, op->body)) {
    Diagnostic d =
        error_at(item.name_span, "PW0204",
                 "op " + in_ticks(op->name) + " is already declared with a different body",
                 "an op has one meaning; rename one of them");
    d.secondary.push_back({context.ops[known].span, "first declared here"});
    out.push_back(std::move(d));
    return {};
  }
  auto declared = context.ops.declare(std::move(*op));
  if (declared) return *declared;
  append(out, std::move(declared.error()));
  return {};
}

}  // namespace pw
