// Exports the command opt.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/standard_output.hpp"
#include "cli/commands.hpp"
#include "cli/rewriting.hpp"
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

/// A variant with the name its files get.
struct Named {
  std::string name;
  RangedResult result;
};

std::vector<Named> run_all(const Session& session, const OptArgs& args, const LoadedRules& rules,
                           const Graph& graph) {
  std::vector<std::unique_ptr<Trace>> traces;  // one a range
  const OptionsFor options = [&](const std::string& variant) {
    RewriteOptions rewrite;
    rewrite.limits.rewrites = args.limit;
    rewrite.verify_each = args.verify_each;
    rewrite.engine = args.engine == "naive" ? EngineKind::naive : EngineKind::compiled;
    rewrite.stats = args.stats;
    if (args.trace.empty()) return rewrite;
    rewrite.hashes = true;
    Trace& trace = *traces.emplace_back(std::make_unique<Trace>(
        session, variant.empty() ? args.trace : args.trace + "/" + variant));
    rewrite.after_pass = [&trace](const std::string& pass, const Graph& g) { trace.add(pass, g); };
    return rewrite;
  };
  std::vector<Named> out;
  std::size_t traced = 0;
  for (RangedResult& result :
       rewritten_variants(session, graph, rules, args.rules.pipeline, options)) {
    if (!args.trace.empty() && !result.otherwise)
      traces[traced++]->finish(result.report, result.graph, rules.set);
    out.push_back({variant_name(rules, args.rules.pipeline, result), std::move(result)});
  }
  return out;
}

void save_all(const Session& session, const std::vector<Named>& variants,
              const std::string& output) {
  if (names_stream(output) && variants.size() > 1)
    session.die(fmt::format("there are {} graphs, and one standard output", variants.size()),
                "name a file: each graph gets one of its own", kUsage);
  for (const auto& [name, variant] : variants) {
    const std::string path = variant_path(output, name);
    save(session, variant.graph, path);
    if (variants.size() > 1)
      session.say(fmt::format("tokens {}..{}{}: {}", variant.range.min, variant.range.max,
                              variant.otherwise ? " otherwise" : "", path));
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

void print_tables(const Options& options, const OptArgs& args, const std::vector<Named>& variants) {
  std::vector<std::pair<std::string, Table>> passes, rules, choices;
  for (const auto& [name, variant] : variants) {
    passes.emplace_back(name, pass_table(variant.report));
    rules.emplace_back(name, rule_table(variant.report));
    choices.emplace_back(name, choice_table(variant.report));
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
  const std::vector<Named> variants = run_all(session, args, rules, graph);
  for (std::size_t i = 0; i < variants.size(); ++i) {
    const RangedResult& variant = variants[i].result;
    if (!variant.otherwise) report_warnings(session, variant.report, args.stats);
    if (!variant.conditions.empty() && i + 1 < variants.size())
      say_conditions(session, variant, "`" + variants[i + 1].name + "`");
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
