// Exports the command generate, and the same for baselines: a graph from its options as text.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/commands.hpp"
#include "cli/generating.hpp"
#include "graph/generate.hpp"

namespace pw::cli {
namespace {

struct ModelArgs {
  LlamaOptions llama;
  std::string family;
};

void add_model_options(CLI::App& app, ModelArgs& args) {
  app.add_option("family", args.family, "llama")->check(CLI::IsMember({"llama"}))->required();
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
}

Graph make(const Session& session, const ModelArgs& args) {
  session.need(load_op_library(session.context));
  return session.need(generate_llama(session.context, args.llama));
}

struct GenerateArgs {
  ModelArgs model;
  std::string output = "-";
};

void run_generate(const Options& options, const GenerateArgs& args) {
  Session session(options);
  check_output_type(session, args.output);
  Graph graph = make(session, args.model);
  save(session, graph, args.output);
  session.say(
      fmt::format("llama: {} layers, {} nodes", args.model.llama.layers, graph.node_count()));
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
      "14336 --quant fp8 -o llama.json");
  sub->callback([generate, &options] { run_generate(options, *generate); });
}

}  // namespace pw::cli
