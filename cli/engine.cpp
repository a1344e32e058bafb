#include "cli/engine.hpp"

#include "cli/help/help_format.hpp"
#include "cli/option_table.hpp"
#include "cli/settings.hpp"
#include "engines/step_engine.hpp"

namespace pw::cli {
namespace {

std::vector<std::string> backend_names() {
  std::vector<std::string> out;
  for (const StepEngineKind& engine : builtin_engines()) out.push_back(engine.name);
  return out;
}

/// "eager: op by op, by Eigen and by loops; …"
std::string backend_help() {
  std::string out;
  for (const StepEngineKind& engine : builtin_engines())
    out += (out.empty() ? "" : "; ") + engine.name + ": " + engine.what;
  return out;
}

/// Adds the options for a plan and weights from files.
void add_file_options(CLI::App& app, ExecutionRequest& stated) {
  CLI::Option* given = add_setting(app, "--plan", stated.planned, "FILE",
                                   "use this plan.json, written by pwr plan or --report");
  for (const char* option :
       {"--max-tokens", "--ranges", "--sizes", "--size-cap", "--compile-sizes", "--max-requests",
        "--speculative-tokens", "--sequence-parallel", "--loras", "--mode"})
    given->excludes(app.get_option(option));
  CLI::Option* file = add_setting(app, "--weights", stated.weights, "FILE",
                                  "load weights and any other inputs present from this "
                                  "safetensors file or .pt2; the rest are generated from --seed");
  add_setting(app, "--map", stated.map, "FILE",
              "JSON that maps inputs to tensors of --weights: {\"l{i}_qkv_w\": "
              "\"layers.{i}.qkv.weight\"}; default: the tensor with the same name")
      ->needs(file);
}

}  // namespace

void EngineArgs::fill(const Session& session, ExecutionRequest& request) const {
  request = stated;
  request.engines = session.engines();
  request.graph = graph;
  request.rules = rules;
  request.plan = plan.request(session);
  request.engine.fuse = grouping != "none";
  if (!tokens.empty())
    request.tokens = session.need(parse_numbers(tokens, 1, std::int64_t{1} << 24));
  if (!ends.empty()) request.ends = session.need(parse_numbers(ends, 0, std::int64_t{1} << 32));
}

void EngineArgs::add_generation(CLI::App& app) {
  const OptionsOf group(app, "Execution");
  CLI::Option* generate =
      add_setting(app, "--generate-steps", stated.generate, CLI::Range(1, 1 << 24),
                  "after the steps of --steps, run this many more, each with one new token of "
                  "each sequence that goes on: the token that its last step chose")
          ->needs("--steps");
  add_setting(app, "--end-tokens", ends, "LIST",
              "a sequence that --generate-steps continues ends with one of these tokens")
      ->needs(generate);
  add_setting(
      app, "--steps-in-launch", stated.engine.steps_in_launch, CLI::Range(1, 4096),
      "with --backend cuda and --mode full: launch up to this many generated steps at once, "
      "as a loop on the device (CUDA 12.4 or newer)")
      ->needs(generate);
}

void EngineArgs::add_to(CLI::App& app, bool graph_required) {
  graph.add_to(app, graph_required);
  rules.add_to(app);
  plan.add_to(app);
  const OptionsOf group(app, "Execution");
  add_setting(app, "--backend", stated.backend, offered(backend_names()), backend_help());
  add_setting(app, "--driver", stated.engine.driver, CLI::IsMember({"cuda", "host"}),
              "with --backend cuda: `cuda` uses the first GPU, `host` emulates kernels and "
              "graphs on the CPU (slow)");
  add_setting(app, "--tokens", tokens, "LIST",
              "run a step for each of these token counts; default: 1,7,16,300, or the rows of a "
              "static graph");
  add_setting(
      app, "--steps", stated.steps, "FILE",
      "run the steps of this file instead, one a line: `0:5 1:3` adds 5 tokens to sequence 0 "
      "and 3 to sequence 1, `2.` ends sequence 2; attention sees the tokens of earlier steps");
  app.add_option(
         "--cached-tokens", stated.engine.cached_tokens,
         "with --backend cuda: reserve space before the first step for the keys and values of this "
         "many tokens of all sequences, if attention runs on the GPU; at least --max-tokens")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 32))
      ->configurable();
  add_switch(app, "--programmatic-edges", stated.engine.programmatic_edges,
             "with --backend cuda: let a kernel of a captured graph start before its only "
             "predecessor ends (programmatic dependent launch, sm_90 or newer)");
  add_switch(app, "--share-executables", stated.engine.share_executables,
             "with --backend cuda: capture graphs of several sizes into one executable, which is "
             "updated when the size changes: less time and memory for capturing, slower changes");
  add_switch(app, "--stream-weights", stated.engine.stream_weights,
             "with --backend cuda: steps of at most 8 tokens run products in kernels that stream "
             "weights and contain the norms, activations and rotations around them");
  add_setting(app, "--schedules", stated.engine.schedules, "FILE|none",
              "with --backend cuda: schedule table written by `pwr tune`, or none; default: the "
              "built-in table");
  add_file_options(app, stated);
  add_default(app, "--seed", stated.engine.seed, "seed of generated weights and inputs");
  add_switch(app, "--strict", stated.engine.strict,
             "with --backend cpu or cuda: match the interpreter in single precision bit for bit; "
             "with interpreter: use that precision");
  add_setting(app, "--grouping", grouping, CLI::IsMember({"auto", "none"}),
              "with --backend cpu or cuda: `auto` fuses neighbouring row ops into one kernel, "
              "`none` uses one kernel for each op");
}

}  // namespace pw::cli
