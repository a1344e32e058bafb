// Exports the command opt.
#include <deque>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/standard_output.hpp"
#include "cli/commands.hpp"
#include "pipeline/folder.hpp"
#include "pipeline/record.hpp"
#include "rewriter/match_program.hpp"

namespace pw::cli {
namespace {

struct OptArgs {
  GraphOptions graph;
  RuleOptions rules;
  std::string output;
  std::string trace;
  bool stats = false;
  bool verify_each = false;
  std::string engine = "compiled", emit;
  std::size_t limit = Limits{}.rewrites;
};

/// Those of the options; with --trace the graphs of a variant go to a folder of its own.
class Tracing {
 public:
  Tracing(const Session& session, const OptArgs& args) : session_(session), args_(args) {}

  RewriteOptions options_for(const std::string& variant) {
    RewriteOptions rewrite;
    rewrite.limits.rewrites = args_.limit;
    rewrite.verify_each = args_.verify_each;
    rewrite.engine = args_.engine == "naive" ? EngineKind::naive : EngineKind::compiled;
    rewrite.stats = args_.stats;
    if (args_.trace.empty()) return rewrite;
    rewrite.hashes = true;
    const std::string folder = variant.empty() ? args_.trace : args_.trace + "/" + variant;
    auto& [path, trace] = traces_.emplace_back(folder, session_.need(Trace::make(folder)));
    rewrite.after_pass = [this, &trace = trace](const std::string& pass, const Graph& graph) {
      session_.need(trace.add(pass, graph));
    };
    return rewrite;
  }
  /// Writes the journals; `variants` are in the order in which they were asked for.
  void finish(const std::vector<GraphVariant>& variants, const RuleSet& rules) {
    auto next = traces_.begin();
    for (const GraphVariant& variant : variants) {
      if (variant.result.otherwise || next == traces_.end()) continue;
      auto& [path, trace] = *next++;
      session_.need(trace.finish(variant.result.report, variant.result.graph, rules));
      session_.say(fmt::format("{} graphs and the journal are in {}", trace.graphs(), path));
    }
  }

 private:
  const Session& session_;
  const OptArgs& args_;
  std::deque<std::pair<std::string, Trace>> traces_;  // one a range; they stay where they are
};

void save_all(const Session& session, const std::vector<GraphVariant>& variants,
              const std::string& output) {
  if (names_stream(output) && variants.size() > 1)
    session.die(fmt::format("there are {} graphs, and one standard output", variants.size()),
                "name a file: each graph gets one of its own", kUsage);
  for (const GraphVariant& variant : variants) {
    const RangedResult& result = variant.result;
    const std::string path = variant_path(output, variant.name);
    session.need(save_graph(result.graph, path));
    if (variants.size() > 1)
      session.say(fmt::format("tokens {}..{}{}: {}", result.range.min, result.range.max,
                              result.otherwise ? " otherwise" : "", path));
  }
}

Table choice_table(const RewriteReport& report) {
  Table table({"best of", "by", "costs", "chosen"});
  for (const Choice& choice : report.choices) {
    std::string costs;
    for (std::int64_t cost : choice.costs)
      costs += (costs.empty() ? "" : " | ") + std::to_string(cost);
    table.add({choice.strategy, choice.by, costs, std::to_string(choice.chosen + 1)});
  }
  return table;
}

void print_tables(const Options& options, const OptArgs& args,
                  const std::vector<GraphVariant>& variants) {
  std::vector<std::pair<std::string, Table>> passes, rules, choices;
  for (const GraphVariant& variant : variants) {
    passes.emplace_back(variant.name, pass_table(variant.result.report));
    rules.emplace_back(variant.name, rule_table(variant.result.report));
    choices.emplace_back(variant.name, choice_table(variant.result.report));
  }
  print_out(joined(passes).print(options.format));
  if (!args.stats) return;
  print_out("\n" + joined(rules).print(options.format));
  if (const Table table = joined(choices); !table.empty())
    print_out("\n" + table.print(options.format));
}

void run_opt(const Options& options, const OptArgs& args) {
  Session session(options);
  check_output_type(session, args.output);
  LoadedRules rules = load(session, args.rules);
  Graph graph = load(session, args.graph);
  if (!args.emit.empty()) {
    const Strategy* strategy = rules.set.strategy(args.rules.pipeline);
    if (strategy == nullptr)
      session.die("there is no pipeline, pass or rule `" + args.rules.pipeline + "`", "", kUsage);
    print_out(print_programs(graph, rules.set, *strategy));
    return;
  }
  Tracing tracing(session, args);
  const std::vector<GraphVariant> variants = session.need(
      rewrite_ranges(graph, rules, args.rules.pipeline,
                     [&](const std::string& variant) { return tracing.options_for(variant); }));
  tracing.finish(variants, rules.set);
  for (std::size_t i = 0; i < variants.size(); ++i) {
    const RangedResult& result = variants[i].result;
    if (!result.otherwise) session.report(warnings_of(result.report, args.stats));
    if (!result.conditions.empty() && i + 1 < variants.size())
      session.say(conditions_line(result, "`" + variants[i + 1].name + "`"));
  }
  if (!args.output.empty()) save_all(session, variants, args.output);
  if (args.stats || args.output.empty()) print_tables(options, args, variants);
}

}  // namespace

void add_opt_command(CLI::App& app, const Options& options) {
  auto opt = std::make_shared<OptArgs>();
  auto* sub = app.add_subcommand("opt", "Rewrite a graph with a pipeline of rules");
  opt->graph.add_to(*sub);
  opt->rules.add_to(*sub);
  sub->add_option("-o,--output", opt->output,
                  "the rewritten graph, .json or .pwg; a pipeline with ranges of tokens writes one "
                  "file each: out.1-256.pwg");
  sub->add_option("--trace", opt->trace,
                  "write the graph after each pass and the journal into this folder")
      ->type_name("DIR");
  sub->add_flag("--stats", opt->stats,
                "print passes and rules: rewrites, attempts, rejections by code, time; what each "
                "`best of` chose; warn of rules that never fired");
  sub->add_option("--limit", opt->limit, "stop after this many rewrites");
  sub->add_flag("--verify-each", opt->verify_each, "check the graph's invariants after each pass");
  sub->add_option("--engine", opt->engine,
                  "compiled, or naive: the definition written out, quadratic, to compare with")
      ->check(CLI::IsMember({"compiled", "naive"}));
  sub->add_option("--emit", opt->emit,
                  "matcher: print the instructions that each pass compiles to, and stop")
      ->check(CLI::IsMember({"matcher"}));
  sub->footer(
      "Examples:\n  pwr opt model.json -r llm -p o2 --stats\n  pwr opt model.json -r my_rules.pwr "
      "-p mine -D tp=2 -o out.json --trace trace/");
  sub->callback([opt, &options] { run_opt(options, *opt); });
}

}  // namespace pw::cli
