// Exports the commands that rewrite and explain: opt, explain.
#include <array>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/file.hpp"
#include "cli/commands.hpp"
#include "cli/rewriting.hpp"
#include "graph/text.hpp"

namespace pw::cli {
namespace {

struct OptArgs {
  GraphOptions graph;
  RuleOptions rules;
  std::string output;
  std::string trace;
  bool stats = false;
  bool verify_each = false;
  std::size_t limit = Limits{}.rewrites;
};

void run_opt(const Options& options, const OptArgs& args) {
  Session session(options);
  check_output_type(session, args.output);
  LoadedRules rules = load(session, args.rules);
  Graph graph = load(session, args.graph);
  RewriteOptions rewrite;
  rewrite.limits.rewrites = args.limit;
  rewrite.verify_each = args.verify_each;
  Trace trace(session, args.trace);
  if (!args.trace.empty())
    rewrite.after_pass = [&](const std::string& pass, const Graph& g) { trace.add(pass, g); };
  RewriteReport report = rewritten(session, graph, rules, args.rules.pipeline, rewrite);
  if (args.stats) session.report(report.warnings);
  if (!args.trace.empty()) trace.finish(report, graph, rules.set);
  if (!args.output.empty()) save(session, graph, args.output);
  if (args.stats || args.output.empty()) {
    std::fputs(pass_table(report).print(options.format).c_str(), stdout);
    if (args.stats) std::fputs(("\n" + rule_table(report).print(options.format)).c_str(), stdout);
  }
}

struct ExplainArgs {
  std::string rule;
  GraphOptions graph;
  RuleOptions rules;
};

struct Code {
  std::string_view code, meaning;
};
constexpr std::array<Code, 16> kCodes{{
    {"N01", "op: the node has another op than the pattern asks for"},
    {"N02", "arity: the node has another number of operands or results"},
    {"N03",
     "operand order: it would match with its operands swapped, but the op is not commutative"},
    {"N04",
     "attribute: an attribute has another value; one that the pattern does not write must hold its "
     "default"},
    {"N05", "dtype: an element type differs"},
    {"N06", "shape: a shape does not fit, or cannot be proved to fit; the known facts are printed"},
    {"N07", "variable: one name would stand for two things"},
    {"N08",
     "extra users: a value that the rule consumes is used outside the match; rebind it on the "
     "right, or put it into `given { }`"},
    {"N09", "guard: a `where` is false or not known; its parts are printed"},
    {"N10", "consumed: another rule took the node first"},
    {"N11", "absent: the rule is not in this pipeline, or its family has no variant"},
    {"N12", "fuel: the pass had used up its fuel"},
    {"N13", "cycle: a path leads from an output back to an input; it is printed"},
    {"N14", "barrier: a mutation or an alias stands between the nodes"},
    {"N15", "boundary: the match would cross a piece boundary"},
    {"N16", "precedence: an `over` rule or a lower cost won"},
}};

void run_explain(const Options& options, const ExplainArgs& args) {
  Session session(options);
  for (const Code& code : kCodes) {
    if (args.rule != code.code) continue;
    fmt::print("{} {}\n", code.code, code.meaning);
    return;
  }
  if (args.graph.path.empty())
    session.die("`" + args.rule + "` is no code N01 … N16; to explain a rule, name a graph too",
                "pwr explain add_rms model.json -r llm", kUsage);
  LoadedRules rules = load(session, args.rules);
  std::vector<RuleId> ids = rules.set.resolve(args.rule);
  if (ids.empty()) {
    std::vector<std::string> names;
    for (const Rule& rule : rules.set.rules) names.push_back(rule.name);
    std::string near = nearest(args.rule, names);
    session.die("there is no rule `" + args.rule + "`",
                near.empty() ? "" : "did you mean `" + near + "`?", kUsage);
  }
  Graph graph = load(session, args.graph);
  if (!args.rules.pipeline.empty()) rewritten(session, graph, rules, args.rules.pipeline, {});
  bool any = false;
  for (RuleId id : ids) {
    const Rule& rule = rules.set.rules[id];
    std::size_t matches = find_matches(graph, rules.set, id, rules.params).size();
    if (matches > 0) {
      fmt::print("{}: {} match{}\n", rule.name, matches, matches == 1 ? "" : "es");
      any = true;
      continue;
    }
    std::optional<Rejection> why = explain(graph, rules.set, id, rules.params);
    if (!why) {
      fmt::print("{}: no node of the graph has an op of its pattern\n", rule.name);
      continue;
    }
    Diagnostic d;
    d.severity = Severity::note;
    d.code = why->code;
    d.message =
        fmt::format("`{}` matched {} of {} nodes at %{}, then stopped", rule.name, why->matched,
                    rule.nodes.size(), why->at.valid() ? graph.node_name(why->at) : "?");
    d.span = why->span;
    d.label = why->message;
    if (why->at.valid()) d.notes.push_back(print_node(graph, why->at));
    std::fputs(render({d}, session.context->sources, {session.color(), 20}).c_str(), stdout);
  }
  if (!any) throw Exit{kNegative};
}

}  // namespace

RewriteReport rewritten(const Session& session, Graph& graph, const LoadedRules& rules,
                        const std::string& pipeline, const RewriteOptions& options) {
  if (pipeline.empty())
    session.die("no pipeline is named",
                "for example -p o2; `pwr check` lists the pipelines of a rule file", kUsage);
  if (!rules.set.strategy(pipeline)) {
    std::vector<std::string> names;
    for (const auto& [name, strategy] : rules.set.pipelines) names.push_back(name);
    for (const auto& [name, strategy] : rules.set.passes) names.push_back(name);
    std::string near = nearest(pipeline, names);
    session.die("there is no pipeline, pass or rule `" + pipeline + "`",
                near.empty() ? "load the file that has it with -r" : "did you mean `" + near + "`?",
                kUsage);
  }
  RewriteReport report =
      session.need(run_pipeline(graph, rules.set, pipeline, rules.params, options));
  return report;
}

Table pass_table(const RewriteReport& report, bool times) {
  std::vector<std::string> columns{"pass", "rewrites", "nodes before", "nodes after", "stopped by"};
  if (times) columns.push_back("time");
  Table table(columns);
  for (const PassStats& pass : report.passes) {
    std::vector<std::string> row{
        pass.pass, std::to_string(pass.rewrites), std::to_string(pass.nodes_before),
        std::to_string(pass.nodes_after),
        pass.skipped ? "skipped: when is false" : std::string(name(pass.stop))};
    if (times) row.push_back(seconds(pass.seconds));
    table.add(std::move(row));
  }
  return table;
}

Table rule_table(const RewriteReport& report) {
  Table table({"pass", "rule", "matches", "attempts", "rejected by", "time"});
  for (const PassStats& pass : report.passes) {
    for (const auto& [rule, stats] : pass.rules) {
      std::string rejections;
      for (const auto& [code, count] : stats.rejections)
        rejections += fmt::format("{}{} × {}", rejections.empty() ? "" : ", ", code, count);
      table.add({pass.pass, rule, std::to_string(stats.matches), std::to_string(stats.attempts),
                 rejections, seconds(stats.seconds)});
    }
  }
  return table;
}

Trace::Trace(const Session& session, std::string folder)
    : session_(session), folder_(std::move(folder)) {
  if (!folder_.empty()) make_folder(session_, folder_);
}

void Trace::add(const std::string& pass, const Graph& graph) {
  std::string name;
  for (char c : pass)
    name += std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' ? c : '_';
  save(session_, graph, fmt::format("{}/{:02}-{}.pwg", folder_, count_++, name.substr(0, 60)));
}

void Trace::finish(const RewriteReport& report, const Graph& graph, const RuleSet& rules) {
  session_.need(
      write_file(folder_ + "/journal.jsonl", journal_to_json_lines(report.journal, graph, rules)));
  session_.say(fmt::format("{} graphs and the journal are in {}", count_, folder_));
}

void add_rewrite_commands(CLI::App& app, const Options& options) {
  auto opt = std::make_shared<OptArgs>();
  auto* sub = app.add_subcommand("opt", "Rewrite a graph with a pipeline of rules");
  opt->graph.add_to(*sub);
  opt->rules.add_to(*sub);
  sub->add_option("-o,--output", opt->output, "the rewritten graph, .json or .pwg");
  sub->add_option("--trace", opt->trace,
                  "write the graph after each pass and the journal into this folder")
      ->type_name("DIR");
  sub->add_flag("--stats", opt->stats,
                "print passes and rules: rewrites, attempts, rejections by code, time; warn of "
                "rules that never fired");
  sub->add_option("--limit", opt->limit, "stop after this many rewrites");
  sub->add_flag("--verify-each", opt->verify_each, "check the graph's invariants after each pass");
  sub->footer(
      "Examples:\n  pwr opt model.json -r llm -p o2 --stats\n  pwr opt model.json -r my_rules.pwr "
      "-p mine -D tp=2 -o out.json --trace trace/");
  sub->callback([opt, &options] { run_opt(options, *opt); });

  auto explain_args = std::make_shared<ExplainArgs>();
  sub = app.add_subcommand("explain", "Say why a rule did not match, or what a code means");
  sub->add_option("rule", explain_args->rule, "a rule's name, or a code N01 … N16")->required();
  explain_args->graph.add_to(*sub, false);
  explain_args->rules.add_to(*sub);
  sub->footer(
      "Examples:\n  pwr explain add_rms model.json -r llm\n  pwr explain rms_quant model.json -r "
      "llm -p clean     after the pass clean\n  pwr explain N08");
  sub->callback([explain_args, &options] { run_explain(options, *explain_args); });
}

}  // namespace pw::cli
