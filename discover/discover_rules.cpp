#include "discover/discover_rules.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/try.hpp"
#include "dsl/dsl.hpp"
#include "pipeline/format.hpp"
#include "pipeline/judge/judge.hpp"
#include "verify/test_runner.hpp"

namespace pw {
namespace {

using discover::Counts;
using discover::Judged;

/// Returns true if a proof shows both sides equal over the reals. Such a rule may overflow: the
/// comment above it gives the place.
bool equal_over_reals(const RuleJudgement& found) {
  return (found.proof.proved() || found.proof.verdict == RuleVerdict::may_overflow) &&
         found.contradiction.empty();
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

/// Loads each text into a separate context, which is discarded.
class TextJudge {
 public:
  Judged judge(const std::string& text, const std::string& name) {
    auto context = std::make_shared<Context>();
    auto set = load_rule_texts(context, {{name + ".pwr", text}});
    if (!set) return {false, "it is not a rule: " + set.error().front().message};
    auto params = bind_params(*set, {});
    if (!params) return {false, "it is not a rule"};
    const LoadedRules rules{std::move(*set), std::move(*params)};
    JudgeRequest request;
    request.proved_only = true;
    const auto judgements = judge_rules(rules, {}, request, {});
    if (!judgements || judgements->size() != 1) return {false, "not proved"};
    const RuleJudgement& found = judgements->front();
    if (found.verdict == RuleVerdict::refuted) return {false, "refuted by samples"};
    if (!equal_over_reals(found)) return {false, "not proved"};
    if (!found.proof.uncovered.empty()) return {false, "not proved in all cases"};
    return {true, first_line(found.print())};
  }

  static bool test(const std::string& text) {
    auto context = std::make_shared<Context>();
    const auto set = load_rule_texts(context, {{"discovered.pwr", text}});
    if (!set) return false;
    const TestReport report = run_tests(*set);
    return !report.tests.empty() && report.failed() == 0;
  }
};

/// Returns the number of occurrences of its left side in the graphs; empty if it came from no
/// graph.
std::string seen_text(const Discovery& found, const discover::Rule& rule) {
  return found.counts.windows == 0 ? "" : fmt::format("; seen {} times", rule.seen);
}

std::string file_text(const Discovery& found) {
  std::string text = fmt::format(
      "// Found by `pwr discover` with seed {}. The comment above each rule gives its verdict and "
      "the bytes\n// that its sides move.\n",
      found.seed);
  for (const discover::Rule& rule : found.rules)
    text += fmt::format("\n// {}. Bytes: {} before, {} after{}.\n{}\n{}", rule.verdict,
                        rule.bytes_before, rule.bytes_after, seen_text(found, rule), rule.text,
                        rule.test);
  return text;
}

}  // namespace

Result<Discovery> discover_rules(const ContextPtr& context, const DiscoverRequest& request,
                                 const Log& log) {
  PW_TRY(load_op_library(context));
  Discovery out;
  out.seed = request.seed;
  const StageProgress progress = progress_to(log, "graphs");
  TextJudge judge;
  discover::Derivations earlier(context);
  const discover::Search search{request.ops, request.nodes, request.inputs, request.seed};
  std::vector<discover::Candidate> candidates;
  if (!request.ops.empty())
    candidates = PW_TRY(discover::enumerate(context, search, out.counts, progress));
  for (discover::Candidate& candidate : discover::replace_windows(
           context, request.from, search, request.often, out.counts, progress))
    candidates.push_back(std::move(candidate));
  out.rules = discover::settle(
      context, std::move(candidates), request.seed,
      [&](const std::string& text, const std::string& name) { return judge.judge(text, name); },
      [](const std::string& text) { return TextJudge::test(text); }, earlier, out.counts, progress);
  out.text =
      PW_TRY(format_rules(std::make_shared<Context>(), "discovered.pwr", file_text(out))).text;
  if (request.derives) out.derived = derive_rules(*request.derives, earlier, request.seed);
  return out;
}

Answer discovery_answer(const Discovery& found) {
  Table rules({"rule",
               "verdict",
               {"bytes before", "bytes_before"},
               {"bytes after", "bytes_after"},
               {"nodes before", "nodes_before"},
               {"nodes after", "nodes_after"},
               "seen"});
  for (const discover::Rule& rule : found.rules)
    rules.add({rule.name, rule.verdict, rule.bytes_before, rule.bytes_after, rule.nodes_before,
               rule.nodes_after, rule.seen});
  Answer answer;
  answer.add("rules", std::move(rules));
  answer.add("seed", Cell(found.seed));
  if (found.derived) {
    Table derives({"rule", "derived", "reason"});
    for (const Derived::Row& row : found.derived->rows)
      derives.add({row.rule, yes_cell(row.derived), row.reason});
    answer.add("derives", std::move(derives));
    answer.add("derives_with", Cell(found.derived->used));
  }
  answer.add("windows", Cell(found.counts.windows));
  answer.add("unsized", Cell(found.counts.unsized));
  answer.add("dearer", Cell(found.counts.dearer));
  answer.add("graphs", Cell(found.counts.graphs));
  answer.add("pairs", Cell(found.counts.pairs));
  answer.add("other_sizes", Cell(found.counts.other_sizes));
  answer.add("unwritten", Cell(found.counts.unwritten));
  answer.add("derived", Cell(found.counts.derived));
  answer.add("unproved", Cell(found.counts.unproved));
  Cell::Counts reasons;
  for (const auto& [reason, count] : found.counts.reasons)
    reasons.emplace_back(reason, static_cast<std::int64_t>(count));
  answer.add("reasons", counts_cell(std::move(reasons)));
  return answer;
}

std::string discovery_summary(const Discovery& found) {
  const Counts& counts = found.counts;
  std::string reasons;
  for (const auto& [reason, count] : counts.reasons)
    reasons += fmt::format("{}{} {}", reasons.empty() ? ": " : ", ", count, reason);
  std::string text = fmt::format(
      "{} graphs, {} pairs that agree, seed {}: {} rules; dropped {} that hold at equal sizes "
      "only, {} with a side that does not determine the other's needs, {} that earlier rules "
      "derive, "
      "{} not proved{}",
      counts.graphs, counts.pairs, found.seed, found.rules.size(), counts.other_sizes,
      counts.unwritten, counts.derived, counts.unproved, reasons);
  if (counts.windows > 0)
    text += fmt::format(
        "\n{} windows, {} of them unlike, {} without small sizes; {} of their equals cost no less",
        counts.pieces, counts.windows, counts.unsized, counts.dearer);
  if (found.derived)
    text += fmt::format("\nderives {} of {} rules, with {} of the {} found", found.derived->count(),
                        found.derived->rows.size(), found.derived->used, found.derived->given);
  return text;
}

}  // namespace pw
