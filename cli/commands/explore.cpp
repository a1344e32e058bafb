#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/counted.hpp"
#include "base/io/file.hpp"
#include "base/io/shown_path.hpp"
#include "cli/commands.hpp"
#include "cli/settings.hpp"
#include "studies/study_page.hpp"

namespace pw::cli {
namespace {

struct ExploreArgs {
  GraphOptions dump;  ///< options of imports; the graphs are `files`
  std::vector<std::string> files;
  RuleOptions rules;
  ExploreRequest explore;
  std::vector<std::string> before, with, over;  ///< as they are written
  std::string tokens, shard = "1/1";
  std::uint64_t seed = 0;
  std::string study, merge, report;
  bool rows = false;
  std::size_t most = 20;
};

ExploreRequest explore_request(const Session& session, const ExploreArgs& args) {
  ExploreRequest out = args.explore;
  out.pipeline = args.rules.pipeline;
  for (const std::string& pair : args.before)
    out.before.push_back(session.need(parse_before(pair)));
  for (const std::string& values : args.with) out.with.push_back(session.need(parse_with(values)));
  if (!args.tokens.empty()) out.tokens = session.need(parse_token_ranges(args.tokens));
  for (const std::string& list : args.over) out.over.push_back(CLI::detail::split(list, ','));
  if (args.seed != 0) out.seed = args.seed;
  return out;
}

void write_report(const Session& session, const ExploreArgs& args, const StudySummary& summary,
                  const std::string& title) {
  session.need(write_file(args.report, study_page(summary, title)));
  session.say("wrote " + shown_path(args.report));
}

/// Reports the passes that the orders do not distinguish.
void report_groups(const Session& session, const Exploration& found) {
  if (!found.grouped()) return;
  for (const ExploredSetting& at : found.settings) {
    const std::string under = at.name.empty() ? "" : "under " + at.name + ": ";
    const std::size_t all = found.passes.size(), idle = at.results.idle.size();
    session.say(
        fmt::format("{}{} of {} passes change the graph in some order; the other {} commute with "
                    "all, so they are not reordered",
                    under, all - idle, all, idle));
    for (const std::vector<std::size_t>& passes : at.results.together) {
      std::vector<std::string> names;
      for (const std::size_t pass : passes) names.push_back(found.passes[pass]);
      session.say(fmt::format(
          "{}not all orders were explored: {} run as one unit, because they commute where the "
          "written order reaches them; use --passes to reorder fewer passes individually",
          under, fmt::join(names, ", ")));
    }
  }
}

/// Prints the results in a study's file so far.
void show_study(const Session& session, const Options& options, const ExploreArgs& args,
                const std::string& file) {
  if (args.rows) {
    print_out(session.need(study_rows(file, options.format == "json")));
    return;
  }
  const StudySummary summary = session.need(read_study(file, args.most));
  print_out(study_answer(summary).print(options.format));
  if (!args.report.empty()) write_report(session, args, summary, shown_path(file));
  if (!summary.suggestion.empty())
    session.say("an order that costs less over all graphs:\n" + summary.suggestion);
}

std::vector<StudyGraph> study_graphs(const Session& session, const ExploreArgs& args) {
  std::vector<StudyGraph> out;
  for (const std::string& file : args.files) {
    GraphSource source = args.dump;
    source.path = file;
    out.push_back({file, load(session, source)});
  }
  return out;
}

void run_study_command(const Session& session, const Options& options, const ExploreArgs& args) {
  const LoadedRules rules = load(session, args.rules);
  StudyRequest request{explore_request(session, args), args.study,
                       session.need(parse_shard(args.shard))};
  const StudyProgress progress =
      session.need(run_study(study_graphs(session, args), rules, request, session.log()));
  session.say(fmt::format("{}, {} of them already done; {} of a pass",
                          counted(progress.units, "unit"), progress.done,
                          counted(progress.runs, "run")));
  show_study(session, options, args, args.study);
}

void run_explore_one(const Session& session, const Options& options, const ExploreArgs& args) {
  const LoadedRules rules = load(session, args.rules);
  GraphSource source = args.dump;
  source.path = args.files.front();
  const Graph graph = load(session, source);
  const ExploreRequest request = explore_request(session, args);
  const Exploration found = session.need(explore(graph, rules, request, session.log()));
  print_out(explore_answer(found, args.most).print(options.format));
  session.say(fmt::format("{}, ending in {}; {} of a pass", counted(found.orders(), "order"),
                          counted(found.graphs(), "graph"), counted(found.runs(), "run")));
  report_groups(session, found);
  for (const std::string& circle : found.left_out)
    session.say("skipped, because it forms a cycle with other precedence: " + circle);
  const bool more = std::any_of(found.settings.begin(), found.settings.end(),
                                [&](const auto& at) { return at.ranked.size() > args.most; });
  if (more) session.say(fmt::format("the best {} are shown; --most shows more", args.most));
  session.say(found.suggestion.empty() ? "no order costs less than the written one"
                                       : "an order that costs less:\n" + found.suggestion);
  if (args.report.empty()) return;
  const std::vector<StudyGraph> graphs{{source.path, graph}};
  write_report(session, args,
               session.need(study_in_memory(graphs, rules, request, args.most, session.log())),
               shown_path(source.path));
}

void run_explore(const Options& options, const ExploreArgs& args) {
  const Session session(options);
  if (!args.merge.empty()) {
    session.need(merge_studies(args.merge, args.files));
    return show_study(session, options, args, args.merge);
  }
  if (!args.study.empty() && args.files.empty())
    return show_study(session, options, args, args.study);
  if (!args.study.empty()) return run_study_command(session, options, args);
  if (args.files.size() == 1) return run_explore_one(session, options, args);
  session.die(args.files.empty() ? "no graph is given" : "several graphs need a study",
              args.files.empty() ? "name a graph, or an existing study: --study FILE"
                                 : "name a file for the study: --study FILE",
              kUsage);
}

void add_space_options(CLI::App& sub, ExploreArgs& args) {
  add_setting(sub, "--space", args.explore.space, "NAME",
              "use this `explore` item of the rules; options override it");
  add_setting(sub, "--passes", args.explore.passes, "LIST",
              "reorder only these passes, and run the others of the pipeline before or after "
              "them, as written; default: reorder all")
      ->delimiter(',');
  add_setting(sub, "--before", args.before, "A:B", "a:b, only orders in which a runs before b");
  add_setting(
      sub, "--by", args.explore.by, "COSTS",
      "costs of an order: nodes, ops, bytes, launches, peak_bytes, modelled_us, measured_us, "
      "compile_ms; the first ranks the orders, all form the Pareto front; default: nodes")
      ->delimiter(',');
  add_switch(sub, "--subsets", args.explore.subsets, "also try leaving passes out");
  add_setting(sub, "--with", args.with, "NAME=VALUES",
              "try each of these values of a param: tp=1,2,4; repeatable");
  add_setting(sub, "--token-ranges", args.tokens, "RANGES",
              "try each of these token ranges: 1..256,257..8192");
  add_setting(sub, "--over", args.over, "RULES",
              "comma-separated rules: try each order of precedence among them, in addition to "
              "the written one");
  sub.add_option("--backend", args.explore.backend, "backend for measured_us and compile_ms")
      ->capture_default_str()
      ->type_name("NAME")
      ->configurable();
  sub.add_option("--tokens", args.explore.rows,
                 "tokens of the step that is modelled or measured; default: 256, or the maximum of "
                 "the graph if that is less")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 24))
      ->type_name("N")
      ->configurable();
  add_setting(sub, "--repeats", args.explore.repeats, CLI::Range(1, 100000),
              "runs of each measured step; the median is reported");
}

void add_study_options(CLI::App& sub, ExploreArgs& args) {
  add_file(sub, "--study", args.study,
           "store a row for each order of each graph in this SQLite file, and resume if it "
           "was interrupted; without graphs, show the study");
  sub.add_option("--sample", args.explore.sample,
                 "with --study: sample this many orders, drawn with --seed, instead of all")
      ->check(CLI::Range(1, 1'000'000))
      ->type_name("N")
      ->configurable();
  add_setting(sub, "--seed", args.seed, "N", "with --sample: the random seed; default: 1");
  sub.add_option("--shard", args.shard, "only run part I of N of the study: 2/8")
      ->capture_default_str()
      ->type_name("I/N")
      ->configurable();
  add_file(sub, "--merge", args.merge, "merge the named studies into this file");
  add_switch(sub, "--rows", args.rows, "print the units of a study instead, as CSV or JSON");
  add_file(sub, "--report", args.report,
           "write an HTML page with the states, the best path, the Pareto front, and which "
           "rule takes whose nodes");
  add_setting(sub, "--most", args.most, CLI::Range(1, 1'000'000),
              "number of final graphs or orders to show, best first");
}

}  // namespace

void add_explore_command(CLI::App& app, const Options& options) {
  auto args = std::make_shared<ExploreArgs>();
  auto* sub = app.add_subcommand("explore",
                                 "Run the passes of a pipeline in all orders to find the best one, "
                                 "and which rule takes whose nodes");
  args->dump.add_to(*sub, false);
  sub->remove_option(sub->get_option("graph"));  // a single graph is a special case of several here
  add_file(*sub, "graphs", args->files,
           std::string(kGraphFiles) + "; - is standard input; several with --study");
  args->rules.add_to(*sub);
  add_space_options(*sub, *args);
  add_study_options(*sub, *args);
  sub->footer(
      "A pass runs once on each graph that some order reaches.\n"
      "Examples:\n"
      "  pwr explore model.json -r llm -p o2 --passes norm,rope,activation,norm_quant\n"
      "  pwr explore model.json -r mine.pwr -p all --by nodes,bytes --before clean:norm\n"
      "  pwr explore model.json -r mine.pwr --space norms\n"
      "  pwr explore a.json b.json -r llm -p o2 --passes norm,rope,activation,norm_quant --study "
      "study.db --shard 1/4\n"
      "  pwr explore --merge study.db part1.db part2.db --report study.html");
  sub->callback([args, &options] { run_explore(options, *args); });
}

}  // namespace pw::cli
