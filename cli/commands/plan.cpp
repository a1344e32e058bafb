#include <map>

#include <fmt/format.h>

#include "base/io/file.hpp"
#include "base/io/standard_output.hpp"
#include "base/printable.hpp"
#include "cli/commands.hpp"
#include "cli/planning.hpp"
#include "cli/settings.hpp"
#include "pipeline/compare.hpp"
#include "pipeline/report/dispatch_table.hpp"
#include "pipeline/report/plan_tables.hpp"
#include "pipeline/symbol_values.hpp"

namespace pw::cli {
namespace {

struct PlanCommandArgs : SplitArgs {
  std::vector<std::string> others;  ///< further graphs
  std::vector<std::string> steps;   ///< to explain
  std::int64_t active_loras = 0;
  std::vector<std::string> compared;  ///< two files
  bool memory = false, stats = false;
  /// Returns true if output other than the plan goes to standard output.
  [[nodiscard]] bool tables() const { return !steps.empty() || memory || stats; }
};

void run_comparison(const Session& session, const std::vector<std::string>& files) {
  const std::vector<std::string> lines = session.need(compare_plans(files[0], files[1]));
  if (session.json()) print_out(to_json(lines));
  for (const std::string& line : lines)
    if (!session.json()) print_out(line + "\n");
  if (lines.empty()) {
    session.say("the plans are equal");
    return;
  }
  session.say(fmt::format("{} and {} differ", files[0], files[1]));
  throw Exit{kNegative};
}

Counters sum_of(const std::map<std::string, Counting>& by_graph) {
  Counters sum;
  for (const auto& [file, counting] : by_graph) {
    const Counters& c = counting.counters();
    sum.graphs_seen += c.graphs_seen;
    sum.pieces += c.pieces;
    sum.capturable_pieces += c.capturable_pieces;
    sum.piece_classes += c.piece_classes;
    sum.backend_compilations += c.backend_compilations;
    sum.graphs_captured += c.graphs_captured;
  }
  return sum;
}

struct NamedVariant {
  std::string file;  ///< of several graphs
  GraphVariant variant;
};

/// Returns the graphs that the pipeline makes of each graph.
std::vector<NamedVariant> planned_graphs(const Session& session, const PlanCommandArgs& args,
                                         const LoadedRules& rules) {
  std::vector<NamedVariant> out;
  GraphSource source = args.graph;
  std::vector<std::string> files{source.path};
  files.insert(files.end(), args.others.begin(), args.others.end());
  for (const std::string& file : files) {
    source.path = file;
    Graph graph = load(session, source);
    name_tokens(graph, session.log());
    for (GraphVariant& variant :
         session.need(make_variants(graph, rules, args.rules.pipeline, session.log())))
      out.push_back({args.others.empty() ? "" : file, std::move(variant)});
  }
  return out;
}

/// Makes a plan for each graph that the pipeline makes.
void run_plan(const Options& options, const PlanCommandArgs& args) {
  Session session(options);
  if (!args.compared.empty()) return run_comparison(session, args.compared);
  if (args.graph.path.empty())
    session.die("no graph is given", "pwr plan model.json, or pwr plan --diff A B", kUsage);
  if (!args.others.empty() && (!args.tables() || !args.output.empty()))
    session.die(
        "several graphs cannot share a plan",
        "print their tables with --stats, --memory or --explain-dispatch, or plan each separately",
        kUsage);
  const LoadedRules rules = load(session, args.rules);
  const std::vector<NamedVariant> variants = planned_graphs(session, args, rules);
  const PlanRequest request = args.plan.request(session);
  const bool one = args.output.empty() || names_stream(args.output);
  if (variants.size() > 1 && !args.tables() && one)
    session.die(fmt::format("{} plans cannot share standard output", variants.size()),
                "name a file with -o: each plan is written to its own", kUsage);
  std::vector<Answer> answers;  // printed at the end as one JSON document, otherwise immediately
  std::map<std::string, Counting> counting;  // compiles the common parts of a graph's variants once
  for (const auto& [file, variant] : variants) {
    const StitchedGraph pieces = session.need(cut_graph(variant.result.graph, rules, request));
    if (variant.at_load) session.say(at_load_summary(*variant.at_load));
    const Plan plan = session.need(plan_variant(pieces, variant, rules, request, session.log()));
    counting[file].add(pieces, plan);
    if (!file.empty()) session.say(file + ":");
    if (!variant.name.empty() && args.tables()) session.say("tokens " + variant.name + ":");
    Answer& answer = answers.emplace_back();
    if (!file.empty()) answer.add("graph", Cell(file));
    answer.add("variant", Cell(variant.name));
    if (!args.steps.empty())
      answer.add("dispatch", session.need(dispatch_table(plan, args.steps, args.active_loras)));
    if (!args.steps.empty() && request.mode.empty() && plan.mode != "none" &&
        !plan.mode_reason.empty())
      session.say("note: " + plan.mode_reason);
    if (args.memory) answer.add("memory", memory_table(plan));
    if (!session.json()) print_out(answer.print(options.format));
    if (args.tables() && args.output.empty()) continue;
    const std::string path = args.output.empty() ? "-" : variant_path(args.output, variant.name);
    session.need(write_file(path, printable_json(plan_to_json(plan, pieces))));
    answer.add("output", Cell(path));
    if (variants.size() > 1) session.say(variant.name + ": " + path);
    session.say(split_summary(pieces));
    session.say(plan_summary(plan));
  }
  Answer whole;
  whole.add("graphs", std::move(answers));
  if (args.stats) whole.add("counters", counter_table(sum_of(counting)));
  if (!session.json())
    print_out(whole.print(options.format));
  else if (args.tables() || !one)
    print_out(whole.print("json"));
}

}  // namespace

void add_plan_command(CLI::App& app, const Options& options) {
  auto args = std::make_shared<PlanCommandArgs>();
  auto* sub = app.add_subcommand(
      "plan", "Decide ranges, capture sizes, padding, dispatch and memory; write plan.json");
  args->graph.add_to(*sub, false);
  sub->add_option("others", args->others, "additional graphs, whose counters are added up")
      ->type_name("GRAPH");
  args->rules.add_to(*sub);
  args->plan.add_to(*sub);
  sub->add_option("-o,--output", args->output, "output file, plan.json; default: standard output");
  add_setting(*sub, "--explain-dispatch", args->steps, "STEP",
              "explain how a step is dispatched, instead of printing the plan; a step is the "
              "new tokens of its sequences: 300 or 1,1,5 or 64x1,5 (repeatable)");
  sub->add_option("--active-loras", args->active_loras, "LoRA adapters that these steps use")
      ->check(CLI::Range(0, 65536))
      ->configurable();
  add_switch(*sub, "--memory", args->memory,
             "print the memory and graph nodes of each captured size");
  add_switch(*sub, "--stats", args->stats,
             "print counters: pieces, classes, compilations, captures");
  add_setting(*sub, "--diff", args->compared, "A B",
              "compare two plans instead; exit with 1 if they differ")
      ->expected(2);
  sub->footer(
      "Examples:\n"
      "  pwr plan model.json -r llm -p o2 --max-tokens 8192 --ranges 8,32 -o plan.json\n"
      "  pwr plan model.json --ranges 8,32 --compile-sizes 16,64,128 --speculative-tokens 3\n"
      "  pwr plan model.json -r llm -p o2 -D tp=2 --sequence-parallel 2 --sizes 2,4,16\n"
      "  pwr plan model.json --explain-dispatch 300 --explain-dispatch 64x1\n"
      "  pwr plan model.json --memory --stats\n"
      "  pwr plan model.json -r llm -p o2 --no-split --stats\n"
      "  pwr plan target.pwg draft.pwg --stats\n"
      "  pwr plan --diff before.json after.json");
  sub->callback([args, &options] { run_plan(options, *args); });
}

}  // namespace pw::cli
