// Exports the command generate.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/standard_output.hpp"
#include "cli/commands.hpp"
#include "pipeline/folder.hpp"
#include "pipeline/generating.hpp"
#include "pipeline/optimizing.hpp"

namespace pw::cli {
namespace {

/// A whole number of the request, with the bounds that it has.
void add_number(CLI::App& app, ModelRequest& request, std::string_view name,
                const std::string& what) {
  for (const ModelNumber& number : model_numbers())
    if (number.name == name)
      app.add_option(fmt::format("--{}", name), *number.place(request), what)
          ->check(CLI::Range(number.least, number.most))
          ->capture_default_str();
}

void add_model_options(CLI::App& app, ModelRequest& request) {
  app.add_option("family", request.family, "llama, or moe: with experts in its feed-forward layers")
      ->check(CLI::IsMember(model_families()))
      ->required();
  add_number(app, request, "layers", "decoder layers");
  add_number(app, request, "hidden", "width of the residual stream");
  add_number(app, request, "heads", "query heads");
  add_number(app, request, "kv-heads", "key and value heads");
  add_number(app, request, "ffn", "width of the feed-forward layer");
  add_number(app, request, "vocab", "rows of the embedding");
  app.add_option("--quant", request.llama.quant, "none or fp8")
      ->check(CLI::IsMember(model_quantisations()))
      ->capture_default_str();
  add_number(app, request, "tp", "tensor-parallel ranks: local widths and all_reduce");
  add_number(app, request, "experts", "of moe: experts of a layer, each a branch of its own");
  add_number(app, request, "topk", "of moe: experts that a token goes to");
  app.add_option("--shuffle", request.shuffle,
                 "put the nodes in another topological order, drawn by this seed");
}

struct GenerateArgs {
  ModelRequest model;
  std::string output = "-";
};

void run_generate(const Options& options, const GenerateArgs& args) {
  Session session(options);
  session.need(check_graph_path(args.output));
  const Graph graph = session.need(generate_model(session.context, args.model));
  const bool streamed = names_standard_output(args.output);
  session.need(save_graph(graph, args.output, session.json() && streamed));
  if (session.json() && !streamed) {
    Answer answer;
    answer.add("output", Cell(args.output));
    answer.add("nodes", Cell(graph.node_count()));
    print_out(answer.print("json"));
  }
  session.say(fmt::format("{}: {} layers, {} nodes{}", args.model.family, args.model.llama.layers,
                          graph.node_count(),
                          args.model.shuffle ? fmt::format(", seed {}", *args.model.shuffle) : ""));
}

}  // namespace

void add_generate_command(CLI::App& app, const Options& options) {
  auto generate = std::make_shared<GenerateArgs>();
  auto* sub =
      app.add_subcommand("generate", "Make a graph of a model family, for examples and benchmarks");
  add_model_options(*sub, generate->model);
  sub->add_option("-o,--output", generate->output,
                  "the file to write, .json or .pwg; - is standard output (.pwg)");
  sub->footer(
      "Example:\n  pwr generate llama --layers 32 --hidden 4096 --heads 32 --kv-heads 8 --ffn "
      "14336 --quant fp8 -o llama.json\n  pwr generate moe --layers 8 --experts 16 --shuffle 1 -o "
      "moe.json");
  sub->callback([generate, &options] { run_generate(options, *generate); });
}

}  // namespace pw::cli
