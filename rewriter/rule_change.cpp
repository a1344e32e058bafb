// Exports text_of, same_pattern, same_recipe, and Verdicts::judged_by.
#include "rewriter/rule_change.hpp"

#include <algorithm>

#include "graph/text.hpp"

namespace pw {
namespace {

class RuleText {
 public:
  explicit RuleText(const RunRules& rules) : rules_(rules), context_(*rules.set().context) {}

  std::string of(RuleId id) {
    const Rule& rule = rules_[id];
    add(rule.name);
    for (const PatternValue& value : rule.values) {
      add(value.name);
      if (value.literal) add(context_.attributes.print(*value.literal));
      for (const TypeExpr& type : value.types) add(print(type));
    }
    for (const PatternNode& node : rule.nodes) {
      add(context_.ops[node.op].name + (node.open ? ".." : ""));
      for (const PatternAttribute& attribute : node.attributes)
        add(attribute.name + "=" + print(attribute.value));
    }
    for (const Expr& expr : rule.where) add("where " + print(expr));
    for (const Expr& expr : rule.assume) add("assume " + print(expr));
    for (const Statement& statement : rule.replacement) add(print(statement));
    for (const std::string& output : rule.outputs) add(output);
    for (RuleId under : rule.over) add("over " + rules_[under].name);
    for (const auto& [name, binding] : rule.constants) {
      add(name);
      add(print_binding(binding));
    }
    return std::move(text_);
  }

 private:
  void add(const std::string& text) { text_ += text + '\n'; }
  std::string print_binding(const Binding& binding) const {
    std::string out = std::to_string(binding.index());
    if (const auto* dtype = std::get_if<DTypeBinding>(&binding))
      out += ' ' + std::to_string(static_cast<int>(dtype->dtype)) + (dtype->weak ? "w" : "");
    if (const auto* dim = std::get_if<DimId>(&binding)) out += ' ' + context_.dims.print(*dim);
    if (const auto* shape = std::get_if<Shape>(&binding)) out += ' ' + context_.types.print(*shape);
    if (const auto* attribute = std::get_if<Attribute>(&binding))
      out += ' ' + context_.attributes.print(*attribute);
    return out;
  }

  const RunRules& rules_;
  Context& context_;
  std::string text_;
};

}  // namespace

std::string text_of(const RunRules& rules, RuleId id) { return RuleText(rules).of(id); }

bool same_pattern(const Rule& a, const Rule& b) {
  const auto same_node = [](const PatternNode& x, const PatternNode& y) {
    return x.op == y.op && x.operands == y.operands && x.results == y.results &&
           x.given == y.given && !x.members.valid() && !y.members.valid() && x.negation < 0 &&
           y.negation < 0;
  };
  const auto same_value = [](const PatternValue& x, const PatternValue& y) {
    return x.producer == y.producer && x.result == y.result && x.optional == y.optional &&
           x.literal_none == y.literal_none && !x.literal && !y.literal && !x.attribute_variable &&
           !y.attribute_variable && !x.list && !y.list;
  };
  return std::equal(a.nodes.begin(), a.nodes.end(), b.nodes.begin(), b.nodes.end(), same_node) &&
         std::equal(a.values.begin(), a.values.end(), b.values.begin(), b.values.end(),
                    same_value) &&
         a.outputs == b.outputs && a.consumed == b.consumed && a.assume.empty() &&
         b.assume.empty() && !a.frontier && !b.frontier;
}

bool same_recipe(const Recipe& a, const Recipe& b) {
  const auto same_source = [](Recipe::Source x, Recipe::Source y) { return x.code == y.code; };
  const auto same_node = [](const Recipe::NewNode& x, const Recipe::NewNode& y) {
    return x.op == y.op && x.attributes == y.attributes && x.first_operand == y.first_operand &&
           x.operand_count == y.operand_count && x.first_result == y.first_result &&
           x.result_count == y.result_count;
  };
  return std::equal(a.nodes.begin(), a.nodes.end(), b.nodes.begin(), b.nodes.end(), same_node) &&
         std::equal(a.operands.begin(), a.operands.end(), b.operands.begin(), b.operands.end(),
                    same_source) &&
         std::equal(a.outputs.begin(), a.outputs.end(), b.outputs.begin(), b.outputs.end(),
                    same_source) &&
         a.types == b.types && a.may_change_nothing == b.may_change_nothing &&
         a.barriers == b.barriers;
}

/// Each key stands for matches; one of them is built in a graph of its own, and judged there.
std::unique_ptr<Verdicts> Verdicts::judged_by(const RuleLayout& layout, const Env& base) const {
  auto out = std::make_unique<Verdicts>(graph_, layout, base);
  out->table_ = table_;
  out->followers_ = followers_;
  const Rule& rule = *layout.rule;
  const std::size_t width = rule.values.size() + rule.nodes.size();
  for (std::size_t v = 0; v < verdicts_.size(); ++v) {
    const std::uint32_t* key = keys_.data() + v * width;
    const auto untyped = [](std::uint32_t part) { return part != kAbsent && part >= kUntyped; };
    if (std::any_of(key, key + rule.values.size(), untyped)) return nullptr;
    Graph graph(graph_.context_ptr());
    graph.facts = graph_.facts;
    Candidate candidate;
    candidate.values.resize(rule.values.size());
    candidate.swaps.assign(rule.nodes.size(), 0);
    for (std::size_t i = 0; i < rule.values.size(); ++i)
      if (!rule.values[PatternValueId(i)].producer.valid() && key[i] != kAbsent)
        candidate.values[i] =
            graph.add_input("i" + std::to_string(i), TypeId(std::size_t{key[i]}), InputKind::input);
    for (std::size_t n = 0; n < rule.nodes.size(); ++n) {
      const PatternNode& node = rule.nodes[PatternNodeId(n)];
      if (key[rule.values.size() + n] == kAbsent) return nullptr;
      std::vector<ValueId> operands;
      for (PatternValueId operand : node.operands)
        operands.push_back(candidate.values[operand.index]);
      std::vector<TypeId> types;
      for (PatternValueId result : node.results) {
        if (key[result.index] == kAbsent) return nullptr;
        types.push_back(TypeId(std::size_t{key[result.index]}));
      }
      const NodeId made = graph.add_node(
          node.op, operands, AttributesId(std::size_t{key[rule.values.size() + n]}), types, {});
      candidate.nodes.push_back(made);
      for (std::size_t k = 0; k < node.results.size(); ++k)
        candidate.values[node.results[k].index] = graph.result(made, k);
    }
    out->key_.assign(key, key + width);
    out->keep(Verdicts(graph, layout, base).judge(candidate));
  }
  out->key_ = key_;
  out->guess_.last = guess_.last;
  return out;
}

}  // namespace pw
