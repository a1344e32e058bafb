#include "graph/infer/infer.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/try.hpp"
#include "graph/compare/canonical.hpp"
#include "graph/dtype_names.hpp"
#include "graph/infer/dim_value.hpp"
#include "graph/infer/shape_functions.hpp"
#include "graph/same_type.hpp"
#include "graph/text/text.hpp"

namespace pw {
namespace {

Attribute simplified(Context& context, DimId d) {
  if (auto v = context.dims.value(d)) return *v;
  return d;
}

class Instantiator {
 public:
  Instantiator(Context& context, const Env& env, std::span<const TypeId> operands,
               const Facts& facts)
      : context_(context), env_(env), operands_(operands), facts_(facts) {}

  Result<DTypeBinding> dtype(const Expr& e) {
    if (e.kind == Expr::Kind::call && e.text == "promote") {
      DTypeBinding sum;
      for (std::size_t i = 0; i < e.args.size(); ++i) {
        Result<DTypeBinding> next = dtype(e.args[i]);
        if (!next) return next;
        sum = i == 0 ? *next
                     : DTypeBinding{promote(sum.dtype, sum.weak, next->dtype, next->weak),
                                    sum.weak && next->weak};
      }
      return sum;
    }
    if (e.kind == Expr::Kind::call && e.args.size() == 1 &&
        (e.text == "integral" || e.text == "floating"))
      return of_kind(e.args[0], e.text == "floating");
    if (e.kind == Expr::Kind::call && e.text == "either" &&
        e.args.size() == 2) {  // either(attribute, T): T without the attribute
      Attribute first = PW_TRY(evaluate(context_, nullptr, e.args[0], env_));
      return std::holds_alternative<None>(first) ? dtype(e.args[1]) : dtype(e.args[0]);
    }
    if (e.kind == Expr::Kind::path) {
      auto it = env_.find(e.text);
      if (it != env_.end()) {
        if (auto d = std::get_if<DTypeBinding>(&it->second)) return *d;
        if (auto a = std::get_if<Attribute>(&it->second))
          if (auto d = std::get_if<DType>(a)) return DTypeBinding{*d, false};
      }
      if (auto d = dtype_named(e.text)) return DTypeBinding{*d, false};
    }
    return fail(e.span, "PW0302", "`" + print(e) + "` is not a dtype here", dtype_hint(e.text));
  }

  /// Returns the shape; nothing if the op has no result of this index.
  Result<std::optional<Shape>> shape(const TypeExpr& expr, int result_index) {
    Shape out;
    for (const Expr& e : expr.dims) {
      ShapeFunction function = e.kind == Expr::Kind::call ? shape_function(e.text) : nullptr;
      if (function) {
        Result<std::optional<Shape>> part = call(function, e, result_index);
        if (!part || !*part) return part;
        out.insert(out.end(), (*part)->begin(), (*part)->end());
        continue;
      }
      Expr plain = e;
      if (plain.kind == Expr::Kind::star) plain.kind = Expr::Kind::path;
      for (Expr& arg : plain.args)  // of an extern
        if (arg.kind == Expr::Kind::star) arg.kind = Expr::Kind::path;
      Attribute value = PW_TRY(evaluate(context_, nullptr, plain, env_));
      if (const auto dim = dim_value(context_.dims, value)) {
        out.push_back(*dim);
      } else if (auto s = std::get_if<std::vector<DimId>>(&value)) {
        out.insert(out.end(), s->begin(), s->end());
      } else {
        return fail(e.span, "PW0303", "`" + print(e) + "` is not a dim");
      }
    }
    return std::optional(out);
  }

 private:
  Result<DTypeBinding> of_kind(const Expr& e, bool floating) {
    Result<DTypeBinding> found = dtype(e);
    if (found && is_float(found->dtype) != floating)
      return fail(e.span, "PW0306",
                  fmt::format("{} is {}, but only {} are supported here", print(e),
                              name(found->dtype), floating ? "floating dtypes" : "integers and b8"),
                  "cast it: `" + std::string(floating ? "f32" : "i64") + "(x)`");
    return found;
  }
  Result<std::optional<Shape>> call(ShapeFunction function, const Expr& e, int result_index) {
    const auto [known, fresh] = arguments_.try_emplace(&e);
    std::vector<Attribute>& arguments = known->second;
    for (std::size_t i = 0; fresh && i < e.args.size(); ++i) {
      Expr plain = e.args[i];
      if (plain.kind == Expr::Kind::star) plain.kind = Expr::Kind::path;
      Result<Attribute> value = evaluate(context_, nullptr, plain, env_);
      if (!value) return arguments_.erase(known), forward(value);
      arguments.push_back(std::move(*value));
    }
    return function({context_, arguments, operands_, result_index, e.span, facts_});
  }

  Context& context_;
  const Env& env_;
  std::span<const TypeId> operands_;
  const Facts& facts_;
  std::map<const Expr*, std::vector<Attribute>> arguments_;  // of shape functions; looked up only
};

/// Returns the type; nothing if the op has no result of this index.
Result<std::optional<TypeId>> try_instantiate(Context& context, const TypeExpr& expr,
                                              Instantiator& instantiate, int result_index) {
  if (expr.dtype.empty())
    return fail(expr.span, "PW0302", "the type `" + print(expr) + "` has no dtype");
  DTypeBinding dtype = PW_TRY(instantiate.dtype(expr.dtype[0]));
  if (expr.any_shape)
    return fail(expr.span, "PW0303", "the type `" + print(expr) + "` has no shape");
  std::optional<Shape> shape = PW_TRY(instantiate.shape(expr, result_index));
  if (!shape) return std::optional<TypeId>();
  for (DimId d : *shape)
    if (!d.valid() || context.dims.value(d).value_or(0) < 0 ||
        context.dims.value(d).value_or(0) > (std::int64_t{1} << 40))
      return fail(expr.span, "PW0311",
                  "an extent of `" + context.types.print(*shape) + "` is out of range");
  return std::optional(context.types.get(dtype.dtype, *shape));
}

/// Converts the value of an attribute to its declared kind; nothing if that is impossible.
std::optional<Attribute> coerce(Context& context, AttributeKind kind, const Attribute& a) {
  auto integer = std::get_if<std::int64_t>(&a);
  switch (kind) {
    case AttributeKind::int_:
    case AttributeKind::axis:
      if (auto b = std::get_if<bool>(&a)) return Attribute(std::int64_t{*b});
      if (auto d = std::get_if<DimId>(&a)) return simplified(context, *d);
      if (integer) return a;
      return std::nullopt;
    case AttributeKind::float_:
      if (integer)
        return constant_holds(*integer) ? std::optional<Attribute>(static_cast<double>(*integer))
                                        : std::nullopt;
      if (std::holds_alternative<double>(a)) return a;
      return std::nullopt;
    case AttributeKind::bool_:
      if (integer && (*integer == 0 || *integer == 1)) return Attribute(*integer == 1);
      if (std::holds_alternative<bool>(a)) return a;
      return std::nullopt;
    case AttributeKind::str:
      return std::holds_alternative<std::string>(a) ? std::optional(a) : std::nullopt;
    case AttributeKind::dtype:
      return std::holds_alternative<DType>(a) ? std::optional(a) : std::nullopt;
    case AttributeKind::ints:
    case AttributeKind::dims:
      if (std::holds_alternative<std::vector<DimId>>(a)) return a;
      return std::nullopt;
    case AttributeKind::floats:
      if (std::holds_alternative<std::vector<double>>(a)) return a;
      if (auto dims = std::get_if<std::vector<DimId>>(&a)) {
        std::vector<double> reals;
        for (DimId d : *dims) {
          auto v = context.dims.value(d);
          if (!v) return std::nullopt;
          reals.push_back(static_cast<double>(*v));
        }
        return Attribute(reals);
      }
      return std::nullopt;
    case AttributeKind::strs:
      if (auto dims = std::get_if<std::vector<DimId>>(&a); dims && dims->empty())
        return Attribute(std::vector<std::string>{});
      return std::holds_alternative<std::vector<std::string>>(a) ? std::optional(a) : std::nullopt;
  }
  return std::nullopt;
}

std::string op_label(const Op& op) { return "op `" + op.name + "`"; }

Status bind_operands(Context& context, const Op& op, std::span<const TypeId> operands, Env& env,
                     Span span) {
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const OperandDecl& decl = op.operands[std::min(i, op.operands.size() - 1)];
    if (!operands[i].valid()) {
      if (!decl.optional)
        return fail(span, "PW0305",
                    op_label(op) + ": operand `" + decl.name + "` must not be none");
      continue;
    }
    if (!decl.type) continue;
    std::string why;
    Env trial = decl.variadic ? env : Env{};  // elements of a list need not agree in their dims
    if (!unify(context, *decl.type, operands[i], decl.variadic ? trial : env, &why))
      return fail(span, "PW0306",
                  fmt::format("{}: operand `{}` is {}, not {}{}", op_label(op), decl.name,
                              context.types.print(operands[i]), print(*decl.type),
                              why.empty() ? "" : " (" + why + ")"));
    if (decl.variadic && i + 1 == op.operands.size())  // the first element names the variables
      for (auto& [name, binding] : trial) env.emplace(name, binding);
  }
  return {};
}

Result<std::vector<TypeId>> types_of_body(Context& context, const Facts& facts, OpId op,
                                          std::span<const TypeId> operands,
                                          AttributesId attributes) {
  auto types = body_types(context, op, operands, attributes);
  if (types || facts.symbols.empty()) return types;
  const auto meaning = instantiate_body(context, op, operands, attributes, facts);
  if (!meaning) return types;  // which speaks of every graph
  types = std::vector<TypeId>();
  for (ValueId v : meaning->graph.outputs()) types->push_back(meaning->graph.type(v));
  return types;
}

/// Checks the body's types: a signature may be weaker than the body, which may require that the
/// patch of a slice_scatter fits its gap.
Status agree_with_body(Context& context, const Facts& facts, OpId op,
                       std::span<const TypeId> operands, AttributesId attributes,
                       const std::vector<TypeId>& declared, Span span) {
  std::tuple key(op, std::vector<TypeId>(operands.begin(), operands.end()), attributes);
  if (context.agreed_bodies.contains(key)) return {};
  context.agreed_bodies.insert(
      key);  // before the body is built, so that a body that calls itself ends here
  Result<std::vector<TypeId>> body = types_of_body(context, facts, op, operands, attributes);
  std::string name = context.ops[op].name;
  if (body && *body == declared) return {};
  context.agreed_bodies.erase(key);
  const auto same = [&](std::size_t i) {
    return i < body->size() && same_type(context, (*body)[i], declared[i], facts);
  };
  if (!body) {
    Diagnostics errors = std::move(body.error());
    for (Diagnostic& d : errors) {
      if (d.span.valid()) d.secondary.push_back({d.span, "in the body"});
      d.span = span;
      d.message = "op `" + name + "` at these operands: " + d.message;
    }
    return tl::unexpected(std::move(errors));
  }
  for (std::size_t i = 0; i < declared.size(); ++i)
    if (!same(i))
      return fail(
          span, "PW0332",
          fmt::format("op `{}` declares a result {}, but at these operands its body gives {}", name,
                      context.types.print(declared[i]),
                      i < body->size() ? context.types.print((*body)[i]) : "none"));
  return {};
}

}  // namespace

Result<TypeId> instantiate_type(Context& context, const TypeExpr& expr, const Env& env,
                                std::span<const TypeId> operands, int result_index) {
  const Facts nothing;
  Instantiator instantiate(context, env, operands, nothing);
  std::optional<TypeId> type = PW_TRY(try_instantiate(context, expr, instantiate, result_index));
  if (!type)
    return fail(expr.span, "PW0304", "the op has no result number " + std::to_string(result_index));
  return *type;
}

Result<AttributesId> complete_attributes(Context& context, const Op& op, AttributeList given,
                                         std::span<const TypeId> operands, Span span) {
  if (op.imported) return context.attributes.intern(std::move(given));
  AttributeList out;
  Diagnostics errors;
  for (const auto& [name_id, value] : given) {
    std::string name(context.strings.text(name_id));
    if (op.attribute(name)) continue;
    std::vector<std::string> known;
    for (const AttributeDecl& decl : op.attributes) known.push_back(decl.name);
    std::string near = nearest(name, known);
    errors.push_back(error_at(span, "PW0307",
                              fmt::format("{} has no attribute `{}`", op_label(op), name),
                              near.empty() ? "" : "did you mean `" + near + "`?"));
  }
  for (const AttributeDecl& decl : op.attributes) {
    NameId key = context.strings.intern(decl.name);
    auto it =
        std::find_if(given.begin(), given.end(), [&](const auto& a) { return a.first == key; });
    std::optional<Attribute> value;
    if (it != given.end())
      value = it->second;
    else if (decl.default_value)
      value = decl.default_value;
    else if (decl.nullable)
      value = None{};
    if (!value) {
      errors.push_back(error_at(span, "PW0308",
                                fmt::format("{} needs the attribute `{}: {}`", op_label(op),
                                            decl.name, name(decl.kind))));
      continue;
    }
    std::optional<Attribute> coerced = std::holds_alternative<None>(*value) && decl.nullable
                                           ? value
                                           : coerce(context, decl.kind, *value);
    if (!coerced) {
      errors.push_back(
          error_at(span, "PW0309",
                   fmt::format("{}: `{} = {}` is not of kind {}", op_label(op), decl.name,
                               context.attributes.print(*value), name(decl.kind))));
      continue;
    }
    auto axis = std::get_if<std::int64_t>(&*coerced);
    if (decl.kind == AttributeKind::axis && axis && !operands.empty() && operands[0].valid() &&
        operands[0] != Types::unknown()) {
      auto rank = static_cast<std::int64_t>(context.types[operands[0]].shape.size());
      if (*axis < -rank || *axis >= rank) {
        errors.push_back(error_at(span, "PW0309",
                                  fmt::format("{}: axis {} is outside an operand of rank {}",
                                              op_label(op), *axis, rank)));
        continue;
      }
      if (*axis < 0) coerced = Attribute(*axis + rank);
    }
    out.push_back({key, *coerced});
  }
  if (!errors.empty()) return tl::unexpected(std::move(errors));
  make_canonical(context, op, out, operands);
  return context.attributes.intern(std::move(out));
}

Result<std::vector<TypeId>> infer_types(Context& context, OpId op, std::span<const TypeId> operands,
                                        AttributesId attributes, int result_count, Span span) {
  return infer_types(context, Facts(), op, operands, attributes, result_count, span);
}

Result<std::vector<TypeId>> infer_types(Context& context, const Facts& facts, OpId op_id,
                                        std::span<const TypeId> operands, AttributesId attributes,
                                        int result_count, Span span) {
  Op op = context.ops[op_id];  // copied: instantiating a body may declare ops
  if (op.imported)
    return std::vector<TypeId>(static_cast<std::size_t>(std::max(result_count, 0)),
                               Types::unknown());
  bool variadic = !op.operands.empty() && op.operands.back().variadic;
  std::size_t least = op.operands.size() - (variadic ? 1 : 0);
  if (variadic ? operands.size() < least : operands.size() != least)
    return fail(
        span, "PW0312",
        fmt::format("{} takes {}{} operand{}, not {}", op_label(op), variadic ? "at least " : "",
                    least, least == 1 ? "" : "s", operands.size()),
        "it is declared as " + print_signature(op, context.attributes));
  Env env;
  bool unknown = std::find(operands.begin(), operands.end(), Types::unknown()) != operands.end();
  for (const auto& [name, value] : context.attributes[attributes])
    env.emplace(std::string(context.strings.text(name)), value);
  if (auto bound = bind_operands(context, op, operands, env, span); !bound && !unknown)
    return forward(bound);
  std::vector<TypeId> out;
  std::vector<TypeId> from_body;
  Instantiator instantiate(context, env, operands, facts);
  for (const ResultDecl& decl : op.results) {
    for (int i = 0;; ++i) {
      Result<std::optional<TypeId>> type = std::optional<TypeId>();
      if (decl.type && !decl.type->any_shape) {
        type = try_instantiate(context, *decl.type, instantiate, i);
      } else if (op.has_body() && !unknown) {
        if (from_body.empty()) {
          std::vector<TypeId> types =
              PW_TRY(types_of_body(context, facts, op_id, operands, attributes));
          from_body = std::move(types);
        }
        type = std::optional(from_body[out.size()]);
      } else {
        return fail(
            span, "PW0313",
            op_label(op) + ": its result type can be inferred from neither signature nor body");
      }
      if (!type && unknown) type = std::optional(Types::unknown());
      if (!type) {
        Diagnostics errors = std::move(type.error());
        for (Diagnostic& d : errors) {
          if (d.span.valid() && span.valid() && d.span != span)
            d.secondary.push_back({d.span, "in this signature"});
          if (span.valid()) d.span = span;
          d.message = op_label(op) + ": " + d.message;
        }
        return tl::unexpected(std::move(errors));
      }
      if (!*type) break;
      out.push_back(**type);
      if (!decl.variadic || (unknown && static_cast<int>(out.size()) >= result_count)) break;
    }
  }
  if (op.has_body() && !unknown)
    PW_TRY(agree_with_body(context, facts, op_id, operands, attributes, out, span));
  return out;
}

}  // namespace pw
