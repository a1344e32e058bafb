#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/counted.hpp"
#include "cli/commands.hpp"
#include "cli/settings.hpp"
#include "cli/verdict_rows.hpp"

namespace pw::cli {
namespace {

struct ProveArgs {
  RuleOptions rules;
  std::vector<std::string> only;
  JudgeRequest request;
  bool strict = false, granted = false;
};

std::string row(const RuleJudgement& judgement, std::size_t width, bool granted) {
  const proof::Proof& proof = judgement.proof;
  std::string text = verdict_line(judgement, width);
  if (judgement.known == KnownBy::proof && proof.proved() && proof.cases > 0)
    text += fmt::format(" ({})", counted(proof.cases, "case"));
  if (!proof.uncovered.empty()) text += "\n  not covered: " + proof.uncovered;
  for (const std::string& guard : proof.unneeded)
    if (proof.proved()) text += fmt::format("\n  `{}` is not needed for equal results", guard);
  for (const std::string& what : proof.granted)
    if (granted && proof.proved()) text += "\n  granted: " + what;
  return text + "\n";
}

std::string proof_csv_row(const RuleJudgement& judgement) {
  return fmt::format("{},{},{},{}\n", judgement.rule, name(judgement.verdict), known_by(judgement),
                     judgement.proof.cases);
}

void run_prove(const Options& options, const ProveArgs& args) {
  Session session(options);
  const LoadedRules rules = load(session, args.rules, true);
  const std::size_t width =
      name_width(rules.set, session.need(rules_to_judge(rules.set, args.only)));
  VerdictRows rows(options.format, "rule,verdict,known_by,cases");
  bool all_proved = true;
  session.need(judge_rules(rules, args.only, args.request, session.log(),
                           [&](const RuleJudgement& judgement) {
                             all_proved = all_proved && judgement.complete();
                             rows.add(
                                 judgement.verdict, [&] { return judgement_to_json(judgement); },
                                 [&] { return proof_csv_row(judgement); },
                                 [&] { return row(judgement, width, args.granted); });
                           }));
  rows.end();
  session.say(rows.summary());
  if (rows.counts().contains(RuleVerdict::refuted)) throw Exit{kNegative};
  if (args.strict && !all_proved) throw Exit{kNegative};
}

}  // namespace

void add_prove_command(CLI::App& app, const Options& options) {
  auto args = std::make_shared<ProveArgs>();
  auto* sub = app.add_subcommand(
      "prove", "Prove that rules preserve the results for all sizes, dtypes and attributes");
  args->rules.add_to(*sub, false);
  sub->add_option("only", args->only, "rules, families or groups; default: all");
  add_switch(*sub, "--strict", args->strict, "exit with 1 if a rule is not proved or may overflow");
  add_switch(*sub, "!--anew", args->request.keep, "ignore cached proofs of earlier runs");
  add_switch(*sub, "--granted", args->granted, "print the assumptions of each proof");
  sub->footer(
      "Verdicts, the same as those of `pwr verify` and `pwr check`: same_bits; rounds (equal over "
      "the reals);\n"
      "differs_only_for NaN, infinity or the sign of zero; may_overflow (equal over the reals, but "
      "one side\n"
      "leaves the range of its dtype for some finite input); refuted, with a graph; unknown, with "
      "what\n"
      "remains to be proved. Each has its evidence: proof or samples. A sample overrides a proof.\n"
      "Exit code: 1 if any rule is refuted, or with --strict not proved; else 0.\n"
      "\n"
      "Examples:\n"
      "  pwr prove -r llm\n"
      "  pwr prove -r my_rules.pwr add_norm\n"
      "  pwr prove --strict --granted -r my_rules.pwr\n"
      "  pwr --format json prove -r my_rules.pwr");
  sub->callback([args, &options] { run_prove(options, *args); });
}

}  // namespace pw::cli
