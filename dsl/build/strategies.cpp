#include "dsl/build/strategies.hpp"

#include <algorithm>
#include <set>

#include "base/assert.hpp"
#include "dsl/build/strategy_options.hpp"
#include "dsl/rule_index.hpp"
#include "dsl/syntax/suggest.hpp"
#include "dsl/syntax/walk.hpp"

namespace pw {
namespace {

using Kind = ast::Strategy::Kind;

std::string joined(const std::vector<std::pair<std::string, Span>>& references) {
  std::string text;
  for (const auto& [name, span] : references) text += (text.empty() ? "" : ", ") + name;
  return text;
}

void sort_by_rank(const RuleSet& set, std::vector<RuleId>& rules) {
  std::sort(rules.begin(), rules.end(),
            [&](RuleId a, RuleId b) { return set.rules[a].rank < set.rules[b].rank; });
  rules.erase(std::unique(rules.begin(), rules.end()), rules.end());
}

/// Resolver of one strategy tree; names of passes and pipelines are resolved on first use, cycles
/// are diagnosed.
class StrategyBuilder {
 public:
  StrategyBuilder(const Program& program, RuleSet& set, Diagnostics& out)
      : program_(program), set_(set), index_(set), out_(out) {}

  void run() {
    for (const ast::Pass* pass : program_.passes) named(pass->name, pass->name_span);
    for (const ast::Pipeline* pipeline : program_.pipelines)
      named(pipeline->name, pipeline->name_span);
    add_implicit();
  }

 private:
  /// Returns the strategy of a pass or a pipeline, built on first use; null if none has that name.
  const Strategy* named(const std::string& name, Span use) {
    if (const Strategy* known = find(name)) return known;
    const ast::Strategy* tree = nullptr;
    const ast::Pipeline* pipeline = nullptr;
    for (const ast::Pass* p : program_.passes) {
      if (p->name == name) tree = &p->strategy;
    }
    for (const ast::Pipeline* p : program_.pipelines) {
      if (p->name == name) tree = &p->strategy, pipeline = p;
    }
    if (tree == nullptr) return nullptr;
    if (!entered_.insert(name).second) {
      out_.push_back(
          error_at(use, "PW0412", in_ticks(name) + " runs itself", "remove one of the references"));
      return nullptr;
    }
    Strategy built = build(*tree);
    built.label = name;
    built.ranges.clear();
    if (pipeline != nullptr) {
      built.ranges = pipeline->ranges;
      check_ranges(*pipeline, out_);
    }
    auto& table = pipeline != nullptr ? set_.pipelines : set_.passes;
    return &table.emplace(name, std::move(built)).first->second;
  }

  [[nodiscard]] const Strategy* find(const std::string& name) const {
    for (const auto* table : {&set_.passes, &set_.pipelines}) {
      if (auto it = table->find(name); it != table->end()) return &it->second;
    }
    return nullptr;
  }

  Strategy build(const ast::Strategy& tree) {
    Strategy s;
    s.kind = tree.kind;
    s.span = tree.span;
    s.fuel = tree.fuel;
    s.when = tree.when;
    s.ensures = tree.ensures;
    s.by = tree.by;
    s.nodes = tree.nodes;
    s.rounds = tree.rounds;
    s.cost = tree.cost;
    check_strategy_options(program_, set_, tree, out_);
    if (tree.kind == Kind::reference) return reference(tree, std::move(s));
    for (const ast::Strategy& part : tree.parts) s.parts.push_back(build(part));
    for (const auto& [name, span] : tree.references) add_rules(s, name, span);
    sort_by_rank(set_, s.rules);
    s.label = label(tree, s);
    return s;
  }

  static std::string label(const ast::Strategy& tree, const Strategy& s) {
    const std::string start(word(tree.kind));
    switch (tree.kind) {
      case Kind::sequence: return labels(s.parts, " ; ");
      case Kind::best: return start + " { " + labels(s.parts, " | ") + " }";
      case Kind::atomic:
      case Kind::repeat:
        return start + (tree.parts.front().kind == Kind::sequence
                            ? " (" + labels(s.parts, " ; ") + ")"
                            : " " + labels(s.parts, " ; "));
      case Kind::greedy:
      case Kind::once:
      case Kind::walk:
      case Kind::saturate:
      case Kind::reference: break;
    }
    return start + " { " + joined(tree.references) + " }";
  }

  static std::string labels(const std::vector<Strategy>& parts, std::string_view between) {
    std::string text;
    for (const Strategy& part : parts)
      text += (text.empty() ? "" : std::string(between)) + part.label;
    return text;
  }

  Strategy reference(const ast::Strategy& tree, Strategy s) {
    PW_ASSERT(!tree.references.empty(), "a reference needs a name");
    const auto& [name, span] = tree.references.front();
    s.label = name;
    if (is_builtin_pass(name)) {
      s.builtin = name;
      return s;
    }
    if (const Strategy* target = named(name, span)) {
      if (!target->ranges.empty())
        out_.push_back(error_at(
            span, "PW0434",
            in_ticks(name) +
                " makes a graph for each token range, so it cannot be a step of another strategy",
            "move the common part to a pass"));
      return with_options(*target, std::move(s));
    }
    if (entered_.contains(name)) return s;  // a cycle, which has been reported
    s.kind = Kind::greedy;
    add_rules(s, name, span);
    sort_by_rank(set_, s.rules);
    return s;
  }

  /// Returns the referenced strategy. Options of the reference apply to a sequence around it,
  /// unless they mean the same on it and it has none of its own.
  static Strategy with_options(const Strategy& target, Strategy reference) {
    Strategy copy = target;
    if (reference.when.empty() && !reference.fuel && reference.ensures.empty()) return copy;
    const bool plain = copy.when.empty() && !copy.fuel && copy.ensures.empty();
    const bool means_more = copy.kind == Kind::repeat || copy.kind == Kind::atomic;
    if (plain && !means_more) {
      copy.when = std::move(reference.when);
      copy.fuel = reference.fuel;
      copy.ensures = std::move(reference.ensures);
      return copy;
    }
    reference.kind = Kind::sequence;
    reference.parts.push_back(std::move(copy));
    return reference;
  }

  void add_rules(Strategy& s, const std::string& name, Span span) {
    const std::vector<RuleId> rules = index_.resolve(name);
    s.rules.insert(s.rules.end(), rules.begin(), rules.end());
    if (rules.empty() && !excused(name)) unknown(name, span);
  }

  /// Returns true for a name that is declared but failed its own checks, which has been reported.
  [[nodiscard]] bool excused(const std::string& name) const {
    return program_.declares(name) &&
           (name.find('[') == std::string::npos || name.ends_with("[*]"));
  }

  void unknown(const std::string& name, Span span) {
    const bool strategy =
        entered_.contains(name) || std::any_of(program_.passes.begin(), program_.passes.end(),
                                               [&](const ast::Pass* p) { return p->name == name; });
    if (strategy || is_builtin_pass(name)) {
      out_.push_back(error_at(span, "PW0411",
                              in_ticks(name) + " is a pass, and only rules are allowed here",
                              "write it as a separate step: `a ; " + name + "`"));
      return;
    }
    out_.push_back(
        error_at(span, "PW0410", "no rule, group or pass is called " + in_ticks(name),
                 did_you_mean(name, suggestions(), "qualify a rule with its group: `group.rule`")));
  }

  [[nodiscard]] std::vector<std::string> suggestions() const {
    std::vector<std::string> names = program_.strategy_names();
    for (const Rule& rule : set_.rules) names.push_back(rule.name);
    return names;
  }

  void add_implicit() {
    for (const char* name : {"dce", "cse", "elide_clones"}) {
      Strategy s;
      s.kind = Kind::reference;
      s.label = s.builtin = name;
      set_.implicit.emplace(name, std::move(s));
    }
    for (const Rule& rule : set_.rules) {
      greedy(rule.name, rule.span);
      if (!rule.row.empty()) greedy(rule.row, rule.span);
      greedy(rule.group.empty() ? rule.base_name : rule.group + "." + rule.base_name, rule.span);
      if (!rule.group.empty()) greedy(rule.group, rule.span);
    }
  }

  void greedy(const std::string& name, Span span) {
    if (set_.implicit.contains(name)) return;
    Strategy s;
    s.kind = Kind::greedy;
    s.span = span;
    s.label = name;
    s.rules = index_.resolve(name);
    sort_by_rank(set_, s.rules);
    set_.implicit.emplace(name, std::move(s));
  }

  const Program& program_;
  RuleSet& set_;
  RuleIndex index_;
  Diagnostics& out_;
  std::set<std::string> entered_;
};

}  // namespace

void build_strategies(const Program& program, RuleSet& set, Diagnostics& out) {
  StrategyBuilder(program, set, out).run();
}

std::vector<RuleId> rules_of(const Strategy& strategy) {
  std::vector<RuleId> rules = strategy.rules;
  for (const Strategy& part : strategy.parts) {
    const std::vector<RuleId> inner = rules_of(part);
    rules.insert(rules.end(), inner.begin(), inner.end());
  }
  std::sort(rules.begin(), rules.end());
  rules.erase(std::unique(rules.begin(), rules.end()), rules.end());
  return rules;
}

}  // namespace pw
