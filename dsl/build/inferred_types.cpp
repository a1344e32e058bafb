#include "dsl/build/inferred_types.hpp"

#include <map>
#include <optional>
#include <set>

#include "dsl/build/stand_ins.hpp"
#include "dsl/build/unroll.hpp"
#include "dsl/dsl.hpp"

namespace pw {
namespace {

/// Type of a value for one choice of dtypes.
struct SeenType {
  DType dtype = DType::f32;
  std::string dims;  ///< "*b, d"
};
using SeenTypes = std::map<std::string, SeenType, std::less<>>;

/// Writes the symbols of a sequence, `b.0` and `b.1`, as `*b`; nothing if one occurs alone.
std::optional<std::string> dims_text(const Dims& dims, const Shape& shape) {
  std::string out;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    std::string text = dims.print(shape[i]);
    if (text.ends_with(".0") && i + 1 < shape.size()) {
      const std::string name = text.substr(0, text.size() - 2);
      if (dims.print(shape[i + 1]) == name + ".1") {
        text = "*" + name;
        ++i;
      }
    }
    if (text.find('.') != std::string::npos || text.find('#') != std::string::npos) return {};
    out += (out.empty() ? "" : ", ") + text;
  }
  return out;
}

/// Returns the types of the values that the rule names, on both sides; empty if the left side
/// cannot be built.
SeenTypes types_on(const CheckedRule& checked, const Rule& rule, std::size_t length,
                   const DTypeChoice& dtypes) {
  StandIns instance(checked, rule, length);
  SeenTypes out;
  if (!instance.build_left(dtypes)) return out;
  const auto note = [&](const Env& env) {
    for (const auto& [name, binding] : env) {
      const auto* value = std::get_if<ValueId>(&binding);
      if (value == nullptr || !value->valid()) continue;
      const TypeId id = instance.graph.type(*value);
      if (id == Types::unknown()) continue;
      const Type type = instance.context.types[id];
      if (auto dims = dims_text(instance.context.dims, type.shape))
        out.try_emplace(name, SeenType{type.dtype, std::move(*dims)});
    }
  };
  note(instance.env);
  BuildOptions options;
  options.open_attributes = instance.open_attributes;
  if (build_statements(instance.graph, rule.replacement, instance.env, options)) note(instance.env);
  return out;
}

/// Dtypes in terms of the rule's variables: one that equals a variable for every choice is that
/// variable.
class DTypesOfRule {
 public:
  DTypesOfRule(const CheckedRule& checked, const Rule& rule, std::size_t length) {
    std::vector<std::string> variables;
    for (const auto& [name, info] : checked.names.names)
      if (info.kind == NameKind::dtype) variables.push_back(name);
    base_ = types_on(checked, rule, length, {});
    for (const std::string& variable : variables)
      for (const DType dtype : {DType::f32, DType::f16}) {
        SeenTypes seen = types_on(checked, rule, length, {{variable, dtype}});
        if (!seen.empty()) others_.push_back({variable, dtype, std::move(seen)});
      }
  }

  [[nodiscard]] const SeenTypes& base() const { return base_; }

  /// Returns the variable or dtype; nothing if it is neither.
  [[nodiscard]] std::string text(const std::string& value) const {
    const DType here = base_.at(value).dtype;
    bool moves = false;
    for (const Other& other : others_) {
      const auto it = other.seen.find(value);
      if (it == other.seen.end() || it->second.dtype == here) continue;
      moves = true;
      if (follows(value, other.variable)) return other.variable;
    }
    return moves ? std::string() : std::string(name(here));
  }

 private:
  struct Other {
    std::string variable;
    DType dtype = DType::f32;
    SeenTypes seen;
  };

  [[nodiscard]] bool follows(const std::string& value, const std::string& variable) const {
    for (const Other& other : others_) {
      const auto it = other.seen.find(value);
      if (it == other.seen.end()) continue;
      const DType expected = other.variable == variable ? other.dtype : base_.at(value).dtype;
      if (it->second.dtype != expected) return false;
    }
    return true;
  }

  SeenTypes base_;
  std::vector<Other> others_;
};

void add_binders(const std::vector<Statement>& statements, std::vector<const Binder*>& out) {
  for (const Statement& s : statements)
    for (const Binder& b : s.binders)
      if (b.type.empty() && !b.spread && b.name != "_") out.push_back(&b);
}

std::vector<const Binder*> binders_of(const ast::Rule& rule) {
  std::vector<const Binder*> out;
  add_binders(rule.body.statements, out);
  for (const ast::Clause& clause : rule.body.clauses)
    if (clause.kind == ast::Clause::Kind::given) add_binders(clause.statements, out);
  add_binders(rule.replacement, out);
  return out;
}

void infer_graph(const ContextPtr& context, const ast::GraphItem& item,
                 std::vector<InferredType>& out) {
  const auto graph = build_graph(context, item);
  if (!graph) return;
  for (const ast::GraphItem::Node& node : item.nodes)
    for (const Binder& binder : node.statement.binders) {
      const ValueId value = graph->find_value(binder.name);
      if (!binder.type.empty() || !value.valid()) continue;
      if (const TypeId type = graph->type(value); type != Types::unknown())
        out.push_back({binder.span, binder.name, context->types.print(type)});
    }
}

}  // namespace

void infer_rule_types(const CheckedRule& checked, std::vector<InferredType>& out) {
  const Rule& rule = *checked.rule;
  const bool plain = rule.lists.empty() && rule.members.empty();
  const Rule unrolled = plain ? Rule() : unroll(rule, 2);
  const DTypesOfRule types(checked, plain ? rule : unrolled, plain ? 1 : 2);
  for (const Binder* binder : binders_of(checked.ast)) {
    const auto it = types.base().find(binder->name);
    if (it == types.base().end()) continue;
    if (const std::string dtype = types.text(binder->name); !dtype.empty())
      out.push_back({binder->span, binder->name, dtype + "[" + it->second.dims + "]"});
  }
}

void infer_graph_types(const ContextPtr& context, const ast::File& file,
                       std::vector<InferredType>& out) {
  for (const ast::Item& item : file.items) {
    const auto* test = std::get_if<ast::Test>(&item);
    if (test == nullptr) continue;
    for (const ast::GraphItem& graph : test->graph) infer_graph(context, graph, out);
    for (const ast::Expectation& expectation : test->expectations)
      for (const ast::GraphItem& graph : expectation.graph) infer_graph(context, graph, out);
  }
}

}  // namespace pw
