#include "rewriter/analysis/effects.hpp"

#include <algorithm>
#include <set>

#include "dsl/syntax/walk.hpp"

namespace pw {
namespace {

/// Returns the least number of members that the guards allow.
std::int64_t least_members(const Rule& rule) {
  std::int64_t least = 1;
  for (const Expr& guard : rule.where) {
    if (guard.kind != Expr::Kind::binary || guard.args.size() != 2) continue;
    const Expr& count = guard.args[0];
    const Expr& bound = guard.args[1];
    if (count.kind != Expr::Kind::call || count.text != "count") continue;
    if (bound.kind != Expr::Kind::integer) continue;
    if (guard.text == ">=" || guard.text == "==") least = std::max(least, bound.integer);
    if (guard.text == ">") least = std::max(least, bound.integer + 1);
  }
  return least;
}

/// Upper bound on the nodes that the statements of a right side build.
class Building {
 public:
  Building(const RuleSet& rules, const Rule& rule, Effect& effect)
      : rules_(rules), rule_(rule), effect_(effect) {
    for (const PatternValue& value : rule.values)
      if (!value.name.empty() && !value.attribute_variable) values_.insert(value.name);
  }

  void statement(const Statement& statement) {
    const Expr& value = statement.value;
    if (value.kind == Expr::Kind::fuse)
      ++effect_.built["fuse " + rule_.name];
    else
      operand(value);
    for (const Binder& binder : statement.binders) values_.insert(binder.name);
  }

 private:
  using Kind = Expr::Kind;

  [[nodiscard]] bool reads_value(const Expr& e) const {
    if (e.kind == Kind::path) return values_.count(e.text) != 0;
    if (e.kind == Kind::call && op_of(e).empty() && !is_cast(e)) return false;
    return std::any_of(e.args.begin(), e.args.end(),
                       [&](const Expr& arg) { return reads_value(arg); });
  }

  /// Returns the op that a call names, directly or by a table's cell; empty if none.
  [[nodiscard]] std::string op_of(const Expr& call) const {
    std::string name = call.text;
    if (const auto cell = rule_.constants.find(name); cell != rule_.constants.end())
      if (const auto* attribute = std::get_if<Attribute>(&cell->second))
        if (const auto* text = std::get_if<std::string>(attribute)) name = *text;
    return rules_.context->ops.find(name).valid() ? name : std::string();
  }
  [[nodiscard]] bool is_cast(const Expr& call) const {
    return op_of(call).empty() && call.text != "size" && call.text != "rank" &&
           call.text != "count" && call.text != "min" && call.text != "max";
  }

  void operand(const Expr& e) {
    if (e.kind == Kind::none) return;
    if (e.kind == Kind::call) return call(e);
    if (e.kind == Kind::negate || e.kind == Kind::binary) return infix(e);
    if (e.kind == Kind::spread) {
      if (e.args.at(0).kind == Kind::path) return;
      effect_.bounded = false;
      return operand(e.args[0]);
    }
    if (e.kind == Kind::path && rule_.lists.count(e.text) != 0) effect_.bounded = false;
    if (e.kind != Kind::path || values_.count(e.text) == 0) ++effect_.built["constant"];
  }
  void call(const Expr& e) {
    const std::string op = op_of(e);
    if (op.empty() && !is_cast(e)) {
      ++effect_.built["constant"];
      return;
    }
    ++effect_.built[op.empty() ? "cast" : op];
    for (const Expr& arg : e.args) operand(arg);
  }
  void infix(const Expr& e) {
    const std::string op(e.kind == Kind::negate ? "neg" : primitive_of_infix(e.text));
    if (op.empty() || !reads_value(e)) {
      ++effect_.built["constant"];
      return;
    }
    ++effect_.built[op];
    for (const Expr& arg : e.args) operand(arg);
  }

  const RuleSet& rules_;
  const Rule& rule_;
  Effect& effect_;
  std::set<std::string, std::less<>> values_;
};

}  // namespace

Effect effect_of(const RuleSet& rules, RuleId id) {
  const Rule& rule = rules.rules[id];
  Effect effect;
  effect.rule = id;
  const std::int64_t members = least_members(rule);
  for (const PatternNode& node : rule.nodes) {
    if (!node.own()) continue;
    const bool many =
        node.members.valid() && rule.members[node.members].kind == Members::Kind::many;
    effect.consumed[rules.context->ops[node.op].name] += many ? members : 1;
  }
  Building building(rules, rule, effect);
  for (const Statement& statement : rule.replacement) building.statement(statement);
  return effect;
}

}  // namespace pw
