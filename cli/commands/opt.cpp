#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/counted.hpp"
#include "cli/commands.hpp"
#include "cli/folded.hpp"
#include "cli/settings.hpp"
#include "pipeline/judge/prove_run.hpp"
#include "pipeline/optimize.hpp"

namespace pw::cli {
namespace {

struct OptArgs {
  GraphOptions graph;
  RuleOptions rules;
  OptimizeRequest optimize;
  bool prove = false, all = false;
  std::string output, engine = "compiled", emit;
};

/// Prints passes and rules without those that did nothing, and counts these.
void print_short(const Session& session, Answer answer) {
  std::string hidden;
  for (auto& [key, member] : answer.members) {
    auto* table = std::get_if<Table>(&member);
    if (table == nullptr || (key != "passes" && key != "rules")) continue;
    const bool passes = key == "passes";
    Folded part = folded(*table, passes ? "rewrites" : "attempts", "0");
    if (passes && part.shown.empty()) continue;  // all passes are the answer
    if (part.hidden > 0)
      hidden += fmt::format("{}{} {}", hidden.empty() ? "" : ", ",
                            counted(part.hidden, passes ? "pass" : "rule"),
                            passes ? "changed nothing" : "had no node to try");
    *table = std::move(part.shown);
  }
  print_out(answer.print("table"));
  if (!hidden.empty()) session.say(hidden + "; --all lists them");
}

void print_tables(const Session& session, const Options& options, const OptArgs& args,
                  const std::vector<GraphVariant>& variants, const std::vector<RunProof>& proofs) {
  Answer answer;
  answer.add("passes", pass_table(variants));
  if (args.prove) add_proofs(answer, variants, proofs);
  if (args.optimize.stats) {
    answer.add("rules", rule_table(variants));
    Table choices = choice_table(variants);
    if (!choices.empty() || options.format == "json") answer.add("choices", std::move(choices));
    Table saturations = saturation_table(variants);
    if (!saturations.empty()) answer.add("saturations", std::move(saturations));
  }
  if (options.format == "table" && !args.all) return print_short(session, std::move(answer));
  print_out(answer.print(options.format));
}

void run_opt(const Options& options, const OptArgs& args) {
  Session session(options);
  session.need(check_graph_path(args.output));
  const LoadedRules rules = load(session, args.rules);
  const Graph graph = load(session, args.graph);
  if (!args.emit.empty()) {
    session.refuse_json("--emit prints the instructions as text");
    print_out(session.need(matcher_text(graph, rules, args.rules.pipeline)));
    return;
  }
  OptimizeRequest request = args.optimize;
  request.pipeline = args.rules.pipeline;
  request.naive = args.engine == "naive";
  const auto variants = session.need(optimize(graph, rules, request, session.log()));
  std::vector<RunProof> proofs;
  if (args.prove) {
    proofs = prove_variants(graph, rules, request.pipeline, rewrite_options(request), variants,
                            session.log());
    for (std::size_t i = 0; i < proofs.size(); ++i)
      session.say(proof_line(proofs[i], variants[i].name));
  }
  if (!args.output.empty()) session.need(save_variants(variants, args.output, session.log()));
  if (request.stats || args.output.empty() || args.prove || session.json())
    print_tables(session, options, args, variants, proofs);
}

}  // namespace

void add_opt_command(CLI::App& app, const Options& options) {
  auto opt = std::make_shared<OptArgs>();
  auto* sub = app.add_subcommand("opt", "Rewrite a graph with a pipeline of rules");
  opt->graph.add_to(*sub);
  opt->rules.add_to(*sub);
  sub->add_option("-o,--output", opt->output,
                  "output file for the rewritten graph, .json, .pwg or .pwb; a pipeline with token "
                  "ranges writes one file for each: out.1-256.pwg");
  sub->add_option("--trace", opt->optimize.trace,
                  "write the graph after each pass and the journal to this folder")
      ->type_name("DIR");
  add_switch(*sub, "--stats", opt->optimize.stats,
             "print statistics of passes and rules (rewrites, attempts, rejections by code, "
             "time) and the choice of each `best of`; warn about rules that never fired");
  add_switch(*sub, "--all", opt->all, "also print passes and rules that did nothing");
  add_setting(*sub, "--limit", opt->optimize.most_rewrites, "stop after this many rewrites");
  add_switch(*sub, "--verify-each", opt->optimize.verify_each,
             "check the graph's invariants after each pass");
  add_switch(*sub, "--prove", opt->prove,
             "prove each rewrite, by its rule or individually, and list those that are not proved");
  sub->add_option("--engine", opt->engine,
                  "matching engine: compiled, or naive (a quadratic reference implementation, for "
                  "comparison)")
      ->check(CLI::IsMember({"compiled", "naive"}))
      ->configurable();
  sub->add_option("--emit", opt->emit,
                  "matcher: print the matcher instructions of each pass, and exit")
      ->check(CLI::IsMember({"matcher"}))
      ->configurable();
  sub->footer(
      "Examples:\n  pwr opt model.json -r llm -p o2 --stats\n  pwr opt model.json -r my_rules.pwr "
      "-p mine -D tp=2 -o out.json --trace trace/");
  sub->callback([opt, &options] { run_opt(options, *opt); });
}

}  // namespace pw::cli
