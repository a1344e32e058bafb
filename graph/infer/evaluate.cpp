#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/try.hpp"
#include "graph/build.hpp"
#include "graph/compare/replication.hpp"
#include "graph/list_place.hpp"
#include "graph/passes/constancy.hpp"
#include "graph/text/text.hpp"

namespace pw {
namespace {

/// Code of a native that was called with a dim that is not constant yet. Not an error: the result
/// is unknown.
constexpr std::string_view kNotYet = "PW0334";
constexpr int kMaxBodyDepth = 200;  // the grammar limits nesting to less

class Evaluator {
 public:
  Evaluator(Context& context, const Graph* graph, const Env& env, const Facts& facts)
      : context_(context), graph_(graph), env_(env), facts_(facts) {}

  Result<Attribute> value(const Expr& e, int depth = 0);
  Result<Truth> truth(const Expr& e, std::string* why, int depth = 0);

 private:
  using Kind = Expr::Kind;
  [[nodiscard]] tl::unexpected<Diagnostics> error(const Expr& e, std::string message,
                                                  std::string help = {}) const {
    return fail(e.span, "PW0301", std::move(message), std::move(help));
  }
  Result<Attribute> path(const Expr& e);
  Result<Attribute> binding(const Expr& e, const Binding& b);
  Result<Attribute> list(const Expr& e, int depth);
  Result<Attribute> arithmetic(const Expr& e, int depth);
  Result<Attribute> repeated(const Expr& e, const Attribute& list, const Attribute& times);
  Result<Attribute> call(const Expr& e, int depth);
  Result<Attribute> axis_size(const Expr& e, int depth);
  Result<Attribute> count_elements(const Expr& e);
  Result<Attribute> count_users(const Expr& e);
  Result<Attribute> extreme(const Expr& e, int depth);
  Result<Attribute> index(const Expr& e, int depth);
  Result<Attribute> native(const Expr& e, const Native& function, int depth);
  /// Returns the tensors that the first argument of a call names; none for an absent operand.
  Result<std::vector<ValueId>> tensors(const Expr& call);
  Result<Truth> replicated(const Expr& e, std::string* why, int depth);
  Result<Truth> lasting(const Expr& e, std::string* why);
  Result<Truth> decide(const Expr& e, std::string* why, int depth);
  Result<Truth> compare(const Expr& e, std::string* why, int depth);
  Result<Truth> member(const Expr& e, std::string* why, int depth);
  Truth equal(const Attribute& a, const Attribute& b);
  Result<Shape> shape_of(const Expr& e);
  [[nodiscard]] std::optional<ValueId> element(const Expr& e);
  Attribute dim(DimId d) const {
    if (auto v = context_.dims.value(d)) return *v;
    return d;
  }
  std::optional<DimId> as_dim(const Attribute& a) const {
    if (auto i = std::get_if<std::int64_t>(&a)) return context_.dims.constant(*i);
    if (auto b = std::get_if<bool>(&a)) return context_.dims.constant(*b ? 1 : 0);
    if (auto d = std::get_if<DimId>(&a)) return *d;
    return std::nullopt;
  }
  static std::optional<double> as_real(const Attribute& a) {
    if (auto x = std::get_if<double>(&a)) return *x;
    if (auto i = std::get_if<std::int64_t>(&a)) return static_cast<double>(*i);
    if (auto b = std::get_if<bool>(&a)) return *b ? 1.0 : 0.0;
    return std::nullopt;
  }

  Context& context_;
  const Graph* graph_;
  const Env& env_;
  const Facts& facts_;
};

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
  if (e.args.size() == 1 && e.args[0].kind == Kind::spread) {  // `[xs...]`: the list as it is
    Result<Attribute> whole = value(e.args[0].args.at(0), depth + 1);
    if (whole && (std::holds_alternative<std::vector<double>>(*whole) ||
                  std::holds_alternative<std::vector<std::string>>(*whole)))
      return whole;
  }
  for (const Expr& arg : e.args) {
    bool splice = arg.kind == Kind::star || arg.kind == Kind::spread;
    Expr inner = arg.kind == Kind::spread ? arg.args.at(0) : arg;
    if (arg.kind == Kind::star) inner.kind = Kind::path;
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
  if (e.text == "*" && e.args[0].kind == Kind::list) return repeated(e, *left, *right);
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
  if (e.kind != Kind::index || e.args[0].kind != Kind::path) return std::nullopt;
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
  if (e.kind == Kind::path) {
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
  if (e.text == "count" && arity(1) && e.args[0].kind == Kind::path) return count_elements(e);
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
  if (call.args.empty() || call.args[0].kind != Kind::path)
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

/// Evaluates `weight(x)` and `constant(x)`.
Result<Truth> Evaluator::lasting(const Expr& e, std::string* why) {
  std::vector<ValueId> values = PW_TRY(tensors(e));
  Truth all = Truth::yes;
  for (ValueId v : values) {
    std::string reason;
    const Truth one =
        e.text == "weight" ? is_weight(*graph_, v, &reason) : is_constant(*graph_, v, &reason);
    if (one != Truth::yes && all == Truth::yes && why)
      *why = fmt::format("`{}` {}: {}", print(e), one == Truth::no ? "is false" : "is not known",
                         reason);
    all = both(all, one);
  }
  return all;
}

Result<Truth> Evaluator::replicated(const Expr& e, std::string* why, int depth) {
  if (e.args.size() != 2 || e.args[0].kind != Kind::path)
    return error(e, "`" + print(e) + "` needs a value and a group of ranks");
  Result<Attribute> group = value(e.args[1], depth + 1);
  if (!group) return forward(group);
  const auto* over = std::get_if<std::string>(&*group);
  if (over == nullptr) return error(e.args[1], "a group of ranks must be a string");
  std::vector<ValueId> values = PW_TRY(tensors(e));
  Truth all = Truth::yes;
  for (ValueId v : values) {
    std::string reason;
    const Truth one = is_replicated(*graph_, v, *over, &reason);
    if (one != Truth::yes && all == Truth::yes && why)
      *why = fmt::format("`{}` {}: {}", print(e), one == Truth::no ? "is false" : "is not known",
                         reason);
    all = both(all, one);
  }
  return all;
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
    case Kind::integer: return Attribute(e.integer);
    case Kind::real: return Attribute(e.real);
    case Kind::string: return Attribute(e.text);
    case Kind::boolean: return Attribute(e.integer != 0);
    case Kind::none: return Attribute(None{});
    case Kind::path: return path(e);
    case Kind::list: return list(e, depth);
    case Kind::call: return call(e, depth);
    case Kind::index: return index(e, depth);
    case Kind::negate: {
      Result<Attribute> inner = value(e.args.at(0), depth + 1);
      if (!inner) return inner;
      if (auto d = as_dim(*inner)) {
        DimId r = context_.dims.sub(context_.dims.constant(0), *d);
        return r.valid() ? Result<Attribute>(dim(r)) : error(e, "out of range");
      }
      if (auto x = as_real(*inner)) return Attribute(-*x);
      return error(e, "`" + print(e) + "` needs a number");
    }
    case Kind::binary:
      if (e.text.size() <= 2 && std::string("+-*/%").find(e.text[0]) != std::string::npos)
        return arithmetic(e, depth);
      [[fallthrough]];
    case Kind::not_:
    case Kind::in_set:
    case Kind::in_range: {
      std::string why;
      Truth t = PW_TRY(truth(e, &why, depth));
      if (t == Truth::unknown) return error(e, why);
      return Attribute(t == Truth::yes);
    }
    case Kind::spread:
    case Kind::star:
    case Kind::fuse: break;
  }
  return error(e, "`" + print(e) + "` has no value here");
}

Truth Evaluator::equal(const Attribute& a, const Attribute& b) {
  auto x = as_dim(a), y = as_dim(b);
  if (x && y) return context_.dims.prove(Compare::eq, *x, *y, facts_);
  auto p = as_real(a), q = as_real(b);
  if (p && q) return *p == *q ? Truth::yes : Truth::no;
  auto v = std::get_if<std::vector<DimId>>(&a), w = std::get_if<std::vector<DimId>>(&b);
  if (v && w) {
    if (v->size() != w->size()) return Truth::no;
    Truth t = Truth::yes;
    for (std::size_t i = 0; i < v->size(); ++i)
      t = both(t, context_.dims.prove(Compare::eq, (*v)[i], (*w)[i], facts_));
    return t;
  }
  return a == b ? Truth::yes : Truth::no;
}

Result<Truth> Evaluator::compare(const Expr& e, std::string* why, int depth) {
  const Expr &l = e.args.at(0), &r = e.args.at(1);
  // `a % b == 0` is decided as divisibility, which more facts prove than the remainder's value.
  if (e.text == "==" && l.kind == Kind::binary && l.text == "%" && r.kind == Kind::integer &&
      r.integer == 0) {
    Attribute a = PW_TRY(value(l.args.at(0), depth + 1));
    Attribute b = PW_TRY(value(l.args.at(1), depth + 1));
    auto x = as_dim(a), y = as_dim(b);
    if (x && y && context_.dims.value(*y) != 0) {
      Truth t = context_.dims.divides(*y, *x, facts_);
      if (t != Truth::yes && why)
        *why =
            fmt::format("`{}` {}: {} % {}", print(e), t == Truth::no ? "is false" : "is not known",
                        context_.dims.print(*x), context_.dims.print(*y));
      return t;
    }
  }
  Attribute a = PW_TRY(value(l, depth + 1));
  Attribute b = PW_TRY(value(r, depth + 1));
  Truth t = Truth::unknown;
  if (e.text == "==" || e.text == "!=") {
    t = equal(a, b);
    if (e.text == "!=") t = negate(t);
  } else {
    Compare op = e.text == "<"    ? Compare::lt
                 : e.text == "<=" ? Compare::le
                 : e.text == ">"  ? Compare::gt
                                  : Compare::ge;
    auto x = as_dim(a), y = as_dim(b);
    auto p = as_real(a), q = as_real(b);
    if (x && y) {
      t = context_.dims.prove(op, *x, *y, facts_);
    } else if (p && q) {
      bool holds = op == Compare::lt   ? *p < *q
                   : op == Compare::le ? *p <= *q
                   : op == Compare::gt ? *p > *q
                                       : *p >= *q;
      t = holds ? Truth::yes : Truth::no;
    } else {
      return error(e, "`" + print(e) + "` compares values that have no order");
    }
  }
  if (t != Truth::yes && why)
    *why = fmt::format("`{}` {}: {} {} {}", print(e), t == Truth::no ? "is false" : "is not known",
                       context_.attributes.print(a), e.text, context_.attributes.print(b));
  return t;
}

Result<Truth> Evaluator::member(const Expr& e, std::string* why, int depth) {
  Attribute x = PW_TRY(value(e.args.at(0), depth + 1));
  Truth t = Truth::no;
  if (e.kind == Kind::in_range && e.args.size() == 3) {
    Attribute low = PW_TRY(value(e.args[1], depth + 1));
    Attribute high = PW_TRY(value(e.args[2], depth + 1));
    auto d = as_dim(x), a = as_dim(low), b = as_dim(high);
    if (!d || !a || !b) return error(e, "`" + print(e) + "` needs integers");
    t = both(context_.dims.prove(Compare::ge, *d, *a, facts_),
             context_.dims.prove(Compare::le, *d, *b, facts_));
  } else {
    for (std::size_t i = 1; i < e.args.size(); ++i) {
      Attribute item = PW_TRY(value(e.args[i], depth + 1));
      if (auto list_item = std::get_if<std::vector<DimId>>(&item);
          list_item && e.kind == Kind::in_range) {
        for (DimId d : *list_item) t = either(t, equal(x, dim(d)));
        continue;
      }
      t = either(t, equal(x, item));
    }
  }
  if (t != Truth::yes && why)
    *why = fmt::format("`{}` {}: {} = {}", print(e), t == Truth::no ? "is false" : "is not known",
                       print(e.args[0]), context_.attributes.print(x));
  return t;
}

/// Returns the truth of a predicate; an undecided native gives unknown.
Result<Truth> Evaluator::truth(const Expr& e, std::string* why, int depth) {
  Result<Truth> decided = decide(e, why, depth);
  if (decided || decided.error().front().code != kNotYet) return decided;
  if (why) *why = decided.error().front().message;
  return Truth::unknown;
}

Result<Truth> Evaluator::decide(const Expr& e, std::string* why, int depth) {
  if (depth > kMaxBodyDepth) return error(e, "the expression is nested too deeply");
  if (e.kind == Kind::not_) {
    Result<Truth> inner = truth(e.args.at(0), nullptr, depth + 1);
    if (!inner) return inner;
    Truth t = negate(*inner);
    if (t != Truth::yes && why)
      *why = "`" + print(e) + (t == Truth::no ? "` is false" : "` is not known");
    return t;
  }
  if (e.kind == Kind::binary && (e.text == "and" || e.text == "or")) {
    std::string left_why, right_why;
    Result<Truth> a = truth(e.args.at(0), &left_why, depth + 1);
    if (!a) return a;
    bool decided = e.text == "and" ? *a == Truth::no : *a == Truth::yes;
    if (decided) {
      if (why) *why = left_why;
      return a;
    }
    Result<Truth> b = truth(e.args.at(1), &right_why, depth + 1);
    if (!b) return b;
    Truth t = e.text == "and" ? both(*a, *b) : either(*a, *b);
    if (t != Truth::yes && why)
      *why = *a != Truth::yes && e.text == "and" ? left_why
             : e.text == "and"                   ? right_why
                                                 : left_why + "; " + right_why;
    return t;
  }
  if (e.kind == Kind::binary && std::string("=!<>").find(e.text[0]) != std::string::npos)
    return compare(e, why, depth);
  if (e.kind == Kind::in_set || e.kind == Kind::in_range) return member(e, why, depth);
  if (e.kind == Kind::call && e.text == "replicated") return replicated(e, why, depth);
  if (e.kind == Kind::call && (e.text == "weight" || e.text == "constant")) return lasting(e, why);
  Attribute v = PW_TRY(value(e, depth + 1));
  if (e.kind == Kind::call && std::holds_alternative<None>(v)) {
    if (why) *why = "`" + print(e) + "` is not known";
    return Truth::unknown;
  }
  auto b = std::get_if<bool>(&v);
  if (!b) return error(e, "`" + print(e) + "` is not a truth value", "compare it with something");
  if (!*b && why) *why = "`" + print(e) + "` is false";
  return *b ? Truth::yes : Truth::no;
}

}  // namespace

Result<Attribute> evaluate(Context& context, const Graph* graph, const Expr& expr, const Env& env) {
  static const Facts none;
  return Evaluator(context, graph, env, graph ? graph->facts : none).value(expr);
}

Result<Truth> evaluate_guard(Context& context, const Graph* graph, const Expr& guard,
                             const Env& env, const Facts& facts, std::string* why) {
  return Evaluator(context, graph, env, facts).truth(guard, why);
}

}  // namespace pw
