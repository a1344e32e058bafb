// Builds a general left side by unification of shapes. Each dim variable of the pattern becomes a
// symbol, and each type annotation is unified with the inferred type. An equation between sizes is
// solved for a symbol that occurs linearly; the construction then restarts, because earlier types
// have changed. The equation a · b = c · d is solved by four new symbols (Euler's four-number
// theorem). Sequences such as `*b` are one axis of unknown extent, with extra axes only where the
// rule distinguishes them. Choices that no equation decides become cases.
#include "proof/sketch.hpp"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "graph/text/text.hpp"
#include "graph/text/type_text.hpp"

namespace pw::proof {

void collect_names(const Expr& expr, std::vector<std::string>& names) {
  if (expr.kind == Expr::Kind::path && !dtype_named(expr.text) &&
      expr.text.find('.') == std::string::npos)
    names.push_back(expr.text);
  for (const Expr& arg : expr.args) collect_names(arg, names);
}

/// Returns a valid symbol name for dims.
std::string plain_name(std::string_view name) {
  std::string out;
  for (char c : name) out += std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' ? c : '_';
  if (out.empty() || std::isdigit(static_cast<unsigned char>(out[0])) != 0) out = "v" + out;
  return out;
}

Sketch::Sketch(const RuleSet& rules, const Rule& rule, const Env& params, Choices& choices,
               Integers& integers, const std::map<std::string, DimId, std::less<>>& solved,
               std::map<std::string, DimId, std::less<>>& found,
               std::map<std::string, std::size_t>& answers, std::set<std::string>& zero,
               std::set<std::string>& any, std::set<std::string>& granted,
               SchemaOptions::AnyDType any_dtype)
    : context_(*rules.context),
      rule_(rule),
      choices_(choices),
      integers_(integers),
      solved_(solved),
      found_(found),
      answers_(answers),
      zero_(zero),
      any_(any),
      granted_(granted),
      any_dtype_(any_dtype),
      graph_(rules.context, "general"),
      values_(rule.values.size()) {
  env_ = params;
  for (auto& [name, binding] : env_) {
    const auto* attribute = std::get_if<Attribute>(&binding);
    if (attribute != nullptr && std::holds_alternative<std::int64_t>(*attribute) && read(name))
      binding = Attribute(symbol(name));
  }
  for (const auto& [name, binding] : rule.constants) env_.insert_or_assign(name, binding);
  pair_stars();
}

Graph Sketch::build() {
  for (const Expr& guard : rule_.where) equal_dims(guard, true);
  for (std::size_t i = 0; i < rule_.nodes.size(); ++i) {
    site_ = i;
    add_node(rule_.nodes[PatternNodeId(i)]);
  }
  for (const Expr& guard : rule_.where) equal_dims(guard, false);
  for (const Expr& guard : rule_.assume) equal_dims(guard, false);
  for (const auto* list : {&rule_.where, &rule_.assume})
    for (const Expr& guard : *list) admit(guard);
  replicate();
  return std::move(graph_);
}

/// Returns true if the rule reads a param where its value matters: in a guard or an attribute.
bool Sketch::read(const std::string& param) const {
  std::vector<std::string> names;
  for (const auto* list : {&rule_.where, &rule_.assume})
    for (const Expr& guard : *list) collect_names(guard, names);
  for (const PatternNode& node : rule_.nodes)
    for (const PatternAttribute& attribute : node.attributes) collect_names(attribute.value, names);
  return std::find(names.begin(), names.end(), param) != names.end();
}

/// Returns a choice that is made once for each case, across restarts.
std::size_t Sketch::ask(const std::string& key, std::size_t count) {
  const auto answered = answers_.find(key);
  if (answered != answers_.end()) return answered->second;
  return answers_.emplace(key, choices_.choose(count)).first->second;
}

DimId Sketch::symbol(std::string_view name) {
  const std::string plain = plain_name(name);
  const auto found = solved_.find(plain);
  return found != solved_.end() ? found->second : context_.dims.symbol(plain);
}

/// Requires two sizes to be equal in this case.
void Sketch::equal(DimId a, DimId b) {
  if (a == b) return;
  if (!a.valid() || !b.valid()) throw Mistyped{"a size beyond 64 bits"};
  Dims& dims = context_.dims;
  if (dims.prove(Compare::eq, a, b, graph_.facts) == Truth::yes) return;
  auto [x, y] = integers_.reduced(integers_.of(dims, a), integers_.of(dims, b));
  if (x == y) return;
  const auto solution = integers_.solve(integers_.sub(x, y));
  if (!solution) four_numbers(x, y);
  if (!solution) throw Mistyped{fmt::format("{} is not {}", dims.print(a), dims.print(b))};
  learn(solution->first, solution->second);
}

/// a · b = c · d: there are p, q, r, s with a = p · q, b = r · s, c = p · r, d = q · s. Of a
/// number c each way to write it as p · r is a case.
void Sketch::four_numbers(Ix x, Ix y) {
  auto left = integers_.symbols_of(x), right = integers_.symbols_of(y);
  if (left && left->size() != 2) std::swap(left, right);
  if (!left || !right || left->size() != 2 || right->empty() || right->size() > 2) return;
  const auto product = [&](const std::string& a, const std::string& b) {
    return context_.dims.mul(symbol(a), symbol(b));
  };
  const std::string all = (*left)[0] + "_" + (*left)[1] + "_" + right->back();
  const std::string p = "p_" + all, q = "q_" + all, r = "r_" + all, s = "s_" + all;
  std::map<std::string, DimId, std::less<>> learnt;
  if (right->size() == 2) {
    learnt = {{(*left)[0], product(p, q)},
              {(*left)[1], product(r, s)},
              {(*right)[0], product(p, r)},
              {(*right)[1], product(q, s)}};
  } else {
    const auto factor =
        integers_.factor_of(y) == 1 ? integers_.factor_of(x) : integers_.factor_of(y);
    std::vector<std::int64_t> divisors;
    for (std::int64_t n = 1; n <= factor; ++n)
      if (factor % n == 0) divisors.push_back(n);
    if (divisors.empty() || divisors.size() > 12) return;
    const std::int64_t first = divisors[ask("divisor " + all, divisors.size())];
    Dims& dims = context_.dims;
    learnt = {{(*left)[0], dims.mul(dims.constant(first), symbol(q))},
              {(*left)[1], dims.mul(dims.constant(factor / first), symbol(s))},
              {(*right)[0], product(q, s)}};
  }
  for (auto& [other, known] : found_) known = context_.dims.substitute(known, learnt);
  for (const auto& [name, dim] : learnt) found_.insert_or_assign(name, dim);
  throw Restart{};
}

void Sketch::learn(const std::string& name, Ix value) {
  const auto dim = parse_dim(context_.dims, integers_.print(value));
  if (!dim) throw Mistyped{"a size that cannot be written: " + integers_.print(value)};
  std::map<std::string, DimId, std::less<>> one = {{name, *dim}};
  for (auto& [other, known] : found_) known = context_.dims.substitute(known, one);
  found_.insert_or_assign(name, *dim);
  throw Restart{};
}

/// Solves guards such as `hd == 2 * r` and `n % world == 0` for a size.
void Sketch::equal_dims(const Expr& guard, bool early) {
  if (guard.kind == Expr::Kind::binary && guard.text == "and") {
    for (const Expr& arg : guard.args) equal_dims(arg, early);
    return;
  }
  if (guard.kind != Expr::Kind::binary || guard.text != "==" || early) return;
  const Expr& left = guard.args[0];
  if (left.kind == Expr::Kind::binary && left.text == "%") {
    const auto zero = dim_of(guard.args[1]), a = dim_of(left.args[0]), b = dim_of(left.args[1]);
    if (zero && a && b && context_.dims.value(*zero) == 0) multiple(*a, *b);
    return;
  }
  const auto a = dim_of(left), b = dim_of(guard.args[1]);
  if (a && b && *a != *b && (!context_.dims.value(*a) || !context_.dims.value(*b))) equal(*a, *b);
}

void Sketch::multiple(DimId a, DimId b) {
  if (context_.dims.divides(b, a, graph_.facts) == Truth::yes) return;
  std::string name = "q";
  for (const std::string& part : context_.dims.symbols(a)) name += "_" + part;
  Dims& dims = context_.dims;
  const DimId two = dims.constant(2), quotient = symbol(name);
  // 2 p = r q: q or r is even.
  if (dims.is_symbol(b) && dims.divides(two, a, graph_.facts) == Truth::yes) {
    if (ask("even " + name, 2) == 0) return equal(dims.div(a, two), dims.mul(b, quotient));
    return equal(b, dims.mul(two, symbol(name + "_half")));
  }
  equal(a, dims.mul(b, quotient));
}

/// Evaluates a guard on numbers of this case, such as axes: it holds or it does not.
void Sketch::admit(const Expr& guard) {
  if (guard.kind != Expr::Kind::binary || guard.args.size() != 2) return;
  if (guard.text == "and") {
    for (const Expr& arg : guard.args) admit(arg);
    return;
  }
  const auto a = number_of(guard.args[0]), b = number_of(guard.args[1]);
  if (!a || !b) return;
  const bool refused = (guard.text == "==" && *a != *b) || (guard.text == "!=" && *a == *b) ||
                       (guard.text == "<" && *a >= *b) || (guard.text == "<=" && *a > *b) ||
                       (guard.text == ">" && *a <= *b) || (guard.text == ">=" && *a < *b);
  if (refused) throw Mistyped{"its guards contradict each other"};
}

/// Returns the value of an integer, or of a variable bound to one.
std::optional<std::int64_t> Sketch::number_of(const Expr& expr) const {
  if (expr.kind == Expr::Kind::integer) return expr.integer;
  const auto bound = env_.find(expr.text);
  if (expr.kind != Expr::Kind::path || bound == env_.end()) return std::nullopt;
  const auto* attribute = std::get_if<Attribute>(&bound->second);
  const auto* number = attribute == nullptr ? nullptr : std::get_if<std::int64_t>(attribute);
  return number == nullptr ? std::nullopt : std::optional(*number);
}

std::optional<DimId> Sketch::dim_of(const Expr& expr) {
  const auto value = evaluate(context_, &graph_, expr, env_);
  if (!value) return std::nullopt;
  if (const auto* number = std::get_if<std::int64_t>(&*value))
    return context_.dims.constant(*number);
  if (const auto* dim = std::get_if<DimId>(&*value)) return *dim;
  return std::nullopt;
}

/// Binds the free names of a size expression to symbols.
void Sketch::bind_names(const Expr& expr, Env& env, bool own) {
  if (expr.kind == Expr::Kind::star && !expr.text.empty() && env.count(expr.text) == 0) {
    if (own)
      bind_star(expr.text);
    else
      env.emplace(expr.text, Shape{fresh(expr.text)});
  }
  if (expr.kind == Expr::Kind::path && env.count(expr.text) == 0 && !dtype_named(expr.text) &&
      expr.text.find('.') == std::string::npos)
    env.emplace(expr.text, own ? symbol(expr.text) : fresh(expr.text));
  for (const Expr& arg : expr.args) bind_names(arg, env, own);
  // The numerator of a fraction is a multiple of its denominator.
  if (expr.kind == Expr::Kind::binary && (expr.text == "/" || expr.text == "//")) {
    const auto over = evaluate(context_, &graph_, expr.args[0], env);
    const auto under = evaluate(context_, &graph_, expr.args[1], env);
    if (over && under) {
      const auto a = as_dim(*over), b = as_dim(*under);
      if (a && b) multiple(*a, *b);
    }
  }
}

/// `*r` of the operand of `expand` and `*s` of its result shape; empty if not a sequence.
void Sketch::pair_stars() {
  for (const PatternNode& node : rule_.nodes) {
    if (context_.ops[node.op].primitive != Primitive::expand || node.operands.empty()) continue;
    std::string to;
    for (const PatternAttribute& attribute : node.attributes)
      if (attribute.name == "shape" && !attribute.value.args.empty() &&
          attribute.value.args[0].kind == Expr::Kind::star)
        to = attribute.value.args[0].text;
    for (const TypeExpr& type : rule_.values[node.operands[0]].types)
      if (!type.dims.empty() && type.dims[0].kind == Expr::Kind::star && type.dims[0].text != to)
        repeated_.emplace_back(type.dims[0].text, to);
  }
}

/// One axis of unknown extent represents any number of them. The cases for axes that `expand`
/// repeats: equal, one repeated, both preceded by one in either order, and none.
void Sketch::bind_star(const std::string& name) {
  for (const auto& [from, to] : repeated_) {
    if (name != from && name != to) continue;
    if (to.empty()) return bind_repeated(from);
    if (env_.count(from) == 0 && env_.count(to) == 0) return bind_pair(from, to);
    if (name == from) {
      const Shape wanted = std::get<Shape>(env_.at(to));
      if (ask("repeated " + from, 2) == 0) {
        env_.emplace(from, wanted);
      } else {
        env_.emplace(from, Shape(wanted.size(), context_.dims.constant(1)));
      }
      return;
    }
  }
  Shape shape;
  for (std::size_t n = 0; n < 2 * axis_variables() + 1; ++n)
    shape.push_back(symbol(n == 0 ? name : fmt::format("{}_{}", name, n)));
  env_.emplace(name, std::move(shape));
}

/// Returns the number of axes that the rule names without a number. Within a sequence, these axes
/// and the parts around them are separate axes.
std::size_t Sketch::axis_variables() const {
  std::set<std::string> names;
  for (const PatternNode& node : rule_.nodes) {
    for (const PatternAttribute& attribute : node.attributes) {
      const AttributeDecl* decl = context_.ops[node.op].attribute(attribute.name);
      if (decl != nullptr && decl->kind == AttributeKind::axis &&
          attribute.value.kind == Expr::Kind::path)
        names.insert(attribute.value.text);
    }
  }
  return names.size();
}

void Sketch::bind_repeated(const std::string& from) {
  const DimId one = context_.dims.constant(1), kept = symbol(from);
  const Shape shapes[] = {{kept}, {kept, one, one}, {}};
  env_.emplace(from, shapes[ask("repeated " + from, 3)]);
}

void Sketch::bind_pair(const std::string& from, const std::string& to) {
  granted_.insert("axes that are repeated are one of the cases looked at");
  const DimId one = context_.dims.constant(1), kept = symbol(from), more = symbol(to),
              front = symbol(to + "_front");
  const Shape before[] = {{kept}, {one}, {kept, one}, {one, kept}, {}};
  const Shape after[] = {{kept}, {more}, {front, kept, more}, {front, more, kept}, {front}};
  const std::size_t way = ask("repeated " + from + " " + to, std::size(before));
  env_.emplace(from, before[way]);
  env_.emplace(to, after[way]);
}

/// Returns a shape that `expand` can produce from this one.
Shape Sketch::expanded(const Shape& shape, const std::string& base) {
  const DimId one = context_.dims.constant(1);
  const std::size_t way = ask("expanded " + base, 3);
  Shape out = shape;
  for (std::size_t k = 0, widened = 0; k < out.size(); ++k)
    if (out[k] == one && way > 0 && (way == 1 || widened++ == 0))
      out[k] = symbol(fmt::format("{}_{}", base, k));
  if (way == 1) out.insert(out.begin(), symbol(base + "_front"));
  return out;
}

std::optional<DimId> Sketch::as_dim(const Attribute& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value))
    return context_.dims.constant(*number);
  if (const auto* dim = std::get_if<DimId>(&value)) return *dim;
  return std::nullopt;
}

void Sketch::choose_dtype(const std::string& name, Env& env, bool own) {
  if (dtype_named(name) || env.count(name) != 0) return;
  std::vector<DType> allowed;
  for (DType dtype : kDTypes)
    if (!own || guard_allows(name, dtype)) allowed.push_back(dtype);
  if (allowed.empty()) throw Mistyped{"no dtype is allowed"};
  if (const auto any = any_dtype(name); any && allowed.size() == std::size(kDTypes)) {
    env.insert_or_assign(name, DTypeBinding{*any, false});
    ++generic_;
    return;
  }
  const std::string key = own ? "dtype " + name : fmt::format("dtype {} {}", name, site_);
  env.insert_or_assign(name, DTypeBinding{allowed[ask(key, allowed.size())], false});
}

std::optional<DType> Sketch::any_dtype(const std::string& name) const {
  using Any = SchemaOptions::AnyDType;
  if (any_dtype_ == Any::no) return std::nullopt;
  const bool first = any_dtype_ == Any::one_way;
  if (name == "I") return first ? DType::i32 : DType::i64;
  constexpr DType kFirst[] = {DType::bf16, DType::f16, DType::f64};
  constexpr DType kOther[] = {DType::f16, DType::f64, DType::f8e5m2};
  if (generic_ >= std::size(kFirst)) return std::nullopt;
  return first ? kFirst[generic_] : kOther[generic_];
}

/// Returns the value of an attribute that a guard may constrain.
std::size_t Sketch::ask_dtype(const std::string& key, const std::string& name) {
  std::vector<std::size_t> allowed;
  for (std::size_t i = 0; i < std::size(kDTypes); ++i)
    if (guard_allows(name, kDTypes[i])) allowed.push_back(i);
  if (allowed.empty()) throw Mistyped{"no dtype is allowed"};
  return allowed[ask(key, allowed.size())];
}

bool Sketch::guard_allows(const std::string& name, DType dtype) const {
  return std::all_of(rule_.where.begin(), rule_.where.end(), [&](const Expr& guard) {
    const bool binary = guard.kind == Expr::Kind::binary;
    const bool equal = binary && guard.text == "==", unequal = binary && guard.text == "!=";
    if ((!equal && !unequal && guard.kind != Expr::Kind::in_set) ||
        guard.args[0].kind != Expr::Kind::path || guard.args[0].text != name)
      return true;
    if (unequal)
      return guard.args[1].kind != Expr::Kind::path || dtype_named(guard.args[1].text) != dtype;
    return std::any_of(guard.args.begin() + 1, guard.args.end(), [&](const Expr& choice) {
      if (choice.kind != Expr::Kind::path) return true;
      const auto named = dtype_named(choice.text);
      return !named || *named == dtype;
    });
  });
}

/// Solves for sizes of a known type by its annotation, then unifies the rest.
void Sketch::fit(const TypeExpr& text, TypeId type, Env& env, bool own) {
  if (type == Types::unknown()) return;
  const Type actual = context_.types[type];
  if (!text.any_shape) {
    const auto stars = std::count_if(text.dims.begin(), text.dims.end(),
                                     [](const Expr& e) { return e.kind == Expr::Kind::star; });
    if (stars <= 1) fit_dims(text, actual.shape, env, own);
  }
  std::string why;
  if (!unify(context_, text, type, env, &why)) throw Mistyped{why};
}

void Sketch::fit_dims(const TypeExpr& text, const Shape& shape, Env& env, bool own) {
  const std::size_t count = text.dims.size();
  std::size_t star = count;
  for (std::size_t i = 0; i < count; ++i)
    if (text.dims[i].kind == Expr::Kind::star) star = i;
  if (star == count ? shape.size() != count : shape.size() + 1 < count)
    throw Mistyped{fmt::format("rank {} for {}", shape.size(), print(text))};
  const std::size_t length = star == count ? 0 : shape.size() + 1 - count;
  for (std::size_t i = 0; i < count; ++i) {
    if (i == star) continue;
    const DimId actual = shape[i < star ? i : i + length - 1];
    const Expr& dim = text.dims[i];
    if (dim.kind == Expr::Kind::path && env.count(dim.text) == 0 && !dtype_named(dim.text)) {
      env.emplace(dim.text, actual);
      continue;
    }
    bind_names(dim, env, own);
    if (const auto value = evaluate(context_, &graph_, dim, env))
      if (const auto wanted = as_dim(*value)) equal(*wanted, actual);
  }
  if (star == count || text.dims[star].text.empty()) return;
  const auto bound = env.find(text.dims[star].text);
  if (bound == env.end()) return;
  const auto* known = std::get_if<Shape>(&bound->second);
  if (known == nullptr || known->size() != length) return;
  for (std::size_t i = 0; i < length; ++i) equal((*known)[i], shape[star + i]);
}

const TypeExpr* Sketch::declared(const Op& op, std::size_t i) {
  if (op.operands.empty()) return nullptr;
  const OperandDecl& operand = op.operands[std::min(i, op.operands.size() - 1)];
  return operand.type ? &*operand.type : nullptr;
}

/// Declares the inputs in a guard `replicated(x, group)`.
void Sketch::replicate() {
  for (const auto* list : {&rule_.where, &rule_.assume})
    for (const Expr& guard : *list) replicate(guard);
}

void Sketch::replicate(const Expr& guard) {
  if (guard.kind == Expr::Kind::binary && guard.text == "and")
    for (const Expr& arg : guard.args) replicate(arg);
  if (guard.kind != Expr::Kind::call || guard.text != "replicated" || guard.args.size() != 2)
    return;
  const auto found = env_.find(guard.args[0].text);
  const auto group = evaluate(context_, &graph_, guard.args[1], env_);
  if (found == env_.end() || !group) return;
  const auto* value = std::get_if<ValueId>(&found->second);
  const auto* name = std::get_if<std::string>(&*group);
  if (value != nullptr && name != nullptr && graph_.is_input(*value))
    graph_.declare_replicated(*value, *name);
}

}  // namespace pw::proof
