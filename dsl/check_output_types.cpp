// Exports check_output_types: builds both sides on stand-ins for the pattern's variables and
// compares the outputs' types. A variable dtype stands in as the first its guard allows, or bf16; a
// variable dim as a symbol; a sequence as two symbols; a list as two of its elements, or as many as
// a guard asks for. Whatever cannot be built, or is not known, is not an error here: only a proved
// change is.
#include <optional>

#include "dsl/check.hpp"
#include "dsl/suggest.hpp"
#include "dsl/unroll.hpp"

namespace pw {
namespace {

class OutputTypes {
 public:
  /// `rule`: the checked one, or that with `length` elements for each list.
  OutputTypes(const CheckedRule& checked, const Rule& rule, std::size_t length)
      : checked_(checked),
        rule_(rule),
        length_(length),
        context_(*checked.shared),
        graph_(checked.shared) {}

  /// Whether the sides could be compared; false where a guard refuses lists of this length, or what
  /// is not known is in the way.
  bool run(Diagnostics& out) {
    bind_variables();
    if (!build_left()) return false;
    bind_lists();
    if (refuted()) return false;
    Env before = env_;
    if (!build_right()) return false;
    for (const std::string& name : checked_.rule->outputs) compare(name, before, out);
    return true;
  }

 private:
  void bind_variables() {
    for (const auto& [name, param] : checked_.program.params) bind_param(name, *param);
    for (const Expr& guard : rule_.where) bind_choice(guard);
    for (const auto& [text, name] : checked_.names.names) {
      if (env_.contains(text)) continue;
      if (name.list) {
        bind_elements(text, name.kind);
        continue;
      }
      if (name.kind == NameKind::dtype) env_.emplace(text, DTypeBinding{DType::bf16, false});
      if (name.kind == NameKind::dim) env_.emplace(text, context_.dims.symbol(text));
      if (name.kind == NameKind::sequence)
        env_.emplace(text,
                     Shape{context_.dims.symbol(text + ".0"), context_.dims.symbol(text + ".1")});
    }
  }

  /// Dims are bound at once: one by one for the left side, together for the right.
  void bind_elements(const std::string& text, NameKind kind) {
    if (kind != NameKind::dim && kind != NameKind::attribute) return;
    Shape all;
    for (std::size_t k = 0; k < length_; ++k) {
      all.push_back(context_.dims.symbol(element_name(text, k)));
      env_.emplace(element_name(text, k), all.back());
    }
    env_.emplace(text, std::move(all));
  }

  void bind_lists() {
    for (const std::string& name : checked_.rule->lists) {
      if (env_.contains(name)) continue;
      std::vector<ValueId> values;
      for (std::size_t k = 0; k < length_; ++k) {
        const auto element = env_.find(element_name(name, k));
        if (element == env_.end()) break;
        if (const auto* value = std::get_if<ValueId>(&element->second)) values.push_back(*value);
      }
      if (values.size() == length_) env_.emplace(name, std::move(values));
    }
  }

  void bind_param(const std::string& name, const ast::Param& param) {
    if (!param.value) return;
    auto value = evaluate(context_, nullptr, *param.value, {});
    if (value) env_.emplace(name, *value);
  }

  /// `T in {bf16, f16}` lets T stand in as bf16.
  void bind_choice(const Expr& guard) {
    if (guard.kind != Expr::Kind::in_set || guard.args.size() < 2 ||
        guard.args[0].kind != Expr::Kind::path)
      return;
    const Name* name = checked_.names.find(guard.args[0].text);
    auto dtype = dtype_named(guard.args[1].text);
    if (name != nullptr && guard.args[1].kind == Expr::Kind::path && dtype)
      env_.emplace(guard.args[0].text, DTypeBinding{*dtype, false});
  }

  bool build_left() {
    values_.assign(rule_.values.size(), ValueId());
    for (std::size_t i = 0; i < rule_.values.size(); ++i) {
      if (!rule_.values[PatternValueId(i)].producer.valid() && !add_free(PatternValueId(i)))
        return false;
    }
    for (const PatternNode& node : rule_.nodes) {
      if (node.negation < 0 && !add_node(node)) return false;
    }
    return true;
  }

  bool add_free(PatternValueId id) {
    const PatternValue& value = rule_.values[id];
    if (value.literal_none) return true;
    if (value.literal) {
      const auto* integer = std::get_if<std::int64_t>(&*value.literal);
      const auto* real = std::get_if<double>(&*value.literal);
      if (integer == nullptr && real == nullptr) return false;
      values_[id.index] = integer != nullptr
                              ? add_constant(graph_, static_cast<double>(*integer), DType::i64)
                              : add_constant(graph_, *real, DType::f64);
      return true;
    }
    if (value.attribute_variable) {
      values_[id.index] = add_constant(graph_, 0.5, DType::f64);
      env_.insert_or_assign(value.name, Attribute(0.5));
      return true;
    }
    const ValueId input = graph_.add_input(graph_.fresh_name(value.name.empty() ? "_" : value.name),
                                           type_of(value), InputKind::input);
    values_[id.index] = input;
    if (!value.name.empty()) env_.insert_or_assign(value.name, input);
    return true;
  }

  TypeId type_of(const PatternValue& value) {
    for (const TypeExpr& type : value.types) {
      if (type.any_shape || type.dtype.empty()) continue;
      if (auto found = instantiate_type(context_, type, env_)) return *found;
    }
    return Types::unknown();
  }

  bool add_node(const PatternNode& node) {
    NodeRequest request;
    request.op = node.op;
    for (PatternValueId operand : node.operands) request.operands.push_back(values_[operand.index]);
    if (!add_attributes(node, request)) return false;
    for (std::size_t i = 0; i < node.results.size(); ++i) request.result_names.emplace_back();
    auto built = build_node(graph_, request);
    if (!built) return false;
    open_attributes_.emplace(context_.ops[node.op].name, graph_.attributes(*built));
    for (std::size_t i = 0; i < node.results.size() && i < graph_.result_count(*built); ++i) {
      const PatternValue& value = rule_.values[node.results[i]];
      values_[node.results[i].index] = graph_.result(*built, i);
      if (!value.name.empty()) env_.insert_or_assign(value.name, graph_.result(*built, i));
    }
    return true;
  }

  bool add_attributes(const PatternNode& node, NodeRequest& request) {
    const Op& op = context_.ops[node.op];
    for (const PatternAttribute& attribute : node.attributes) {
      const AttributeDecl* decl = op.attribute(attribute.name);
      if (decl == nullptr) return false;
      const bool captures =
          attribute.value.kind == Expr::Kind::path && !env_.contains(attribute.value.text);
      if (captures && attribute.value.text != "_" && stand_in(*decl))
        env_.emplace(attribute.value.text, *stand_in(*decl));
      auto value =
          captures && attribute.value.text == "_" ? stand_in(*decl) : evaluated(attribute.value);
      if (!value) return false;
      request.attributes.emplace_back(context_.strings.intern(attribute.name), *value);
    }
    return !node.open || stand_ins(op, node, request);
  }

  /// Opened attributes may hold anything; only those that types do not depend on can stand in.
  bool stand_ins(const Op& op, const PatternNode& node, NodeRequest& request) {
    for (const AttributeDecl& decl : op.attributes) {
      bool written = false;
      for (const PatternAttribute& attribute : node.attributes)
        written = written || attribute.name == decl.name;
      if (written) continue;
      auto value = stand_in(decl);
      if (!value) return false;
      request.attributes.emplace_back(context_.strings.intern(decl.name), *value);
    }
    return true;
  }

  static std::optional<Attribute> stand_in(const AttributeDecl& decl) {
    if (decl.kind == AttributeKind::float_) return Attribute(0.5);
    if (decl.kind == AttributeKind::str) return Attribute(std::string("any"));
    return {};
  }

  std::optional<Attribute> evaluated(const Expr& expr) {
    auto value = evaluate(context_, &graph_, expr, env_);
    if (!value) return {};
    return *value;
  }

  bool refuted() {
    for (const Expr& guard : rule_.where) {
      auto truth = evaluate_guard(context_, &graph_, guard, env_, graph_.facts);
      if (truth && *truth == Truth::no) return true;
    }
    return false;
  }

  bool build_right() {
    BuildOptions options;
    options.open_attributes = open_attributes_;
    return build_statements(graph_, rule_.replacement, env_, options).has_value();
  }

  void compare(const std::string& name, const Env& before, Diagnostics& out) {
    const std::vector<ValueId> were = values_of(before, name), are = values_of(env_, name);
    for (std::size_t i = 0; i < were.size() && i < are.size(); ++i) {
      const TypeId was = graph_.type(were[i]), is = graph_.type(are[i]);
      if (was == Types::unknown() || is == Types::unknown() || !differ(was, is)) continue;
      Diagnostic d =
          error_at(binder(name), "PW0287", "the type of output " + in_ticks(name) + " changes",
                   "an output keeps its type; cast or reshape the new value");
      d.label = "would be " + context_.types.print(is);
      d.secondary.push_back({checked_.rule->values[checked_.rule->value_named(name)].span,
                             "is " + context_.types.print(was)});
      out.push_back(std::move(d));
      return;
    }
  }

  /// Of a list, its elements.
  static std::vector<ValueId> values_of(const Env& env, const std::string& name) {
    const auto it = env.find(name);
    if (it == env.end()) return {};
    if (const auto* list = std::get_if<std::vector<ValueId>>(&it->second)) return *list;
    const auto* value = std::get_if<ValueId>(&it->second);
    if (value == nullptr || !value->valid()) return {};
    return {*value};
  }

  bool differ(TypeId a, TypeId b) {
    if (a == b) return false;
    const Type x = context_.types[a], y = context_.types[b];
    if (x.dtype != y.dtype || x.shape.size() != y.shape.size()) return true;
    for (std::size_t i = 0; i < x.shape.size(); ++i) {
      if (context_.dims.prove(Compare::eq, x.shape[i], y.shape[i], graph_.facts) == Truth::no)
        return true;
    }
    return false;
  }

  [[nodiscard]] Span binder(const std::string& name) const {
    for (const Statement& s : rule_.replacement) {
      for (const Binder& b : s.binders) {
        if (b.name == name) return b.span;
      }
    }
    return rule_.name_span;
  }

  const CheckedRule& checked_;
  const Rule& rule_;
  std::size_t length_;
  Context& context_;
  Graph graph_;
  Env env_;
  std::vector<ValueId> values_;
  std::map<std::string, AttributesId, std::less<>> open_attributes_;
};

}  // namespace

void check_output_types(const CheckedRule& checked, Diagnostics& out) {
  const Rule& rule = *checked.rule;
  if (rule.lists.empty() && rule.members.empty()) {
    OutputTypes(checked, rule, 1).run(out);
    return;
  }
  for (const std::size_t length : {2, 3, 4, 1})
    if (OutputTypes(checked, unroll(rule, length), length).run(out)) return;
}

}  // namespace pw
