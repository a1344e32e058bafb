#include "pipeline/extract.hpp"

#include <fmt/format.h>

#include "base/io/file.hpp"
#include "cli/commands.hpp"
#include "cli/settings.hpp"

namespace pw::cli {
namespace {

struct ExtractArgs {
  std::vector<std::string> files;
  RuleOptions rules;
  ExtractRequest extract;
  std::string egraph, choices;
};

void save(const Session& session, const std::string& path, const std::string& text) {
  if (path == "-")
    print_out(text);
  else
    session.need(write_file(path, text));
}

/// A graph with the rules to saturate it; otherwise e-graphs.
std::vector<Extracted> extract_all(const Session& session, const ExtractArgs& args) {
  std::vector<Extracted> out;
  if (args.rules.rules.empty()) {
    for (const std::string& file : args.files)
      out.push_back(session.need(extract_file(file, args.extract)));
    return out;
  }
  if (args.files.size() != 1 || args.rules.pipeline.empty())
    session.die("with rules, exactly one graph and one pass are needed",
                "name one graph, and -p PASS", kUsage);
  const LoadedRules rules = load(session, args.rules);
  GraphSource source;
  source.path = args.files.front();
  const Graph graph = load(session, source);
  out.push_back(session.need(extract_problem(
      source.path, session.need(saturated_egraph(graph, rules, args.rules.pipeline, session.log())),
      args.extract)));
  return out;
}

void run_extract(const Options& options, const ExtractArgs& args) {
  const Session session(options);
  const std::vector<Extracted> found = extract_all(session, args);
  if (found.size() != 1 && !(args.egraph.empty() && args.choices.empty()))
    session.die("--write-egraph needs a single input", "name one file", kUsage);
  if (!args.egraph.empty()) save(session, args.egraph, write_egraph(found.front().egraph));
  if (!args.choices.empty())
    save(session, args.choices,
         write_choices(found.front().egraph, found.front().answer.needed,
                       found.front().answer.choice));
  print_out(extract_answer(found).print(options.format));
}

}  // namespace

void add_extract_command(CLI::App& app, const Options& options) {
  auto args = std::make_shared<ExtractArgs>();
  auto* sub = app.add_subcommand("extract",
                                 "Extract the cheapest graph from e-graphs, with a bound on how "
                                 "much cheaper another could be");
  sub->add_option("files", args->files,
                  "e-graphs in the format of extraction-gym (JSON of egraph-serialize); with -r "
                  "and -p, one graph to saturate first")
      ->required()
      ->type_name("FILES");
  args->rules.add_to(*sub);
  add_setting(*sub, "--solver", args->extract.solver, CLI::IsMember({"own", "cbc"}),
              "own: branch and bound with a step limit; cbc: COIN-OR's CBC, with a time limit");
  sub->add_option("--steps", args->extract.steps, "step limit of the own solver")
      ->capture_default_str()
      ->type_name("N")
      ->configurable();
  sub->add_option("--seconds", args->extract.seconds, "time limit of CBC for each independent part")
      ->check(CLI::Range(0.01, 1e6))
      ->capture_default_str()
      ->type_name("S")
      ->configurable();
  add_file(*sub, "--write-egraph", args->egraph,
           "write the e-graph to this file, in the format of extraction-gym; - is standard output");
  add_file(*sub, "--choices", args->choices,
           "write the chosen node of each class to this file; - is standard output");
  sub->footer(
      "The cost of a class that several nodes use is counted once.\n"
      "Examples:\n"
      "  pwr extract data/*.json\n"
      "  pwr extract egraph.json --choices chosen.json\n"
      "  pwr extract model.json -r mine.pwr -p saturated --write-egraph egraph.json");
  sub->callback([args, &options] { run_extract(options, *args); });
}

}  // namespace pw::cli
