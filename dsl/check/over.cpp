#include <algorithm>
#include <set>

#include "dsl/check/check.hpp"
#include "dsl/rule_index.hpp"
#include "dsl/syntax/suggest.hpp"

namespace pw {
namespace {

/// Depth-first closure of "preferred over"; reaching a rule that is still open closes a cycle.
class Closure {
 public:
  Closure(RuleSet& set, Diagnostics& out)
      : set_(set), out_(out), state_(set.rules.size(), State::fresh) {}

  const std::vector<RuleId>& close(RuleId id) {
    Rule& rule = set_.rules[id];
    if (state_[id.index] == State::done) return rule.over;
    if (state_[id.index] == State::open) {
      report(rule);
      return rule.over;
    }
    state_[id.index] = State::open;
    std::set<RuleId> all;
    for (RuleId below : std::vector<RuleId>(rule.over)) {
      all.insert(below);
      const std::vector<RuleId> further = close(below);
      all.insert(further.begin(), further.end());
    }
    rule.over.assign(all.begin(), all.end());
    state_[id.index] = State::done;
    return rule.over;
  }

 private:
  enum class State : std::uint8_t { fresh, open, done };

  void report(const Rule& rule) {
    if (!reported_.insert(rule.base_name).second) return;
    out_.push_back(error_at(
        rule.name_span, "PW0431",
        "rule " + in_ticks(rule.name) + " is, through a chain of `over`, preferred over itself",
        "`over` is a partial order; remove one link of the chain"));
  }

  RuleSet& set_;
  Diagnostics& out_;
  std::vector<State> state_;
  std::set<std::string> reported_;
};

std::vector<RuleId> resolve_within(const RuleIndex& index, const Rule& rule,
                                   const std::string& reference) {
  if (!rule.group.empty()) {
    std::vector<RuleId> found = index.resolve(rule.group + "." + reference);
    if (!found.empty()) return found;
  }
  return index.resolve(reference);
}

void unknown(const Program& program, const std::string& reference, Span span, Diagnostics& out) {
  std::vector<std::string> names;
  for (const RuleDecl& r : program.rules) {
    names.push_back(r.full_name());
    names.push_back(r.rule->name);
  }
  std::sort(names.begin(), names.end());
  out.push_back(error_at(span, "PW0430", "no rule is called " + in_ticks(reference),
                         did_you_mean(reference, names)));
}

}  // namespace

void check_over(const Program& program, RuleSet& set, Diagnostics& out) {
  const RuleIndex index(set);
  for (const RuleDecl& decl : program.rules) {
    if (decl.rule->over.empty()) continue;
    for (const auto& [reference, span] : decl.rule->over) {
      const std::string inner = decl.group.empty() ? reference : decl.group + "." + reference;
      if (!program.declares(reference) && !program.declares(inner))
        unknown(program, reference, span, out);
    }
    for (Rule& rule : set.rules) {
      if (rule.name_span != decl.rule->name_span) continue;
      for (const auto& [reference, span] : decl.rule->over) {
        for (RuleId below : resolve_within(index, rule, reference)) rule.over.push_back(below);
      }
    }
  }
  Closure closure(set, out);
  for (std::size_t i = 0; i < set.rules.size(); ++i) closure.close(RuleId(i));
}

}  // namespace pw
