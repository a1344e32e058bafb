#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/try.hpp"
#include "graph/infer/evaluator.hpp"
#include "graph/list_place.hpp"
#include "graph/text/text.hpp"

namespace pw {

std::optional<double> Evaluator::as_real(const Attribute& a) {
  if (auto x = std::get_if<double>(&a)) return *x;
  if (auto i = std::get_if<std::int64_t>(&a)) return static_cast<double>(*i);
  if (auto b = std::get_if<bool>(&a)) return *b ? 1.0 : 0.0;
  return std::nullopt;
}

Result<Attribute> Evaluator::binding(const Expr& e, const Binding& b) {
  if (std::holds_alternative<Absent>(b)) return Attribute(None{});
  if (auto d = std::get_if<DTypeBinding>(&b)) return Attribute(d->dtype);
  if (auto d = std::get_if<DimId>(&b)) return dim(*d);
  if (auto s = std::get_if<Shape>(&b)) return Attribute(*s);
  if (auto a = std::get_if<Attribute>(&b)) return *a;
  if (std::holds_alternative<ValueId>(b))
    return error(
        e,
        "`" + e.text +
            "` is a tensor; an attribute or a guard needs a number, a dim, a dtype or a string",
        "its shape is `" + e.text + ".shape`");
  return error(e, "`" + e.text + "` is a list of tensors", "`count(" + e.text + ")` is its length");
}

Result<Attribute> Evaluator::path(const Expr& e) {
  if (auto it = env_.find(e.text); it != env_.end()) return binding(e, it->second);
  if (auto d = dtype_named(e.text)) return Attribute(*d);
  std::size_t dot = e.text.rfind('.');
  if (dot != std::string::npos) {
    std::string base = e.text.substr(0, dot), field = e.text.substr(dot + 1);
    auto it = env_.find(base);
    const ValueId* v = it == env_.end() ? nullptr : std::get_if<ValueId>(&it->second);
    if (v && graph_ && (field == "shape" || field == "dtype")) {
      TypeId t = graph_->type(*v);
      if (t == Types::unknown()) return error(e, "the type of `" + base + "` is not known");
      if (field == "shape") return Attribute(context_.types[t].shape);
      return Attribute(context_.types[t].dtype);
    }
  }
  std::vector<std::string> known;
  for (const auto& [name, b] : env_) known.push_back(name);
  std::string near = nearest(e.text, known);
  return error(e, "unknown name `" + e.text + "`",
               near.empty() ? "" : "did you mean `" + near + "`?");
}

Result<Attribute> Evaluator::list(const Expr& e, int depth) {
  std::vector<Attribute> items;
  if (e.args.size() == 1 && e.args[0].kind == Expr::Kind::spread) {  // `[xs...]`: the list as it is
    Result<Attribute> whole = value(e.args[0].args.at(0), depth + 1);
    if (whole && (std::holds_alternative<std::vector<double>>(*whole) ||
                  std::holds_alternative<std::vector<std::string>>(*whole)))
      return whole;
  }
  for (const Expr& arg : e.args) {
    bool splice = arg.kind == Expr::Kind::star || arg.kind == Expr::Kind::spread;
    Expr inner = arg.kind == Expr::Kind::spread ? arg.args.at(0) : arg;
    if (arg.kind == Expr::Kind::star) inner.kind = Expr::Kind::path;
    Result<Attribute> item = value(inner, depth + 1);
    if (!item) return item;
    if (!splice) {
      items.push_back(*item);
    } else if (auto dims = std::get_if<std::vector<DimId>>(&*item)) {
      for (DimId d : *dims) items.push_back(dim(d));
    } else {
      return error(arg, "`" + print(arg) + "` is not a list of dims");
    }
  }
  auto all = [&](auto&& test) { return std::all_of(items.begin(), items.end(), test); };
  if (all([&](const Attribute& a) {
        return as_dim(a).has_value() && !std::holds_alternative<bool>(a);
      })) {
    std::vector<DimId> dims;
    for (const Attribute& a : items) dims.push_back(*as_dim(a));
    return Attribute(dims);
  }
  if (all([](const Attribute& a) { return std::holds_alternative<std::string>(a); })) {
    std::vector<std::string> texts;
    for (const Attribute& a : items) texts.push_back(std::get<std::string>(a));
    return Attribute(texts);
  }
  if (all([](const Attribute& a) { return as_real(a).has_value(); })) {
    std::vector<double> reals;
    for (const Attribute& a : items) reals.push_back(*as_real(a));
    return Attribute(reals);
  }
  return error(e, "the elements of `" + print(e) + "` are of different kinds");
}

/// Evaluates `[d] * tp`: the list, repeated.
Result<Attribute> Evaluator::repeated(const Expr& e, const Attribute& list,
                                      const Attribute& times) {
  constexpr std::int64_t kMost = std::int64_t{1} << 16;
  const auto* count = std::get_if<std::int64_t>(&times);
  if (count == nullptr || *count < 0 || *count > kMost)
    return error(e, "`" + print(e.args[1]) +
                        "` must be the number of repetitions of a list, but is " +
                        context_.attributes.print(times));
  const auto repeat = [&](const auto& items) {
    std::decay_t<decltype(items)> out;
    for (std::int64_t i = 0; i < *count; ++i) out.insert(out.end(), items.begin(), items.end());
    return Attribute(std::move(out));
  };
  if (const auto* dims = std::get_if<std::vector<DimId>>(&list)) return repeat(*dims);
  if (const auto* reals = std::get_if<std::vector<double>>(&list)) return repeat(*reals);
  if (const auto* texts = std::get_if<std::vector<std::string>>(&list)) return repeat(*texts);
  return error(e, "`" + print(e.args[0]) + "` is not a list");
}

Result<Attribute> Evaluator::arithmetic(const Expr& e, int depth) {
  Result<Attribute> left = value(e.args.at(0), depth + 1);
  if (!left) return left;
  Result<Attribute> right = value(e.args.at(1), depth + 1);
  if (!right) return right;
  auto a = as_dim(*left), b = as_dim(*right);
  if (e.text == "*" && e.args[0].kind == Expr::Kind::list) return repeated(e, *left, *right);
  if (a && b) {
    Dims& dims = context_.dims;
    DimId r;
    switch (e.text[0]) {
      case '+': r = dims.add(*a, *b); break;
      case '-': r = dims.sub(*a, *b); break;
      case '*': r = dims.mul(*a, *b); break;
      case '%': r = dims.mod(*a, *b); break;
      default:
        if (dims.value(*b) == 0) return error(e, "division by zero in `" + print(e) + "`");
        // A symbolic quotient rounds down. By -1, the remainder of the smallest number traps.
        if (dims.value(*a) && dims.value(*b) && *dims.value(*b) != -1 &&
            *dims.value(*a) % *dims.value(*b) != 0)
          return error(e, fmt::format("`{}` is not a whole number: {} / {}", print(e),
                                      dims.print(*a), dims.print(*b)));
        r = dims.div(*a, *b);
    }
    if (!r.valid()) return error(e, "`" + print(e) + "` is out of range");
    return dim(r);
  }
  auto x = as_real(*left), y = as_real(*right);
  if (!x || !y) return error(e, "`" + print(e) + "` needs numbers on both sides");
  switch (e.text[0]) {
    case '+': return Attribute(*x + *y);
    case '-': return Attribute(*x - *y);
    case '*': return Attribute(*x * *y);
    case '%': return Attribute(std::fmod(*x, *y));
    default: return Attribute(e.text == "//" ? std::floor(*x / *y) : *x / *y);
  }
}

/// Evaluates `xs[1]` of a list of tensors.
std::optional<ValueId> Evaluator::element(const Expr& e) {
  if (e.kind != Expr::Kind::index || e.args[0].kind != Expr::Kind::path) return std::nullopt;
  const auto it = env_.find(e.args[0].text);
  const auto* list = it == env_.end() ? nullptr : std::get_if<std::vector<ValueId>>(&it->second);
  const Result<Attribute> at = value(e.args[1]);
  const auto place = list != nullptr && at ? place_in(list->size(), *at) : std::nullopt;
  return place ? std::optional((*list)[*place]) : std::nullopt;
}

Result<Shape> Evaluator::shape_of(const Expr& e) {
  if (const std::optional<ValueId> v = element(e); v && graph_ != nullptr) {
    if (graph_->type(*v) == Types::unknown())
      return error(e, "the type of `" + print(e) + "` is not known");
    return context_.types[graph_->type(*v)].shape;
  }
  if (e.kind == Expr::Kind::path) {
    auto it = env_.find(e.text);
    if (it != env_.end()) {
      if (auto v = std::get_if<ValueId>(&it->second); v && graph_) {
        TypeId t = graph_->type(*v);
        if (t == Types::unknown()) return error(e, "the type of `" + e.text + "` is not known");
        return context_.types[t].shape;
      }
      if (auto s = std::get_if<Shape>(&it->second)) return *s;
    }
  }
  return error(e, "`" + print(e) + "` is not a tensor");
}

Result<Attribute> Evaluator::axis_size(const Expr& e, int depth) {
  Shape shape = PW_TRY(shape_of(e.args[0]));
  Result<Attribute> axis = value(e.args[1], depth + 1);
  if (!axis) return axis;
  auto i = std::get_if<std::int64_t>(&*axis);
  auto rank = static_cast<std::int64_t>(shape.size());
  if (!i || *i < -rank || *i >= rank)
    return error(e, fmt::format("`{}`: the axis is outside a tensor of rank {}", print(e), rank));
  return dim(shape[static_cast<std::size_t>(*i < 0 ? *i + rank : *i)]);
}

Result<Attribute> Evaluator::count_elements(const Expr& e) {
  auto it = env_.find(e.args[0].text);
  if (it != env_.end()) {
    if (auto list = std::get_if<std::vector<ValueId>>(&it->second))
      return Attribute(static_cast<std::int64_t>(list->size()));
    if (auto s = std::get_if<Shape>(&it->second))
      return Attribute(static_cast<std::int64_t>(s->size()));
    if (auto a = std::get_if<Attribute>(&it->second)) {
      if (auto dims = std::get_if<std::vector<DimId>>(a))
        return Attribute(static_cast<std::int64_t>(dims->size()));
      if (auto reals = std::get_if<std::vector<double>>(a))
        return Attribute(static_cast<std::int64_t>(reals->size()));
      if (auto texts = std::get_if<std::vector<std::string>>(a))
        return Attribute(static_cast<std::int64_t>(texts->size()));
    }
  }
  return error(e, "`" + print(e) + "`: not a list");
}

Result<Attribute> Evaluator::count_users(const Expr& e) {
  std::vector<ValueId> read = PW_TRY(tensors(e));
  std::int64_t users = 0;
  for (ValueId v : read) {
    const std::vector<ValueId>& outputs = graph_->outputs();
    users += static_cast<std::int64_t>(graph_->users(v).size());
    users += std::count(outputs.begin(), outputs.end(), v);
  }
  return Attribute(users);
}

Result<Attribute> Evaluator::extreme(const Expr& e, int depth) {
  Result<Attribute> a = value(e.args[0], depth + 1);
  if (!a) return a;
  Result<Attribute> b = value(e.args[1], depth + 1);
  if (!b) return b;
  auto x = as_real(*a), y = as_real(*b);
  if (auto d = as_dim(*a), f = as_dim(*b); (!x || !y) && d && f) {
    DimId r = e.text == "min" ? context_.dims.min(*d, *f) : context_.dims.max(*d, *f);
    if (r.valid()) return dim(r);
  }
  if (!x || !y) return error(e, "`" + print(e) + "` needs two numbers");
  return (*x < *y) == (e.text == "min") ? *a : *b;
}

Result<Attribute> Evaluator::call(const Expr& e, int depth) {
  auto arity = [&](std::size_t n) { return e.args.size() == n; };
  if (e.text == "size" && arity(2)) return axis_size(e, depth);
  if (e.text == "rank" && arity(1)) {
    Shape shape = PW_TRY(shape_of(e.args[0]));
    return Attribute(static_cast<std::int64_t>(shape.size()));
  }
  if (e.text == "count" && arity(1) && e.args[0].kind == Expr::Kind::path) return count_elements(e);
  if (e.text == "users" && arity(1)) return count_users(e);
  if ((e.text == "min" || e.text == "max") && arity(2)) return extreme(e, depth);
  if (auto it = context_.natives.find(e.text); it != context_.natives.end())
    return native(e, it->second, depth);
  return error(e, "unknown function `" + e.text + "` in an expression",
               "known here: size(x, axis), rank(x), count(xs), users(x), min(a, b), max(a, b), "
               "replicated(x, group), weight(x), constant(x)");
}

Result<Attribute> Evaluator::native(const Expr& e, const Native& function, int depth) {
  std::vector<Attribute> arguments;
  for (const Expr& arg : e.args) {
    Result<Attribute> argument = value(arg, depth + 1);
    if (!argument) return argument;
    arguments.push_back(std::move(*argument));
  }
  Result<Attribute> result = function(arguments);
  if (!result) {
    for (Diagnostic& d : result.error()) {
      if (!d.span.valid()) d.span = e.span;
      d.message = "`" + print(e) + "`: " + d.message;
    }
  }
  return result;
}

Result<std::vector<ValueId>> Evaluator::tensors(const Expr& call) {
  std::vector<ValueId> values;
  if (const std::optional<ValueId> v =
          call.args.empty() || graph_ == nullptr ? std::nullopt : element(call.args[0]))
    return std::vector<ValueId>{*v};
  if (call.args.empty() || call.args[0].kind != Expr::Kind::path)
    return error(call, "`" + print(call) + "` needs a value");
  const auto it = env_.find(call.args[0].text);
  if (it != env_.end()) {
    if (std::holds_alternative<Absent>(it->second)) return values;
    if (auto v = std::get_if<ValueId>(&it->second)) values.push_back(*v);
    if (auto list = std::get_if<std::vector<ValueId>>(&it->second)) values = *list;
  }
  if (values.empty() || graph_ == nullptr)
    return error(call.args[0], "`" + call.args[0].text + "` is not a tensor");
  return values;
}

Result<Attribute> Evaluator::index(const Expr& e, int depth) {
  Result<Attribute> list_value = value(e.args.at(0), depth + 1);
  if (!list_value) return list_value;
  Result<Attribute> position = value(e.args.at(1), depth + 1);
  if (!position) return position;
  auto at = [&](const auto& items) -> Result<Attribute> {
    const auto place = place_in(items.size(), *position);
    if (!place)
      return error(e, fmt::format("`{}` is outside a list of {}", print(e), items.size()));
    if constexpr (std::is_same_v<std::decay_t<decltype(items)>, std::vector<DimId>>)
      return dim(items[*place]);
    else
      return Attribute(items[*place]);
  };
  if (auto v = std::get_if<std::vector<DimId>>(&*list_value)) return at(*v);
  if (auto v = std::get_if<std::vector<double>>(&*list_value)) return at(*v);
  if (auto v = std::get_if<std::vector<std::string>>(&*list_value)) return at(*v);
  return error(e, "`" + print(e.args[0]) + "` is not a list");
}

Result<Attribute> Evaluator::value(const Expr& e, int depth) {
  if (depth > kMaxBodyDepth) return error(e, "the expression is nested too deeply");
  switch (e.kind) {
    case Expr::Kind::integer: return Attribute(e.integer);
    case Expr::Kind::real: return Attribute(e.real);
    case Expr::Kind::string: return Attribute(e.text);
    case Expr::Kind::boolean: return Attribute(e.integer != 0);
    case Expr::Kind::none: return Attribute(None{});
    case Expr::Kind::path: return path(e);
    case Expr::Kind::list: return list(e, depth);
    case Expr::Kind::call: return call(e, depth);
    case Expr::Kind::index: return index(e, depth);
    case Expr::Kind::negate: {
      Result<Attribute> inner = value(e.args.at(0), depth + 1);
      if (!inner) return inner;
      if (auto d = as_dim(*inner)) {
        DimId r = context_.dims.sub(context_.dims.constant(0), *d);
        return r.valid() ? Result<Attribute>(dim(r)) : error(e, "out of range");
      }
      if (auto x = as_real(*inner)) return Attribute(-*x);
      return error(e, "`" + print(e) + "` needs a number");
    }
    case Expr::Kind::binary:
      if (e.text.size() <= 2 && std::string("+-*/%").find(e.text[0]) != std::string::npos)
        return arithmetic(e, depth);
      [[fallthrough]];
    case Expr::Kind::not_:
    case Expr::Kind::in_set:
    case Expr::Kind::in_range: {
      std::string why;
      Truth t = PW_TRY(GuardEvaluator(*this).truth(e, &why, depth));
      if (t == Truth::unknown) return error(e, why);
      return Attribute(t == Truth::yes);
    }
    case Expr::Kind::spread:
    case Expr::Kind::star:
    case Expr::Kind::fuse: break;
  }
  return error(e, "`" + print(e) + "` has no value here");
}

Result<Attribute> evaluate(Context& context, const Graph* graph, const Expr& expr, const Env& env) {
  static const Facts none;
  return Evaluator(context, graph, env, graph ? graph->facts : none).value(expr);
}

}  // namespace pw
