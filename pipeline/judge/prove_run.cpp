#include "pipeline/judge/prove_run.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/counted.hpp"
#include "pipeline/judge/prove_windows.hpp"
#include "pipeline/run/record.hpp"
#include "rewriter/strategies/narrowing.hpp"

namespace pw {
namespace {

std::size_t sum_of(const std::vector<RunProof::OfRule>& rules,
                   std::size_t (*count)(const RunProof::OfRule&)) {
  std::size_t out = 0;
  for (const RunProof::OfRule& rule : rules) out += count(rule);
  return out;
}

std::map<RuleId, std::size_t> rewrites_by_rule(const Journal& journal) {
  std::map<RuleId, std::size_t> out;
  for (const JournalEvent& event : journal)
    if (const auto* match = std::get_if<MatchEvent>(&event)) ++out[match->rule];
  return out;
}

/// Returns the rules, followed by the variants to which the run opened recursive patterns.
LoadedRules with_opened(const LoadedRules& rules, const RunRules& run, const ContextPtr& context) {
  LoadedRules out{rules.set, rules.params};
  out.set.context = context;
  for (std::size_t i = rules.set.rules.size(); i < run.size(); ++i)
    out.set.rules.push_back(run[RuleId(i)]);
  return out;
}

int rank_of(RuleVerdict verdict) {
  if (verdict == RuleVerdict::same_bits) return 0;
  if (verdict == RuleVerdict::rounds) return 1;
  if (verdict == RuleVerdict::differs_only_for) return 2;
  return verdict == RuleVerdict::may_overflow ? 3 : 4;
}

/// Reruns the pipeline, and proves each rewrite by these rules separately.
class OnTheSpot {
 public:
  OnTheSpot(const RuleSet& rules, const Env& params, const std::string& pipeline,
            const RewriteOptions& options, Graph graph, std::set<RuleId> refuted, RunProof& out)
      : rules_(rules),
        params_(params),
        pipeline_(pipeline),
        options_(options),
        refuted_(std::move(refuted)),
        out_(out),
        graph_(std::move(graph)) {}

  /// The rules, and the rows of their rewrites.
  void run(const std::map<RuleId, std::size_t>& rows) {
    std::set<RuleId> wanted;
    for (const auto& [rule, row] : rows) wanted.insert(rule);
    auto windows = windows_of(graph_, rules_, pipeline_, params_, options_, wanted);
    std::map<RuleId, std::size_t> seen;
    if (windows)
      for (RewriteWindow& window : *windows) {
        ++seen[window.rule];
        judge(window, out_.rules[rows.at(window.rule)]);
      }
    for (const auto& [rule, row] : rows) {
      RunProof::OfRule& of_rule = out_.rules[row];
      if (seen[rule] < of_rule.rewrites)
        out_.left.push_back({of_rule.rule, "", "",
                             fmt::format("{} of its rewrites are inside a `saturate`, where only "
                                         "rules are proved, not rewrites",
                                         of_rule.rewrites - seen[rule])});
      if (of_rule.left() > 0) of_rule.verdict = RuleVerdict::unknown;
    }
  }

 private:
  void leave(const RewriteWindow& window, const RunProof::OfRule& of_rule, std::string reason) {
    out_.left.push_back({of_rule.rule, window.pass, window.node, std::move(reason)});
  }

  void judge(RewriteWindow& window, RunProof::OfRule& of_rule) {
    auto known = known_.find(window.key);
    if (known == known_.end())
      known = known_.emplace(window.key, prove_window(window, prover_.get())).first;
    const WindowVerdict& seen = known->second;
    if (seen.verdict == RuleVerdict::unknown) return leave(window, of_rule, seen.reason);
    // Samples refute the rule although it may hold over the reals; the same may apply here.
    if (seen.verdict == RuleVerdict::rounds && refuted_.contains(window.rule))
      return leave(window, of_rule, "equal only over the reals, and its rule is " + of_rule.reason);
    if (of_rule.on_the_spot++ == 0 || rank_of(seen.verdict) > rank_of(of_rule.verdict))
      of_rule.verdict = seen.verdict;
  }

  const RuleSet& rules_;
  const Env& params_;
  const std::string& pipeline_;
  const RewriteOptions& options_;
  std::set<RuleId> refuted_;  ///< rules that samples refute
  RunProof& out_;
  Graph graph_;
  std::unique_ptr<WindowProver> prover_ =
      proof_lab() == nullptr ? nullptr : proof_lab()->window_prover();
  std::map<std::string, WindowVerdict> known_;  ///< by the window's key
};

}  // namespace

std::size_t RunProof::rewrites() const {
  return sum_of(rules, [](const OfRule& rule) { return rule.rewrites; });
}
std::size_t RunProof::by_rule() const {
  return sum_of(rules, [](const OfRule& rule) { return rule.by_rule ? rule.rewrites : 0; });
}
std::size_t RunProof::on_the_spot() const {
  return sum_of(rules, [](const OfRule& rule) { return rule.by_rule ? 0 : rule.on_the_spot; });
}
std::string RunProof::print() const {
  const std::size_t all = rewrites(), proved = by_rule(), spot = on_the_spot();
  return fmt::format("{}: {} by proved rules, {} proved individually, {} not proved",
                     counted(all, "rewrite"), proved, spot, all - proved - spot);
}

RunProver::RunProver(const LoadedRules& rules, std::string pipeline, const RewriteOptions& options,
                     const Log& log)
    : rules_(rules), pipeline_(std::move(pipeline)), log_(log), judge_(rules, JudgeRequest()) {
  options_.limits = options.limits;
  options_.engine = options.engine;
}

const RuleJudgement& RunProver::of_rule(RuleId rule) {
  const auto known = known_.find(rule);
  return known != known_.end() ? known->second
                               : known_.emplace(rule, judge_.judge(rule)).first->second;
}

RunProof RunProver::prove(const Graph& graph, const RewriteReport& report, TokenRange range,
                          bool otherwise) {
  const Journal& journal = report.journal;
  const RunRules run = journal.rules_of(rules_.set);
  std::optional<LoadedRules> opened;
  std::optional<RuleJudge> of_opened;
  if (run.size() > rules_.set.rules.size()) {
    opened = with_opened(rules_, run, graph.context_ptr());
    of_opened.emplace(*opened, JudgeRequest());
  }
  RunProof out;
  std::map<RuleId, std::size_t> unproved;
  std::set<RuleId> refuted;
  const auto fired = rewrites_by_rule(journal);
  for (const auto& [rule, rewrites] : fired) {
    log_.progress({"proving", out.rules.size(), fired.size(), "rules"});
    const RuleJudgement proof =
        rule.index < rules_.set.rules.size() ? of_rule(rule) : of_opened->judge(rule);
    if (!proof.complete()) unproved.emplace(rule, out.rules.size());
    if (proof.verdict == RuleVerdict::refuted) refuted.insert(rule);
    out.rules.push_back({run[rule].name, rewrites, proof.complete(), 0,
                         proof.complete() ? proof.verdict : RuleVerdict::unknown,
                         proof.left_to_show()});
  }
  if (unproved.empty()) return out;
  Graph before = graph;
  narrow(before, range);
  const RuleSet set = otherwise ? without_assumptions(rules_.set) : rules_.set;
  OnTheSpot(set, rules_.params, pipeline_, options_, std::move(before), std::move(refuted), out)
      .run(unproved);
  return out;
}

std::vector<RunProof> prove_variants(const Graph& graph, const LoadedRules& rules,
                                     const std::string& pipeline, const RewriteOptions& options,
                                     const std::vector<GraphVariant>& variants, const Log& log) {
  RunProver prover(rules, pipeline, options, log);
  std::vector<RunProof> out;
  for (const GraphVariant& variant : variants) {
    const RangedResult& made = variant.result;
    out.push_back(prover.prove(graph, made.report, made.range, made.otherwise));
  }
  return out;
}

std::string proof_line(const RunProof& proof, const std::string& variant) {
  return variant.empty() ? proof.print() : variant + ": " + proof.print();
}

namespace {

/// Shortens a long obligation for display; JSON and CSV have all of it.
Cell obligation_cell(const std::string& text) {
  constexpr std::size_t kShown = 100;
  if (text.size() <= kShown) return text;
  std::size_t end = kShown;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return {text.substr(0, end) + " …", text};
}

}  // namespace

Table run_proof_table(const RunProof& proof) {
  Table table(
      {"rule", "rewrites", "verdict", "known by", "on the spot", "left", "why not the rule"});
  for (const RunProof::OfRule& rule : proof.rules)
    table.add({rule.rule, rule.rewrites, std::string(name(rule.verdict)),
               rule.left() == 0 ? Cell(name(KnownBy::proof)) : null_cell(), rule.on_the_spot,
               rule.left(), obligation_cell(rule.reason)});
  return table;
}

Table left_table(const RunProof& proof) {
  Table table({"rule", "pass", "node", "left to show"});
  for (const RunProof::Left& left : proof.left)
    table.add({left.rule, left.pass, left.node, obligation_cell(left.reason)});
  return table;
}

void add_proofs(Answer& answer, const std::vector<GraphVariant>& variants,
                const std::vector<RunProof>& proofs) {
  std::vector<std::pair<std::string, Table>> rules, left;
  for (std::size_t i = 0; i < proofs.size(); ++i) {
    rules.emplace_back(variants[i].name, run_proof_table(proofs[i]));
    left.emplace_back(variants[i].name, left_table(proofs[i]));
  }
  answer.add("proofs", joined(rules));
  answer.add("not_proved", joined(left));
}

}  // namespace pw
