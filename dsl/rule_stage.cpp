#include "dsl/rule_stage.hpp"

#include <algorithm>
#include <array>
#include <span>

#include "dsl/build/build_rule.hpp"
#include "dsl/build/equivalence.hpp"
#include "dsl/build/fuse.hpp"
#include "dsl/build/inferred_types.hpp"
#include "dsl/build/op_variables.hpp"
#include "dsl/build/patterns.hpp"
#include "dsl/families.hpp"
#include "dsl/syntax/suggest.hpp"
#include "dsl/syntax/walk.hpp"

namespace pw {
namespace {

constexpr std::array<CheckFunction*, 4> kTextChecks{check_guards, check_replacement, check_lists,
                                                    check_pattern_types};
constexpr std::array<CheckFunction*, 8> kRuleChecks{
    check_rule_shape, check_guard_kinds, check_connected, check_members,
    check_opened,     check_dropped,     check_unused,    check_output_types};
/// Checks that apply to a left side that is also the right side: such a rule reads everything.
constexpr std::array<CheckFunction*, 5> kFuseChecks{
    check_rule_shape, check_guard_kinds, check_connected, check_members, check_output_types};

void note_direction(const ast::Rule& rule, Diagnostics& found) {
  for (Diagnostic& d : found)
    d.notes.push_back("in the direction `" + rule.direction + "` of this equivalence");
}

/// Returns the errors that keep all variants of a rule from matching; one that matches justifies
/// the rule.
Diagnostics in_all(std::vector<Diagnostics> variants) {
  if (variants.empty()) return {};
  Diagnostics out = std::move(variants.front());
  std::erase_if(out, [&](const Diagnostic& d) {
    return std::any_of(variants.begin() + 1, variants.end(), [&](const Diagnostics& others) {
      return std::none_of(others.begin(), others.end(),
                          [&](const Diagnostic& o) { return o.span == d.span; });
    });
  });
  return out;
}

}  // namespace

RuleStage::RuleStage(const ContextPtr& context, const Program& program, Diagnostics& out,
                     std::vector<InferredType>* types)
    : context_(context), program_(program), out_(out), types_(types) {
  for (const auto& [name, param] : program.params) outer_.params.insert(name);
}

std::vector<Rule> RuleStage::run(const RuleDecl& decl, bool patterns_sound) {
  useless_.clear();
  typed_ = types_ != nullptr && decl.root;
  std::vector<Rule> rules = variants(decl, patterns_sound);
  append(out_, in_all(std::move(useless_)));
  return rules;
}

std::vector<Rule> RuleStage::variants(const RuleDecl& decl, bool patterns_sound) {
  std::vector<Rule> rules;
  if (!patterns_sound && calls_pattern(*decl.rule)) return rules;
  const ast::Table* table = nullptr;
  if (!decl.rule->table.empty()) {
    table = find_table(*decl.rule);
    if (table == nullptr) return rules;
  }
  outer_.table_variable = decl.rule->variant;
  if (decl.rule->equivalence) {
    for (const ast::Rule& half : directions_of(*decl.rule, out_))
      expand_ops({decl.rule->name, decl.group, {}, {}}, half, rules);
    return rules;
  }
  const std::size_t before = out_.size();
  std::vector<Variant> variants = expand_family(*context_, *decl.rule, table, out_);
  if (out_.size() != before) return rules;
  for (Variant& variant : variants)
    expand_ops({decl.rule->name, decl.group, std::move(variant.constants), {}}, variant.rule,
               rules);
  return rules;
}

/// Adds a rule for each choice of its op variables.
void RuleStage::expand_ops(Origin origin, const ast::Rule& text, std::vector<Rule>& out) {
  if (text.body.ops.empty()) return expand(origin, text, kOpenLevels, out);
  if (text.name != origin.base_name) origin.row = text.name;
  for (const ast::Rule& chosen : choose_ops(*context_, text, out_))
    expand(origin, chosen, kOpenLevels, out);
}

std::vector<Rule> RuleStage::open(const ClosedRule& closed) {
  scope_ = closed.scope;
  outer_.table_variable = closed.table_variable;
  std::vector<Rule> rules;
  expand({closed.base_name, closed.group, closed.constants, {}}, closed.text, closed.levels + 1,
         rules);
  return rules;
}

void RuleStage::expand(const Origin& origin, const ast::Rule& text, std::int64_t levels,
                       std::vector<Rule>& out) {
  for (const ChosenRule& choice : expand_choices(*context_, program_, text, levels, out_)) {
    if (choice.frontier)
      build_frontier(origin, choice.rule, levels, out);
    else
      build(origin, choice.rule, true, out);
  }
}

bool RuleStage::calls_pattern(const ast::Rule& rule) const {
  bool found = false;
  for (const PatternStatement& p : pattern_statements(rule.body)) {
    visit_calls(*p.statement,
                [&](const Expr& call) { found = found || program_.patterns.contains(call.text); });
  }
  return found;
}

const ast::Table* RuleStage::find_table(const ast::Rule& rule) {
  if (auto it = program_.tables.find(rule.table); it != program_.tables.end()) return it->second;
  std::vector<std::string> names;
  for (const auto& [name, table] : program_.tables) names.push_back(name);
  out_.push_back(error_at(rule.name_span, "PW0376", "no table is called " + in_ticks(rule.table),
                          did_you_mean(rule.table, names)));
  return nullptr;
}

void RuleStage::build(const Origin& origin, const ast::Rule& text, bool, std::vector<Rule>& out) {
  Diagnostics found;
  const RuleNames names = collect_names(*context_, text, outer_, found);
  CheckedRule checked{context_, *context_, program_, text, names, outer_};
  for (CheckFunction* check : kTextChecks) check(checked, found);
  std::optional<Rule> rule = build_rule(*context_, text, names, found);
  checked.rule = rule ? &*rule : nullptr;
  const bool fused = has_fuse(text);
  if (fused && rule && !has_errors(found)) lower_fuse(*context_, program_, *rule, found);
  const std::span<CheckFunction* const> checks = fused
                                                     ? std::span<CheckFunction* const>(kFuseChecks)
                                                     : std::span<CheckFunction* const>(kRuleChecks);
  for (CheckFunction* check : checks) {
    if (checked.rule != nullptr && !has_errors(found)) check(checked, found);
  }
  const bool sound = rule && !has_errors(found);
  if (sound) {
    check_never(checked, useless_.emplace_back());
    check_equal_nodes(checked, useless_.back());
    if (typed_) infer_rule_types(checked, *types_);
  }
  if (!text.direction.empty()) note_direction(text, found);
  append(out_, std::move(found));
  if (sound) put(origin, std::move(*rule), out);
}

/// Builds a frontier without checks: its variants are checked, and it is never applied.
void RuleStage::build_frontier(const Origin& origin, const ast::Rule& text, std::int64_t levels,
                               std::vector<Rule>& out) {
  Diagnostics ignored;
  const ast::Rule pattern = frontier_pattern(program_, text);
  const RuleNames names = collect_names(*context_, pattern, outer_, ignored);
  std::optional<Rule> rule = build_rule(*context_, pattern, names, ignored);
  if (!rule || rule->nodes.empty()) return;
  rule->frontier = true;
  rule->outputs.clear();
  rule->consumed.clear();
  rule->closed =
      std::make_shared<ClosedRule>(ClosedRule{text, levels, origin.base_name, origin.group,
                                              outer_.table_variable, origin.constants, scope()});
  put(origin, std::move(*rule), out);
}

void RuleStage::put(const Origin& origin, Rule rule, std::vector<Rule>& out) {
  rule.base_name = origin.base_name;
  rule.group = origin.group;
  if (!origin.group.empty()) rule.name = origin.group + "." + rule.name;
  rule.row =
      origin.row.empty() || origin.group.empty() ? origin.row : origin.group + "." + origin.row;
  rule.constants = origin.constants;
  out.push_back(std::move(rule));
}

std::shared_ptr<const PatternScope> RuleStage::scope() {
  if (scope_) return scope_;
  auto made = std::make_shared<PatternScope>();
  for (const auto& [name, item] : program_.patterns) made->patterns.push_back(*item);
  for (const auto& [name, item] : program_.params) made->params.push_back(*item);
  for (const auto& [name, item] : program_.externs) made->externs.push_back(*item);
  for (const auto& item : made->patterns) made->program.patterns.emplace(item.name, &item);
  for (const auto& item : made->params) made->program.params.emplace(item.name, &item);
  for (const auto& item : made->externs) made->program.externs.emplace(item.name, &item);
  return scope_ = std::move(made);
}

}  // namespace pw
