#include "pipeline/explain.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "base/counted.hpp"
#include "base/printable.hpp"
#include "cli/commands.hpp"
#include "cli/help/diagnostic_examples.hpp"
#include "cli/settings.hpp"
#include "rewriter/explain/near_miss_codes.hpp"

namespace pw::cli {
namespace {

struct ExplainArgs {
  ExplainRequest explain;
  GraphOptions graph;
  RuleOptions rules;
  std::optional<std::size_t> expect;
  bool codes = false;
};

std::string title_of(const NearMiss& miss) {
  const std::string name = miss.rule_name.empty() ? "the rule" : miss.rule_name;
  if (!miss.at) return miss.why.message;
  if (miss.complete)
    return fmt::format("`{}` matched at %{}, and was not applied", name, miss.at->name);
  return fmt::format("`{}` matched {} of {} at %{}, then stopped", name, miss.why.matched,
                     counted(miss.rule_size, "node"), miss.at->name);
}

std::string alike(const NearMissGroup& group) {
  std::string out;
  if (group.matched_alike > 0 && !group.first.place.empty())
    out = fmt::format("{} of {} like {} match; {} differ{} by {}", group.matched_alike,
                      counted(group.matched_alike + group.count, "place"), group.first.place,
                      group.count, group.count == 1 ? "s" : "", group.first.why.code);
  if (group.others.empty()) return out;
  constexpr std::size_t kShown = 6;
  out += fmt::format("{}the same at {} more: ", out.empty() ? "" : "; ", group.others.size());
  for (std::size_t i = 0; i < group.others.size() && i < kShown; ++i)
    out += fmt::format(
        "{}%{}{}", i == 0 ? "" : ", ", group.others[i],
        group.other_steps[i] > 0 ? fmt::format(" (step {})", group.other_steps[i]) : "");
  if (group.others.size() > kShown) out += ", …";
  return out;
}

/// Returns the nodes of a complete match, if they add to the node where it is reported.
std::string match_of(const NearMiss& miss) {
  if (!miss.complete || miss.node_names.empty()) return "";
  std::string out = miss.since.empty()
                        ? "the match existed from the start: "
                        : fmt::format("the match appeared in pass `{}`: ", miss.since);
  for (const std::string& name : miss.node_names)
    out += fmt::format("{}%{}", &name == miss.node_names.data() ? "" : ", ", name);
  return out;
}

void print_applied(const Explanation& found) {
  for (const AppliedGroup& group : found.applied) {
    std::string nodes;
    for (const std::string& name : group.nodes)
      nodes += fmt::format("{}%{}", nodes.empty() ? "" : ", ", name);
    print_out(fmt::format("`{}` was applied {} in pass `{}`, {}at step {}: {}\n", group.first.name,
                          group.count == 1 ? "once" : fmt::format("{} times", group.count),
                          group.first.pass, group.count == 1 ? "" : "first ", group.first.step,
                          nodes));
  }
}

void print_text(const Session& session, const Explanation& found, bool pipeline) {
  for (const NearMissGroup& group : found.groups) {
    const NearMiss& miss = group.first;
    Diagnostic d;
    d.severity = Severity::note;
    d.code = miss.why.code;
    d.message = title_of(miss);
    d.span = miss.why.span;
    d.help = miss.help;
    if (miss.at) {
      d.label = miss.why.message;
      if (!miss.at->text.empty()) d.notes.push_back(miss.at->text);
    }
    if (const std::string match = match_of(miss); pipeline && !match.empty())
      d.notes.push_back(match);
    d.notes.insert(d.notes.end(), miss.notes.begin(), miss.notes.end());
    if (const std::string more = alike(group); !more.empty()) d.notes.push_back(more);
    const bool color =
        session.color() && (session.options.color == "always" || ::isatty(STDOUT_FILENO) != 0);
    print_rendered(render({d}, session.context->sources, {color, 20}));
  }
}

std::string indented(std::string_view text) {
  std::string out = "    ";
  for (const char c : text) out += c == '\n' ? std::string("\n    ") : std::string(1, c);
  return out + "\n";
}

std::string reported_for(const DiagnosticExample& example) {
  const std::string where = example.file.empty() ? "by" : fmt::format("for {}", example.file);
  return fmt::format("\nreported {}:\n{}\nmessage:\n{}\nfixed:\n{}", where, indented(example.wrong),
                     indented(example.message), indented(example.fixed));
}

bool explained_code(const Options& options, const std::string& word) {
  const std::string_view meaning = code_meaning(word), help = code_help(word);
  if (meaning.empty()) return false;
  Answer answer;
  answer.add("code", Cell(word));
  answer.add("meaning", Cell(meaning));
  answer.add("help", help.empty() ? null_cell() : Cell(help));
  const DiagnosticExample* example = diagnostic_example(word);
  const auto member = [&](std::string_view DiagnosticExample::* text) {
    return example == nullptr || (example->*text).empty() ? null_cell() : Cell(example->*text);
  };
  answer.add("file", member(&DiagnosticExample::file));
  answer.add("example", member(&DiagnosticExample::wrong));
  answer.add("message", member(&DiagnosticExample::message));
  answer.add("fixed", member(&DiagnosticExample::fixed));
  std::string text =
      fmt::format("{} {}\n", word, meaning) + (help.empty() ? "" : fmt::format("help: {}\n", help));
  if (example != nullptr) text += reported_for(*example);
  print_out(options.format == "json" ? answer.print("json") : text);
  return true;
}

bool looks_like_code(const std::string& word) {
  const auto digits = [&](std::size_t from) {
    return word.size() > from && word.find_first_not_of("0123456789", from) == std::string::npos;
  };
  return (word.starts_with("PW") && digits(2)) || (word.starts_with('N') && digits(1));
}

std::string header(const Explanation& found, const ExplainArgs& args) {
  const bool alone = args.rules.pipeline.empty(), one = found.matches == 1;
  std::string out = fmt::format("{}: {} {}", args.explain.rule, found.matches,
                                alone ? (one ? "match" : "matches")
                                : one ? "rewrite"
                                      : "rewrites");
  if (args.expect && *args.expect != found.matches)
    out += fmt::format(", expected {}", *args.expect);
  if (found.range) out += fmt::format(" for {}..{} tokens", found.range->min, found.range->max);
  if (found.otherwise) out += ", for steps that do not satisfy the assumptions of rules";
  return out;
}

void print_explanation(const Session& session, const ExplainArgs& args, const Explanation& found,
                       bool wanted) {
  if (session.options.format == "json") {
    print_out(printable_json(explanation_to_json(found, args.explain.rule)));
    return;
  }
  print_out(header(found, args) + "\n");
  if (!wanted) return;
  print_applied(found);
  print_text(session, found, !args.rules.pipeline.empty());
  if (found.matches == 0 && found.groups.empty())
    print_out("no node of the graph has an op of its pattern\n");
}

void run_explain(const Options& options, const ExplainArgs& args) {
  if (args.codes) return print_out(code_table().print(options.format));
  const std::string& word = args.explain.rule;
  if (explained_code(options, word)) return;
  Session session(options);
  if (word.empty())
    session.die("no rule or code is given",
                "pwr explain add_rms model.json -r llm, pwr explain PW0220, pwr explain --codes",
                kUsage);
  if (args.graph.path.empty() && looks_like_code(word))
    session.die("there is no code `" + word + "`", "`pwr explain --codes` lists them", kUsage);
  if (args.graph.path.empty())
    session.die("`" + word + "` is not a code; to explain a rule, name a graph too",
                "pwr explain " + word + " model.json -r llm", kUsage);
  ExplainRequest request = args.explain;
  request.options.pipeline = args.rules.pipeline;
  session.need(check_options(request));
  const LoadedRules rules = load(session, args.rules);
  session.need(check_rule_name(rules.set, request.rule));
  const Graph graph = load(session, args.graph);
  const Explanation found = session.need(explain_rule(graph, rules, request));
  const bool wanted = !args.expect || *args.expect != found.matches;
  print_explanation(session, args, found, wanted);
  if (args.expect ? wanted : found.matches == 0) throw Exit{kNegative};
}

struct MatchArgs {
  std::string pattern;
  GraphOptions graph;
  RuleOptions rules;
  std::size_t most = 20;
};

void run_match(const Options& options, const MatchArgs& args) {
  Session session(options);
  const LoadedPattern pattern =
      session.need(load_pattern(session.context, args.pattern, args.rules));
  const PatternMatches found = match_pattern(load(session, args.graph), pattern);
  const std::size_t count = found.matches.size();
  const std::size_t most = options.format == "table" ? args.most : count;
  if (const Table table = match_table(found, most); !table.empty() || session.json())
    print_out(table.print(options.format));
  session.say(
      fmt::format("{} match{}{}", count, count == 1 ? "" : "es",
                  count > most ? fmt::format(", {} shown; --most shows more", args.most) : ""));
  if (count > 0) return;
  if (!session.json())
    for (const Explanation& nearest : found.nearest) print_text(session, nearest, false);
  throw Exit{kNegative};
}

void add_explain_command(CLI::App& app, const Options& options) {
  auto args = std::make_shared<ExplainArgs>();
  auto* sub =
      app.add_subcommand("explain", "Explain why a rule did not match, or what a code means");
  sub->add_option("rule", args->explain.rule,
                  "a rule, family or group; or a code: PW0220 of a diagnostic, " +
                      near_miss_range() + " of a near miss");
  args->graph.add_to(*sub, false);
  args->rules.add_to(*sub);
  add_setting(*sub, "--before", args->explain.options.before,
              "with -p: report near misses in the graph before this pass (default: before the "
              "first pass with the rule)");
  add_setting(*sub, "--at", args->explain.options.at,
              "only report on the node with this name; with -p, at any time of the run");
  sub->add_option(
         "--tokens", args->explain.options.tokens,
         "with -p: explain the graph that the pipeline produces for steps with this many tokens")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 24))
      ->configurable();
  add_setting(*sub, "--expect", args->expect,
              "exit with 1 unless the rule matches this often, and print the places that differ");
  add_setting(*sub, "--most", args->explain.options.most,
              "maximum number of near misses to print, after grouping");
  add_switch(*sub, "--codes", args->codes, "list all codes with their meanings, and exit");
  add_switch(*sub, "--pieces", args->explain.pieces,
             "require that a match is within one piece of the split graph");
  sub->footer(
      "Without -p the rule is matched on the graph as given. With -p the pipeline is run, and "
      "every\n"
      "match that existed at some time is traced: applied (in which pass); consumed by another "
      "rule\n"
      "(which, and at which step, N10); not in a pass that ran (N11); out of fuel (N12); lost to "
      "a\n"
      "preferred rule or a lower cost (N16); undone by an `ensures` (which, and because of which "
      "node,\n"
      "N17); or with a right side that cannot be built (its code gives the reason).\n"
      "Examples:\n"
      "  pwr explain add_rms model.json -r llm\n"
      "  pwr explain rms_quant model.json -r llm -p o2\n"
      "  pwr explain rms_quant model.json -r mine.pwr -p ranged --tokens 300\n"
      "  pwr explain rms_quant model.json -r llm -p o2 --before norm_quant --expect 32\n"
      "  pwr explain silu_mul model.json -r llm --at mul_7 --format json\n"
      "  pwr explain N08\n"
      "  pwr explain PW0220");
  sub->callback([args, &options] { run_explain(options, *args); });
}

void add_match_command(CLI::App& app, const Options& options) {
  auto match = std::make_shared<MatchArgs>();
  auto* find = app.add_subcommand("match", "List where a pattern matches, without a rule");
  find->add_option("pattern", match->pattern, "the left side of a rule")->required();
  match->graph.add_to(*find);
  match->rules.add_to(*find, false);
  add_setting(*find, "--most", match->most, "maximum number of matches to print");
  find->footer(
      "Matched values may have other users, because nothing is consumed. The pattern may use "
      "shared\n"
      "patterns of -r files. If nothing matches, the nearest miss is explained and the exit code "
      "is 1.\n"
      "Examples:\n"
      "  pwr match 'y = mul(silu(g), u)' model.json\n"
      "  pwr match 'n = rms(x, w){eps}  q = static_scaled_fp8_quant(n, s)' model.json -r llm\n"
      "  pwr match 'y = mm(x: bf16[n, k], w) where k >= 4096' model.json --format json");
  find->callback([match, &options] { run_match(options, *match); });
}

}  // namespace

void add_explain_commands(CLI::App& app, const Options& options) {
  add_explain_command(app, options);
  add_match_command(app, options);
}

}  // namespace pw::cli
