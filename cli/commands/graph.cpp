#include <map>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/io/standard_output.hpp"
#include "cli/commands.hpp"
#include "cli/settings.hpp"
#include "pipeline/folder.hpp"
#include "pipeline/optimize.hpp"
#include "pipeline/report/graph_stats.hpp"
#include "pipeline/run/save_weights.hpp"

namespace pw::cli {
namespace {

struct ImportArgs {
  GraphOptions graph;
  RuleOptions rules;  ///< their foreign ops and declared ops
  std::string output = "-";
  std::string weights;  ///< a file for the weights of a .pt2
  bool all = false;     ///< every line about the import
};

/// Prints the first lines of each kind, such as `symbol: …`, and counts the others.
class ShortLines {
 public:
  explicit ShortLines(const Session& session) : session_(session) {}

  void say(const std::string& line) {
    const std::string kind = line.substr(0, line.find(':'));
    if (++counts_[kind] <= kShown) session_.say(line);
  }
  void finish() const {
    for (const auto& [kind, count] : counts_)
      if (count > kShown)
        session_.say(fmt::format("{}: {} more; --all lists them", kind, count - kShown));
  }

 private:
  static constexpr std::size_t kShown = 4;
  const Session& session_;
  std::map<std::string, std::size_t> counts_;
};

Answer saved_answer(const GraphStats& stats, const std::string& output, const SavedGraph& saved) {
  Answer out;
  out.add("output", Cell(output));
  out.add("nodes", Cell(stats.nodes));
  out.add("inputs", Cell(stats.inputs));
  out.add("outputs", Cell(stats.outputs));
  out.add("weights", saved.weights.empty() ? null_cell() : Cell(saved.weights));
  out.add("custom", list_cell(saved.custom));
  return out;
}

void run_import(const Options& options, const ImportArgs& args) {
  Session session(options);
  session.need(check_graph_path(args.output));
  if (!args.rules.rules.empty()) load(session, args.rules);
  Log log = session.log();
  ShortLines lines(session);
  if (!args.all) log.say = [&](const std::string& line) { lines.say(line); };
  const Graph graph = session.need(import_graph(session.context, args.graph, log));
  lines.finish();
  const bool streamed = names_standard_output(args.output);
  session.log().progress({"writing " + args.output});
  const SavedGraph saved = session.need(save_model(graph, args.output, session.json() && streamed));
  if (!args.weights.empty()) session.need(save_weights(args.graph, args.weights));
  const GraphStats stats = count_graph(graph);
  if (session.json() && !streamed) print_out(saved_answer(stats, args.output, saved).print("json"));
  session.say(args.graph.path + ": " + size_line(stats) + (streamed ? "" : " → " + args.output));
  if (!saved.weights.empty())
    session.say(
        fmt::format("weights → {}: run it with --weights {}", saved.weights, saved.weights));
  if (!saved.custom.empty())
    session.say(fmt::format("ONNX has no {}: they are calls of the domain `piecewise`",
                            fmt::join(saved.custom, ", ")));
}

void run_stats(const Options& options, const ImportArgs& args) {
  Session session(options);
  if (!args.rules.rules.empty()) load(session, args.rules);
  const GraphStats stats = count_graph(load(session, args.graph));
  print_out(stats_answer(stats).print(options.format));
  session.say(fmt::format("{}, structural hash {:016x}", size_line(stats), stats.hash));
}

}  // namespace

void add_graph_commands(CLI::App& app, const Options& options) {
  auto import = std::make_shared<ImportArgs>();
  auto* sub = app.add_subcommand(
      "import",
      "Read an FX dump, .pt2, an ONNX model, graph.json, .pwg or .pwb, check it, and write it as "
      "graph.json, .pwg or .pwb");
  import->graph.add_to(*sub);
  import->rules.add_to(*sub, false);
  sub->add_option("-o,--output", import->output,
                  "the file to write, .json, .pwg, .pwb or .onnx; - is standard output (.pwg). "
                  "Weights of an ONNX model are written next to it, as .weights.safetensors");
  add_switch(*sub, "--all", import->all,
             "print every message about the import, not four of a kind");
  add_file(*sub, "--save-weights", import->weights,
           "with a .pt2: write its tensors to this file, in the safetensors format");
  sub->footer(
      "Examples:\n"
      "  pwr import model.fx.txt --symbol n=arg0_1.0,arg6_1.0 -o model.json\n"
      "  pwr import model.onnx -o model.pwg       and its weights, as model.weights.safetensors\n"
      "  pwr import model.json                    print it as text\n"
      "  pwr import model.fx.txt -r my.pwr           with the foreign ops of my.pwr\n"
      "  pwr import model.pt2 -o model.json --save-weights model.safetensors");
  sub->callback([import, &options] { run_import(options, *import); });

  auto exported = std::make_shared<ImportArgs>();
  sub = app.add_subcommand("export", "Convert a graph to the format of the file extension");
  exported->graph.add_to(*sub);
  exported->rules.add_to(*sub, false);
  sub->add_option("-o,--output", exported->output, "the file to write, .json, .pwg, .pwb or .onnx");
  sub->footer(
      "Examples:\n"
      "  pwr export model.json -o model.pwg\n"
      "  pwr export model.pwg -o model.onnx\n"
      "  pwr export model.json -o model.pwb      for large graphs: much faster to load");
  sub->callback([exported, &options] { run_import(options, *exported); });

  auto stats = std::make_shared<ImportArgs>();
  sub = app.add_subcommand("stats", "Count a graph's ops");
  stats->graph.add_to(*sub);
  stats->rules.add_to(*sub, false);
  sub->footer("Example:\n  pwr stats model.json --format csv");
  sub->callback([stats, &options] { run_stats(options, *stats); });
  add_generate_command(app, options);
}

}  // namespace pw::cli
