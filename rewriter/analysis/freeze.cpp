// One pass over the pattern's nodes in topological order: operands get types from annotations, else
// from the op's signature, else from other operands, and open choices by Choices; then the node is
// built, which infers the types of its results.
#include "rewriter/analysis/freeze.hpp"

#include <algorithm>
#include <set>

#include "base/try.hpp"
#include "dsl/build/pattern_graph.hpp"
#include "dsl/editing/rename.hpp"
#include "dsl/syntax/names.hpp"
#include "dsl/syntax/walk.hpp"
#include "graph/infer/dim_value.hpp"
#include "graph/text/text.hpp"
#include "rewriter/analysis/choices.hpp"
#include "rewriter/matcher/search.hpp"

namespace pw {
namespace {

std::string bare(const std::string& name) { return name.substr(0, name.find('\'')); }

class Freezer {
 public:
  Freezer(const RuleSet& rules, const Rule& pattern, const Env& params, std::uint64_t attempt)
      : context_(*rules.context),
        pattern_(pattern),
        choices_(*rules.context, attempt),
        graph_(rules.context, "found"),
        params_(params),
        values_(pattern.values.size()) {
    choices_.reserve("n");
    for (const PatternValue& value : pattern.values) choices_.reserve(bare(value.name));
    if (attempt % 4 >= 2) raise_params();
    env_ = params_;
    for (const auto& [name, binding] : pattern.constants) env_.insert_or_assign(name, binding);
    for (const Expr& guard : pattern.where) bind_by_guard(guard);
  }

  Result<Frozen> run(const std::vector<PatternValueId>& visible) {
    std::vector<NodeId> nodes;
    for (const PatternNode& node : pattern_.nodes) {
      NodeId made = PW_TRY(add_node(node));
      nodes.push_back(made);
    }
    std::set<ValueId> shown;
    for (PatternValueId id : visible)
      if (values_[id].valid() && shown.insert(values_[id]).second) graph_.add_output(values_[id]);
    return Frozen{std::move(graph_), std::move(nodes), std::move(params_)};
  }

 private:
  /// Binds a variable that a guard such as `where d == 8` determines.
  void bind_by_guard(const Expr& guard) {
    if (guard.kind != Expr::Kind::binary || guard.text != "==" || guard.args.size() != 2) return;
    if (guard.args[0].kind != Expr::Kind::path || guard.args[1].kind != Expr::Kind::integer) return;
    env_.emplace(guard.args[0].text, context_.dims.constant(guard.args[1].integer));
  }

  /// Raises params so that guards such as `where tp > 1` hold.
  void raise_params() {
    std::vector<std::string> names;
    for (const Expr& guard : pattern_.where) collect_paths(guard, names);
    for (const std::string& name : names) {
      const auto it = params_.find(name);
      if (it == params_.end()) continue;
      auto* attribute = std::get_if<Attribute>(&it->second);
      if (attribute != nullptr && std::holds_alternative<std::int64_t>(*attribute))
        *attribute = std::int64_t{2};
    }
  }

  Result<NodeId> add_node(const PatternNode& node) {
    const Op& op = context_.ops[node.op];
    Env local;  // the op's own variables
    for (std::size_t i = 0; i < node.operands.size(); ++i) learn(op, i, node.operands[i], local);
    NodeRequest request;
    request.op = node.op;
    const std::optional<Shape> hint = shape_for_lists(node);
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
      ValueId value = PW_TRY(operand(node, op, i, local, i == 0 ? hint : std::nullopt));
      request.operands.push_back(value);
    }
    PW_TRY(attributes(node, op, request));
    request.result_names = result_names(graph_, pattern_, node);
    Result<NodeId> made = build_node(graph_, request);
    if (!made) return made;
    if (graph_.result_count(*made) != node.results.size())
      return fail({}, "N02", "a different number of results");
    for (std::size_t i = 0; i < node.results.size(); ++i)
      if (!bind(node.results[i], graph_.result(*made, i)))
        return fail({}, "N06", "a result has a different type than written");
    for (const PatternAttribute& attribute : node.attributes) {
      if (attribute.value.kind != Expr::Kind::path) continue;
      const Attribute* value = graph_.attribute(*made, attribute.name);
      const auto known = env_.find(attribute.value.text);
      if (value != nullptr && known != env_.end() &&
          std::holds_alternative<Attribute>(known->second))
        known->second = *value;  // axes count from the front now
    }
    return made;
  }

  void learn(const Op& op, std::size_t i, PatternValueId id, Env& local) {
    const TypeExpr* type = declared_type(op, i);
    if (type != nullptr && values_[id].valid())
      unify(context_, *type, graph_.type(values_[id]), local);
  }

  bool bind(PatternValueId id, ValueId value) {
    return bind_value(graph_, pattern_, id, value, values_, env_);
  }

  Result<ValueId> operand(const PatternNode& node, const Op& op, std::size_t i, Env& local,
                          const std::optional<Shape>& hint) {
    const PatternValueId id = node.operands[i];
    const PatternValue& pattern = pattern_.values[id];
    if (values_[id].valid()) return values_[id];
    if (pattern.literal_none || (pattern.optional && choices_.pick(2) == 1)) return ValueId();
    if (pattern.literal || pattern.attribute_variable) return constant(id);
    TypeId type = PW_TRY(type_of(pattern, node, op, i, local, hint));
    const std::string name = bare(pattern.name);
    const ValueId value = graph_.add_input(
        graph_.fresh_name(name.empty() || name == "_" ? "x" : name), type, InputKind::input);
    if (!bind(id, value)) return fail({}, "N06", "an operand's types do not agree");
    learn(op, i, id, local);
    return value;
  }

  ValueId constant(PatternValueId id) {
    const PatternValue& pattern = pattern_.values[id];
    Attribute number = choices_.one_of({1e-5, 1e-2});
    if (pattern.literal) number = *pattern.literal;
    values_[id] = add_literal(graph_, number);
    if (pattern.attribute_variable) env_.insert_or_assign(pattern.name, number);
    return values_[id];
  }

  /// Derives a type from an annotation, then the op's signature, then the other operands.
  Result<TypeId> type_of(const PatternValue& pattern, const PatternNode& node, const Op& op,
                         std::size_t i, Env& local, const std::optional<Shape>& hint) {
    const TypeExpr* signature = declared_type(op, i);
    const TypeId like = first_operand_type(graph_, pattern_, node, values_);
    const DType dtype = dtype_for(pattern, signature, local, like, op, i);
    const auto attempt = [&](const TypeExpr& type, Env& env) -> Result<TypeId> {
      if (type.any_shape) return fail({}, "N06", "any shape");
      TypeExpr with = type;
      with.dtype = {path_expr(std::string(name(dtype)))};
      return instantiate_type(context_, with, env);
    };
    for (const TypeExpr& type : pattern.types)
      if (Result<TypeId> known = attempt(type, env_)) return known;
    if (signature != nullptr)
      if (Result<TypeId> known = attempt(*signature, local)) return known;
    for (const TypeExpr& type : pattern.types) {
      if (type.any_shape) continue;
      choices_.bind_dims(type, env_);
      return attempt(type, env_);
    }
    if (hint) return context_.types.get(dtype, *hint);
    if (is_open(signature)) {
      const bool same = like.valid() && like != Types::unknown() && choices_.pick(4) != 1;
      return context_.types.get(dtype, same ? context_.types[like].shape : choices_.shape());
    }
    choices_.bind_dims(*signature, local);
    return attempt(*signature, local);
  }

  DType dtype_for(const PatternValue& pattern, const TypeExpr* signature, Env& local, TypeId like,
                  const Op& op, std::size_t i) {
    for (const TypeExpr& type : pattern.types)
      if (const auto known = known_dtype(type, env_)) return *known;
    if (signature != nullptr)
      if (const auto known = known_dtype(*signature, local)) return *known;
    for (const TypeExpr& type : pattern.types)
      if (!type.dtype.empty())
        if (const auto allowed = dtype_by_guard(type.dtype[0].text)) return *allowed;
    const std::string& name =
        op.operands.empty() ? op.name : op.operands[std::min(i, op.operands.size() - 1)].name;
    if (name == "ids" || name == "positions") return DType::i64;
    if (like.valid() && like != Types::unknown() && choices_.pick(4) != 1)
      return context_.types[like].dtype;
    return choices_.float_dtype();
  }

  static std::optional<DType> known_dtype(const TypeExpr& type, const Env& env) {
    if (type.dtype.empty() || type.dtype[0].kind != Expr::Kind::path) return std::nullopt;
    const auto bound = env.find(type.dtype[0].text);
    const auto* value = bound == env.end() ? nullptr : std::get_if<Attribute>(&bound->second);
    if (value == nullptr) return dtype_of(type.dtype[0].text, env);
    const auto* dtype = std::get_if<DType>(value);
    return dtype == nullptr ? std::nullopt : std::optional(*dtype);
  }

  /// Returns one of the dtypes that `where T in {…}` allows.
  std::optional<DType> dtype_by_guard(const std::string& variable) {
    for (const Expr& guard : pattern_.where) {
      if (guard.kind != Expr::Kind::in_set || guard.args.size() < 2) continue;
      if (guard.args[0].text != variable) continue;
      return dtype_named(guard.args[1 + choices_.pick(guard.args.size() - 1)].text);
    }
    return std::nullopt;
  }

  static bool is_open(const TypeExpr* type) {
    return type == nullptr || type->any_shape ||
           (type->dims.size() == 1 && type->dims[0].kind == Expr::Kind::star);
  }

  /// Expands `[d] * 2` to `[d, d]`.
  Expr written_out(const Expr& expr) {
    if (!is_repetition(expr)) return expr;
    Result<Attribute> times = evaluate(context_, &graph_, expr.args[1], env_);
    const auto* count = times ? std::get_if<std::int64_t>(&*times) : nullptr;
    constexpr std::int64_t kMost = 64;
    if (count == nullptr || *count < 0 || *count > kMost) return expr;
    Expr list = expr.args[0];
    for (std::int64_t i = 1; i < *count; ++i)
      list.args.insert(list.args.end(), expr.args[0].args.begin(), expr.args[0].args.end());
    return list;
  }

  /// Derives a shape from the lists of a node: parts sum to the last axis, and a new shape has as
  /// many elements as the old one.
  std::optional<Shape> shape_for_lists(const PatternNode& node) {
    for (const PatternAttribute& attribute : node.attributes) {
      const Expr list = written_out(attribute.value);
      if (list.kind != Expr::Kind::list || list.args.size() < 2) continue;
      const bool parts = attribute.name == "sizes";
      if (!parts && attribute.name != "shape") continue;
      DimId all = context_.dims.constant(parts ? 0 : 1);
      std::vector<DimId> dims;
      for (const Expr& element : list.args) {
        choices_.bind_dims(element, env_);
        const auto dim = dim_value(context_, &graph_, element, env_);
        if (!dim) return std::nullopt;
        dims.push_back(*dim);
        if (!parts && dims.size() == 1) continue;
        all = parts ? context_.dims.add(all, dims.back()) : context_.dims.mul(all, dims.back());
      }
      Shape out = parts ? choices_.rows() : Shape{dims.front()};
      out.push_back(all);
      return out;
    }
    return std::nullopt;
  }

  Status attributes(const PatternNode& node, const Op& op, NodeRequest& request) {
    const std::vector<TypeId> types = types_of(graph_, request.operands);
    std::set<std::string> written;
    for (const PatternAttribute& attribute : node.attributes) {
      if (!written.insert(attribute.name).second) continue;
      Attribute value = PW_TRY(written_value(node, attribute.name, op, types));
      request.attributes.emplace_back(context_.strings.intern(attribute.name), std::move(value));
    }
    for (const AttributeDecl& declared : op.attributes) {
      const bool keeps = declared.default_value && (!node.open || choices_.pick(2) == 0);
      if (written.count(declared.name) != 0 || keeps) continue;
      request.attributes.emplace_back(
          context_.strings.intern(declared.name),
          choices_.attribute(declared.name, declared.kind, types, node.results.size()));
    }
    return {};
  }

  /// Returns the written value. A superposed node may have an attribute twice: the one with a value
  /// decides.
  Result<Attribute> written_value(const PatternNode& node, const std::string& name, const Op& op,
                                  const std::vector<TypeId>& types) {
    std::optional<Attribute> value;
    const Expr* open = nullptr;
    for (const PatternAttribute& attribute : node.attributes) {
      if (attribute.name != name) continue;
      open = &attribute.value;
      if (Result<Attribute> known = evaluate(context_, &graph_, attribute.value, env_);
          known && !value)
        value = *known;
    }
    const AttributeDecl* declared = op.attribute(name);
    if (!value && open->kind == Expr::Kind::path && declared != nullptr) {
      value = value_by_guard(graph_, pattern_, open->text, env_, {"==", ">=", "<="});
      if (!value) value = choices_.attribute(name, declared->kind, types, node.results.size());
    }
    if (!value) {
      choices_.bind_dims(*open, env_);
      Result<Attribute> known = evaluate(context_, &graph_, *open, env_);
      if (!known) return known;
      value = *known;
    }
    for (const PatternAttribute& attribute : node.attributes)
      if (attribute.name == name && attribute.value.kind == Expr::Kind::path)
        bind_attribute(attribute.value.text, *value);
    return *value;
  }

  void bind_attribute(const std::string& name, const Attribute& value) {
    if (const auto* dtype = std::get_if<DType>(&value))
      env_.emplace(name, DTypeBinding{*dtype, false});
    else
      env_.emplace(name, value);
  }

  Context& context_;
  const Rule& pattern_;
  Choices choices_;
  Graph graph_;
  Env env_, params_;
  PatternValues values_;
};

}  // namespace

Result<Frozen> freeze(const RuleSet& rules, const Rule& pattern,
                      const std::vector<PatternValueId>& visible, const Env& params,
                      std::uint64_t attempt) {
  return Freezer(rules, pattern, params, attempt).run(visible);
}

std::vector<PatternValueId> visible_values(const Rule& rule) {
  std::vector<PatternValueId> out;
  for (const std::string& name : rule.outputs)
    if (const PatternValueId id = rule.value_named(name); id.valid()) out.push_back(id);
  for (const PatternNode& node : rule.nodes)
    if (node.given) out.insert(out.end(), node.results.begin(), node.results.end());
  return out;
}

bool is_plain(const Rule& rule) {
  return rule.members.empty() && rule.unless.empty() && rule.lists.empty() && !rule.frontier;
}

std::vector<NodeId> own_of(const Rule& rule, const std::vector<NodeId>& nodes) {
  std::vector<NodeId> out;
  for (std::size_t i = 0; i < rule.nodes.size(); ++i)
    if (rule.nodes[PatternNodeId(i)].own()) out.push_back(nodes[i]);
  std::sort(out.begin(), out.end());
  return out;
}

std::optional<Match> match_of(const Graph& graph, const RuleSet& rules, RuleId rule,
                              const Env& params, const std::vector<NodeId>& nodes) {
  constexpr std::uint64_t kMostSteps = 4096;  // an existing match takes one step for each node
  const RuleLayout layout = lay_out(rules, rule);
  const Env base = starting_env(rules.rules[rule], params);
  Search search(graph, layout, base, false);
  search.limit_steps(kMostSteps);
  std::optional<Match> out;
  search.run_fixed(nodes, [&](const Match& match) {
    out = match;
    return false;
  });
  return out;
}

std::vector<Sample> sample_graphs(const RuleSet& rules, RuleId id, const Env& params,
                                  std::size_t wanted, std::size_t attempts) {
  const Rule& rule = rules.rules[id];
  std::vector<Sample> out;
  std::set<std::uint64_t> seen;
  for (std::uint64_t attempt = 0; attempt < attempts && out.size() < wanted; ++attempt) {
    Result<Frozen> frozen = freeze(rules, rule, visible_values(rule), params, attempt);
    if (!frozen) continue;
    std::optional<Match> match = match_of(frozen->graph, rules, id, frozen->params, frozen->nodes);
    if (!match || !seen.insert(structural_hash(frozen->graph)).second) continue;
    out.push_back({std::move(*frozen), std::move(*match)});
  }
  return out;
}

}  // namespace pw
