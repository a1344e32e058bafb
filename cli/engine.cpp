// Exports EngineArgs, Engine, and what is done before the first step.
#include "cli/engine.hpp"

#include <algorithm>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "backends/eager/eager.hpp"
#include "backends/interpreter.hpp"
#include "backends/named_tensors.hpp"
#include "backends/padding.hpp"
#include "base/file.hpp"
#include "cli/static_rows.hpp"
#include "splitter/plan_text.hpp"

namespace pw::cli {
namespace {

// See docs/codes.md.
constexpr std::string_view kMissingCapabilityCode = "PW1201", kDeviceFailedCode = "PW1253";

/// What the cpu backend compiled, and what it left to eager and why.
void say_compiled(const Session& session, const CpuReport& report) {
  if (report.compiler.empty() && report.cache.found == 0) {
    session.say(
        "no C++ compiler was found, so everything runs on eager: put c++, g++ or clang++ on PATH, "
        "or set CXX");
    return;
  }
  const std::string how = report.compiler.empty() ? "no C++ compiler was found"
                                                  : fmt::format("{} compiled now by {}",
                                                                report.compiled, report.compiler);
  session.say(fmt::format("cpu: {} kernels, {} from the cache, {}; {} nodes on eager",
                          report.kernels.size(), report.cache.found, how, report.nodes_on_eager()));
  if (report.cache.evicted > 0)
    session.say(
        fmt::format("  {} damaged objects of the cache were thrown away", report.cache.evicted));
  if (!report.cache_problem.empty()) session.say("  kernels are not kept: " + report.cache_problem);
  for (const CpuReport::Fallback& f : report.fallbacks)
    session.say(fmt::format("  {} × {}: {}", f.nodes, f.op, f.reason));
}

}  // namespace

void EngineArgs::add_to(CLI::App& app) {
  graph.add_to(app);
  rules.add_to(app);
  plan.add_to(app);
  app.add_option(
         "--backend", backend,
         "eager, cpu (row ops as C++ compiled now), cuda (pieces captured and replayed), or "
         "interpreter (slow, double precision)")
      ->capture_default_str();
  app.add_option("--driver", driver,
                 "of cuda. cuda: the first device; host: the same kernels and graphs, run on the "
                 "host thread by thread (slow)")
      ->check(CLI::IsMember({"cuda", "host"}))
      ->capture_default_str();
  app.add_option("--tokens", tokens,
                 "a step for each of these token counts; 1,7,16,300 if left out, or the rows of a "
                 "static graph")
      ->type_name("LIST");
  app.add_option("--steps", steps,
                 "instead: a line a step, `0:5 1:3` gives 5 tokens to sequence 0 and 3 to 1, `2.` "
                 "ends 2; attention sees the tokens of earlier steps")
      ->type_name("FILE");
  app.add_option("--cached-tokens", cached_tokens,
                 "of cuda: tokens of all sequences whose keys and values have a place before the "
                 "first step, where attention runs there; --max-tokens unless more")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 32));
  CLI::Option* given =
      app.add_option("--plan", planned, "run by this plan.json, made by pwr plan or by --report")
          ->type_name("FILE");
  for (const char* option :
       {"--max-tokens", "--ranges", "--sizes", "--size-cap", "--compile-sizes", "--max-requests",
        "--speculative-tokens", "--sequence-parallel", "--loras", "--mode"})
    given->excludes(app.get_option(option));
  CLI::Option* file =
      app.add_option("--weights", weights,
                     "a safetensors file with the weights, and with other inputs as far as it has "
                     "them; those that are drawn by the seed otherwise")
          ->type_name("FILE");
  app.add_option("--map", map,
                 "JSON, which tensor of --weights an input is: {\"l{i}_qkv_w\": "
                 "\"layers.{i}.qkv.weight\"}; without, the one of its name")
      ->type_name("FILE")
      ->needs(file);
  app.add_option("--seed", seed, "of weights and inputs")->capture_default_str();
  app.add_flag("--strict", strict,
               "of cpu and cuda: bit-equal to the interpreter in single precision; of interpreter: "
               "that precision");
  app.add_option(
         "--grouping", grouping,
         "of cpu and cuda. auto: neighbouring row ops are one kernel; none: an op is a kernel")
      ->check(CLI::IsMember({"auto", "none"}))
      ->capture_default_str();
}

int exit_code_of(const Diagnostics& diagnostics) {
  const auto holds = [&](std::string_view code) {
    return std::any_of(diagnostics.begin(), diagnostics.end(),
                       [&](const Diagnostic& d) { return d.code == code; });
  };
  if (holds(kDeviceFailedCode)) return kInternalError;
  return holds(kMissingCapabilityCode) ? kMissingCapability : kInvalidInput;
}

std::unique_ptr<Backend> backend_named(const Session& session, const EngineArgs& args) {
  const std::string& name = args.backend;
  if (name == "cpu")
    return std::make_unique<CpuBackend>(
        CpuOptions{.strict = args.strict, .group = args.grouping != "none"});
  if (name == "cuda") return make_eager();  // for what is compared with; see capturing.hpp
  if (name == "interpreter" && args.strict) return make_interpreter(Precision::single);
  if (args.strict)
    session.die("--strict is for the backends cpu, cuda and interpreter",
                "leave it out, or run with --backend cpu", kUsage);
  for (std::unique_ptr<Backend>& backend : all_backends())
    if (backend->name() == name) return std::move(backend);
  session.die("there is no backend `" + name + "`", "eager, cpu, cuda, interpreter", kUsage);
}

std::vector<PlannedStep> wanted_steps(const Session& session, const EngineArgs& args,
                                      const Graph& graph) {
  std::vector<PlannedStep> steps;
  const std::vector<std::int64_t> rows = static_rows(graph);
  if (!args.steps.empty()) {
    steps = session.need(parse_steps(session.need(read_file(args.steps)), args.steps));
  } else if (args.tokens.empty() && !rows.empty()) {
    steps.push_back({one_sequence(rows.front()), {}});
  } else {
    const std::string list = args.tokens.empty() ? "1,7,16,300" : args.tokens;
    for (std::int64_t t : session.need(parse_numbers(list, 1, std::int64_t{1} << 24), kUsage))
      steps.push_back({one_sequence(t), {}});
  }
  check_declared(session, graph, steps);
  return steps;
}

/// Splits and plans one of the graphs.
void prepare(const Session& session, const EngineArgs& args, const LoadedRules& rules,
             Variant& variant, RunRecord& record) {
  const RangedResult& result = variant.result;
  record.versions = std::move(variant.versions);
  record.rewrite = result.report;
  record.pieces = cut(session, result.graph, rules, args.plan);
  if (!args.planned.empty()) {
    const PlanDocument document =
        session.need(plan_from_json(session.need(read_file(args.planned)), args.planned));
    record.plan = session.need(bind_plan(document, *record.pieces, result.graph));
    return;
  }
  record.plan =
      planned(session, *record.pieces, result.graph, rules, args.plan,
              variant.name.empty() ? std::nullopt : std::optional(result.range), &variant.declared);
}

void give_weights(const Session& session, const EngineArgs& args, const Graph& graph,
                  Weights& weights) {
  if (args.weights.empty()) return;
  const Safetensors file = session.need(Safetensors::open(args.weights));
  TensorMap map;
  if (!args.map.empty())
    map = session.need(TensorMap::parse(session.need(read_file(args.map)), args.map));
  const GivenTensors given = session.need(give_tensors(graph, file, map, weights));
  session.say(fmt::format(
      "{} inputs are tensors of {}, {} are drawn by the seed; {} tensors are "
      "not used{}",
      given.inputs, args.weights, given.of_seed, given.unused.size(),
      given.unused.empty() ? ""
                           : ": " + given.unused.front() + (given.unused.size() > 1 ? ", …" : "")));
}

void check_declared(const Session& session, const Graph& graph,
                    const std::vector<PlannedStep>& steps) {
  for (const PlannedStep& planned : steps) {
    session.need(pw::check_declared(graph, planned.step.tokens()), kUsage);
    session.need(check_static_rows(graph, planned.step.tokens()), kUsage);
  }
}

void check_sizes(const Session& session, const Plan& plan, const std::vector<PlannedStep>& steps) {
  for (const PlannedStep& planned : steps) {
    const std::int64_t t = planned.step.tokens();
    if (plan.max_tokens > 0 && t > plan.max_tokens)
      session.die(fmt::format("a step of {} tokens is more than the plan's {}", t, plan.max_tokens),
                  "raise --max-tokens, or the maximum of the graph's token symbol", kUsage);
  }
}

Engine::Engine(const Session& session, const EngineArgs& args, const Graph& graph,
               RunRecord& record, Backend& backend, Device* device, Weights& weights)
    : session_(session) {
  if (device != nullptr) {
    cuda::RuntimeOptions options;
    options.strict = args.strict;
    options.grouping.automatic = args.grouping == "auto";
    options.cached_tokens = args.cached_tokens;
    captured_ = need_run(session, capture(session, *device, graph, record, options, weights));
    record.plan.memory = captured_->memory();
  } else {
    runner_ = need_run(session, Runner::make(*record.pieces, graph, record.plan, backend));
  }
  if (const auto* cpu = dynamic_cast<const CpuBackend*>(&backend)) {
    record.cpu = cpu->report();
    say_compiled(session, *record.cpu);
  }
}

namespace {

/// A backend that captures nothing runs at the sizes of the plan all the same; what would be
/// captured whole is no matter there.
void say_uncaptured(StepReport& report) {
  report.mode = "eager";
  report.key.clear();
  constexpr std::string_view kCaptured = "captured";
  report.reason = report.reason.substr(0, report.reason.find("; "));
  if (const auto at = report.reason.find(kCaptured); at != std::string::npos)
    report.reason.replace(at, kCaptured.size(), "planned");
}

}  // namespace

Result<RankStepResult> Engine::run(const Step& step, std::span<Weights> weights,
                                   const RunOptions& options) {
  if (runner_) {
    auto done = runner_->run(step, weights, options);
    if (done) say_uncaptured(done->report);
    return done;
  }
  auto done = captured_->run(step, weights.front(), options);
  if (!done) return forward(done);
  return RankStepResult{{std::move(done->outputs)}, std::move(done->report)};
}

void Engine::finish(RunRecord& record) const {
  if (!captured_) return;
  for (const std::string& note : captured_->notes()) session_.say("  " + note);
  const cuda::RuntimeCounters& c = captured_->counters();
  record.device = {{"compilations", c.compilations},
                   {"graphs_captured", c.graphs_captured},
                   {"whole_steps", c.whole_steps},
                   {"executables", c.executables},
                   {"graph_nodes", c.graph_nodes},
                   {"failed_captures", c.failed_captures},
                   {"allocations", c.allocations},
                   {"replays", c.replays},
                   {"launches", c.launches},
                   {"ops_between", c.ops_between},
                   {"stale", c.stale}};
}

}  // namespace pw::cli
