#include "pipeline/judge/rule_text.hpp"

#include <set>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "dsl/build/fuse.hpp"
#include "graph/text/text.hpp"
#include "pipeline/judge/proof_sources.hpp"
#include "verify/prover.hpp"

namespace pw {
namespace {

/// Returns the ops that operators and numbers on a right side denote.
constexpr const char* kOpsWithoutNames[] = {"add",  "sub", "mul",      "div",    "neg",
                                            "cast", "one", "constant", "extent", "full"};

class RuleText {
 public:
  RuleText(const RuleSet& rules, const Rule& rule, const Env& params)
      : context_(*rules.context), rules_(rules) {
    line("written", context_.sources.text(rule.span));
    env("param", params);
    tables();
    add(rule);
    ops();
  }
  [[nodiscard]] std::optional<std::string> take() {
    return native_ ? std::nullopt : std::optional(std::move(text_));
  }

 private:
  /// Adds the length, so that no content looks like the next line.
  void line(std::string_view what, std::string_view text) {
    text_ += fmt::format("{} {} {}\n", what, text.size(), text);
  }

  void add(const Rule& rule) {
    line("rule", rule.name);
    env("constant", rule.constants);
    for (const PatternValue& value : rule.values) add(value);
    for (const PatternNode& node : rule.nodes) add(node);
    lists(rule);
    for (const Expr& guard : rule.where) add("where", guard);
    for (const Expr& guard : rule.assume) add("assume", guard);
    for (const Statement& statement : rule.replacement) add("replace", statement);
    for (const std::string& name : rule.outputs) line("output", name);
    if (rule.fused) {
      for (const std::string& name : rule.fused->operands) line("fused operand", name);
      add(rule.fused->pattern);
    }
  }

  void env(std::string_view what, const Env& bindings) {
    for (const auto& [name, binding] : bindings) {
      std::string value;
      if (const auto* a = std::get_if<Attribute>(&binding)) value = context_.attributes.print(*a);
      if (const auto* d = std::get_if<DTypeBinding>(&binding)) value = pw::name(d->dtype);
      if (const auto* d = std::get_if<DimId>(&binding)) value = context_.dims.print(*d);
      if (const auto* s = std::get_if<Shape>(&binding)) value = context_.types.print(*s);
      line(what, fmt::format("{} {} {}", name, binding.index(), value));
    }
  }

  void tables() {
    for (const ast::File& file : rules_.files)
      for (const ast::Item& item : file.items)
        if (const auto* table = std::get_if<ast::Table>(&item))
          line("table", context_.sources.text(table->span));
  }

  void add(const PatternValue& value) {
    std::string text = fmt::format(
        "`{}` {} {} {}{}{}{}{}", value.name, value.producer.valid() ? value.producer.index + 1 : 0,
        value.result, value.optional ? "optional " : "", value.literal_none ? "none " : "",
        value.attribute_variable ? "attribute " : "", value.list ? "list " : "",
        value.literal ? context_.attributes.print(*value.literal) : "");
    for (const TypeExpr& type : value.types) text += ": " + print(type);
    line("value", text);
  }

  void add(const PatternNode& node) {
    std::string text = context_.ops[node.op].name;
    for (PatternValueId operand : node.operands) text += fmt::format(" {}", operand.index);
    text += " ->";
    for (PatternValueId result : node.results) text += fmt::format(" {}", result.index);
    line("node", fmt::format("{} {} {} members {} unless {}", text, node.open, node.given,
                             node.members.valid() ? node.members.index + 1 : 0, node.negation));
    for (const PatternAttribute& attribute : node.attributes) {
      line("  attribute", attribute.name);
      add("  is", attribute.value);
    }
    want(node.op);
  }

  void lists(const Rule& rule) {
    for (const Members& members : rule.members) {
      std::string text = fmt::format("{} {} {}", static_cast<int>(members.kind), members.root.index,
                                     members.reader.valid() ? members.reader.index + 1 : 0);
      for (PatternNodeId node : members.nodes) text += fmt::format(" {}", node.index);
      line("members", text);
    }
    for (const std::string& name : rule.lists) line("list", name);
    for (PatternValueId value : rule.consumed) line("consumed", std::to_string(value.index));
  }

  void add(std::string_view what, const Expr& expr) {
    line(what, print(expr));
    called(expr);
  }
  void add(std::string_view what, const Statement& statement) {
    line(what, print(statement));
    called(statement.value);
  }

  void called(const Expr& expr) {
    std::vector<const Expr*> todo{&expr};
    while (!todo.empty()) {
      const Expr& at = *todo.back();
      todo.pop_back();
      if (at.kind == Expr::Kind::call) {
        native_ = native_ || context_.natives.contains(at.text);
        want(context_.ops.find(at.text));
      }
      for (const Expr& arg : at.args) todo.push_back(&arg);
      for (const AttributeArg& attribute : at.attributes)
        for (const Expr& value : attribute.value) todo.push_back(&value);
    }
  }

  void want(OpId op) {
    if (op.valid() && seen_.insert(op).second) todo_.push_back(op);
  }

  void ops() {
    for (const char* name : kOpsWithoutNames) want(context_.ops.find(name));
    while (!todo_.empty()) {
      const Op& op = context_.ops[todo_.back()];
      todo_.pop_back();
      declaration(op);
      for (const Statement& statement : op.body) add("  body", statement);
    }
  }

  void declaration(const Op& op) {
    line("op", op.name);
    const Traits& t = op.traits;
    line("  traits",
         fmt::format("{} {} {} {} {} {} {} {} {}", t.commutative, t.associative, t.view,
                     t.collective, t.effect, t.splitting, t.rowwise, t.pointwise, op.imported));
    for (const OperandDecl& o : op.operands)
      line("  operand", fmt::format("{} {} {} {} {} {}", o.name, o.mut, o.out, o.variadic,
                                    o.optional, o.type ? print(*o.type) : ""));
    for (const AttributeDecl& a : op.attributes)
      line("  attribute",
           fmt::format("{} {} {} {}", a.name, static_cast<int>(a.kind), a.nullable,
                       a.default_value ? context_.attributes.print(*a.default_value) : ""));
    for (const ResultDecl& r : op.results)
      line("  result", fmt::format("{} {} {} {}", r.name, r.variadic, r.from.value_or(-1),
                                   r.type ? print(*r.type) : ""));
  }

  const Context& context_;
  const RuleSet& rules_;
  std::string text_;
  bool native_ = false;
  std::set<OpId> seen_;
  std::vector<OpId> todo_;
};

}  // namespace

std::optional<std::string> rule_text(const RuleSet& rules, RuleId rule, const Env& params) {
  return RuleText(rules, rules.rules[rule], params).take();
}

std::string proof_version() {
  const ProofLab* lab = proof_lab();
  return fmt::format("{} {}", proof_sources(),
                     lab == nullptr      ? "no proofs"
                     : lab->has_solver() ? "z3"
                                         : "no solver");
}

}  // namespace pw
