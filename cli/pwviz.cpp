// The program pwviz: pictures of graphs, of what a pipeline did to them, and of their splits.
#include <algorithm>
#include <filesystem>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "base/file.hpp"
#include "base/standard_output.hpp"
#include "base/version.hpp"
#include "cli/command_line.hpp"
#include "cli/commands.hpp"
#include "cli/config_file.hpp"
#include "cli/documentation.hpp"
#include "cli/guard.hpp"
#include "cli/planning.hpp"
#include "viz/named_journal.hpp"
#include "viz/viz.hpp"

namespace pw::cli {
namespace {

struct VizArgs {
  std::vector<std::string> files;
  GraphOptions graph;
  RuleOptions rules;
  PlanArgs plan;
  std::string output, collapse = "auto", pass, view = "auto", overlay;
  bool split = false, times = false;
  std::size_t most_boxes = VizOptions{}.most_boxes;
};

/// The graphs of a folder (or of the folder that a journal lies in) in the order of their names, or
/// the file itself.
std::vector<std::string> expand(const Session& session, const std::string& given) {
  const bool journal = std::filesystem::path(given).extension() == ".jsonl";
  std::string path = journal ? std::filesystem::path(given).parent_path().string() : given;
  if (journal && path.empty()) path = ".";
  if (journal && !std::filesystem::exists(given))
    session.die("there is no journal `" + given + "`",
                "`pwr opt --trace DIR` writes DIR/journal.jsonl", kInvalidInput);
  if (!journal && !std::filesystem::is_directory(path)) return {path};
  std::vector<std::string> out;
  std::error_code unreadable;
  for (const auto& entry : std::filesystem::directory_iterator(path, unreadable))
    if (entry.path().extension() == ".pwg" || entry.path().extension() == ".json")
      out.push_back(entry.path().string());
  std::sort(out.begin(), out.end());
  if (unreadable)
    session.die("cannot read the folder `" + path + "`: " + unreadable.message(), "",
                kInvalidInput);
  if (out.empty())
    session.die("the folder `" + path + "` holds no graph (.pwg, .json)",
                "`pwr opt --trace DIR` writes such a folder", kInvalidInput);
  return out;
}

/// The journal beside the graphs of a trace, if there is one.
std::string journal_of(const std::vector<std::string>& files) {
  if (files.size() < 2) return {};
  const auto path = std::filesystem::path(files.front()).parent_path() / "journal.jsonl";
  return std::filesystem::exists(path) ? path.string() : std::string();
}

/// "03-norm_quant.pwg" of a trace → "norm_quant".
std::string pass_of(const std::string& file, bool trace) {
  const std::string stem = std::filesystem::path(file).stem().string();
  const std::size_t dash = stem.find('-');
  const bool numbered =
      dash != std::string::npos && dash > 0 && stem.find_first_not_of("0123456789") == dash;
  return trace && numbered ? stem.substr(dash + 1) : stem;
}

std::optional<std::size_t> version_named(const Session& session,
                                         const std::vector<Version>& versions,
                                         const std::string& pass) {
  if (pass.empty()) return std::nullopt;
  for (std::size_t i = 0; i < versions.size(); ++i)
    if (versions[i].pass == pass || std::to_string(i) == pass) return i;
  std::vector<std::string> names;
  for (const Version& v : versions) names.push_back(v.pass);
  session.die(fmt::format("there is no pass `{}`", pass),
              "there are: " + fmt::format("{}", fmt::join(names, ", ")), kUsage);
}

void run_pwviz(const Options& options, const VizArgs& args) {
  Session session(options);
  VizInput input;
  RewriteReport report;
  std::vector<std::string> files;
  for (const std::string& path : args.files)
    for (std::string& file : expand(session, path)) files.push_back(std::move(file));
  LoadedRules rules = load(session, args.rules);
  const std::string journal = args.files.size() == 1 ? journal_of(files) : std::string();
  for (const std::string& file : files) {
    GraphOptions one = args.graph;
    one.path = file;
    input.versions.push_back({pass_of(file, !journal.empty()), load(session, one)});
  }
  std::vector<NamedRewrite> named;
  if (!journal.empty()) {
    named = session.need(named_journal_from_json(session.need(read_file(journal)), journal));
    input.named_journal = &named;
    input.rules = &rules.set;
  }
  input.related = files.size() == 1;
  if (!args.rules.pipeline.empty()) {
    if (files.size() != 1)
      session.die("-p rewrites one graph, not " + std::to_string(files.size()), "", kUsage);
    Graph graph = std::move(input.versions.front().graph);
    input.versions.clear();
    RewriteOptions watched;
    watched.after_pass = [&](const std::string& pass, const Graph& g) {
      input.versions.push_back({pass, g});
    };
    report = session.need(rewrite(graph, rules, args.rules.pipeline, watched, session.log()));
    if (!args.times) report.journal = without_times(report.journal);
    input.journal = &report.journal;
    input.rules = &rules.set;
  }
  VizOptions viz;
  viz.collapse = *collapse_named(args.collapse);
  viz.most_boxes = args.most_boxes;
  // The outline goes to standard output, messages to standard error: both are looked at.
  viz.color = session.color() && args.output.empty() &&
              (options.color == "always" || ::isatty(STDOUT_FILENO) != 0);
  viz.view = *view_named(args.view);
  Overlay overlay;
  if (!args.overlay.empty()) {
    overlay = session.need(overlay_from_json(session.need(read_file(args.overlay)), args.overlay));
    overlay.title = std::filesystem::path(args.overlay).stem().string();
    viz.overlay = &overlay;
  }
  viz.version = version_named(session, input.versions, args.pass);
  if (input.versions.size() > 1 && viz.version.value_or(1) > 0) viz.against = 0;
  std::optional<StitchedGraph> pieces;
  std::optional<Plan> plan;
  const Graph& last = input.versions.back().graph;
  if (args.split && (!viz.version || *viz.version + 1 == input.versions.size())) {
    const PlanRequest request = args.plan.request(session);
    pieces = session.need(cut_graph(last, rules, request));
    input.pieces = &*pieces;
    if (!last.facts.tokens().empty()) {
      plan = session.need(plan_graph(*pieces, last, rules, request, session.log()));
      input.plan = &*plan;
    }
    session.say(split_summary(*pieces));
  }
  const bool text = args.output.empty() || names_stream(args.output);
  const std::string picture =
      session.need(text ? render_outline(input, viz) : render_as(args.output, input, viz));
  if (args.output.empty())
    print_rendered(picture);
  else
    session.need(write_file(args.output, picture));
}

int run(int argc, char** argv) {
  CLI::App app(
      "Draw graphs: before and after each pass, split into pieces, folded where they repeat.",
      "pwviz");
  Options options;
  VizArgs args;
  app.add_option(
         "files", args.files,
         "graph.json, .pwg or an FX dump; several to compare; a folder written by pwr opt --trace, "
         "or the journal in it")
      ->required();
  app.add_option("-o,--output", args.output,
                 "the picture; its type follows the extension: .svg .png .pdf .dot .html .txt .md, "
                 ".me.json and .sync.json for Model Explorer; without it, a text outline");
  app.add_option("--symbol", args.graph.symbols, "make input dims of a dump symbolic: n=arg0_1.0")
      ->type_name("NAME=DIMS");
  args.rules.add_to(app);
  app.add_option("--pass", args.pass,
                 "show the graph after this pass (its name or number; input is the first)")
      ->type_name("PASS");
  app.add_option("--view", args.view,
                 "where a page opens: auto, overview, graph, all, side, rewrites, pieces, sizes, "
                 "memory, table; overview and all are also forms of the other pictures")
      ->check(CLI::IsMember({"auto", "overview", "graph", "all", "side", "rewrites", "pieces",
                             "sizes", "memory", "table"}))
      ->capture_default_str();
  app.add_option("--overlay", args.overlay,
                 "colour a page's nodes by numbers: a JSON object of names of nodes or values")
      ->type_name("FILE");
  app.add_option("--collapse", args.collapse, "what becomes one box: auto, none, pieces, layers")
      ->check(CLI::IsMember({"auto", "none", "pieces", "layers"}))
      ->capture_default_str();
  app.add_option("--most-boxes", args.most_boxes,
                 "above this many boxes, whole pieces or layers are folded")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  app.add_flag("--times", args.times,
               "say how long passes took; without, the same input gives the same page");
  app.add_flag("!--no-split", args.split, "do not cut the graph at attention-like ops");
  args.split = true;
  args.plan.add_to(app);
  app.add_option("--color", options.color, "of the outline: auto, always, never")
      ->check(CLI::IsMember({"auto", "always", "never"}));
  app.add_flag("-q,--quiet", options.quiet, "no messages but errors");
  app.set_version_flag("--version", std::string("pwviz ") + version());
  add_config_options(app, options, false);
  add_documentation_options(app);
  app.footer(
      "Examples:\n"
      "  pwviz model.json                            an outline in the terminal\n"
      "  pwviz model.json -o model.svg               the pieces as clusters\n"
      "  pwviz model.json -r llm -p o2 -o o2.html    each pass of o2, one page\n"
      "  pwviz model.json -r llm -p o2 --pass norm_quant -o norm_quant.png\n"
      "  pwviz trace/ -r llm -o trace.html           a run that pwr opt --trace wrote down\n"
      "  pwviz model.json --overlay times.json -o times.html\n"
      "  pwviz before.json after.json -o diff.svg");
  return run_command_line(app, argc, argv, [&] { run_pwviz(options, args); });
}

}  // namespace
}  // namespace pw::cli

int main(int argc, char** argv) {
  return pw::cli::guarded(argc, argv, [&] { return pw::cli::run(argc, argv); });
}
