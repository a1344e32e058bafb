// Exports the commands that read, write and make graphs: import, export, stats, generate.
#include <map>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/standard_output.hpp"
#include "cli/commands.hpp"
#include "graph/text.hpp"
#include "graph/verify.hpp"
#include "pipeline/folder.hpp"

namespace pw::cli {
namespace {

struct ImportArgs {
  GraphOptions graph;
  RuleOptions rules;  ///< what they say of foreign ops, and the ops that they declare
  std::string output = "-";
};

/// `, writes cache, k`, or nothing.
std::string writes_of(const Graph& graph) {
  std::string out;
  for (ValueId input : graph.written_inputs())
    out += (out.empty() ? ", writes " : ", ") + std::string(graph.value_name(input));
  return out;
}

void run_import(const Options& options, const ImportArgs& args) {
  Session session(options);
  check_output_type(session, args.output);
  if (!args.rules.rules.empty()) load(session, args.rules);
  Graph graph = load(session, args.graph, true);
  if (Diagnostics errors = verify(graph); !errors.empty()) session.die(errors);
  session.need(save_graph(graph, args.output));
  session.say(fmt::format("{}: {} nodes, {} inputs, {} outputs{}{}", args.graph.path,
                          graph.node_count(), graph.inputs().size(), graph.returned_count(),
                          writes_of(graph), args.output == "-" ? "" : " → " + args.output));
}

void run_stats(const Options& options, const ImportArgs& args) {
  Session session(options);
  if (!args.rules.rules.empty()) load(session, args.rules);
  Graph graph = load(session, args.graph);
  std::map<std::string, std::size_t> counts;
  for (NodeId n = graph.first(); n.valid(); n = graph.next(n)) ++counts[graph.op_of(n).name];
  std::vector<std::pair<std::string, std::size_t>> rows(counts.begin(), counts.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  Table table({"op", "nodes", "meaning"});
  for (const auto& [op, count] : rows) {
    const Op& decl = session.context->ops[session.context->ops.find(op)];
    table.add({op, std::to_string(count),
               decl.imported     ? "unknown"
               : decl.has_body() ? "body"
                                 : "native"});
  }
  print_out(table.print(options.format));
  session.say(fmt::format("{} nodes, {} inputs, {} outputs{}, structural hash {:016x}",
                          graph.node_count(), graph.inputs().size(), graph.returned_count(),
                          writes_of(graph), structural_hash(graph)));
}

}  // namespace

void check_output_type(const Session& session, const std::string& path) {
  if (path.empty() || path.ends_with(".json") || path.ends_with(".pwg") || names_stream(path))
    return;
  session.die("cannot tell the type of `" + path + "` from its extension",
              "graphs are written as .json or .pwg", kUsage);
}

void add_graph_commands(CLI::App& app, const Options& options) {
  auto import = std::make_shared<ImportArgs>();
  auto* sub = app.add_subcommand(
      "import",
      "Read an FX dump, graph.json or .pwg, check it, and write it as graph.json or .pwg");
  import->graph.add_to(*sub);
  import->rules.add_to(*sub, false);
  sub->add_option("-o,--output", import->output,
                  "the file to write, .json or .pwg; - is standard output (.pwg)");
  sub->footer(
      "Examples:\n  pwr import model.fx.txt --symbol n=arg0_1.0,arg6_1.0 -o model.json\n  pwr "
      "import model.json                    print it as text\n  pwr import model.fx.txt -r my.pwr "
      "          with what my.pwr says of foreign ops");
  sub->callback([import, &options] { run_import(options, *import); });

  auto exported = std::make_shared<ImportArgs>();
  sub =
      app.add_subcommand("export", "Write a graph in another form; the type follows the extension");
  exported->graph.add_to(*sub);
  exported->rules.add_to(*sub, false);
  sub->add_option("-o,--output", exported->output, "the file to write, .json or .pwg");
  sub->footer("Example:\n  pwr export model.json -o model.pwg");
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
