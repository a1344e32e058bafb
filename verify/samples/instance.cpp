// Generates instances by rejection sampling: builds the pattern's nodes in text order, draws what
// is free, and keeps the graphs that the matcher accepts. Guards direct the draws, because blind
// draws would rarely satisfy them. Attempts and rejections are limited.
#include "verify/samples/instance.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/try.hpp"
#include "dsl/build/pattern_graph.hpp"
#include "dsl/build/unroll.hpp"
#include "dsl/editing/rename.hpp"
#include "dsl/syntax/names.hpp"
#include "dsl/syntax/walk.hpp"
#include "graph/infer/dim_value.hpp"
#include "graph/passes/writes.hpp"
#include "graph/text/text.hpp"
#include "verify/samples/boundaries.hpp"
#include "verify/samples/draw.hpp"

namespace pw {
namespace {

bool is_dim_list(const Expr& expr) { return expr.kind != Expr::Kind::path; }

/// One attempt at a graph for one rule. Above the size of other classes for a reason: each kind of
/// pattern node has a builder, and all of them fill the same bindings, sizes and graph.
class Attempt {
 public:
  Attempt(const RuleSet& rules, const Rule& rule, const Env& params, std::uint64_t seed,
          const InstanceOptions& options)
      : rules_(rules),
        rule_(rule),
        profile_(options.profile ? &*options.profile : nullptr),
        draw_(*rules.context, seed, options.world, profile_),
        graph_(rules.context, "instance"),
        values_(rule.values.size()) {
    graph_.facts.symbols["n"] = {1, 8192, 1, "tokens"};
    env_ = params;
    for (const auto& [name, binding] : rule.constants) env_.insert_or_assign(name, binding);
    if (options.fixed) fix(options.fixed->first, options.fixed->second);
  }

  Result<Graph> build() {
    draw_guarded_dtypes();
    draw_list_dims();
    for (std::size_t i = 0; i < rule_.nodes.size(); ++i) {
      PW_TRY(add_node(rule_.nodes[PatternNodeId(i)]));
    }
    declare_facts(graph_, rule_, env_);
    for (const std::string& name : rule_.outputs) return_value(rule_.value_named(name));
    for (const PatternNode& node : rule_.nodes) {
      for (PatternValueId result : node.results) {
        if (node.given && draw_.once_in(2)) return_value(result);
      }
    }
    if (const auto problems = declare_writes(graph_); !problems.empty())
      return fail(error_in("instance", kUndeclaredWrite, problems.front().message));
    return std::move(graph_);
  }

 private:
  void fix(const std::string& name, std::int64_t value) {
    if (is_dim_variable(rule_, name)) {
      env_.insert_or_assign(name, draw_.remember(rules_.context->dims.constant(value)));
    } else {
      env_.insert_or_assign(name, Attribute(value));
    }
  }

  /// `T in {bf16, f16}`, `T == i32`: one of these.
  void draw_guarded_dtypes() {
    for (const Expr& guard : rule_.where) {
      const bool equal = guard.kind == Expr::Kind::binary && guard.text == "==";
      if ((!equal && guard.kind != Expr::Kind::in_set) || guard.args[0].kind != Expr::Kind::path)
        continue;
      const auto dtype = chosen_dtype(guard);
      if (dtype && guard.args[0].text.find('.') == std::string::npos)
        env_.emplace(guard.args[0].text, DTypeBinding{*dtype, false});
    }
  }

  /// Returns the profile's dtype if the guard allows it.
  std::optional<DType> chosen_dtype(const Expr& guard) {
    const auto at = [&](std::size_t i) {
      const Expr& choice = guard.args[i];
      return choice.kind == Expr::Kind::path ? dtype_named(choice.text) : std::nullopt;
    };
    for (std::size_t i = 1; profile_ != nullptr && i < guard.args.size(); ++i)
      if (at(i) == profile_->dtype) return at(i);
    return at(1 + draw_.below(guard.args.size() - 1));
  }

  /// A small search: redraws the dims of a type until no guard about them and the known variables
  /// is refuted.
  void draw_guarded_dims(const TypeExpr& type) {
    for (const Expr& dim : type.dims) {
      std::vector<std::string> names;
      collect_paths(dim, names);
      for (const std::string& name : names)
        if (env_.count(name) == 0) draw_guarded_dim(name);
    }
  }

  void draw_guarded_dim(const std::string& name) {
    std::vector<const Expr*> guards;
    std::vector<std::int64_t> numbers;
    for (const std::vector<Expr>* list : {&rule_.where, &rule_.assume})
      for (const Expr& guard : *list)
        if (speaks_of(guard, name, numbers)) guards.push_back(&guard);
    if (guards.empty()) return;
    constexpr int kTries = 24;
    for (int i = 0; i < kTries; ++i) {
      env_.insert_or_assign(name, candidate(name, numbers));
      const bool refuted = std::any_of(guards.begin(), guards.end(), [&](const Expr* guard) {
        const auto truth = evaluate_guard(*rules_.context, &graph_, *guard, env_, graph_.facts);
        return truth && *truth == Truth::no;
      });
      if (!refuted) break;
    }
    draw_.remember(std::get<DimId>(env_.at(name)));
  }

  /// Chooses the value of an equality; otherwise a number of the guards, a neighbor, or a multiple;
  /// otherwise any.
  DimId candidate(const std::string& name, const std::vector<std::int64_t>& numbers) {
    env_.erase(name);
    if (const auto value = value_by_guard(graph_, rule_, name, env_, {"=="})) {
      const auto* number = std::get_if<std::int64_t>(&*value);
      const auto dim = dim_value(rules_.context->dims, *value);
      if (dim && (number == nullptr || *number >= 0)) return *dim;
    }
    if (numbers.empty() || draw_.once_in(2)) return draw_.dim();
    const std::int64_t number = numbers[draw_.below(numbers.size())];
    const std::int64_t near[] = {number, number - 1, number + 1, 2 * number, 3 * number};
    return rules_.context->dims.constant(std::max<std::int64_t>(near[draw_.below(5)], 1));
  }

  /// Returns true if the name occurs in the guard, and adds the guard's integers.
  static bool speaks_of(const Expr& guard, const std::string& name,
                        std::vector<std::int64_t>& numbers) {
    constexpr std::int64_t kMost = 1 << 14;
    std::vector<std::string> names;
    collect_paths(guard, names);
    if (std::find(names.begin(), names.end(), name) == names.end()) return false;
    for (const std::int64_t number : numbers_in(guard))
      if (number > 0 && number <= kMost) numbers.push_back(number);
    return true;
  }

  /// Draws the dims in lists of the pattern, such as `[da, dc, dv]`, first, so that later shapes
  /// often fit them or their sum. Those of a reshape are drawn with its operand.
  void draw_list_dims() {
    std::vector<std::string> names;
    for (const PatternNode& node : rule_.nodes) {
      for (const PatternAttribute& attribute : node.attributes) {
        if (attribute.value.kind == Expr::Kind::list && attribute.name != "shape")
          collect_paths(attribute.value, names);
      }
    }
    DimId sum = rules_.context->dims.constant(0);
    for (const std::string& name : names) {
      if (env_.count(name) == 0) env_.emplace(name, draw_.dim());
      if (const auto* dim = std::get_if<DimId>(&env_.at(name)))
        sum = rules_.context->dims.add(sum, *dim);
    }
    if (names.size() > 1) draw_.remember(sum);
  }

  void return_value(PatternValueId id) {
    if (!id.valid() || !values_[id].valid()) return;
    const auto& outputs = graph_.outputs();
    if (std::find(outputs.begin(), outputs.end(), values_[id]) == outputs.end())
      graph_.add_output(values_[id]);
  }

  Status add_node(const PatternNode& node) {
    const Op& op = rules_.context->ops[node.op];
    draw_convolution(node, op);
    Env local;  // the op's own variables
    unify_known(node, op, local);
    bind_attributes(node, op, local);
    NodeRequest request;
    request.op = node.op;
    request.operands.resize(node.operands.size());
    for (const std::size_t i : drawing_order(node, op)) {
      auto value = PW_TRY(operand(node, op, i, local));
      request.operands[i] = value;
    }
    if (op.traits.commutative && request.operands.size() >= 2 && draw_.once_in(3))
      std::swap(request.operands[0], request.operands[1]);
    if (auto done = attributes(node, op, request); !done) return done;
    request.result_names = result_names(graph_, rule_, node);
    auto made = PW_TRY(build_node(graph_, request));
    for (std::size_t i = 0; i < node.results.size() && i < graph_.result_count(made); ++i)
      bind_value(graph_, rule_, node.results[i], graph_.result(made, i), values_, env_);
    return {};
  }

  /// Draws the operands of a convolution together: independent axes, channels and kernels rarely
  /// fit.
  void draw_convolution(const PatternNode& node, const Op& op) {
    const bool convolves = op.attribute("dilation") != nullptr && node.operands.size() >= 2 &&
                           declared_type(op, 1) != nullptr &&
                           declared_type(op, 1)->dims.size() == 3 &&
                           declared_type(op, 1)->dims.back().kind == Expr::Kind::star;
    if (!convolves || values_[node.operands[0]].valid() || values_[node.operands[1]].valid())
      return;
    const auto [x, w] = draw_.convolution_operands();
    Env drawn = env_;
    if (bind_shape(node.operands[0], x, drawn) && bind_shape(node.operands[1], w, drawn))
      env_ = std::move(drawn);
  }

  /// Binds the variables of an operand's stated type so that it has this shape.
  bool bind_shape(PatternValueId id, const Shape& shape, Env& env) {
    const std::vector<TypeExpr>& types = rule_.values[id].types;
    return std::all_of(types.begin(), types.end(), [&](const TypeExpr& type) {
      const DType dtype = dtype_of(type, env).value_or(draw_.float_dtype());
      return unify(*rules_.context, type, rules_.context->types.get(dtype, shape), env);
    });
  }

  void unify_known(const PatternNode& node, const Op& op, Env& local) {
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
      const ValueId value = values_[node.operands[i]];
      if (const TypeExpr* type = declared_type(op, i); type != nullptr && value.valid())
        unify(*rules_.context, *type, graph_.type(value), local);
    }
  }

  /// Attributes that are already known, for operand types that use them: `table: T[m, head]`.
  void bind_attributes(const PatternNode& node, const Op& op, Env& local) {
    for (const PatternAttribute& attribute : node.attributes) {
      std::vector<std::string> names;
      collect_paths(attribute.value, names);
      const auto known = [&](const std::string& name) { return env_.count(name) != 0; };
      if (!std::all_of(names.begin(), names.end(), known)) continue;
      const AttributeDecl* decl = op.attribute(attribute.name);
      if (decl == nullptr || decl->kind != AttributeKind::int_) continue;
      if (const auto dim = dim_value(*rules_.context, &graph_, attribute.value, env_))
        local.insert_or_assign(attribute.name, *dim);
    }
  }

  Result<ValueId> operand(const PatternNode& node, const Op& op, std::size_t i, Env& local) {
    const PatternValueId id = node.operands[i];
    const PatternValue& pattern = rule_.values[id];
    if (values_[id].valid()) return values_[id];
    if (pattern.literal_none || (pattern.optional && draw_.once_in(2))) return ValueId();
    if (pattern.literal) return add_literal(graph_, *pattern.literal);
    if (pattern.attribute_variable) return variable_constant(id);
    auto type = PW_TRY(free_type(pattern, node, op, i, local));
    const ValueId input = graph_.add_input(
        graph_.fresh_name(pattern.name.empty() ? "x" : pattern.name), type, InputKind::input);
    const ValueId value = written(op, i) && draw_.once_in(2) ? copy_of(input) : input;
    bind_value(graph_, rule_, id, value, values_, env_);
    if (const TypeExpr* text = declared_type(op, i)) unify(*rules_.context, *text, type, local);
    return value;
  }

  /// Operands in order, except that stated types come first if the op requires the same type of an
  /// earlier operand.
  std::vector<std::size_t> drawing_order(const PatternNode& node, const Op& op) const {
    const auto stated = [&](std::size_t i) {
      const std::vector<TypeExpr>& types = rule_.values[node.operands[i]].types;
      return std::any_of(types.begin(), types.end(),
                         [](const TypeExpr& type) { return !type.dtype.empty(); });
    };
    const auto variable = [&](std::size_t i) {
      const TypeExpr* type = declared_type(op, i);
      return type == nullptr || type->dtype.empty() ? std::string() : type->dtype[0].text;
    };
    std::vector<std::size_t> first, rest;
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
      const auto shares = [&](std::size_t k) {
        return !stated(k) && !variable(k).empty() && variable(k) == variable(i);
      };
      bool early = false;
      for (std::size_t k = 0; k < i && stated(i); ++k) early = early || shares(k);
      (early ? first : rest).push_back(i);
    }
    first.insert(first.end(), rest.begin(), rest.end());
    return first;
  }

  static bool written(const Op& op, std::size_t i) {
    if (op.operands.empty()) return false;
    const OperandDecl& operand = op.operands[std::min(i, op.operands.size() - 1)];
    return operand.mut || operand.out;
  }

  /// A written value need not be an input, which would hold it at the end.
  ValueId copy_of(ValueId input) {
    NodeRequest request;
    request.op = rules_.context->ops.find(Primitive::clone);
    request.operands = {input};
    if (!request.op.valid()) return input;
    const auto made = build_node(graph_, request);
    return made ? graph_.result(*made) : input;
  }

  /// Integers if the annotation requires them: small ones, and one that exceeds most extents.
  ValueId variable_constant(PatternValueId id) {
    for (const TypeExpr& type : rule_.values[id].types) {
      if (type.dtype.empty()) continue;
      draw_.bind_variables(type, env_, true);
      const auto dtype = dtype_of(type, env_);
      if (dtype && !is_float(*dtype)) return whole_constant(id, *dtype);
    }
    const double number = draw_.once_in(2) ? 1e-6 : 1e-2;
    const ValueId value = add_constant(graph_, number, DType::f64);
    values_[id] = value;
    env_.insert_or_assign(rule_.values[id].name, Attribute(number));
    return value;
  }

  ValueId whole_constant(PatternValueId id, DType dtype) {
    constexpr std::int64_t kWhole[] = {1, 2, 3, 5, 8, 64, 4096};
    const std::int64_t number = kWhole[draw_.below(std::size(kWhole))];
    const ValueId value = add_constant(graph_, static_cast<double>(number), dtype);
    values_[id] = value;
    env_.insert_or_assign(rule_.values[id].name, Attribute(number));
    return value;
  }

  /// Draws from the rule's annotation; where it leaves the type open, from the op's signature,
  /// often equal to another operand's.
  Result<TypeId> free_type(const PatternValue& pattern, const PatternNode& node, const Op& op,
                           std::size_t i, Env& local) {
    Context& context = *rules_.context;
    std::optional<DType> dtype;
    for (const TypeExpr& type : pattern.types) {
      bind_rows(type);
      draw_guarded_dims(type);
      draw_.bind_variables(type, env_, true);
      if (!type.dtype.empty()) dtype = dtype_of(type, env_);
      if (type.any_shape) continue;
      if (!type.dtype.empty()) return instantiate_type(context, type, env_);
      TypeExpr typed = type;  // `x: [*s]`: any dtype
      typed.dtype.push_back(path_expr(std::string(name(dtype.value_or(draw_.float_dtype())))));
      return instantiate_type(context, typed, env_);
    }
    const TypeId like = first_operand_type(graph_, rule_, node, values_);
    if (profile_ == nullptr && like.valid() && is_open(declared_type(op, i), local) &&
        !draw_.once_in(4)) {
      Shape shape = context.types[like].shape;
      if (!shape.empty() && draw_.once_in(3)) shape.back() = draw_.dim();
      return context.types.get(dtype.value_or(context.types[like].dtype), shape);
    }
    if (const TypeExpr* type = declared_type(op, i); type != nullptr && !type->dtype.empty()) {
      bind_dtype(*type, dtype, like, op, i, local);
      draw_.bind_variables(*type, local, true);
      if (!type->any_shape) return instantiate_type(context, *type, local);
      return context.types.get(dtype_of(*type, local).value_or(DType::bf16),
                               like.valid() ? context.types[like].shape : draw_.shape());
    }
    const DType drawn = dtype.value_or(draw_.dtype());
    return context.types.get(drawn, draw_.shape());
  }

  /// The first dim of a matrix is often the number of tokens.
  void bind_rows(const TypeExpr& type) {
    if (type.dims.size() < 2 || type.dims[0].kind != Expr::Kind::path || draw_.once_in(2)) return;
    env_.emplace(type.dims[0].text, rules_.context->dims.symbol("n"));
  }

  /// The dtype of a free operand: as annotated, an integer for indices, or usually that of the
  /// other operands.
  void bind_dtype(const TypeExpr& type, std::optional<DType> annotated, TypeId like, const Op& op,
                  std::size_t i, Env& local) {
    const std::string& variable = type.dtype[0].text;
    if (dtype_named(variable) || local.count(variable) != 0) return;
    const std::string& name = op.operands[std::min(i, op.operands.size() - 1)].name;
    DType dtype = draw_.float_dtype();
    if (profile_ == nullptr && like.valid() && !draw_.once_in(4))
      dtype = rules_.context->types[like].dtype;
    if ((name == "ids" || name == "positions") && !is_integer(dtype)) dtype = DType::i64;
    local.insert_or_assign(variable, DTypeBinding{annotated.value_or(dtype), false});
  }

  /// `T[*a]` with an unbound `*a`: any shape.
  static bool is_open(const TypeExpr* type, const Env& local) {
    if (type == nullptr || type->any_shape) return true;
    return type->dims.size() == 1 && type->dims[0].kind == Expr::Kind::star &&
           local.count(type->dims[0].text) == 0;
  }

  static std::optional<DType> dtype_of(const TypeExpr& type, const Env& env) {
    return type.dtype.empty() ? std::nullopt : pw::dtype_of(type.dtype[0].text, env);
  }

  Status attributes(const PatternNode& node, const Op& op, NodeRequest& request) {
    const std::vector<TypeId> types = types_of(graph_, request.operands);
    std::set<std::string> written;
    for (const PatternAttribute& attribute : node.attributes) {
      auto value = PW_TRY(written_value(attribute, op, types, node.results.size()));
      written.insert(attribute.name);
      request.attributes.emplace_back(rules_.context->strings.intern(attribute.name),
                                      std::move(value));
    }
    for (const AttributeDecl& declared : op.attributes) {
      const bool keeps_default = declared.default_value && (!node.open || draw_.once_in(2));
      if (written.count(declared.name) != 0 || keeps_default) continue;
      request.attributes.emplace_back(
          rules_.context->strings.intern(declared.name),
          draw_.attribute(declared.name, declared.kind, types, node.results.size()));
    }
    return {};
  }

  /// `{shape = [*s]}` of an op without operands.
  void bind_sequences(const Expr& list) {
    for (const Expr& element : list.args)
      if (element.kind == Expr::Kind::star && !element.text.empty() &&
          env_.count(element.text) == 0)
        env_.emplace(element.text, draw_.shape());
  }

  /// `{shape = [n, m]}` of an expansion: any size where the operand has 1, otherwise its own.
  void bind_expanded(const Expr& list, const Shape& shape) {
    for (std::size_t back = 1; back <= list.args.size(); ++back) {
      const Expr& element = list.args[list.args.size() - back];
      if (element.kind == Expr::Kind::star) return;
      if (element.kind != Expr::Kind::path || env_.count(element.text) != 0) continue;
      const auto own =
          back <= shape.size() ? std::optional(shape[shape.size() - back]) : std::nullopt;
      if (own && rules_.context->dims.value(*own) != 1) {
        env_.emplace(element.text, *own);
        continue;
      }
      draw_guarded_dim(element.text);
      if (env_.count(element.text) == 0) env_.emplace(element.text, draw_.dim());
    }
  }

  /// `{sizes = [m] * 3}`: equal parts of the last axis, as many as there are results.
  void bind_repetition(const Expr& expr, const std::vector<TypeId>& types, std::size_t results) {
    const Expr &list = expr.args[0], &times = expr.args[1];
    if (times.kind == Expr::Kind::path && env_.count(times.text) == 0)
      env_.emplace(times.text, Attribute(static_cast<std::int64_t>(results)));
    const auto count = evaluate(*rules_.context, &graph_, times, env_);
    const auto* number = count ? std::get_if<std::int64_t>(&*count) : nullptr;
    const bool typed = !types.empty() && types[0].valid() && types[0] != Types::unknown();
    if (number == nullptr || *number < 1 || !typed || list.args.size() != 1) return;
    const Shape& shape = rules_.context->types[types[0]].shape;
    const Expr& part = list.args[0];
    const auto size = shape.empty() ? std::nullopt : rules_.context->dims.value(shape.back());
    if (size && *size % *number == 0 && part.kind == Expr::Kind::path && env_.count(part.text) == 0)
      env_.emplace(part.text, rules_.context->dims.constant(*size / *number));
  }

  Result<Attribute> written_value(const PatternAttribute& attribute, const Op& op,
                                  const std::vector<TypeId>& types, std::size_t results) {
    const AttributeDecl* declared = op.attribute(attribute.name);
    const bool typed = !types.empty() && types[0].valid() && types[0] != Types::unknown();
    if (attribute.name == "shape" && attribute.value.kind == Expr::Kind::list && typed) {
      const Shape& shape = rules_.context->types[types[0]].shape;
      if (op.primitive == Primitive::expand)
        bind_expanded(attribute.value, Shape(shape));
      else
        draw_.bind_factors(attribute.value, shape, env_);
    }
    if (is_repetition(attribute.value)) bind_repetition(attribute.value, types, results);
    std::vector<std::string> names;
    collect_paths(attribute.value, names);
    bind_sequences(attribute.value);
    for (const std::string& name : names) {
      if (env_.count(name) != 0) continue;
      if (is_dim_list(attribute.value) || declared == nullptr) {
        env_.emplace(name, draw_.dim());
      } else {
        const auto guarded = value_by_guard(graph_, rule_, name, env_, {"=="});
        env_.emplace(name, guarded
                               ? *guarded
                               : draw_.attribute(attribute.name, declared->kind, types, results));
      }
    }
    return evaluate(*rules_.context, &graph_, attribute.value, env_);
  }

  const RuleSet& rules_;
  const Rule& rule_;
  const Profile* profile_;
  Draw draw_;
  Graph graph_;
  Env env_;
  PatternValues values_;
};

constexpr std::int64_t kLargeParam = 256;  ///< replaces a param of 0

/// The params that the rule uses as the `world` of an op, on either side.
std::set<std::string> world_params(const Rule& rule, const Env& params) {
  std::vector<std::string> names;
  for (const PatternNode& node : rule.nodes) {
    for (const PatternAttribute& attribute : node.attributes)
      if (attribute.name == "world") collect_paths(attribute.value, names);
  }
  const auto of_call = [&](const Expr& call) {
    for (const AttributeArg& attribute : call.attributes) {
      if (attribute.name != "world") continue;
      if (attribute.value.empty()) names.push_back(attribute.name);
      for (const Expr& value : attribute.value) collect_paths(value, names);
    }
  };
  for (const Statement& statement : rule.replacement) visit_calls(statement, of_call);
  std::set<std::string> found;
  for (const std::string& name : names)
    if (params.count(name) != 0) found.insert(name);
  return found;
}

/// Integer parameters are usually as given, and sometimes larger, so that `where tp > 1` can hold.
/// They are usually larger if 0 disables something, as in `n <= most`. Those that count the ranks
/// of a group equal their number.
Env vary(const Env& params, Draw& draw, const std::set<std::string>& worlds, std::int64_t world) {
  Env varied = params;
  for (const std::string& name : worlds) varied.insert_or_assign(name, Attribute(world));
  for (auto& [name, binding] : varied) {
    if (worlds.count(name) != 0) continue;
    auto* attribute = std::get_if<Attribute>(&binding);
    if (attribute == nullptr || !std::holds_alternative<std::int64_t>(*attribute)) continue;
    const bool off = std::get<std::int64_t>(*attribute) == 0;
    if (draw.once_in(4) != off) *attribute = off ? kLargeParam : std::int64_t{2};
  }
  return varied;
}

}  // namespace

Instances make_instances(const RuleSet& rules, RuleId id, const Env& params,
                         const InstanceOptions& options) {
  Instances instances;
  std::set<std::uint64_t> seen;
  const Rule& rule = rules.rules[id];
  const std::set<std::string> worlds = world_params(rule, params);
  const bool lists = !rule.members.empty() || !rule.lists.empty() || !rule.unless.empty();
  std::size_t refusals = 0;
  for (; instances.attempts < options.attempts && instances.found.size() < options.wanted &&
         refusals < options.refusals;
       ++instances.attempts) {
    const std::uint64_t seed = combine(options.seed, instances.attempts);
    Draw draw(*rules.context, seed);
    const Env varied = vary(params, draw, worlds, options.world);
    // Lists of two or three elements, and of the minimum length.
    const std::size_t length = lists && !draw.once_in(4) ? 2 + draw.below(2) : 1;
    const std::optional<Rule> plain = lists ? std::optional(unroll(rule, length)) : std::nullopt;
    auto graph = Attempt(rules, plain ? *plain : rule, varied, seed, options).build();
    if (graph) {
      Graph meaning = graph->compact();  // reject graphs with ill-typed bodies
      if (auto inlined = inline_bodies(meaning); !inlined) graph = forward(inlined);
    }
    if (!graph) {
      if (instances.built == 0) instances.why = graph.error().front().message;
      continue;
    }
    ++instances.built;
    const std::vector<Match> matches = find_matches(*graph, rules, id, varied);
    if (matches.empty()) {
      if (const auto rejection = explain(*graph, rules, id, varied))
        instances.why = rejection->code + " " + rejection->message;
      continue;
    }
    const std::uint64_t hash = structural_hash(*graph);
    if (!seen.insert(hash).second) continue;
    Instance instance{std::move(*graph), matches.front(), varied, hash};
    if (const auto reason = options.refuses ? options.refuses(instance) : std::nullopt) {
      instances.why = *reason;
      ++refusals;
    } else {
      instances.found.push_back(std::move(instance));
    }
  }
  return instances;
}

}  // namespace pw
