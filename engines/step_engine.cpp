#include "engines/step_engine.hpp"

#include <algorithm>
#include <chrono>

#include "backends/eager/eager.hpp"
#include "base/try.hpp"

namespace pw {
namespace {

class PlainExecutable final : public StepExecutable {
 public:
  PlainExecutable(Runner runner, const Graph& graph, const Backend& backend, double compile_seconds)
      : runner_(std::move(runner)),
        graph_(graph),
        backend_(backend),
        compile_seconds_(compile_seconds) {}

  Result<RankStepResult> run(const Step& step, std::span<Weights> ranks,
                             const RunOptions& options) override {
    RunOptions eagerly = options;
    eagerly.captures = false;
    return runner_.run(step, ranks, eagerly);
  }
  Result<ChosenTokens> run_some(const Step& step, std::span<Weights> ranks, const GenerationLimits&,
                                const RunOptions& options) override {
    const RankOutputs outputs = PW_TRY(run(step, ranks, options)).outputs;
    for (std::size_t i = 1; i < ranks.size(); ++i) ranks[i].write_back(graph_, outputs[i], step);
    return take_chosen(graph_, step, ranks.front(), outputs.front());
  }
  [[nodiscard]] EngineReport report() const override {
    EngineReport out;
    out.built = backend_.summary();
    out.times.push_back({"compile", 0, compile_seconds_});
    if (const auto cpu = backend_.compile_report()) out.cpu = *cpu;
    return out;
  }

 private:
  Runner runner_;
  const Graph& graph_;
  const Backend& backend_;
  double compile_seconds_;
};

class PlainEngine final : public StepEngine {
 public:
  PlainEngine(std::unique_ptr<Backend> backend, bool own_whole) : backend_(std::move(backend)) {
    if (!own_whole) whole_ = make_eager();
  }

  Result<std::unique_ptr<StepExecutable>> build(const PlannedGraph& planned, Weights&) override {
    const auto start = std::chrono::steady_clock::now();
    Runner runner = PW_TRY(Runner::make(planned.pieces, planned.graph, planned.plan, *backend_));
    const std::chrono::duration<double> compiling = std::chrono::steady_clock::now() - start;
    return std::make_unique<PlainExecutable>(std::move(runner), planned.graph, *backend_,
                                             compiling.count());
  }
  Backend& whole() override { return whole_ ? *whole_ : *backend_; }

 private:
  std::unique_ptr<Backend> backend_, whole_;
};

}  // namespace

StepEngineKind engine_of(const BackendKind& kind) {
  return {kind.name, kind.what, kind.can,
          [make = kind.make, own = kind.own_whole](
              const EngineOptions& options) -> Result<std::unique_ptr<StepEngine>> {
            return std::make_unique<PlainEngine>(make(options), own);
          },
          kind.runs ? kind.runs : has_kernel};
}

std::string engine_names(const EngineList& engines) {
  std::string out;
  for (const StepEngineKind& engine : engines) out += (out.empty() ? "" : ", ") + engine.name;
  return out;
}

const StepEngineKind* find_engine(const EngineList& engines, std::string_view name) {
  const auto found =
      std::find_if(engines.begin(), engines.end(),
                   [&](const StepEngineKind& engine) { return engine.name == name; });
  return found == engines.end() ? nullptr : &*found;
}

Result<std::unique_ptr<StepEngine>> open_engine(const EngineList& engines, const std::string& name,
                                                const EngineOptions& options) {
  const StepEngineKind* found = find_engine(engines, name);
  if (found == nullptr)
    return fail(
        error_in("backend", "PW1405", "there is no backend `" + name + "`", engine_names(engines)));
  if (options.strict && !found->can.strict) {
    EngineList strict = engines;
    std::erase_if(strict, [](const StepEngineKind& engine) { return !engine.can.strict; });
    return fail(error_in("backend " + name, "PW1406", "it has no strict mode",
                         "omit --strict, or use one of " + engine_names(strict)));
  }
  if (options.steps_in_launch > 0 && !found->can.loop) {
    EngineList looping = engines;
    std::erase_if(looping, [](const StepEngineKind& engine) { return !engine.can.loop; });
    return fail(error_in("backend " + name, "PW1406", "it cannot run several steps in a launch",
                         "omit --steps-in-launch, or use one of " + engine_names(looping)));
  }
  return found->open(options);
}

}  // namespace pw
