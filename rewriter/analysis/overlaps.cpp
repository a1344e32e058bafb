// Finds critical pairs: two rules that can consume the same node, without a declared precedence,
// and with a result that depends on which goes first. Each superposition becomes a graph, on which
// the pass runs after either match was applied first; the pair is reported if the results differ.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/characters.hpp"
#include "base/counted.hpp"
#include "rewriter/analysis/checks.hpp"
#include "rewriter/analysis/freeze.hpp"
#include "rewriter/analysis/meetings.hpp"
#include "rewriter/analysis/orders/outcome.hpp"
#include "rewriter/analysis/superpose.hpp"

namespace pw {
namespace {

constexpr std::size_t kVariantPairs = 12;  // of two rules
constexpr std::size_t kPairs = 1500;       // of a rule set
constexpr std::size_t kWays = 16;          // to lay two patterns over each other
constexpr std::uint64_t kAttempts = 16;    // at a graph of each
// For a rule set, in visited pattern nodes: about a second.
constexpr std::size_t kWork = 2'000'000;
constexpr std::size_t kAttemptWork = 32;  // of each node of a graph that is made and matched
constexpr std::size_t kRunWork = 64;      // of each node of a graph on which the pass is run
constexpr std::size_t kRuleWork = 32;     // of each node of a rule that is run
constexpr std::size_t kPairWork = 500'000;

class Overlaps {
 public:
  explicit Overlaps(Analysis& analysis)
      : analysis_(analysis), rules_(analysis.rules), out_(analysis.out) {
    for (const Finding& finding : out_.findings)  // what never fires needs no second warning
      if (finding.kind == Finding::Kind::shadow) reported_.insert(sorted(finding.rules));
  }

  void look_at(const RulePass& pass) {
    pass_ = &pass;
    strategy_ = unconditional(*pass.strategy);
    const Reach reach = analysis_.reach(pass.strategy->rules);
    reach_ = &reach;
    const Variants variants = variants_of(analysis_, pass);
    const Meetings meetings(rules_, variants);
    const std::vector<Written> written(variants.begin(), variants.end());
    for (std::size_t a = 0; a < written.size(); ++a) {
      if (exhausted()) {
        out_.left_out += meetings.pairs_from(a);
        return;
      }
      for (std::size_t b : meetings.partners(a)) look_at_rules(meetings, written, a, b);
    }
  }

 private:
  using Written = std::pair<std::string, std::vector<RuleId>>;

  [[nodiscard]] bool exhausted() const { return out_.pairs >= kPairs || work_ >= kWork; }

  static std::vector<std::string> sorted(std::vector<std::string> names) {
    std::sort(names.begin(), names.end());
    return names;
  }

  /// Compares the variants of two rules. Variants of one rule are alternatives of one text, so each
  /// is compared only with itself.
  void look_at_rules(const Meetings& meetings, const std::vector<Written>& written, std::size_t a,
                     std::size_t b) {
    if (reported_.count({written[a].first, written[b].first}) != 0) return;
    std::size_t looked = 0;
    for (RuleId i : written[a].second)
      for (RuleId j : written[b].second) {
        if ((a == b && i != j) || !meetings.meet(i, j)) continue;
        if (looked == kVariantPairs || exhausted()) {
          out_.left_out += meetings.pairs(a, b) - looked;
          return;
        }
        ++looked;
        ++out_.pairs;
        if (!overlap(i, j)) continue;
        reported_.insert({written[a].first, written[b].first});
        return;
      }
  }

  bool overlap(RuleId a, RuleId b) {
    const Superpositions found = superpose(rules_, a, b, {kWays, kPairWork});
    work_ += found.steps;
    if (!found.complete) note_in_part(a, b);
    for (const Superposition& way : found.ways)
      for (std::uint64_t attempt = 0; attempt < kAttempts; ++attempt) {
        work_ += way.pattern.nodes.size() * kAttemptWork;
        Result<Frozen> frozen = freeze(rules_, way.pattern, way.visible, analysis_.params, attempt);
        if (!frozen) continue;
        const auto first = matched(a, way.of_a, *frozen), second = matched(b, way.of_b, *frozen);
        if (!first || !second) continue;
        if (differs(a, b, way, *frozen, *first, *second)) return true;
        break;
      }
    return false;
  }

  void note_in_part(RuleId a, RuleId b) {
    const std::string one = written_name(rules_.rules[a]), other = written_name(rules_.rules[b]);
    analysis_.note_not_analysed(
        {one, other},
        fmt::format("{}: not all ways to share a node were checked; {} too large",
                    a == b ? "`" + one + "` with itself" : "`" + one + "` with `" + other + "`",
                    a == b ? "it is" : "they are"));
  }

  [[nodiscard]] std::optional<Match> matched(RuleId id, const std::vector<PatternNodeId>& place,
                                             const Frozen& frozen) const {
    std::vector<NodeId> nodes;
    for (PatternNodeId n : place) nodes.push_back(frozen.nodes[n.index]);
    return match_of(frozen.graph, rules_, id, frozen.params, nodes);
  }

  void charge_run(const Graph& graph) {
    work_ += graph.node_count() * kRunWork + reach_->pattern_nodes(graph) * kRuleWork;
  }

  /// Returns the result of the pass after this match was replaced.
  [[nodiscard]] std::optional<Outcome> after(const Match& match, const Frozen& frozen) {
    Graph graph = frozen.graph;
    if (!apply_match(graph, rules_, match)) return std::nullopt;
    charge_run(graph);
    std::optional<Outcome> out = run_on(graph, *reach_, strategy_, frozen.params);
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
    if (a == b && alike) return false;  // two places of one rule: equivalent either way
    const std::string name = fmt::format("{}_or_{}", as_name(written_name(rules_.rules[a])),
                                         as_name(written_name(rules_.rules[b])));
    const Application applied = applicable(analysis_, *pass_, *reach_, frozen.graph, name);
    charge_run(frozen.graph);
    const std::optional<Outcome> today =
        run_applied(analysis_, applied, *reach_, frozen.graph, frozen.params);
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
    Diagnostic d = warning_at(
        at.span, "PW1150",
        winner == loser
            ? fmt::format("two matches of `{}` compete for the same `{}`, and the result depends "
                          "on which is applied first",
                          a, op)
            : fmt::format(
                  "`{}` and `{}` compete for the same `{}`, and nothing declares which goes first",
                  a, b, op),
        winner == loser ? "put the shared node in `given { }`"
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
    return fmt::format("today's result has {}; with `{}` first it has {}: {} instead of {}",
                       counted(today.graph.node_count(), "node"), loser, other.graph.node_count(),
                       only_there.empty() ? "nothing" : only_there,
                       only_here.empty() ? "nothing" : only_here);
  }

  Analysis& analysis_;
  const RuleSet& rules_;
  AnalysisReport& out_;
  const RulePass* pass_ = nullptr;
  const Reach* reach_ = nullptr;
  Strategy strategy_;
  std::size_t work_ = 0;
  std::set<std::vector<std::string>> reported_;
};

}  // namespace

void find_overlaps(Analysis& analysis) {
  Overlaps overlaps(analysis);
  for (const RulePass& pass : rule_passes(analysis.rules)) overlaps.look_at(pass);
}

}  // namespace pw
