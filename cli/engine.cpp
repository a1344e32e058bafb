#include "cli/engine.hpp"

#include <CLI/CLI.hpp>

#include "cli/help/help_format.hpp"
#include "cli/option_table.hpp"
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
  CLI::Option* given = app.add_option("--plan", stated.planned,
                                      "use this plan.json, written by pwr plan or --report")
                           ->type_name("FILE")
                           ->configurable();
  for (const char* option :
       {"--max-tokens", "--ranges", "--sizes", "--size-cap", "--compile-sizes", "--max-requests",
        "--speculative-tokens", "--sequence-parallel", "--loras", "--mode"})
    given->excludes(app.get_option(option));
  CLI::Option* file = app.add_option("--weights", stated.weights,
                                     "load weights and any other inputs present from this "
                                     "safetensors file or .pt2; the rest are generated from --seed")
                          ->type_name("FILE")
                          ->configurable();
  app.add_option("--map", stated.map,
                 "JSON that maps inputs to tensors of --weights: {\"l{i}_qkv_w\": "
                 "\"layers.{i}.qkv.weight\"}; default: the tensor with the same name")
      ->type_name("FILE")
      ->needs(file)
      ->configurable();
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
}

void EngineArgs::add_to(CLI::App& app, bool graph_required) {
  graph.add_to(app, graph_required);
  rules.add_to(app);
  plan.add_to(app);
  const OptionsOf group(app, "Execution");
  app.add_option("--backend", stated.backend, backend_help())
      ->check(offered(backend_names()))
      ->capture_default_str()
      ->configurable();
  app.add_option("--driver", stated.engine.driver,
                 "with --backend cuda: `cuda` uses the first GPU, `host` emulates kernels and "
                 "graphs on the CPU (slow)")
      ->check(CLI::IsMember({"cuda", "host"}))
      ->capture_default_str()
      ->configurable();
  app.add_option("--tokens", tokens,
                 "run a step for each of these token counts; default: 1,7,16,300, or the rows of a "
                 "static graph")
      ->type_name("LIST")
      ->configurable();
  app.add_option(
         "--steps", stated.steps,
         "run the steps of this file instead, one a line: `0:5 1:3` adds 5 tokens to sequence 0 "
         "and 3 to sequence 1, `2.` ends sequence 2; attention sees the tokens of earlier steps")
      ->type_name("FILE")
      ->configurable();
  app.add_option(
         "--cached-tokens", stated.engine.cached_tokens,
         "with --backend cuda: reserve space before the first step for the keys and values of this "
         "many tokens of all sequences, if attention runs on the GPU; at least --max-tokens")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 32))
      ->configurable();
  app.add_option("--schedules", stated.engine.schedules,
                 "with --backend cuda: schedule table written by `pwr tune`, or none; default: the "
                 "built-in table")
      ->type_name("FILE|none")
      ->configurable();
  add_file_options(app, stated);
  app.add_option("--seed", stated.engine.seed, "seed of generated weights and inputs")
      ->capture_default_str()
      ->configurable();
  app.add_flag("--strict", stated.engine.strict,
               "with --backend cpu or cuda: match the interpreter in single precision bit for bit; "
               "with interpreter: use that precision")
      ->configurable();
  app.add_option("--grouping", grouping,
                 "with --backend cpu or cuda: `auto` fuses neighbouring row ops into one kernel, "
                 "`none` uses one kernel for each op")
      ->check(CLI::IsMember({"auto", "none"}))
      ->capture_default_str()
      ->configurable();
}

}  // namespace pw::cli
