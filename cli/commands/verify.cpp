#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/counted.hpp"
#include "base/io/file.hpp"
#include "cli/commands.hpp"
#include "cli/settings.hpp"
#include "cli/verdict_rows.hpp"
#include "pipeline/report/junit.hpp"

namespace pw::cli {
namespace {

struct VerifyArgs {
  RuleOptions rules;
  std::vector<std::string> only;
  std::string graph, junit;
  std::string ranks = "2,4";
};

/// Lists the boundary values of guards at which the rule was seen to hold and to refuse.
std::string guards_text(const RuleCheck& check) {
  if (check.held + check.refused + check.unreached.size() == 0) return "";
  std::string text =
      fmt::format("; its guards hold at {} and refuse {}", check.held, check.refused);
  for (std::size_t i = 0; i < check.unreached.size(); ++i)
    text += (i == 0 ? "; no graph at " : ", ") + check.unreached[i];
  return text;
}

std::string samples_text(const RuleCheck& check) {
  if (check.runs == 0) return "no samples";
  const bool one_rank = check.ranks == std::vector<std::int64_t>{1};
  std::string text =
      fmt::format("{}, {}{}{}", counted(check.instances, "graph"), counted(check.runs, "sample"),
                  one_rank ? "" : fmt::format(" on {} ranks", fmt::join(check.ranks, " and ")),
                  guards_text(check));
  if (check.judgement.verdict == RuleVerdict::rounds)
    text += "; at most " + print_ulps(check.judgement.ulps);
  return text;
}

/// Lists the verdicts of samples by dtype where they differ.
std::string dtypes_text(const RuleJudgement& judgement, std::size_t width) {
  const auto& by_dtype = judgement.samples.by_dtype;
  const RuleVerdict first =
      by_dtype.empty() ? RuleVerdict::same_bits : by_dtype.begin()->second.verdict;
  const bool alike = std::all_of(by_dtype.begin(), by_dtype.end(),
                                 [&](const auto& entry) { return entry.second.verdict == first; });
  if (alike || !judgement.holds()) return "";
  std::string text;
  for (const auto& [dtype, seen] : by_dtype)
    text += fmt::format("{:<{}}    {}: {}\n", "", width, dtype, seen.print());
  return text;
}

std::string row(const RuleJudgement& judgement, std::size_t width) {
  std::string text = verdict_line(judgement, width);
  if (judgement.verdict <= RuleVerdict::rounds)
    text += fmt::format(" ({})", samples_text(judgement.samples));
  return text + "\n" + dtypes_text(judgement, width);
}

std::string verdict_csv_row(const RuleJudgement& judgement) {
  const RuleCheck& samples = judgement.samples;
  return fmt::format("{},{},{},{:.4g},{},{}\n", judgement.rule, name(judgement.verdict),
                     known_by(judgement), samples.judgement.ulps, samples.instances, samples.runs);
}

/// Returns 1 if some rule differs; else 3 if there was no graph for one; else 5 if one cannot run.
int exit_code(const std::map<RuleVerdict, std::size_t>& counts) {
  for (const RuleVerdict differs :
       {RuleVerdict::refuted, RuleVerdict::may_overflow, RuleVerdict::differs_only_for})
    if (counts.contains(differs)) return kNegative;
  if (counts.contains(RuleVerdict::no_instance)) return kInvalidInput;
  return counts.contains(RuleVerdict::cannot_run) ? kMissingCapability : kOk;
}

void run_verify(const Options& options, const VerifyArgs& args) {
  Session session(options);
  const LoadedRules rules = load(session, args.rules, true);
  JudgeRequest request;
  request.ranks = session.need(parse_numbers(args.ranks, 1, 64));
  const std::size_t width =
      name_width(rules.set, session.need(rules_to_judge(rules.set, args.only)));
  VerdictRows rows(options.format, "rule,verdict,known_by,ulps,graphs,samples");
  const auto add = [&](const RuleJudgement& judgement) {
    rows.add(
        judgement.verdict, [&] { return judgement_to_json(judgement); },
        [&] { return verdict_csv_row(judgement); }, [&] { return row(judgement, width); });
  };
  std::vector<RuleJudgement> all =
      session.need(judge_rules(rules, args.only, request, session.log(), add));
  for (RuleJudgement& trait :
       session.need(judge_traits(rules.set, args.graph, request, args.only.empty()))) {
    add(trait);
    all.push_back(std::move(trait));
  }
  rows.end();
  if (!args.junit.empty()) session.need(write_file(args.junit, junit(all)));
  session.say(rows.summary());
  if (const int code = exit_code(rows.counts()); code != kOk) throw Exit{code};
}

}  // namespace

void add_verify_command(CLI::App& app, const Options& options) {
  auto args = std::make_shared<VerifyArgs>();
  auto* sub = app.add_subcommand(
      "verify", "Check that rules preserve the results, on graphs built from their patterns");
  args->rules.add_to(*sub, false);
  sub->add_option("only", args->only, "rules, families or groups; default: all");
  sub->add_option("--ranks", args->ranks,
                  "numbers of ranks on which to check rules with collectives")
      ->type_name("LIST")
      ->capture_default_str()
      ->configurable();
  add_setting(*sub, "--graph", args->graph, "FILE",
              "also check the traits of the ops that this graph declares");
  add_file(*sub, "--junit", args->junit, "also write the verdicts as JUnit XML");
  sub->footer(
      "Verdicts, the same as those of `pwr prove` and `pwr check`: same_bits; rounds (equal over "
      "the reals);\n"
      "differs_only_for NaN, infinity or the sign of zero; may_overflow (equal over the reals, but "
      "one side\n"
      "leaves the range of its dtype for some finite input); refuted, with the sample; unknown (no "
      "sample\n"
      "differs, and there is no proof); no_instance; cannot_run, with the op.\n"
      "Exit code: 1 if any rule differs, may overflow or is refuted, else 3 for no instance, 5 for "
      "cannot run.\n"
      "\n"
      "Examples:\n"
      "  pwr verify -r llm\n"
      "  pwr verify -r my_rules.pwr add_norm\n"
      "  pwr verify -r my_rules.pwr --ranks 2,4,8\n"
      "  pwr verify --graph model.pwg\n"
      "  pwr --format json verify -r my_rules.pwr");
  sub->callback([args, &options] { run_verify(options, *args); });
}

}  // namespace pw::cli
