// Exports the command generate, and the same for baselines: a graph from its options as text.
#include <optional>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/commands.hpp"
#include "cli/generating.hpp"
#include "graph/generate.hpp"
#include "pipeline/folder.hpp"

namespace pw::cli {
namespace {

struct ModelArgs {
  LlamaOptions llama;
  std::int64_t experts = 8;  // of the family moe
  std::string family;
  std::optional<std::uint64_t> shuffle;
};

void add_model_options(CLI::App& app, ModelArgs& args) {
  app.add_option("family", args.family, "llama, or moe: with experts in its feed-forward layers")
      ->check(CLI::IsMember({"llama", "moe"}))
      ->required();
  app.add_option("--layers", args.llama.layers, "decoder layers")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  app.add_option("--hidden", args.llama.hidden, "width of the residual stream")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--heads", args.llama.heads, "query heads")
      ->check(CLI::Range(1, 1 << 16))
      ->capture_default_str();
  app.add_option("--kv-heads", args.llama.kv_heads, "key and value heads")
      ->check(CLI::Range(1, 1 << 16))
      ->capture_default_str();
  app.add_option("--ffn", args.llama.ffn, "width of the feed-forward layer")
      ->check(CLI::Range(1, 1 << 22))
      ->capture_default_str();
  app.add_option("--vocab", args.llama.vocab, "rows of the embedding")
      ->check(CLI::Range(1, 1 << 24))
      ->capture_default_str();
  app.add_option("--quant", args.llama.quant, "none or fp8")
      ->check(CLI::IsMember({"none", "fp8"}))
      ->capture_default_str();
  app.add_option("--tp", args.llama.tp, "tensor-parallel ranks: local widths and all_reduce")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--experts", args.experts, "of moe: experts of a layer, each a branch of its own")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--topk", args.llama.topk, "of moe: experts that a token goes to")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--shuffle", args.shuffle,
                 "put the nodes in another topological order, drawn by this seed");
}

Graph make(const Session& session, const ModelArgs& args) {
  session.need(load_op_library(session.context));
  LlamaOptions model = args.llama;
  model.experts = args.family == "moe" ? args.experts : 0;
  Graph graph = session.need(generate_llama(session.context, model));
  return args.shuffle ? shuffled(std::move(graph), *args.shuffle) : std::move(graph);
}

struct GenerateArgs {
  ModelArgs model;
  std::string output = "-";
};

void run_generate(const Options& options, const GenerateArgs& args) {
  Session session(options);
  check_output_type(session, args.output);
  Graph graph = make(session, args.model);
  session.need(save_graph(graph, args.output));
  session.say(fmt::format("{}: {} layers, {} nodes{}", args.model.family, args.model.llama.layers,
                          graph.node_count(),
                          args.model.shuffle ? fmt::format(", seed {}", *args.model.shuffle) : ""));
}

}  // namespace

Graph generated(const Session& session, const std::string& options) {
  CLI::App app;
  ModelArgs args;
  add_model_options(app, args);
  try {
    app.parse(options);
  } catch (const CLI::ParseError& e) {
    session.die("`pwr generate " + options + "` is no command: " + e.what(),
                "`pwr generate --help` lists the options", kInvalidInput);
  }
  return make(session, args);
}

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
