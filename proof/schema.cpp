// Exports make_schema: builds the pattern's nodes in text order with a symbol for each size that is
// free. Where two sizes have to be equal for the next node, a symbol of them is solved for and the
// construction starts again with what was found.
#include "proof/schema.hpp"

#include <algorithm>
#include <cctype>
#include <optional>

#include <fmt/format.h>

#include "dsl/unroll.hpp"
#include "dsl/walk.hpp"
#include "graph/text.hpp"
#include "graph/type_text.hpp"
#include "rewriter/legality.hpp"

namespace pw::proof {
namespace {

struct Restart {};
struct Mistyped {
  std::string why;
};

constexpr int kRestarts = 64;
constexpr DType kDTypes[] = {DType::bf16, DType::f16,    DType::f32,   DType::f64,
                             DType::i64,  DType::i32,    DType::i8,    DType::u8,
                             DType::b8,   DType::f8e4m3, DType::f8e5m2};

void collect_names(const Expr& expr, std::vector<std::string>& names) {
  if (expr.kind == Expr::Kind::path && !dtype_named(expr.text) &&
      expr.text.find('.') == std::string::npos)
    names.push_back(expr.text);
  for (const Expr& arg : expr.args) collect_names(arg, names);
}

/// A name that dims may be called by.
std::string plain_name(std::string_view name) {
  std::string out;
  for (char c : name) out += std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' ? c : '_';
  if (out.empty() || std::isdigit(static_cast<unsigned char>(out[0])) != 0) out = "v" + out;
  return out;
}

class Sketch {
 public:
  Sketch(const RuleSet& rules, const Rule& rule, const Env& params, Choices& choices,
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

  [[nodiscard]] std::size_t any_dtypes() const { return generic_; }

  Graph build() {
    for (const Expr& guard : rule_.where) equal_dims(guard, true);
    for (std::size_t i = 0; i < rule_.nodes.size(); ++i) {
      site_ = i;
      add_node(rule_.nodes[PatternNodeId(i)]);
    }
    for (const Expr& guard : rule_.where) equal_dims(guard, false);
    for (const Expr& guard : rule_.assume) equal_dims(guard, false);
    replicate();
    return std::move(graph_);
  }

 private:
  /// Whether the rule reads a param where its value matters: in a guard or an attribute.
  [[nodiscard]] bool read(const std::string& param) const {
    std::vector<std::string> names;
    for (const auto* list : {&rule_.where, &rule_.assume})
      for (const Expr& guard : *list) collect_names(guard, names);
    for (const PatternNode& node : rule_.nodes)
      for (const PatternAttribute& attribute : node.attributes)
        collect_names(attribute.value, names);
    return std::find(names.begin(), names.end(), param) != names.end();
  }

  /// Asked once a case, however often its construction starts again.
  std::size_t ask(const std::string& key, std::size_t count) {
    const auto answered = answers_.find(key);
    if (answered != answers_.end()) return answered->second;
    return answers_.emplace(key, choices_.choose(count)).first->second;
  }

  // ---- sizes

  DimId symbol(std::string_view name) {
    const std::string plain = plain_name(name);
    const auto found = solved_.find(plain);
    return found != solved_.end() ? found->second : context_.dims.symbol(plain);
  }
  DimId fresh(std::string_view name) { return symbol(fmt::format("{}_{}", name, site_)); }

  /// The two have to be one number here.
  void equal(DimId a, DimId b) {
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
  void four_numbers(Ix x, Ix y) {
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

  [[noreturn]] void learn(const std::string& name, Ix value) {
    const auto dim = parse_dim(context_.dims, integers_.print(value));
    if (!dim) throw Mistyped{"a size that cannot be written: " + integers_.print(value)};
    std::map<std::string, DimId, std::less<>> one = {{name, *dim}};
    for (auto& [other, known] : found_) known = context_.dims.substitute(known, one);
    found_.insert_or_assign(name, *dim);
    throw Restart{};
  }

  /// `hd == 2 * r` and `n % world == 0` choose a size.
  void equal_dims(const Expr& guard, bool early) {
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

  void multiple(DimId a, DimId b) {
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

  std::optional<DimId> dim_of(const Expr& expr) {
    const auto value = evaluate(context_, &graph_, expr, env_);
    if (!value) return std::nullopt;
    if (const auto* number = std::get_if<std::int64_t>(&*value))
      return context_.dims.constant(*number);
    if (const auto* dim = std::get_if<DimId>(&*value)) return *dim;
    return std::nullopt;
  }

  /// Names of an expression of sizes that are free become symbols.
  void bind_names(const Expr& expr, Env& env, bool own) {
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
    // What stands over a fraction is a multiple of what is under it.
    if (expr.kind == Expr::Kind::binary && (expr.text == "/" || expr.text == "//")) {
      const auto over = evaluate(context_, &graph_, expr.args[0], env);
      const auto under = evaluate(context_, &graph_, expr.args[1], env);
      if (over && under) {
        const auto a = as_dim(*over), b = as_dim(*under);
        if (a && b) multiple(*a, *b);
      }
    }
  }

  // ---- sequences of axes that `expand` repeats

  /// `*r` of an operand of `expand`, and `*s` of the shape that it gets; empty: not a sequence.
  void pair_stars() {
    for (const PatternNode& node : rule_.nodes) {
      if (context_.ops[node.op].name != "expand" || node.operands.empty()) continue;
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

  /// One axis of unknown extent stands for any number of them. Of axes that `expand` repeats: the
  /// same, one that repeats, both with one in front, in either order, and none.
  void bind_star(const std::string& name) {
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
  /// How many axes the rule names without a number: of a sequence that they may be in, these and
  /// what is before, between and behind are axes of their own.
  [[nodiscard]] std::size_t axis_variables() const {
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
  void bind_repeated(const std::string& from) {
    const DimId one = context_.dims.constant(1), kept = symbol(from);
    const Shape shapes[] = {{kept}, {kept, one, one}, {}};
    env_.emplace(from, shapes[ask("repeated " + from, 3)]);
  }
  void bind_pair(const std::string& from, const std::string& to) {
    granted_.insert("axes that are repeated are one of the cases looked at");
    const DimId one = context_.dims.constant(1), kept = symbol(from), more = symbol(to),
                front = symbol(to + "_front");
    const Shape before[] = {{kept}, {one}, {kept, one}, {one, kept}, {}};
    const Shape after[] = {{kept}, {more}, {front, kept, more}, {front, more, kept}, {front}};
    const std::size_t way = ask("repeated " + from + " " + to, std::size(before));
    env_.emplace(from, before[way]);
    env_.emplace(to, after[way]);
  }
  /// A shape that `expand` may give to this one.
  Shape expanded(const Shape& shape, const std::string& base) {
    const DimId one = context_.dims.constant(1);
    const std::size_t way = ask("expanded " + base, 3);
    Shape out = shape;
    for (std::size_t k = 0, widened = 0; k < out.size(); ++k)
      if (out[k] == one && way > 0 && (way == 1 || widened++ == 0))
        out[k] = symbol(fmt::format("{}_{}", base, k));
    if (way == 1) out.insert(out.begin(), symbol(base + "_front"));
    return out;
  }

  std::optional<DimId> as_dim(const Attribute& value) {
    if (const auto* number = std::get_if<std::int64_t>(&value))
      return context_.dims.constant(*number);
    if (const auto* dim = std::get_if<DimId>(&value)) return *dim;
    return std::nullopt;
  }

  // ---- dtypes

  void choose_dtype(const std::string& name, Env& env, bool own) {
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

  [[nodiscard]] std::optional<DType> any_dtype(const std::string& name) const {
    using Any = SchemaOptions::AnyDType;
    if (any_dtype_ == Any::no) return std::nullopt;
    const bool first = any_dtype_ == Any::one_way;
    if (name == "I") return first ? DType::i32 : DType::i64;
    constexpr DType kFirst[] = {DType::bf16, DType::f16, DType::f64};
    constexpr DType kOther[] = {DType::f16, DType::f64, DType::f8e5m2};
    if (generic_ >= std::size(kFirst)) return std::nullopt;
    return first ? kFirst[generic_] : kOther[generic_];
  }

  /// Of an attribute that a guard may speak of.
  std::size_t ask_dtype(const std::string& key, const std::string& name) {
    std::vector<std::size_t> allowed;
    for (std::size_t i = 0; i < std::size(kDTypes); ++i)
      if (guard_allows(name, kDTypes[i])) allowed.push_back(i);
    if (allowed.empty()) throw Mistyped{"no dtype is allowed"};
    return allowed[ask(key, allowed.size())];
  }

  [[nodiscard]] bool guard_allows(const std::string& name, DType dtype) const {
    return std::all_of(rule_.where.begin(), rule_.where.end(), [&](const Expr& guard) {
      const bool equal = guard.kind == Expr::Kind::binary && guard.text == "==";
      if ((!equal && guard.kind != Expr::Kind::in_set) || guard.args[0].kind != Expr::Kind::path ||
          guard.args[0].text != name)
        return true;
      return std::any_of(guard.args.begin() + 1, guard.args.end(), [&](const Expr& choice) {
        if (choice.kind != Expr::Kind::path) return true;
        const auto named = dtype_named(choice.text);
        return !named || *named == dtype;
      });
    });
  }

  // ---- types

  /// Sizes of a type that is known by what a text says of them; then the rest is unified.
  void fit(const TypeExpr& text, TypeId type, Env& env, bool own) {
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

  void fit_dims(const TypeExpr& text, const Shape& shape, Env& env, bool own) {
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

  static const TypeExpr* declared(const Op& op, std::size_t i) {
    if (op.operands.empty()) return nullptr;
    const OperandDecl& operand = op.operands[std::min(i, op.operands.size() - 1)];
    return operand.type ? &*operand.type : nullptr;
  }

  // ---- nodes

  void add_node(const PatternNode& node) {
    const Op& op = context_.ops[node.op];
    Env local;
    NodeRequest request;
    request.op = node.op;
    for (std::size_t i = 0; i < node.operands.size(); ++i)
      if (const ValueId value = values_[node.operands[i]]; value.valid())
        if (const TypeExpr* type = declared(op, i)) fit(*type, graph_.type(value), local, false);
    bind_attributes(node, op, local);
    for (std::size_t i = 0; i < node.operands.size(); ++i)
      request.operands.push_back(operand(node, op, i, local));
    attributes(node, op, request);
    fit_attributes(op, request, node.results.size());
    if (op.has_body()) fit_body(op, request);
    request.result_names.assign(node.results.size(), "");
    for (std::size_t i = 0; i < node.results.size(); ++i) {
      const std::string& name = rule_.values[node.results[i]].name;
      if (name != "_") request.result_names[i] = name.empty() ? name : graph_.fresh_name(name);
    }
    auto made = build_node(graph_, request);
    if (!made) throw Mistyped{made.error().front().message};
    for (std::size_t i = 0; i < node.results.size() && i < graph_.result_count(*made); ++i)
      bind_result(node.results[i], graph_.result(*made, i));
  }

  void bind_result(PatternValueId id, ValueId value) {
    values_[id] = value;
    const PatternValue& pattern = rule_.values[id];
    if (!pattern.name.empty() && pattern.name != "_") env_.insert_or_assign(pattern.name, value);
    for (const TypeExpr& type : pattern.types) fit(type, graph_.type(value), env_, true);
  }

  void bind_attributes(const PatternNode& node, const Op& op, Env& local) {
    for (const PatternAttribute& attribute : node.attributes) {
      const AttributeDecl* decl = op.attribute(attribute.name);
      if (decl == nullptr || decl->kind != AttributeKind::int_ || is_step(decl->name)) continue;
      bind_attribute_names(attribute.value, attribute.name);
      if (const auto value = evaluate(context_, &graph_, attribute.value, env_))
        if (const auto dim = as_dim(*value)) local.insert_or_assign(attribute.name, *dim);
    }
  }

  void bind_attribute_names(const Expr& value, const std::string& attribute) {
    std::vector<std::string> names;
    collect_names(value, names);
    for (const std::string& name : names) {
      if (env_.count(name) != 0) continue;
      const DimId dim = symbol(name);
      may_be_zero(attribute, dim);
      env_.emplace(name, Attribute(dim));
    }
  }

  /// Bounds of slices begin at 0; what is padded may be less, and so may a number.
  void may_be_zero(const std::string& attribute, DimId dim) {
    if (attribute == "low" || attribute == "high" || attribute == "value") {
      if (!context_.dims.is_symbol(dim)) return;
      const std::string name = context_.dims.symbols(dim).front();
      constexpr std::int64_t kFar = std::int64_t{1} << 40;
      graph_.facts.symbols.try_emplace(name, SymbolFact{-kFar, kFar, 1, ""});
      integers_.free(name);
      any_.insert(name);
      return;
    }
    if (attribute == "interior") {
      if (!context_.dims.is_symbol(dim)) return;
      const std::string name = context_.dims.symbols(dim).front();
      zero_.insert(name);
      graph_.facts.symbols.try_emplace(name, SymbolFact{0, std::int64_t{1} << 40, 1, ""});
      integers_.free(name);
      integers_.assume(integers_.symbol(name));
      return;
    }
    if (attribute != "start" && attribute != "end" && attribute.find("first") != 0 &&
        attribute.find("last") != 0)
      return;
    if (context_.dims.is_symbol(dim)) {
      const std::string name = context_.dims.symbols(dim).front();
      zero_.insert(name);
      graph_.facts.symbols.try_emplace(name, SymbolFact{0, std::int64_t{1} << 40, 1, ""});
      integers_.free(name);
      integers_.assume(integers_.symbol(name));
    }
    granted_.insert("bounds of slices count from the front and lie inside the axis");
  }

  ValueId operand(const PatternNode& node, const Op& op, std::size_t i, Env& local) {
    const PatternValueId id = node.operands[i];
    const PatternValue& pattern = rule_.values[id];
    if (values_[id].valid()) return values_[id];
    if (pattern.literal_none) return {};
    if (pattern.optional) {
      if (ask(fmt::format("absent {}", id.index), 2) == 1) return {};
    }
    if (pattern.literal) return literal(*pattern.literal);
    if (pattern.attribute_variable) return constant_variable(id);
    const TypeId type = free_type(pattern, node, op, i, local);
    const ValueId input =
        graph_.add_input(graph_.fresh_name(pattern.name.empty() ? "x" : plain_name(pattern.name)),
                         type, InputKind::input);
    bind_result(id, input);
    if (const TypeExpr* text = declared(op, i)) fit(*text, type, local, false);
    return input;
  }

  ValueId literal(const Attribute& value) {
    if (const auto* integer = std::get_if<std::int64_t>(&value))
      return add_constant(graph_, static_cast<double>(*integer), DType::i64);
    const auto* real = std::get_if<double>(&value);
    return add_constant(graph_, real == nullptr ? 0 : *real, DType::f64);
  }

  /// Any number: ones that no rule writes stand for it, of several signs, sizes and orders.
  double any_number() {
    const int n = ++numbers_;
    switch (ask("numbers", 4)) {
      case 0: return 0.0173205080756887729 + 0.00271828182845904 * n;
      case 1: return 17.320508075688773 / n - 0.0271828182845904;
      case 2: return -3.1622776601683795 + 0.0271828182845904 * n;
      default: return (n % 2 == 0 ? 2.23606797749979 : -1.4142135623730951) / n;
    }
  }

  ValueId constant_variable(PatternValueId id) {
    const double number = any_number();
    const ValueId value = add_constant(graph_, number, DType::f64);
    values_[id] = value;
    env_.insert_or_assign(rule_.values[id].name, Attribute(number));
    return value;
  }

  TypeId made_type(DType dtype, const Shape& shape) { return context_.types.get(dtype, shape); }

  TypeId free_type(const PatternValue& pattern, const PatternNode& node, const Op& op,
                   std::size_t i, Env& local) {
    std::optional<DType> dtype;
    std::optional<Shape> shape;
    for (const TypeExpr& type : pattern.types) {
      for (const Expr& expr : type.dtype) {
        if (expr.kind != Expr::Kind::path) continue;
        choose_dtype(expr.text, env_, true);
        dtype = dtype_of(expr.text, env_);
      }
      if (type.any_shape || shape) continue;
      for (const Expr& dim : type.dims) bind_names(dim, env_, true);
      TypeExpr typed = type;
      typed.dtype.clear();
      Expr any;
      any.kind = Expr::Kind::path;
      any.text = "f32";
      typed.dtype.push_back(any);
      const auto made = instantiate_type(context_, typed, env_);
      if (!made) throw Mistyped{made.error().front().message};
      shape = context_.types[*made].shape;
    }
    const TypeExpr* text = declared(op, i);
    if (!shape && text != nullptr && !text->any_shape)
      shape = signature_shape(*text, node, op, i, local);
    if (!shape) shape = open_shape(node, op, i);
    if (!dtype && text != nullptr && !text->dtype.empty() &&
        text->dtype[0].kind == Expr::Kind::path) {
      const std::string& name = text->dtype[0].text;
      if (const auto named = dtype_named(name)) {
        dtype = named;
      } else {
        choose_like(name, node, local);
        dtype = dtype_of(name, local);
      }
    }
    if (!dtype) {
      Env own;
      choose_dtype("any", own, false);
      dtype = dtype_of("any", own);
    }
    return made_type(*dtype, *shape);
  }

  /// A dtype of the op's own.
  void choose_like(const std::string& name, const PatternNode&, Env& local) {
    if (local.count(name) != 0) return;
    Env own;
    choose_dtype("any", own, false);
    local.insert_or_assign(name, own.at("any"));
  }

  static std::optional<DType> dtype_of(const std::string& name, const Env& env) {
    if (const auto named = dtype_named(name)) return named;
    const auto bound = env.find(name);
    if (bound == env.end()) return std::nullopt;
    const auto* dtype = std::get_if<DTypeBinding>(&bound->second);
    return dtype == nullptr ? std::nullopt : std::optional(dtype->dtype);
  }

  std::optional<Shape> signature_shape(const TypeExpr& text, const PatternNode& node, const Op& op,
                                       std::size_t i, Env& local) {
    const bool open = text.dims.size() == 1 && text.dims[0].kind == Expr::Kind::star &&
                      local.count(text.dims[0].text) == 0;
    if (open) return std::nullopt;
    Shape shape;
    for (const Expr& dim : text.dims) {
      bind_names(dim, local, false);
      if (dim.kind == Expr::Kind::star) {
        const auto bound = local.find(dim.text);
        const auto* known = bound == local.end() ? nullptr : std::get_if<Shape>(&bound->second);
        if (known == nullptr) return std::nullopt;
        shape.insert(shape.end(), known->begin(), known->end());
        continue;
      }
      const auto value = evaluate(context_, &graph_, dim, local);
      const auto size = value ? as_dim(*value) : std::nullopt;
      if (!size) return open_shape(node, op, i);
      shape.push_back(*size);
    }
    return shape;
  }

  /// `T[*s]` and nothing known of `*s`: as many axes as the attributes tell apart, and one for all
  /// that stand before or behind these; beside another operand what broadcasts with it.
  Shape open_shape(const PatternNode& node, const Op& op, std::size_t i) {
    const std::string base = name_of(node.operands[i], i);
    const bool joined = broadcasts(op) || op.operands.back().variadic;
    for (PatternValueId other : node.operands) {
      const PatternValue& pattern = rule_.values[other];
      if (!joined || !values_[other].valid() || pattern.literal || pattern.attribute_variable)
        continue;
      return beside(context_.types[graph_.type(values_[other])].shape, base,
                    op.operands[std::min(i, op.operands.size() - 1)].variadic);
    }
    return by_axes(node, op, base);
  }

  std::string name_of(PatternValueId id, std::size_t i) const {
    const std::string& name = rule_.values[id].name;
    return name.empty() || name == "_" ? fmt::format("s{}_{}", site_, i) : plain_name(name);
  }

  Shape beside(Shape shape, const std::string& base, bool variadic) {
    if (variadic) return shape;
    granted_.insert("operands that broadcast do so as one of the cases looked at");
    const DimId one = context_.dims.constant(1);
    const std::size_t kind = ask("beside " + base, shape.empty() ? 2 : 3 + shape.size());
    if (kind == 0) return shape;
    if (kind == 1) {
      shape.insert(shape.begin(), symbol(base + "_more"));
      return shape;
    }
    if (kind == 2) return {};
    shape[kind - 3] = one;
    return shape;
  }

  Shape by_axes(const PatternNode& node, const Op& op, const std::string& base) {
    std::vector<std::int64_t> axes;
    std::size_t variables = 0;
    for (const AttributeDecl& decl : op.attributes) {
      if (decl.kind != AttributeKind::axis) continue;
      const auto written = std::find_if(
          node.attributes.begin(), node.attributes.end(),
          [&](const PatternAttribute& attribute) { return attribute.name == decl.name; });
      const Attribute* fixed = decl.default_value && !node.open ? &*decl.default_value : nullptr;
      std::optional<Attribute> value;
      if (written != node.attributes.end()) {
        auto known = evaluate(context_, &graph_, written->value, env_);
        if (known) value = *known;
      } else if (fixed != nullptr) {
        value = *fixed;
      }
      if (value && std::holds_alternative<std::int64_t>(*value))
        axes.push_back(std::get<std::int64_t>(*value));
      else
        ++variables;
    }
    const auto axis = [&](std::size_t n) { return symbol(fmt::format("{}_{}", base, n)); };
    Shape shape;
    if (variables > 0) {  // one before, each that is named, one between, one behind
      for (std::size_t n = 0; n < 2 * variables + 1; ++n) shape.push_back(axis(n));
      return shape;
    }
    if (axes.empty()) {
      if (shape_attribute(op)) return {axis(0), axis(1)};
      return {axis(0)};
    }
    std::int64_t front = 0, back = 0;
    for (std::int64_t a : axes) {
      front = std::max(front, a + 1);
      back = std::max(back, -a);
    }
    const std::size_t named = static_cast<std::size_t>(front + back);
    for (std::size_t n = 0; n < named + 1; ++n) shape.push_back(axis(n));
    return shape;
  }

  static bool shape_attribute(const Op& op) { return op.attribute("shape") != nullptr; }

  // ---- attributes

  void attributes(const PatternNode& node, const Op& op, NodeRequest& request) {
    std::set<std::string> written;
    for (const PatternAttribute& attribute : node.attributes) {
      const AttributeDecl* decl = op.attribute(attribute.name);
      written.insert(attribute.name);
      request.attributes.emplace_back(context_.strings.intern(attribute.name),
                                      written_value(attribute, decl, request, node.results.size()));
    }
    for (const AttributeDecl& decl : op.attributes) {
      if (written.contains(decl.name)) continue;
      if (decl.default_value && !node.open) continue;
      if (decl.default_value && decl.kind != AttributeKind::bool_ &&
          ask(fmt::format("default {} {}", decl.name, site_), 2) == 0)
        continue;
      request.attributes.emplace_back(context_.strings.intern(decl.name),
                                      any_attribute(fmt::format("{}_{}", decl.name, site_), decl,
                                                    request, node.results.size()));
    }
  }

  Attribute written_value(const PatternAttribute& attribute, const AttributeDecl* decl,
                          const NodeRequest& request, std::size_t results) {
    std::vector<std::string> names;
    collect_names(attribute.value, names);
    const bool alone = attribute.value.kind == Expr::Kind::path;
    for (const std::string& name : names) {
      if (env_.count(name) != 0) continue;
      if (decl != nullptr && is_step(decl->name)) {
        env_.emplace(name, any_step(name, decl->name));
      } else if (!alone || decl == nullptr) {
        const DimId dim = symbol(name);
        if (decl != nullptr && decl->kind == AttributeKind::int_) {
          may_be_zero(attribute.name, dim);
          env_.emplace(name, Attribute(dim));
        } else {
          env_.emplace(name, dim);
        }
      } else {
        env_.emplace(name, any_attribute(name, *decl, request, results));
      }
    }
    bind_list(attribute, request);
    bind_names(attribute.value, env_, true);
    auto value = evaluate(context_, &graph_, attribute.value, env_);
    if (!value) throw Mistyped{value.error().front().message};
    return *value;
  }

  void bind_list(const PatternAttribute& attribute, const NodeRequest& request) {
    for (const Expr& element : attribute.value.args) {
      if (element.kind != Expr::Kind::star || element.text.empty() || env_.count(element.text) != 0)
        continue;
      const bool paired = std::any_of(repeated_.begin(), repeated_.end(), [&](const auto& pair) {
        return pair.second == element.text;
      });
      const bool grows = attribute.name == "shape" && !paired && !request.operands.empty() &&
                         request.operands[0].valid() && context_.ops[request.op].name == "expand";
      if (!grows) {
        bind_star(element.text);
        continue;
      }
      Shape shape = context_.types[graph_.type(request.operands[0])].shape;
      const std::size_t others = attribute.value.args.size() - 1;
      if (shape.size() < others) throw Mistyped{"a shape of fewer axes"};
      shape.resize(shape.size() - others);
      env_.emplace(element.text, expanded(shape, element.text));
    }
  }

  /// 1 to 3: an attribute that the sizes of results are computed with as a number.
  Attribute any_step(const std::string& name, std::string_view attribute) {
    granted_.insert("steps of slices and convolutions are 1 to 3, paddings 0 to 2");
    const std::size_t least = attribute == "padding" ? 0 : 1;
    return static_cast<std::int64_t>(least + ask("step " + name, 3));
  }
  static bool is_step(std::string_view attribute) {
    return attribute == "step" || attribute == "stride" || attribute == "dilation" ||
           attribute == "padding";
  }

  Attribute any_attribute(const std::string& name, const AttributeDecl& decl,
                          const NodeRequest& request, std::size_t results) {
    const Shape first = !request.operands.empty() && request.operands[0].valid()
                            ? context_.types[graph_.type(request.operands[0])].shape
                            : Shape();
    const std::string key = fmt::format("attribute {} {}", name, site_);
    switch (decl.kind) {
      case AttributeKind::float_: return any_number();
      case AttributeKind::bool_: return ask(key, 2) == 1;
      case AttributeKind::str: return "\"" + name + "\"";
      case AttributeKind::dtype: return kDTypes[ask_dtype(key, name)];
      case AttributeKind::axis:
        if (first.empty()) throw Mistyped{"no axis"};
        return static_cast<std::int64_t>(ask(key, first.size()));
      case AttributeKind::int_: {
        if (decl.nullable && ask(key, 2) == 0) return None{};
        if (decl.name == "step") return any_step(key, decl.name);
        const DimId dim = symbol(name);
        may_be_zero(decl.name, dim);
        return dim;
      }
      case AttributeKind::ints:
      case AttributeKind::dims: {
        std::vector<DimId> list;
        if (decl.name == "sizes") {
          for (std::size_t i = 0; i < results; ++i)
            list.push_back(symbol(fmt::format("{}_{}", name, i)));
          return list;
        }
        DimId product = context_.dims.constant(1);
        for (DimId dim : first) product = context_.dims.mul(product, dim);
        if (decl.name == "shape" && !request.operands.empty() &&
            context_.ops[request.op].name == "expand")
          return expanded(first, name);
        if (decl.name == "shape" && !request.operands.empty()) {
          granted_.insert("a shape that nothing is said of is one axis");
          return std::vector<DimId>{product};
        }
        return std::vector<DimId>{symbol(name + "_0")};
      }
      case AttributeKind::floats: return std::vector<double>(results, any_number());
      case AttributeKind::strs: return std::vector<std::string>(results, "x");
    }
    return None{};
  }

  static bool broadcasts(const Op& op) {
    if (op.results.empty() || !op.results[0].type) return false;
    const std::vector<Expr>& dims = op.results[0].type->dims;
    return dims.size() == 1 && dims[0].kind == Expr::Kind::call && dims[0].text == "broadcast";
  }

  /// Of operands that broadcast, each two axes that meet are equal, or one of them has size 1.
  void fit_broadcast(const Op& op, const NodeRequest& request) {
    if (!broadcasts(op)) return;
    Shape out;
    const DimId one = context_.dims.constant(1);
    for (std::size_t i = 0; i < request.operands.size(); ++i) {
      if (!request.operands[i].valid()) continue;
      const Shape& shape = context_.types[graph_.type(request.operands[i])].shape;
      if (shape.size() > out.size()) out.insert(out.begin(), shape.size() - out.size(), one);
      for (std::size_t k = 0; k < shape.size(); ++k) {
        DimId& to = out[out.size() - 1 - k];
        const DimId from = shape[shape.size() - 1 - k];
        if (to == one) to = from;
        if (from == one || from == to ||
            context_.dims.prove(Compare::eq, from, to, graph_.facts) == Truth::yes)
          continue;
        const bool free = !context_.dims.value(from) && !context_.dims.value(to);
        const std::size_t kind = free ? ask(fmt::format("meets {} {} {}", site_, i, k), 3) : 0;
        if (kind == 0) equal(from, to);
        if (kind == 1) equal(from, one);
        if (kind == 2) equal(to, one);
      }
    }
  }

  /// What goes to places of one axis has the sizes of all others.
  void fit_put(const Op& op, const NodeRequest& request, const Attribute* dim) {
    if (op.name != "index_put" || request.operands.size() < 2) return;
    const Shape to = context_.types[graph_.type(request.operands[0])].shape,
                values = context_.types[graph_.type(request.operands[1])].shape;
    const auto axis = axis_of(dim, to.size());
    if (!axis || to.size() != values.size()) return;
    for (std::size_t k = 0; k < to.size(); ++k)
      if (k != *axis && context_.dims.value(values[k]) != 1) equal(to[k], values[k]);
  }

  void fit_cat(const Op& op, const NodeRequest& request, const Attribute* dim) {
    if (op.name != "cat") return;
    const Shape first = context_.types[graph_.type(request.operands[0])].shape;
    const auto axis = axis_of(dim, first.size());
    for (ValueId value : request.operands) {
      const Shape other = context_.types[graph_.type(value)].shape;
      for (std::size_t k = 0; axis && k < first.size() && other.size() == first.size(); ++k)
        if (k != *axis) equal(first[k], other[k]);
    }
  }

  /// What the sizes of a split and of a reshape say of their operand.
  void fit_attributes(const Op& op, const NodeRequest& request, std::size_t results) {
    fit_broadcast(op, request);
    if (request.operands.empty() || !request.operands[0].valid()) return;
    const Shape& shape = context_.types[graph_.type(request.operands[0])].shape;
    const auto find = [&](std::string_view name) -> const Attribute* {
      for (const auto& [key, value] : request.attributes)
        if (context_.strings.text(key) == name) return &value;
      const AttributeDecl* decl = op.attribute(name);
      return decl != nullptr && decl->default_value ? &*decl->default_value : nullptr;
    };
    Dims& dims = context_.dims;
    fit_cat(op, request, find("dim"));
    fit_put(op, request, find("dim"));
    if (const Attribute* sizes = find("sizes"); sizes != nullptr && op.name == "split") {
      const auto* list = std::get_if<std::vector<DimId>>(sizes);
      const auto axis = axis_of(find("dim"), shape.size());
      if (list == nullptr || !axis || list->size() != results) return;
      DimId sum = dims.constant(0);
      for (DimId dim : *list) sum = dims.add(sum, dim);
      equal(shape[*axis], sum);
    }
    if (const Attribute* wanted = find("shape"); wanted != nullptr && op.name == "reshape") {
      const auto* list = std::get_if<std::vector<DimId>>(wanted);
      if (list == nullptr) return;
      DimId a = dims.constant(1), b = a;
      for (DimId dim : shape) a = dims.mul(a, dim);
      bool rest = false;
      for (DimId dim : *list) {
        if (dims.value(dim) == -1)
          rest = true;
        else
          b = dims.mul(b, dim);
      }
      if (rest)
        multiple(a, b);
      else
        equal(a, b);
    }
  }

  /// What the body of an op asks of sizes: that fractions are whole, that parts make up their
  /// operand, that its results have the sizes that the signature states.
  void fit_body(const Op& op, const NodeRequest& request) {
    Env local;
    std::vector<TypeId> types;
    for (std::size_t i = 0; i < request.operands.size(); ++i) {
      const ValueId value = request.operands[i];
      types.push_back(value.valid() ? graph_.type(value) : TypeId());
      if (const TypeExpr* type = declared(op, i); type != nullptr && value.valid())
        unify(context_, *type, graph_.type(value), local);
      if (i < op.operands.size() && value.valid())
        local.insert_or_assign(op.operands[i].name, value);
    }
    for (const AttributeDecl& decl : op.attributes)
      if (decl.default_value) local.insert_or_assign(decl.name, *decl.default_value);
    for (const auto& [key, value] : request.attributes)
      local.insert_or_assign(std::string(context_.strings.text(key)), value);
    for (const ResultDecl& result : op.results)
      if (result.type)
        for (const Expr& dim : result.type->dims) whole_fractions(dim, local);
    for (const Statement& statement : op.body) fit_call(statement.value, local);
    const auto attributes = complete_attributes(context_, op, request.attributes, types);
    if (!attributes) return;
    const auto made = body_types(context_, request.op, types, *attributes);
    if (!made) return;
    for (std::size_t r = 0; r < op.results.size() && r < made->size(); ++r) {
      if (!op.results[r].type) continue;
      const auto stated = instantiate_type(context_, *op.results[r].type, local, types);
      if (!stated || *stated == Types::unknown() || (*made)[r] == Types::unknown()) continue;
      const Shape a = context_.types[*stated].shape, b = context_.types[(*made)[r]].shape;
      for (std::size_t k = 0; k < a.size() && a.size() == b.size(); ++k) equal(a[k], b[k]);
    }
  }

  void whole_fractions(const Expr& expr, const Env& env) {
    for (const Expr& arg : expr.args) whole_fractions(arg, env);
    for (const AttributeArg& attribute : expr.attributes)
      for (const Expr& value : attribute.value) whole_fractions(value, env);
    if (expr.kind != Expr::Kind::binary || (expr.text != "/" && expr.text != "//")) return;
    const auto over = evaluate(context_, &graph_, expr.args[0], env);
    const auto under = evaluate(context_, &graph_, expr.args[1], env);
    if (!over || !under) return;
    const auto a = as_dim(*over), b = as_dim(*under);
    if (a && b) multiple(*a, *b);
  }

  /// The fractions of an op that a body calls, as far as its operands and attributes are known.
  void fit_called(const Expr& call, const Env& env) {
    const OpId id = context_.ops.find(call.text);
    if (!id.valid() || !context_.ops[id].has_body()) return;
    const Op& op = context_.ops[id];
    Env local;
    for (std::size_t i = 0; i < call.args.size() && i < op.operands.size(); ++i) {
      const auto bound = env.find(call.args[i].text);
      const auto* value = call.args[i].kind != Expr::Kind::path || bound == env.end()
                              ? nullptr
                              : std::get_if<ValueId>(&bound->second);
      if (value == nullptr || !value->valid()) continue;
      local.insert_or_assign(op.operands[i].name, *value);
      if (op.operands[i].type) unify(context_, *op.operands[i].type, graph_.type(*value), local);
    }
    for (const AttributeDecl& decl : op.attributes)
      if (decl.default_value) local.insert_or_assign(decl.name, *decl.default_value);
    for (const AttributeArg& attribute : call.attributes) {
      Expr own;
      own.kind = Expr::Kind::path;
      own.text = attribute.name;
      const auto value =
          evaluate(context_, &graph_, attribute.value.empty() ? own : attribute.value[0], env);
      if (value) local.insert_or_assign(attribute.name, *value);
    }
    for (const Statement& statement : op.body) whole_fractions(statement.value, local);
  }

  void fit_call(const Expr& expr, const Env& env) {
    whole_fractions(expr, env);
    for (const Expr& arg : expr.args) fit_call(arg, env);
    if (expr.kind == Expr::Kind::call) fit_called(expr, env);
    if (expr.kind != Expr::Kind::call ||
        (expr.text != "split" && expr.text != "reshape" && expr.text != "index_put"))
      return;
    NodeRequest request;
    request.op = context_.ops.find(expr.text);
    for (const Expr& arg : expr.args) {
      const auto bound = env.find(arg.text);
      const auto* value = arg.kind != Expr::Kind::path || bound == env.end()
                              ? nullptr
                              : std::get_if<ValueId>(&bound->second);
      if (value == nullptr || !value->valid()) break;
      request.operands.push_back(*value);
    }
    if (request.operands.empty()) return;
    for (const AttributeArg& attribute : expr.attributes) {
      Expr name;
      name.kind = Expr::Kind::path;
      name.text = attribute.name;
      const auto made =
          evaluate(context_, &graph_, attribute.value.empty() ? name : attribute.value[0], env);
      if (!made) return;
      request.attributes.emplace_back(context_.strings.intern(attribute.name), *made);
    }
    std::size_t results = 1;
    for (const auto& [key, sizes] : request.attributes)
      if (const auto* list = std::get_if<std::vector<DimId>>(&sizes)) results = list->size();
    fit_attributes(context_.ops[request.op], request, results);
  }

  static std::optional<std::size_t> axis_of(const Attribute* value, std::size_t rank) {
    const auto* axis = value == nullptr ? nullptr : std::get_if<std::int64_t>(value);
    if (axis == nullptr) return std::nullopt;
    const auto r = static_cast<std::int64_t>(rank);
    const std::int64_t at = *axis < 0 ? *axis + r : *axis;
    if (at < 0 || at >= r) return std::nullopt;
    return static_cast<std::size_t>(at);
  }

  /// Inputs that the guard `replicated(x, group)` speaks of.
  void replicate() {
    for (const auto* list : {&rule_.where, &rule_.assume})
      for (const Expr& guard : *list) replicate(guard);
  }
  void replicate(const Expr& guard) {
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

  Context& context_;
  const Rule& rule_;
  Choices& choices_;
  Integers& integers_;
  const std::map<std::string, DimId, std::less<>>& solved_;
  std::map<std::string, DimId, std::less<>>& found_;
  std::map<std::string, std::size_t>& answers_;
  std::set<std::string>& zero_;
  std::set<std::string>& any_;
  std::set<std::string>& granted_;
  SchemaOptions::AnyDType any_dtype_;
  std::size_t generic_ = 0;  ///< dtypes given to variables
  std::vector<std::pair<std::string, std::string>> repeated_;  ///< see pair_stars
  Graph graph_;
  Env env_;
  IdVec<PatternValueId, ValueId> values_;
  std::size_t site_ = 0;
  int numbers_ = 0;
};

// ---- the right side

std::vector<ValueId> values_of(const Env& env, const std::string& name) {
  const auto found = env.find(name);
  if (found == env.end()) return {};
  if (const auto* value = std::get_if<ValueId>(&found->second)) return {*value};
  if (const auto* list = std::get_if<std::vector<ValueId>>(&found->second)) return *list;
  return {};
}

/// The attributes that `..` copies.
std::map<std::string, AttributesId, std::less<>> open_attributes(const Graph& graph,
                                                                 const Match& match) {
  std::map<std::string, AttributesId, std::less<>> out;
  for (NodeId node : match.nodes)
    if (node.valid()) out.emplace(graph.op_of(node).name, graph.attributes(node));
  for (const auto& list : match.members)
    if (!list.empty())
      for (NodeId node : list.front()) out.emplace(graph.op_of(node).name, graph.attributes(node));
  return out;
}

void assume_guard(const Expr& guard, Schema& schema, Integers& integers) {
  Context& context = schema.graph.context();
  if (guard.kind == Expr::Kind::binary && guard.text == "and") {
    for (const Expr& arg : guard.args) assume_guard(arg, schema, integers);
    return;
  }
  const auto dim = [&](const Expr& expr) -> std::optional<Ix> {
    const auto value = evaluate(context, &schema.graph, expr, schema.env);
    if (!value) return std::nullopt;
    if (const auto* number = std::get_if<std::int64_t>(&*value)) return integers.constant(*number);
    if (const auto* d = std::get_if<DimId>(&*value)) return integers.of(context.dims, *d);
    return std::nullopt;
  };
  const auto take = [&](Ix fact) {
    if (integers.number(fact).value_or(-1) >= 0) return;
    schema.guards.push_back({print(guard), integers.fact_count()});
    integers.assume(fact);
  };
  if (guard.kind == Expr::Kind::in_range && guard.args.size() == 3) {
    const auto x = dim(guard.args[0]), low = dim(guard.args[1]), high = dim(guard.args[2]);
    if (x && low) take(integers.sub(*x, *low));
    if (x && high) take(integers.sub(*high, *x));
    return;
  }
  if (guard.kind != Expr::Kind::binary || guard.args.size() != 2) return;
  const auto a = dim(guard.args[0]), b = dim(guard.args[1]);
  if (!a && !b) {  // of numbers
    const auto holds =
        evaluate_guard(context, &schema.graph, guard, schema.env, schema.graph.facts);
    if (holds && *holds == Truth::no) integers.assume(integers.constant(-1));
  }
  if (!a || !b) return;
  const Ix one = integers.constant(1), difference = integers.sub(*a, *b);
  const Ix reverse = integers.sub(*b, *a);
  if (guard.text == ">=") take(difference);
  if (guard.text == "<=") take(reverse);
  if (guard.text == ">") take(integers.sub(difference, one));
  if (guard.text == "<") take(integers.sub(reverse, one));
  if (guard.text == "==") {
    take(difference);
    take(reverse);
  }
}

std::set<NodeId> nodes_of(const Graph& graph) {
  std::set<NodeId> out;
  for (NodeId node = graph.first(); node.valid(); node = graph.next(node)) out.insert(node);
  return out;
}

tl::expected<Schema, NoSchema> with_right_side(Graph graph, const RuleSet& unguarded, RuleId id,
                                               const Env& params) {
  const Rule& rule = unguarded.rules[id];
  const RunRules run(unguarded);
  const std::string shapes = shapes_of(graph);
  std::vector<Match> matches = find_matches(graph, run, id, params);
  if (matches.empty()) {
    const auto why = explain(graph, run, id, params);
    return tl::unexpected(
        NoSchema{why ? why->code + " " + why->message : "it does not match", false, shapes});
  }
  Schema schema{std::move(graph), {}, {}, {}, {}, {}, {}, 0};
  const Match& match = matches.front();
  schema.replaced = own_nodes(schema.graph, lay_out(run, id), match);
  const std::set<NodeId> old = nodes_of(schema.graph);
  BuildOptions options;
  options.open_attributes = open_attributes(schema.graph, match);
  schema.env = match.env;
  Env env = match.env;
  if (auto built = build_statements(schema.graph, rule.replacement, env, options); !built)
    return tl::unexpected(NoSchema{built.error().front().message, false, shapes});
  for (NodeId node : nodes_of(schema.graph))
    if (!old.contains(node)) schema.fresh.push_back(node);
  for (const std::string& name : rule.outputs) {
    const std::vector<ValueId> from = values_of(match.env, name), to = values_of(env, name);
    if (from.size() != to.size())
      return tl::unexpected(NoSchema{fmt::format("`{}` would be a list of another length", name)});
    for (std::size_t i = 0; i < from.size(); ++i) {
      if (!to[i].valid()) return tl::unexpected(NoSchema{fmt::format("`{}` would be none", name)});
      schema.outputs.push_back(
          {from.size() == 1 ? name : fmt::format("{}[{}]", name, i), from[i], to[i]});
    }
  }
  for (const SchemaOutput& output : schema.outputs) schema.graph.add_output(output.before);
  for (const SchemaOutput& output : schema.outputs) schema.graph.add_output(output.after);
  return schema;
}

/// An application leaves types as they are. Sizes that this asks to be equal: a symbol to solve
/// for, or facts.
std::optional<NoSchema> same_types(const Schema& schema, Integers& integers,
                                   std::map<std::string, DimId, std::less<>>& found) {
  Context& context = schema.graph.context();
  for (const SchemaOutput& output : schema.outputs) {
    const TypeId a = schema.graph.type(output.before), b = schema.graph.type(output.after);
    if (a == b) continue;
    if (a == Types::unknown() || b == Types::unknown()) return NoSchema{"a type is not known"};
    const Type before = context.types[a], after = context.types[b];
    if (before.dtype != after.dtype || before.shape.size() != after.shape.size())
      return NoSchema{fmt::format("`{}` is {} and would become {}", output.name,
                                  context.types.print(a), context.types.print(b))};
    for (std::size_t i = 0; i < before.shape.size(); ++i) {
      const Ix x = integers.of(context.dims, before.shape[i]);
      const Ix y = integers.of(context.dims, after.shape[i]);
      if (integers.equal(x, y)) continue;
      const Ix difference = integers.sub(x, y);
      if (integers.number(difference))
        return NoSchema{fmt::format("`{}` would have another size", output.name)};
      if (const auto solution = integers.solve(difference)) {
        const auto dim = parse_dim(context.dims, integers.print(solution->second));
        if (dim) {
          std::map<std::string, DimId, std::less<>> one = {{solution->first, *dim}};
          for (auto& [other, known] : found) known = context.dims.substitute(known, one);
          found.insert_or_assign(solution->first, *dim);
          throw Restart{};
        }
      }
      integers.assume(difference);
      integers.assume(integers.sub(y, x));
    }
  }
  return std::nullopt;
}

}  // namespace

std::string shapes_of(const Graph& graph) {
  std::string out;
  for (ValueId input : graph.inputs())
    out += graph.context().types.print(graph.context().types[graph.type(input)].shape) + " ";
  return out;
}

tl::expected<Schema, NoSchema> make_schema(const RuleSet& rules, const RuleSet& unguarded,
                                           RuleId id, const Env& params, Choices& choices,
                                           Integers& integers, const SchemaOptions& options,
                                           std::set<std::string>& granted) {
  const Rule& rule = rules.rules[id];
  const bool lists = !rule.members.empty() || !rule.lists.empty() || !rule.unless.empty();
  const std::optional<Rule> plain =
      lists ? std::optional(unroll(rule, options.lists)) : std::nullopt;
  std::map<std::string, DimId, std::less<>> solved;
  std::map<std::string, std::size_t> answers;
  std::set<std::string> zero, any;  // symbols that may be 0, and any number
  choices.rewind();
  for (int i = 0; i < kRestarts; ++i) {
    integers.back_to({0});
    for (const auto& [name, dim] : solved) {  // a size that was solved for is still one
      if (any.contains(name)) continue;
      const Ix least = integers.constant(zero.contains(name) ? 0 : 1);
      const Ix fact = integers.sub(integers.of(rules.context->dims, dim), least);
      if (!integers.nonnegative(fact)) integers.assume(fact);
    }
    std::map<std::string, DimId, std::less<>> found = solved;
    try {
      Sketch sketch(rules, plain ? *plain : rule, params, choices, integers, solved, found, answers,
                    zero, any, granted, options.any_dtype);
      Graph graph = sketch.build();
      Env symbolic = params;
      for (auto& [name, binding] : symbolic) {
        const auto* attribute = std::get_if<Attribute>(&binding);
        if (attribute != nullptr && std::holds_alternative<std::int64_t>(*attribute)) {
          const auto known = solved.find(plain_name(name));
          binding = Attribute(known != solved.end() ? known->second
                                                    : rules.context->dims.symbol(plain_name(name)));
        }
      }
      auto schema = with_right_side(std::move(graph), unguarded, id, symbolic);
      if (!schema) return schema;
      schema->any_dtypes = sketch.any_dtypes();
      for (const auto* guards : {&rule.where, &rule.assume})
        for (const Expr& guard : *guards) assume_guard(guard, *schema, integers);
      if (auto none = same_types(*schema, integers, found)) return tl::unexpected(*none);
      return schema;
    } catch (const Restart&) {
      solved = std::move(found);
    } catch (const Mistyped& problem) {
      return tl::unexpected(NoSchema{problem.why, true});
    }
  }
  return tl::unexpected(NoSchema{"its sizes could not be solved for", true});
}

}  // namespace pw::proof
