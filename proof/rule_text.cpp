// Exports text_of, engine_version.
#include "proof/rule_text.hpp"

#include <fmt/format.h>

#include "graph/text.hpp"
#include "proof/solver.hpp"

namespace pw::proof {
namespace {

class RuleText {
 public:
  RuleText(const RuleSet& rules, const Rule& rule, const Env& params)
      : context_(*rules.context), rule_(rule) {
    env("param", params);
    env("constant", rule.constants);
    values();
    nodes();
    lists();
    for (const Expr& guard : rule.where) line("where", print(guard));
    for (const Expr& guard : rule.assume) line("assume", print(guard));
    for (const Statement& statement : rule.replacement) {
      line("replace", print(statement));
      called(statement.value);
    }
    for (const std::string& name : rule.outputs) line("output", name);
    ops();
  }
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  void line(std::string_view what, std::string_view text) {
    text_ += fmt::format("{} {}\n", what, text);
  }

  void env(std::string_view what, const Env& bindings) {
    for (const auto& [name, binding] : bindings) {
      std::string value = "?";
      if (const auto* a = std::get_if<Attribute>(&binding)) value = context_.attributes.print(*a);
      if (const auto* d = std::get_if<DTypeBinding>(&binding)) value = pw::name(d->dtype);
      if (const auto* d = std::get_if<DimId>(&binding)) value = context_.dims.print(*d);
      if (const auto* s = std::get_if<Shape>(&binding)) value = context_.types.print(*s);
      line(what, fmt::format("{} = {} {}", name, binding.index(), value));
    }
  }

  void values() {
    for (const PatternValue& value : rule_.values) {
      std::string text = fmt::format("`{}` of {} {}", value.name,
                                     value.producer.valid() ? value.producer.index + 1 : 0,
                                     value.result);
      if (value.literal) text += " = " + context_.attributes.print(*value.literal);
      for (const auto& [flag, name] : {std::pair(value.optional, " optional"),
                                       {value.literal_none, " none"},
                                       {value.attribute_variable, " attribute"},
                                       {value.list, " list"}})
        if (flag) text += name;
      for (const TypeExpr& type : value.types) text += ": " + print(type);
      line("value", text);
    }
  }

  void nodes() {
    for (const PatternNode& node : rule_.nodes) {
      std::string text = context_.ops[node.op].name;
      for (PatternValueId operand : node.operands) text += fmt::format(" {}", operand.index);
      text += " ->";
      for (PatternValueId result : node.results) text += fmt::format(" {}", result.index);
      for (const PatternAttribute& attribute : node.attributes)
        text += fmt::format(" {} = {}", attribute.name, print(attribute.value));
      if (node.open) text += " ..";
      if (node.given) text += " given";
      if (node.members.valid()) text += fmt::format(" members {}", node.members.index);
      line("node", fmt::format("{} unless {}", text, node.negation));
      want(node.op);
    }
  }

  void lists() {
    for (const Members& members : rule_.members) {
      std::string text = fmt::format("{} {} {}", static_cast<int>(members.kind),
                                     members.root.index,
                                     members.reader.valid() ? members.reader.index + 1 : 0);
      for (PatternNodeId node : members.nodes) text += fmt::format(" {}", node.index);
      line("members", text);
    }
    for (const std::string& name : rule_.lists) line("list", name);
    for (PatternValueId value : rule_.consumed) line("consumed", std::to_string(value.index));
  }

  void want(OpId op) {
    if (op.valid() && seen_.insert(context_.ops[op].name).second) todo_.push_back(op);
  }
  void called(const Expr& expr) {
    if (expr.kind == Expr::Kind::call) want(context_.ops.find(expr.text));
    // An operator is sugar for an op of another name.
    for (const Expr& arg : expr.args) called(arg);
    for (const AttributeArg& attribute : expr.attributes)
      for (const Expr& value : attribute.value) called(value);
  }

  void ops() {
    // What operators such as `+` stand for.
    for (const char* name : {"add", "sub", "mul", "div", "neg", "cast", "constant", "promote"})
      want(context_.ops.find(name));
    while (!todo_.empty()) {
      const Op& op = context_.ops[todo_.back()];
      todo_.pop_back();
      declaration(op);
      for (const Statement& statement : op.body) {
        line("  body", print(statement));
        called(statement.value);
      }
    }
  }

  void declaration(const Op& op) {
    line("op", op.name);
    const Traits& t = op.traits;
    line("  traits", fmt::format("{}{}{}{}{}{}{}", t.commutative, t.associative, t.view,
                                 t.collective, t.effect, t.splitting, t.rowwise));
    for (const OperandDecl& o : op.operands)
      line("  operand", fmt::format("{} {}{}{}{} {}", o.name, o.mut, o.out, o.variadic, o.optional,
                                    o.type ? print(*o.type) : ""));
    for (const AttributeDecl& a : op.attributes)
      line("  attribute",
           fmt::format("{} {} {} {}", a.name, static_cast<int>(a.kind), a.nullable,
                       a.default_value ? context_.attributes.print(*a.default_value) : ""));
    for (const ResultDecl& r : op.results)
      line("  result", fmt::format("{} {} {} {}", r.name, r.variadic, r.from.value_or(-1),
                                   r.type ? print(*r.type) : ""));
  }

  Context& context_;
  const Rule& rule_;
  std::string text_;
  std::set<std::string> seen_;
  std::vector<OpId> todo_;
};

}  // namespace

std::string text_of(const RuleSet& rules, RuleId rule, const Env& params) {
  return RuleText(rules, rules.rules[rule], params).take();
}

std::string engine_version() {
  return fmt::format("{} {}", PW_PROOF_SOURCES, Solver::present() ? "z3" : "no solver");
}

}  // namespace pw::proof
