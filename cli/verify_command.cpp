// Exports the command verify.
#include <algorithm>
#include <map>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/file.hpp"
#include "base/printable.hpp"
#include "base/standard_output.hpp"
#include "cli/commands.hpp"
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

/// The verdict, by dtype where these differ, and what it rests on.
std::string row(const RuleCheck& check, std::size_t width) {
  std::string text = fmt::format("{:<{}}  {}", check.rule, width, check.judgement.print());
  const bool alike = std::all_of(
      check.by_dtype.begin(), check.by_dtype.end(),
      [&](const auto& entry) { return entry.second.verdict == check.judgement.verdict; });
  if (!check.holds()) return text + "\n";
  if (!alike) {
    std::vector<std::string> parts;
    for (const auto& [dtype, judgement] : check.by_dtype)
      parts.push_back(fmt::format("{}: {}", dtype, judgement.print()));
    text += fmt::format("\n{:<{}}    {}", "", width,
                        fmt::join(parts, fmt::format("\n{:<{}}    ", "", width)));
  }
  if (check.runs == 0) return text + "\n";
  return fmt::format("{}, known by {} ({} graphs, {} samples{}{})\n", text, name(check.known),
                     check.instances, check.runs,
                     check.ranks == std::vector<std::int64_t>{1}
                         ? ""
                         : fmt::format(" on {} ranks", fmt::join(check.ranks, " and ")),
                     guards_text(check));
}

/// Printed as they are done, so that a long list can be watched.
class Rows {
 public:
  Rows(std::string format, std::size_t width) : format_(std::move(format)), width_(width) {
    if (format_ == "csv") print_out("rule,verdict,known_by,ulps,graphs,samples\n");
  }
  void add(const RuleCheck& check) {
    ++counts_[check.judgement.verdict];
    print_out(text_of(check));
    push_standard_output();
    first_ = false;
  }
  void end() const {
    if (format_ == "json") print_out(first_ ? "[]\n" : "\n]\n");
  }
  [[nodiscard]] const std::map<RuleVerdict, std::size_t>& counts() const { return counts_; }

 private:
  [[nodiscard]] std::string text_of(const RuleCheck& check) const {
    if (format_ == "json")
      return (first_ ? "[\n" : ",\n") + printable_json(rule_check_to_json(check));
    if (format_ == "csv")
      return fmt::format("{},{},{},{:.4g},{},{}\n", check.rule, name(check.judgement.verdict),
                         name(check.known), check.judgement.ulps, check.instances, check.runs);
    return row(check, width_);
  }

  std::string format_;
  std::size_t width_;
  bool first_ = true;
  std::map<RuleVerdict, std::size_t> counts_;
};

/// 1: some rule differs; else 3: for some there was no graph; else 5: some cannot run.
int exit_code(const std::map<RuleVerdict, std::size_t>& counts) {
  if (counts.contains(RuleVerdict::refuted) || counts.contains(RuleVerdict::differs_only_for))
    return kNegative;
  if (counts.contains(RuleVerdict::no_instance)) return kInvalidInput;
  return counts.contains(RuleVerdict::cannot_run) ? kMissingCapability : kOk;
}

/// Of the longest name.
std::size_t name_width(const RuleSet& rules, const std::vector<RuleId>& ids) {
  std::size_t width = 0;
  for (RuleId id : ids) width = std::max(width, rules.rules[id].name.size());
  return width;
}

void run_verify(const Options& options, const VerifyArgs& args) {
  Session session(options);
  const LoadedRules rules = load(session, args.rules, true);
  const auto ids = session.need(rules_to_verify(rules.set, args.verify.only));
  VerifyRequest request = args.verify;
  request.ranks = session.need(parse_numbers(args.ranks, 1, 64));
  Rows rows(options.format, name_width(rules.set, ids));
  const std::vector<RuleCheck> checks = session.need(verify_rules(
      rules, request, session.log(), [&](const RuleCheck& check) { rows.add(check); }));
  rows.end();
  if (!args.junit.empty()) session.need(write_file(args.junit, junit(checks)));
  std::vector<std::string> parts;
  for (const auto& [verdict, count] : rows.counts())
    parts.push_back(fmt::format("{} {}", count, name(verdict)));
  session.say(fmt::format("{}", fmt::join(parts, ", ")));
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
