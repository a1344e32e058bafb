#include "pipeline/generate.hpp"

#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/io/standard_output.hpp"
#include "cli/commands.hpp"
#include "cli/settings.hpp"
#include "pipeline/folder.hpp"
#include "pipeline/optimize.hpp"

namespace pw::cli {
namespace {

/// Adds an option for an integer of the request, with its bounds.
void add_number(CLI::App& app, ModelRequest& request, std::string_view name,
                const std::string& what) {
  for (const ModelNumber& number : model_numbers())
    if (number.name == name)
      app.add_option(fmt::format("--{}", name), *number.place(request), what)
          ->check(CLI::Range(number.least, number.most))
          ->configurable();
}

std::vector<std::string> family_names() {
  std::vector<std::string> names;
  for (const FamilyName& family : model_families()) names.push_back(family.name);
  return names;
}

std::string families() {
  std::string out;
  for (const FamilyName& family : model_families())
    out += fmt::format("{}{} ({})", out.empty() ? "" : ", ", family.name, family.what);
  return out;
}

void add_model_options(CLI::App& app, ModelRequest& request) {
  app.add_option(
         "family", request.model.family,
         "model family, with the sizes of the model in parentheses unless options set others: " +
             families())
      ->check(CLI::IsMember(family_names()))
      ->option_text("FAMILY")
      ->required();
  add_number(app, request, "layers",
             "decoder layers; the number of nodes of the whole model is limited too");
  add_number(app, request, "hidden", "width of the residual stream");
  add_number(app, request, "heads", "query heads");
  add_number(app, request, "kv-heads", "key and value heads");
  add_number(app, request, "head", "width of a head");
  add_number(app, request, "ffn", "width of the feed-forward layer");
  add_number(app, request, "vocab", "rows of the embedding");
  add_number(app, request, "max-tokens", "maximum tokens of a step");
  add_setting(app, "--eps", request.model.eps, "epsilon of all norms");
  add_setting(app, "--quant", request.model.quant, CLI::IsMember(model_quantisations()),
              "quantisation of linear layers: none, fp8 (one static scale for each tensor), "
              "fp8-token (one for each row), fp8-group (one for --group neighbours), nvfp4 (one "
              "for 16 neighbours)");
  add_setting(app, "--lm-head", request.model.lm_head, "HEAD",
              "parts after the last hidden state: none, logits, greedy (the token with the largest "
              "logit), or the values of a draw, temperature=0.8,top_k=50,top_p=0.9");
  add_number(app, request, "group",
             "with fp8-group: number of neighbours that share a scale, default 128");
  add_number(app, request, "tp", "tensor-parallel ranks: local widths and all_reduce");
  add_number(app, request, "rank", "with --tp: rank to generate the graph for, default 0");
  add_number(app, request, "experts", "experts of a layer");
  add_number(app, request, "topk", "experts for each token");
  add_number(app, request, "expert-ffn", "width of an expert, default --ffn");
  add_number(app, request, "q-rank", "latent attention: rank of the queries; 0: full rank");
  add_number(app, request, "kv-rank", "latent attention: rank of keys and values");
  add_switch(
      app, "--opaque", request.model.opaque,
      "generate mixtures of experts and latent attention as single ops with their own weights, "
      "as vLLM compiles them; such graphs can be rewritten, split and planned, but not run");
  add_switch(app, "--separate", request.separate,
             "llama and moe: use a separate matmul for each of queries, keys, values, gate and "
             "up, as in training");
  add_setting(app, "--shuffle", request.shuffle,
              "shuffle the nodes into a random topological order with this seed");
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
  session.say(fmt::format("{}: {}, {}{}", args.model.model.family,
                          counted(model_layers(args.model), "layer"),
                          counted(graph.node_count(), "node"),
                          args.model.shuffle ? fmt::format(", seed {}", *args.model.shuffle) : ""));
}

}  // namespace

void add_generate_command(CLI::App& app, const Options& options) {
  auto generate = std::make_shared<GenerateArgs>();
  auto* sub = app.add_subcommand("generate",
                                 "Generate a graph of a model family, for examples and benchmarks");
  add_model_options(*sub, generate->model);
  sub->add_option("-o,--output", generate->output,
                  "the file to write, .json, .pwg or .pwb; - is standard output (.pwg)");
  sub->footer(
      "Examples:\n  pwr generate llama --layers 32 --hidden 4096 --heads 32 --kv-heads 8 --ffn "
      "14336 --quant fp8 -o llama.json\n  pwr generate moe --layers 8 --experts 16 --shuffle 1 -o "
      "moe.json\n  pwr generate qwen3 --layers 2 --hidden 256 --heads 4 --ffn 512 --vocab 512 -o "
      "qwen3.pwg\n  pwr generate llama3 --lm-head temperature=0.8,top_k=50 -o step.pwg\n  pwr "
      "generate deepseek-v3 --quant fp8-group --tp 8 --opaque -o v3.json");
  sub->callback([generate, &options] { run_generate(options, *generate); });
}

}  // namespace pw::cli
