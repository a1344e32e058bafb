#include "dsl/check/check.hpp"

#include <algorithm>

#include "dsl/build/declare_foreign.hpp"
#include "dsl/build/declare_op.hpp"
#include "dsl/build/equivalence.hpp"
#include "dsl/build/params.hpp"
#include "dsl/build/pattern_items.hpp"
#include "dsl/build/patterns.hpp"
#include "dsl/build/split_items.hpp"
#include "dsl/build/strategies.hpp"
#include "dsl/check/explore.hpp"
#include "dsl/families.hpp"
#include "dsl/natives.hpp"
#include "dsl/rule_stage.hpp"

namespace pw {
namespace {

void declare_ops(Context& context, const Program& program, OpBodies bodies, Diagnostics& out) {
  std::vector<OpId> declared;
  for (const ast::OpItem* item : program.ops) {
    const OpId id = declare_op(context, *item, out);
    if (id.valid()) declared.push_back(id);
  }
  if (bodies == OpBodies::checked) check_bodies(context, declared, out);
}

void assign_ranks(RuleSet& set) {
  std::vector<Rule*> by_name;
  for (Rule& rule : set.rules) by_name.push_back(&rule);
  std::stable_sort(by_name.begin(), by_name.end(),
                   [](const Rule* a, const Rule* b) { return a->name < b->name; });
  for (std::size_t i = 0; i < by_name.size(); ++i) by_name[i]->rank = static_cast<int>(i);
}

/// Removes repetitions: variants of one family repeat the errors of their shared text.
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

RuleSet check_files(const ContextPtr& context, std::vector<ast::File> files,
                    const std::vector<bool>& root, Diagnostics& out,
                    std::vector<InferredType>* types, OpBodies bodies) {
  RuleSet set;
  set.context = context;
  set.files = std::move(files);
  Program program = collect_program(set.files, root, out);
  declare_ops(*context, program, bodies, out);
  declare_foreign(*context, program, out);
  settle_patterns(*context, program, out);
  check_dtype_names(program, out);
  for (const auto& [name, table] : program.tables) check_table(*context, *table, out);
  build_params(program, set, out);
  bind_library_natives(*context);
  check_externs(*context, program, out);
  const bool patterns_sound = check_patterns(*context, program, out);
  RuleStage stage(context, program, out, types);
  for (const RuleDecl& decl : program.rules) {
    for (Rule& rule : stage.run(decl, patterns_sound)) set.rules.push_back(std::move(rule));
  }
  assign_ranks(set);
  check_over(program, set, out);
  build_strategies(program, set, out);
  check_directions(program, set, out);
  build_splits(program, set, out);
  build_capture(program, set, out);
  check_explores(program, set, out);
  check_reach(program, set, out);
  check_tests(program, set, out);
  out = without_repetitions(std::move(out));
  return set;
}

Result<RuleSet> check_files(const ContextPtr& context, std::vector<ast::File> files,
                            const std::vector<bool>& root, OpBodies bodies) {
  Diagnostics out;
  RuleSet set = check_files(context, std::move(files), root, out, nullptr, bodies);
  if (has_errors(out)) return tl::unexpected<Diagnostics>(std::move(out));
  set.warnings = std::move(out);
  return set;
}

}  // namespace pw
