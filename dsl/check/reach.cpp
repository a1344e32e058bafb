#include <set>

#include "dsl/build/strategies.hpp"
#include "dsl/check/check.hpp"
#include "dsl/syntax/suggest.hpp"

namespace pw {

void check_reach(const Program& program, const RuleSet& set, Diagnostics& out) {
  if (set.pipelines.empty()) return;
  std::set<RuleId> reached;
  for (const auto& [name, pipeline] : set.pipelines) {
    for (RuleId id : rules_of(pipeline)) reached.insert(id);
  }
  for (const RuleDecl& decl : program.rules) {
    if (!decl.root) continue;
    bool any = false, built = false;
    for (std::size_t i = 0; i < set.rules.size(); ++i) {
      if (set.rules[RuleId(i)].name_span != decl.rule->name_span) continue;
      built = true;
      any = any || reached.contains(RuleId(i));
    }
    if (built && !any)
      out.push_back(warning_at(decl.rule->name_span, "PW0432",
                               "no pipeline reaches rule " + in_ticks(decl.full_name()),
                               "name it in a pass that a pipeline runs"));
  }
}

}  // namespace pw
