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
                 "of cuda. cuda: the first device; host: the same kernels and graphs, run on the "
                 "host thread by thread (slow)")
      ->check(CLI::IsMember({"cuda", "host"}))
      ->capture_default_str()
      ->configurable();
  app.add_option("--tokens", tokens,
                 "a step for each of these token counts; 1,7,16,300 if left out, or the rows of a "
                 "static graph")
      ->type_name("LIST")
      ->configurable();
  app.add_option("--steps", stated.steps,
                 "instead: a line a step, `0:5 1:3` gives 5 tokens to sequence 0 and 3 to 1, `2.` "
                 "ends 2; attention sees the tokens of earlier steps")
      ->type_name("FILE")
      ->configurable();
  app.add_option("--cached-tokens", stated.engine.cached_tokens,
                 "of cuda: tokens of all sequences whose keys and values have a place before the "
                 "first step, where attention runs there; --max-tokens unless more")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 32))
      ->configurable();
  app.add_option(
         "--schedules", stated.engine.schedules,
         "of cuda: a table that `pwr tune` wrote, or none; the table of the program if left "
         "out")
      ->type_name("FILE|none")
      ->configurable();
  CLI::Option* given = app.add_option("--plan", stated.planned,
                                      "run by this plan.json, made by pwr plan or by --report")
                           ->type_name("FILE")
                           ->configurable();
  for (const char* option :
       {"--max-tokens", "--ranges", "--sizes", "--size-cap", "--compile-sizes", "--max-requests",
        "--speculative-tokens", "--sequence-parallel", "--loras", "--mode"})
    given->excludes(app.get_option(option));
  CLI::Option* file = app.add_option("--weights", stated.weights,
                                     "a safetensors file or a .pt2 with the weights, and with "
                                     "other inputs as far as it has "
                                     "them; those that are drawn by the seed otherwise")
                          ->type_name("FILE")
                          ->configurable();
  app.add_option("--map", stated.map,
                 "JSON, which tensor of --weights an input is: {\"l{i}_qkv_w\": "
                 "\"layers.{i}.qkv.weight\"}; without, the one of its name")
      ->type_name("FILE")
      ->needs(file)
      ->configurable();
  app.add_option("--seed", stated.engine.seed, "of weights and inputs")
      ->capture_default_str()
      ->configurable();
  app.add_flag("--strict", stated.engine.strict,
               "of cpu and cuda: bit-equal to the interpreter in single precision; of interpreter: "
               "that precision")
      ->configurable();
  app.add_option(
         "--grouping", grouping,
         "of cpu and cuda. auto: neighbouring row ops are one kernel; none: an op is a kernel")
      ->check(CLI::IsMember({"auto", "none"}))
      ->capture_default_str()
      ->configurable();
}

}  // namespace pw::cli
