// Exports the command prove.

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/commands.hpp"
#include "cli/verdict_rows.hpp"
#include "pipeline/proving.hpp"
#include "pipeline/verifying.hpp"

namespace pw::cli {
namespace {

struct ProveArgs {
  RuleOptions rules;
  ProveRequest request;
  bool strict = false, granted = false;
};

std::string proof_row(const RuleProof& proof, std::size_t width, bool granted) {
  const proof::Proof& p = proof.proof;
  std::string text =
      fmt::format("{:<{}}  {}, known by {}", p.rule, width, proof.print(), name(proof.known));
  if (p.proved() && p.cases > 0) text += fmt::format(" ({} cases)", p.cases);
  if (!proof.reason.empty() && proof.verdict != RuleVerdict::same_bits)
    text += "\n  " + proof.reason;
  if (!p.uncovered.empty()) text += "\n  not covered: " + p.uncovered;
  for (const std::string& guard : p.unneeded)
    if (p.proved()) text += fmt::format("\n  `{}` is not needed for the numbers", guard);
  for (const std::string& what : p.granted)
    if (granted && p.proved()) text += "\n  granted: " + what;
  return text + "\n";
}

std::string csv_row(const RuleProof& proof) {
  return fmt::format("{},{},{},{}\n", proof.proof.rule, name(proof.verdict), name(proof.known),
                     proof.proof.cases);
}

void run_prove(const Options& options, const ProveArgs& args) {
  Session session(options);
  const LoadedRules rules = load(session, args.rules, true);
  const auto ids = session.need(rules_to_verify(rules.set, args.request.only));
  const std::size_t width = name_width(rules.set, ids);
  VerdictRows rows(options.format, "rule,verdict,known_by,cases");
  session.need(prove_rules(rules, args.request, session.log(), [&](const RuleProof& proof) {
    rows.add(
        proof.verdict, [&] { return rule_proof_to_json(proof); }, [&] { return csv_row(proof); },
        [&] { return proof_row(proof, width, args.granted); });
  }));
  rows.end();
  session.say(rows.summary());
  if (rows.counts().contains(RuleVerdict::refuted)) throw Exit{kNegative};
  if (args.strict && rows.counts().contains(RuleVerdict::not_proved)) throw Exit{kNegative};
}

}  // namespace

void add_prove_command(CLI::App& app, const Options& options) {
  auto args = std::make_shared<ProveArgs>();
  auto* sub = app.add_subcommand("prove",
                                 "Prove that rules keep the numbers, for all sizes, dtypes and "
                                 "attributes");
  args->rules.add_to(*sub, false);
  sub->add_option("only", args->request.only, "rules, families or groups; all when left out");
  sub->add_flag("--strict", args->strict, "exit with 1 where a rule is not proved");
  sub->add_flag("!--anew", args->request.keep, "prove what is kept of earlier runs again, too");
  sub->add_flag("--granted", args->granted, "say what each proof takes for granted");
  sub->footer(
      "Verdicts: same_bits; rounds (equal over the reals); differs_only_for NaN, infinity or the "
      "sign of\nzero; refuted, with a graph; not_proved, with what is left to show. Beside each "
      "how it is known:\nproof or samples.\nExit code: 1 if any rule is refuted, or with --strict "
      "not proved; else 0.\n\nExamples:\n  pwr prove -r llm\n  pwr prove -r my_rules.pwr "
      "add_norm\n  pwr prove --strict --granted -r my_rules.pwr\n  pwr --format json prove -r "
      "my_rules.pwr");
  sub->callback([args, &options] { run_prove(options, *args); });
}

}  // namespace pw::cli
