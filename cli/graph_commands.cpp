// Exports the commands that read, write and make graphs: import, export, stats, generate.
#include <map>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/file.hpp"
#include "cli/commands.hpp"
#include "graph/generate.hpp"
#include "graph/graph_json.hpp"
#include "graph/text.hpp"
#include "graph/verify.hpp"

namespace pw::cli {
namespace {

bool ends_with(const std::string& text, std::string_view end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

struct ImportArgs {
  GraphOptions graph;
  std::string output = "-";
};

void run_import(const Options& options, const ImportArgs& args) {
  Session session(options);
  check_output_type(session, args.output);
  Graph graph = load(session, args.graph, true);
  if (Diagnostics errors = verify(graph); !errors.empty()) session.die(errors);
  save(session, graph, args.output);
  session.say(fmt::format("{}: {} nodes, {} inputs, {} outputs{}", args.graph.path,
                          graph.node_count(), graph.inputs().size(), graph.outputs().size(),
                          args.output == "-" ? "" : " → " + args.output));
}

void run_stats(const Options& options, const ImportArgs& args) {
  Session session(options);
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
  std::fputs(table.print(options.format).c_str(), stdout);
  session.say(fmt::format("{} nodes, {} inputs, {} outputs, structural hash {:016x}",
                          graph.node_count(), graph.inputs().size(), graph.outputs().size(),
                          structural_hash(graph)));
}

struct GenerateArgs {
  LlamaOptions llama;
  std::string family;
  std::string output = "-";
};

void run_generate(const Options& options, const GenerateArgs& args) {
  Session session(options);
  check_output_type(session, args.output);
  session.need(load_op_library(session.context));
  Graph graph = session.need(generate_llama(session.context, args.llama));
  save(session, graph, args.output);
  session.say(fmt::format("llama: {} layers, {} nodes", args.llama.layers, graph.node_count()));
}

}  // namespace

void check_output_type(const Session& session, const std::string& path) {
  if (path.empty() || path == "-" || ends_with(path, ".json") || ends_with(path, ".pwg")) return;
  session.die("cannot tell the type of `" + path + "` from its extension",
              "graphs are written as .json or .pwg", kUsage);
}

void save(const Session& session, const Graph& graph, const std::string& path) {
  session.need(
      write_file(path, ends_with(path, ".json") ? graph_to_json(graph) : print_pwg(graph)));
}

void add_graph_commands(CLI::App& app, const Options& options) {
  auto import = std::make_shared<ImportArgs>();
  auto* sub = app.add_subcommand(
      "import",
      "Read an FX dump, graph.json or .pwg, check it, and write it as graph.json or .pwg");
  import->graph.add_to(*sub);
  sub->add_option("-o,--output", import->output,
                  "the file to write, .json or .pwg; - is standard output (.pwg)");
  sub->footer(
      "Examples:\n  pwr import model.fx.txt --symbol n=arg0_1.0,arg6_1.0 -o model.json\n  pwr "
      "import model.json                    print it as text");
  sub->callback([import, &options] { run_import(options, *import); });

  auto exported = std::make_shared<ImportArgs>();
  sub =
      app.add_subcommand("export", "Write a graph in another form; the type follows the extension");
  exported->graph.add_to(*sub);
  sub->add_option("-o,--output", exported->output, "the file to write, .json or .pwg");
  sub->footer("Example:\n  pwr export model.json -o model.pwg");
  sub->callback([exported, &options] { run_import(options, *exported); });

  auto stats = std::make_shared<ImportArgs>();
  sub = app.add_subcommand("stats", "Count a graph's ops");
  stats->graph.add_to(*sub);
  sub->footer("Example:\n  pwr stats model.json --format csv");
  sub->callback([stats, &options] { run_stats(options, *stats); });

  auto generate = std::make_shared<GenerateArgs>();
  sub =
      app.add_subcommand("generate", "Make a graph of a model family, for examples and benchmarks");
  sub->add_option("family", generate->family, "llama")->check(CLI::IsMember({"llama"}))->required();
  sub->add_option("--layers", generate->llama.layers, "decoder layers")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  sub->add_option("--hidden", generate->llama.hidden, "width of the residual stream")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  sub->add_option("--heads", generate->llama.heads, "query heads")
      ->check(CLI::Range(1, 1 << 16))
      ->capture_default_str();
  sub->add_option("--kv-heads", generate->llama.kv_heads, "key and value heads")
      ->check(CLI::Range(1, 1 << 16))
      ->capture_default_str();
  sub->add_option("--ffn", generate->llama.ffn, "width of the feed-forward layer")
      ->check(CLI::Range(1, 1 << 22))
      ->capture_default_str();
  sub->add_option("--vocab", generate->llama.vocab, "rows of the embedding")
      ->check(CLI::Range(1, 1 << 24))
      ->capture_default_str();
  sub->add_option("--quant", generate->llama.quant, "none or fp8")
      ->check(CLI::IsMember({"none", "fp8"}))
      ->capture_default_str();
  sub->add_option("--tp", generate->llama.tp, "tensor-parallel ranks: local widths and all_reduce")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  sub->add_option("-o,--output", generate->output,
                  "the file to write, .json or .pwg; - is standard output (.pwg)");
  sub->footer(
      "Example:\n  pwr generate llama --layers 32 --hidden 4096 --heads 32 --kv-heads 8 --ffn "
      "14336 --quant fp8 -o llama.json");
  sub->callback([generate, &options] { run_generate(options, *generate); });
}

}  // namespace pw::cli
