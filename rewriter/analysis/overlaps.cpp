// Exports find_overlaps: two rules that want the same node, where nothing says which comes first
// and the result depends on it.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "rewriter/analysis/checks.hpp"
#include "rewriter/analysis/freeze.hpp"
#include "rewriter/analysis/outcome.hpp"
#include "rewriter/analysis/superpose.hpp"
#include "rewriter/analysis/variants.hpp"

namespace pw {
namespace {

constexpr std::size_t kVariantPairs = 12;    // of two rules
constexpr std::size_t kPairs = 1500;         // of a rule set
constexpr std::size_t kWays = 16;            // to lay two patterns over each other
constexpr std::uint64_t kAttempts = 16;      // at a graph of each
constexpr std::size_t kAllAttempts = 20000;  // of a rule set: a second or so

bool contains(const std::vector<RuleId>& ids, RuleId id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

class Overlaps {
 public:
  Overlaps(const RuleSet& rules, const Env& params, AnalysisReport& out)
      : rules_(rules), params_(params), out_(out) {
    for (const Finding& finding : out.findings)  // what never fires needs no second warning
      if (finding.kind == Finding::Kind::shadow) told_.insert(sorted(finding.rules));
  }

  void look_at(const RulePass& pass) {
    pass_ = &pass;
    strategy_ = unconditional(*pass.strategy);
    const Variants variants = variants_of(rules_, pass, out_);
    for (auto a = variants.begin(); a != variants.end(); ++a)
      for (auto b = a; b != variants.end(); ++b) look_at_rules(*a, *b);
  }

 private:
  using Written = Variants::value_type;

  static std::vector<std::string> sorted(std::vector<std::string> names) {
    std::sort(names.begin(), names.end());
    return names;
  }

  /// Variants of one rule are alternatives of one text: only each with itself.
  void look_at_rules(const Written& a, const Written& b) {
    if (told_.count({a.first, b.first}) != 0) return;
    std::size_t looked = 0;
    for (RuleId i : a.second)
      for (RuleId j : b.second) {
        if ((&a == &b && i != j) || !may_overlap(i, j)) continue;
        if (++looked > kVariantPairs || out_.pairs >= kPairs || attempts_ >= kAllAttempts) {
          ++out_.left_out;
          continue;
        }
        ++out_.pairs;
        if (!overlap(i, j)) continue;
        told_.insert({a.first, b.first});
        return;
      }
  }

  [[nodiscard]] bool may_overlap(RuleId i, RuleId j) const {
    const Rule& a = rules_.rules[i];
    const Rule& b = rules_.rules[j];
    if (contains(a.over, j) || contains(b.over, i)) return false;
    return std::any_of(a.nodes.begin(), a.nodes.end(), [&](const PatternNode& node) {
      return node.own() &&
             std::any_of(b.nodes.begin(), b.nodes.end(), [&](const PatternNode& other) {
               return other.own() && other.op == node.op;
             });
    });
  }

  bool overlap(RuleId a, RuleId b) {
    for (const Superposition& way : superpose(rules_, a, b, kWays))
      for (std::uint64_t attempt = 0; attempt < kAttempts; ++attempt, ++attempts_) {
        Result<Frozen> frozen = freeze(rules_, way.pattern, way.visible, params_, attempt);
        if (!frozen) continue;
        const auto first = matched(a, way.of_a, *frozen), second = matched(b, way.of_b, *frozen);
        if (!first || !second) continue;
        if (differs(a, b, way, *frozen, *first, *second)) return true;
        break;
      }
    return false;
  }

  [[nodiscard]] std::optional<Match> matched(RuleId id, const std::vector<PatternNodeId>& place,
                                             const Frozen& frozen) const {
    std::vector<NodeId> nodes;
    for (PatternNodeId n : place) nodes.push_back(frozen.nodes[n.index]);
    return match_of(frozen.graph, rules_, id, frozen.params, own_of(rules_.rules[id], nodes));
  }

  /// The pass after this match was replaced.
  [[nodiscard]] std::optional<Outcome> after(const Match& match, const Frozen& frozen) const {
    Graph graph = frozen.graph;
    if (!apply_match(graph, rules_, match)) return std::nullopt;
    std::optional<Outcome> out = run_on(graph, rules_, strategy_, frozen.params);
    if (!out || out->stop != StopReason::fixpoint) return std::nullopt;
    return out;
  }

  bool differs(RuleId a, RuleId b, const Superposition& way, const Frozen& frozen,
               const Match& first, const Match& second) {
    const std::vector<NodeId> own_a = own_of(rules_.rules[a], first.nodes);
    const std::vector<NodeId> own_b = own_of(rules_.rules[b], second.nodes);
    const bool nested =
        own_a != own_b && (std::includes(own_a.begin(), own_a.end(), own_b.begin(), own_b.end()) ||
                           std::includes(own_b.begin(), own_b.end(), own_a.begin(), own_a.end()));
    if (nested) return false;
    const std::optional<Outcome> with_a = after(first, frozen), with_b = after(second, frozen);
    if (!with_a || !with_b || hash_of_terms(with_a->graph) == hash_of_terms(with_b->graph))
      return false;
    const bool alike = op_counts(with_a->graph) == op_counts(with_b->graph);
    if (a == b && alike) return false;  // two places of one rule: as good either way
    const std::string name = fmt::format("{}_or_{}", word_of(written_name(rules_.rules[a])),
                                         word_of(written_name(rules_.rules[b])));
    const Application applied = applicable(rules_, *pass_, name);
    const std::optional<Outcome> today =
        run_on(frozen.graph, rules_, applied.strategy, frozen.params);
    if (!today || today->fired.empty()) return false;
    const RuleId winner = today->fired.front();
    if (winner != a && winner != b) return false;  // a third one decides here
    const bool b_wins = winner == b && a != b;
    report(b_wins ? b : a, b_wins ? a : b, b_wins, way, b_wins ? *with_b : *with_a,
           b_wins ? *with_a : *with_b);
    std::vector<std::string> expected{
        expected_count(*today, rules_, written_name(rules_.rules[a]))};
    if (a != b) expected.push_back(expected_count(*today, rules_, written_name(rules_.rules[b])));
    out_.findings.back().test =
        test_text(name, frozen.graph, applied, rules_, frozen.params, expected);
    return true;
  }

  void report(RuleId winner, RuleId loser, bool b_wins, const Superposition& way,
              const Outcome& today, const Outcome& other) {
    const Rule& first = rules_.rules[winner];
    const Rule& second = rules_.rules[loser];
    const PatternNode& at = first.nodes[b_wins ? way.shared_b : way.shared_a];
    const PatternNode& there = second.nodes[b_wins ? way.shared_a : way.shared_b];
    const std::string a = written_name(first), b = written_name(second);
    const std::string& op = rules_.context->ops[at.op].name;
    Diagnostic d = warning_of(
        at.span, "PW1150",
        winner == loser
            ? fmt::format("two places of `{}` want the same `{}`, and what comes out depends on "
                          "which goes first",
                          a, op)
            : fmt::format("`{}` and `{}` want the same `{}`, and nothing says which goes first", a,
                          b, op),
        winner == loser ? "put the shared node into `given { }`"
                        : fmt::format("write `rule {} over {}` or `rule {} over {}`",
                                      first.base_name, b, second.base_name, a));
    d.label = fmt::format("`{}` takes it today", a);
    if (winner != loser)
      d.secondary.push_back({there.span, fmt::format("`{}` does not get it", b)});
    d.notes.push_back(lost(b, today, other));
    out_.findings.push_back({Finding::Kind::overlap, {a, b}, std::move(d), ""});
  }

  static std::string lost(const std::string& loser, const Outcome& today, const Outcome& other) {
    const auto here = op_counts(today.graph), there = op_counts(other.graph);
    std::string only_here, only_there;
    const auto list = [](std::string& text, const auto& more, const auto& less) {
      for (const auto& [op, count] : more) {
        const auto it = less.find(op);
        const std::size_t had = it == less.end() ? 0 : it->second;
        if (count > had) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count - had, op);
      }
    };
    list(only_here, here, there);
    list(only_there, there, here);
    return fmt::format("today's result has {} nodes; with `{}` first it has {}: {} instead of {}",
                       today.graph.node_count(), loser, other.graph.node_count(),
                       only_there.empty() ? "nothing" : only_there,
                       only_here.empty() ? "nothing" : only_here);
  }

  const RuleSet& rules_;
  const Env& params_;
  AnalysisReport& out_;
  const RulePass* pass_ = nullptr;
  Strategy strategy_;
  std::size_t attempts_ = 0;
  std::set<std::vector<std::string>> told_;
};

}  // namespace

void find_overlaps(const RuleSet& rules, const Env& params, AnalysisReport& out) {
  Overlaps overlaps(rules, params, out);
  for (const RulePass& pass : rule_passes(rules)) overlaps.look_at(pass);
}

}  // namespace pw
