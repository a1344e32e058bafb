// Exports the command prove.
#include <algorithm>
#include <map>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/printable.hpp"
#include "base/standard_output.hpp"
#include "cli/commands.hpp"
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

/// Printed as they are done.
class ProofRows {
 public:
  ProofRows(std::string format, std::size_t width, bool granted)
      : format_(std::move(format)), width_(width), granted_(granted) {
    if (format_ == "csv") print_out("rule,verdict,known_by,cases\n");
  }
  void add(const RuleProof& proof) {
    ++counts_[proof.verdict];
    if (format_ == "json")
      print_out((first_ ? "[\n" : ",\n") + printable_json(rule_proof_to_json(proof)));
    else if (format_ == "csv")
      print_out(fmt::format("{},{},{},{}\n", proof.proof.rule, name(proof.verdict),
                            name(proof.known), proof.proof.cases));
    else
      print_out(proof_row(proof, width_, granted_));
    push_standard_output();
    first_ = false;
  }
  void end() const {
    if (format_ == "json") print_out(first_ ? "[]\n" : "\n]\n");
  }
  [[nodiscard]] const std::map<RuleVerdict, std::size_t>& counts() const { return counts_; }

 private:
  std::string format_;
  std::size_t width_;
  bool granted_;
  bool first_ = true;
  std::map<RuleVerdict, std::size_t> counts_;
};

void run_prove(const Options& options, const ProveArgs& args) {
  Session session(options);
  const LoadedRules rules = load(session, args.rules, true);
  const auto ids = session.need(rules_to_verify(rules.set, args.request.only));
  std::size_t width = 0;
  for (RuleId id : ids) width = std::max(width, rules.set.rules[id].name.size());
  ProofRows rows(options.format, width, args.granted);
  session.need(prove_rules(rules, args.request, session.log(),
                           [&](const RuleProof& proof) { rows.add(proof); }));
  rows.end();
  std::vector<std::string> parts;
  for (const auto& [verdict, count] : rows.counts())
    parts.push_back(fmt::format("{} {}", count, name(verdict)));
  session.say(fmt::format("{}", fmt::join(parts, ", ")));
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
