// Exports the command verify.
#include <map>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/counted.hpp"
#include "base/file.hpp"
#include "cli/commands.hpp"
#include "cli/verdict_rows.hpp"
#include "pipeline/junit.hpp"
#include "pipeline/verifying.hpp"

namespace pw::cli {
namespace {

struct VerifyArgs {
  RuleOptions rules;
  VerifyRequest verify;  ///< but for its ranks
  std::string ranks = "2,4";
  std::string junit;
};

/// How many boundary values of its guards a rule was seen to hold and to refuse at.
std::string guards_text(const RuleCheck& check) {
  if (check.held + check.refused + check.unreached.size() == 0) return "";
  std::string text =
      fmt::format("; its guards hold at {} and refuse {}", check.held, check.refused);
  for (std::size_t i = 0; i < check.unreached.size(); ++i)
    text += (i == 0 ? "; no graph at " : ", ") + check.unreached[i];
  return text;
}

/// What is proved of a rule that no sample could be made or run for.
std::string proved_text(const RuleCheck& check) {
  const bool none = check.judgement.verdict == RuleVerdict::no_instance ||
                    check.judgement.verdict == RuleVerdict::cannot_run;
  if (!none || check.proved == RuleVerdict::not_proved) return "";
  return fmt::format("; {}, known by {}", name(check.proved), name(KnownBy::proof));
}

/// The verdict, by dtype where these differ, and what it rests on.
std::string row(const RuleCheck& check, std::size_t width) {
  std::string text = fmt::format("{:<{}}  {}", check.rule, width, check.judgement.print());
  const bool alike = std::all_of(
      check.by_dtype.begin(), check.by_dtype.end(),
      [&](const auto& entry) { return entry.second.verdict == check.judgement.verdict; });
  if (!check.holds()) return text + proved_text(check) + "\n";
  if (!alike) {
    std::vector<std::string> parts;
    for (const auto& [dtype, judgement] : check.by_dtype)
      parts.push_back(fmt::format("{}: {}", dtype, judgement.print()));
    text += fmt::format("\n{:<{}}    {}", "", width,
                        fmt::join(parts, fmt::format("\n{:<{}}    ", "", width)));
  }
  if (check.runs == 0) return text + "\n";
  return fmt::format("{}, known by {} ({}, {}{}{})\n", text, name(check.known),
                     counted(check.instances, "graph"), counted(check.runs, "sample"),
                     check.ranks == std::vector<std::int64_t>{1}
                         ? ""
                         : fmt::format(" on {} ranks", fmt::join(check.ranks, " and ")),
                     guards_text(check));
}

std::string csv_row(const RuleCheck& check) {
  return fmt::format("{},{},{},{:.4g},{},{}\n", check.rule, name(check.judgement.verdict),
                     name(check.known), check.judgement.ulps, check.instances, check.runs);
}

/// 1: some rule differs; else 3: for some there was no graph; else 5: some cannot run.
int exit_code(const std::map<RuleVerdict, std::size_t>& counts) {
  if (counts.contains(RuleVerdict::refuted) || counts.contains(RuleVerdict::may_overflow) ||
      counts.contains(RuleVerdict::differs_only_for))
    return kNegative;
  if (counts.contains(RuleVerdict::no_instance)) return kInvalidInput;
  return counts.contains(RuleVerdict::cannot_run) ? kMissingCapability : kOk;
}

void run_verify(const Options& options, const VerifyArgs& args) {
  Session session(options);
  const LoadedRules rules = load(session, args.rules, true);
  const auto ids = session.need(rules_to_verify(rules.set, args.verify.only));
  VerifyRequest request = args.verify;
  request.ranks = session.need(parse_numbers(args.ranks, 1, 64));
  const std::size_t width = name_width(rules.set, ids);
  VerdictRows rows(options.format, "rule,verdict,known_by,ulps,graphs,samples");
  const std::vector<RuleCheck> checks =
      session.need(verify_rules(rules, request, session.log(), [&](const RuleCheck& check) {
        rows.add(
            check.judgement.verdict, [&] { return rule_check_to_json(check); },
            [&] { return csv_row(check); }, [&] { return row(check, width); });
      }));
  rows.end();
  if (!args.junit.empty()) session.need(write_file(args.junit, junit(checks)));
  session.say(rows.summary());
  if (const int code = exit_code(rows.counts()); code != kOk) throw Exit{code};
}

}  // namespace

void add_verify_command(CLI::App& app, const Options& options) {
  auto args = std::make_shared<VerifyArgs>();
  auto* sub = app.add_subcommand("verify",
                                 "Check that rules keep the numbers, on graphs made from their "
                                 "patterns");
  args->rules.add_to(*sub, false);
  sub->add_option("only", args->verify.only, "rules, families or groups; all when left out");
  sub->add_option("--ranks", args->ranks,
                  "rules with collectives are checked on each of these numbers of ranks")
      ->type_name("LIST")
      ->capture_default_str();
  sub->add_option("--graph", args->verify.graph,
                  "a graph: the traits of the ops that it declares are checked too")
      ->type_name("FILE");
  sub->add_option("--junit", args->junit, "write the verdicts as JUnit XML too")->type_name("FILE");
  sub->footer(
      "Verdicts: same_bits; rounds (the same function of the reals); differs_only_for NaN, "
      "infinity\nor the sign of zero; refuted, with the sample; no_instance; cannot_run, and which "
      "op.\nExit code: 0 for the first two, 1 if any rule differs or is refuted, else 3 for no "
      "instance,\n5 for cannot run.\n\nExamples:\n  pwr verify -r llm\n  pwr verify -r "
      "my_rules.pwr "
      "add_norm\n  pwr verify -r my_rules.pwr --ranks 2,4,8\n  pwr verify --graph model.pwg\n  pwr "
      "--format json verify -r "
      "my_rules.pwr");
  sub->callback([args, &options] { run_verify(options, *args); });
}

}  // namespace pw::cli
