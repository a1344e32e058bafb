// Exports check_files: the stages in order, and the lists of checks.
#include "dsl/check.hpp"

#include <algorithm>
#include <array>

#include "dsl/build_rule.hpp"
#include "dsl/declare_op.hpp"
#include "dsl/families.hpp"
#include "dsl/params.hpp"
#include "dsl/patterns.hpp"
#include "dsl/split_items.hpp"
#include "dsl/strategies.hpp"
#include "dsl/suggest.hpp"
#include "dsl/walk.hpp"

namespace pw {
namespace {

using RuleCheck = void (*)(const CheckedRule&, Diagnostics&);

constexpr std::array<RuleCheck, 3> kTextChecks{check_guards, check_replacement,
                                               check_pattern_types};
constexpr std::array<RuleCheck, 6> kRuleChecks{check_rule_shape, check_connected,
                                               check_opened,     check_dropped,
                                               check_unused,     check_output_types};

void declare_ops(Context& context, const Program& program, Diagnostics& out) {
  std::vector<OpId> declared;
  for (const ast::OpItem* item : program.ops) {
    const OpId id = declare_op(context, *item, out);
    if (id.valid()) declared.push_back(id);
  }
  for (OpId id : declared) {
    if (context.ops[id].has_body()) check_op_body(context, context.ops[id], out);
  }
  check_op_recursion(context, declared, out);
}

/// Builds and checks all variants of one rule, and puts those that are sound into the set.
class RuleStage {
 public:
  RuleStage(const Program& program, RuleSet& set, bool patterns_sound, Diagnostics& out)
      : program_(program), set_(set), patterns_sound_(patterns_sound), out_(out) {
    for (const auto& [name, param] : program.params) outer_.params.insert(name);
  }

  void run(const RuleDecl& decl) {
    if (!is_supported(*decl.rule) || (!patterns_sound_ && calls_pattern(*decl.rule))) return;
    const ast::Table* table = nullptr;
    if (!decl.rule->table.empty()) {
      table = find_table(*decl.rule);
      if (table == nullptr) return;
    }
    outer_.table_variable = decl.rule->variant;
    const std::size_t before = out_.size();
    std::vector<Variant> variants = expand_family(*set_.context, *decl.rule, table, out_);
    if (out_.size() != before) return;
    for (Variant& variant : variants) {
      for (ast::Rule& rule : expand_choices(*set_.context, program_, variant.rule, out_))
        build(decl, rule, variant.constants);
    }
  }

 private:
  [[nodiscard]] bool calls_pattern(const ast::Rule& rule) const {
    bool found = false;
    for (const PatternStatement& p : pattern_statements(rule.body)) {
      visit_calls(*p.statement, [&](const Expr& call) {
        found = found || program_.patterns.contains(call.text);
      });
    }
    return found;
  }

  const ast::Table* find_table(const ast::Rule& rule) {
    if (auto it = program_.tables.find(rule.table); it != program_.tables.end()) return it->second;
    std::vector<std::string> names;
    for (const auto& [name, table] : program_.tables) names.push_back(name);
    out_.push_back(error_at(rule.name_span, "PW0376", "no table is called " + in_ticks(rule.table),
                            did_you_mean(rule.table, names)));
    return nullptr;
  }

  void build(const RuleDecl& decl, const ast::Rule& text, const Env& constants) {
    Diagnostics found;
    const RuleNames names = collect_names(*set_.context, text, outer_, found);
    CheckedRule checked{set_.context, *set_.context, program_, text, names, outer_};
    for (RuleCheck check : kTextChecks) check(checked, found);
    std::optional<Rule> rule = build_rule(*set_.context, text, names, found);
    checked.rule = rule ? &*rule : nullptr;
    for (RuleCheck check : kRuleChecks) {
      if (checked.rule != nullptr && !has_errors(found)) check(checked, found);
    }
    const bool sound = rule && !has_errors(found);
    append(out_, std::move(found));
    if (sound) add(decl, constants, std::move(*rule));
  }

  void add(const RuleDecl& decl, const Env& constants, Rule rule) {
    rule.base_name = decl.rule->name;
    rule.group = decl.group;
    rule.name = decl.group.empty() ? rule.name : decl.group + "." + rule.name;
    rule.constants = constants;
    set_.rules.push_back(std::move(rule));
  }

  const Program& program_;
  RuleSet& set_;
  bool patterns_sound_;
  Diagnostics& out_;
  OuterNames outer_;
};

void assign_ranks(RuleSet& set) {
  std::vector<Rule*> by_name;
  for (Rule& rule : set.rules) by_name.push_back(&rule);
  std::stable_sort(by_name.begin(), by_name.end(),
                   [](const Rule* a, const Rule* b) { return a->name < b->name; });
  for (std::size_t i = 0; i < by_name.size(); ++i) by_name[i]->rank = static_cast<int>(i);
}

/// Variants of one family repeat what is wrong with the text they share.
Diagnostics without_repetitions(Diagnostics all) {
  Diagnostics result;
  for (Diagnostic& d : all) {
    const bool known =
        d.span.valid() && std::any_of(result.begin(), result.end(), [&](const Diagnostic& r) {
          return r.code == d.code && r.span == d.span && r.message == d.message;
        });
    if (!known) result.push_back(std::move(d));
  }
  return result;
}

}  // namespace

Result<RuleSet> check_files(const ContextPtr& context, std::vector<ast::File> files,
                            const std::vector<bool>& root) {
  RuleSet set;
  set.context = context;
  set.files = std::move(files);
  Diagnostics out;
  const Program program = collect_program(set.files, root, out);
  declare_ops(*context, program, out);
  for (const auto& [name, table] : program.tables) check_table(*context, *table, out);
  build_params(program, set, out);
  check_supported(program, out);
  const bool patterns_sound = check_patterns(*context, program, out);
  RuleStage rules(program, set, patterns_sound, out);
  for (const RuleDecl& decl : program.rules) rules.run(decl);
  assign_ranks(set);
  check_over(program, set, out);
  build_strategies(program, set, out);
  build_splits(program, set, out);
  build_capture(program, set, out);
  check_reach(program, set, out);
  check_tests(program, set, out);
  out = without_repetitions(std::move(out));
  if (has_errors(out)) return tl::unexpected<Diagnostics>(std::move(out));
  set.warnings = std::move(out);
  return set;
}

}  // namespace pw
