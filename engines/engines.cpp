#include <chrono>

#include <fmt/format.h>

#include "backends/eager/eager.hpp"
#include "base/counted.hpp"
#include "base/quantities.hpp"
#include "base/try.hpp"
#include "cuda/compile.hpp"
#include "cuda/device/cuda_driver.hpp"
#include "cuda/device/host_driver.hpp"
#include "cuda/runtime.hpp"
#include "engines/step_engine.hpp"

namespace pw {
namespace {

class CudaExecutable final : public StepExecutable {
 public:
  CudaExecutable(std::unique_ptr<cuda::Runtime> runtime, std::vector<std::string> built,
                 double compile_seconds)
      : runtime_(std::move(runtime)), built_(std::move(built)), compile_seconds_(compile_seconds) {}

  Result<RankStepResult> run(const Step& step, std::span<Weights> ranks,
                             const RunOptions& options) override {
    PW_TRY(check_one(ranks));
    StepResult done = PW_TRY(runtime_->run(step, ranks.front(), options));
    return RankStepResult{{std::move(done.outputs)}, std::move(done.report)};
  }
  Result<ChosenTokens> run_some(const Step& step, std::span<Weights> ranks,
                                const GenerationLimits& limits,
                                const RunOptions& options) override {
    PW_TRY(check_one(ranks));
    return runtime_->run_some(step, ranks.front(), limits, options);
  }
  [[nodiscard]] EngineReport report() const override {
    EngineReport out;
    out.built = built_;
    out.memory = runtime_->memory();
    for (const cuda::Kernel& kernel : runtime_->kernels())
      out.kernels.push_back({kernel.name, cuda::source_file(kernel)});
    out.times.push_back({"compile", 0, compile_seconds_});
    for (const auto& [tokens, seconds] : runtime_->capture_times())
      out.times.push_back({"capture", tokens, seconds});
    return out;
  }
  [[nodiscard]] EngineCounts counts() const override {
    const cuda::RuntimeCounters& c = runtime_->counters();
    return {runtime_->notes(),
            {{"compilations", c.compilations},
             {"graphs_captured", c.graphs_captured},
             {"whole_steps", c.whole_steps},
             {"executables", c.executables},
             {"updates", c.updates},
             {"graph_nodes", c.graph_nodes},
             {"early_starts", c.early_starts},
             {"failed_captures", c.failed_captures},
             {"allocations", c.allocations},
             {"replays", c.replays},
             {"launches", c.launches},
             {"ops_between", c.ops_between},
             {"stale", c.stale},
             {"loops", c.loops},
             {"loop_replays", c.loop_replays},
             {"looped_steps", c.looped_steps}}};
  }

 private:
  static Status check_one(std::span<Weights> ranks) {
    if (ranks.size() == 1) return {};
    return fail(error_in("backend cuda", "PW1201", "it runs one rank per process",
                         "use another backend to run several"));
  }

  std::unique_ptr<cuda::Runtime> runtime_;
  std::vector<std::string> built_;
  double compile_seconds_;
};

/// On a device or on its emulator.
class CudaEngine final : public StepEngine {
 public:
  static Result<std::unique_ptr<StepEngine>> open(const EngineOptions& options) {
    auto out = std::unique_ptr<CudaEngine>(new CudaEngine(options));
    out->schedules_ = PW_TRY(cuda::ScheduleTable::named(options.schedules));
    out->kept_ = options.cache ? options.cache
                               : std::make_shared<CompileCache>(CacheOptions::from_environment());
    if (options.driver == "host") {
      out->driver_ = std::make_unique<cuda::HostDriver>(
          cuda::HostDriverOptions{.seed = options.seed, .cache = out->kept_.get()});
      return out;
    }
    cuda::CudaDriverOptions device;
    device.strict = options.strict;
    device.cache = out->kept_.get();
    out->driver_ = PW_TRY(cuda::CudaDriver::open(device));
    return out;
  }

  Result<std::unique_ptr<StepExecutable>> build(const PlannedGraph& planned,
                                                Weights& weights) override {
    cuda::RuntimeOptions options;
    options.strict = options_.strict;
    options.grouping.automatic = options_.fuse;
    options.cached_tokens = options_.cached_tokens;
    options.programmatic_edges = options_.programmatic_edges;
    options.share_executables = options_.share_executables;
    options.stream_weights = options_.stream_weights;
    options.steps_in_launch = options_.steps_in_launch;
    options.schedules = schedules_.get();
    const auto start = std::chrono::steady_clock::now();
    auto runtime =
        PW_TRY(cuda::Runtime::make(planned.pieces, planned.graph, planned.plan, *driver_, options));
    const std::chrono::duration<double> compiling = std::chrono::steady_clock::now() - start;
    PW_TRY(runtime->load(weights));
    PW_TRY(runtime->capture());
    if (const std::string& why = runtime->loop().reason(); !why.empty())
      return fail(error_in("steps in a launch", "PW1471", "steps are launched one by one: " + why,
                           "omit --steps-in-launch; loops need `--mode full` and a graph that "
                           "chooses tokens, such as one of `pwr generate --lm-head greedy`"));
    std::vector<std::string> built = built_lines(*runtime);
    return std::make_unique<CudaExecutable>(std::move(runtime), std::move(built),
                                            compiling.count());
  }
  [[nodiscard]] std::string arch() const override { return driver_->arch(); }
  Backend& whole() override { return *whole_; }

 private:
  explicit CudaEngine(EngineOptions options) : options_(std::move(options)) {}

  [[nodiscard]] std::vector<std::string> built_lines(const cuda::Runtime& runtime) const {
    std::vector<std::string> out;
    if (const std::uint64_t evicted = kept_->counts().evicted; evicted > 0)
      out.push_back(fmt::format(
          "  removed {} objects from the cache that are damaged or that the driver rejects",
          evicted));
    const cuda::RuntimeCounters& c = runtime.counters();
    const bool pieces = c.graphs_captured > c.whole_steps;
    out.push_back(
        fmt::format("cuda on {}: {} of {} captured, {} compiled; {}{}, {} of "
                    "{}{}, arena {}",
                    driver_->device(), pieces ? c.capturable_pieces : 0, counted(c.pieces, "piece"),
                    counted(c.compilations, "class"), counted(c.graphs_captured, "graph"),
                    c.whole_steps > 0 ? fmt::format(", {} of them whole steps", c.whole_steps) : "",
                    counted(c.executables, "executable"), counted(c.graph_nodes, "node"),
                    c.early_starts > 0 ? fmt::format(" ({} start early)", c.early_starts) : "",
                    bytes(runtime.memory().arena_bytes)));
    return out;
  }

  EngineOptions options_;
  std::shared_ptr<const cuda::ScheduleTable> schedules_;
  std::shared_ptr<CompileCache> kept_;  ///< compiled kernels
  std::unique_ptr<cuda::Driver> driver_;
  std::unique_ptr<Backend> whole_ = make_eager();
};

}  // namespace

EngineList builtin_engines() {
  EngineList out;
  for (const BackendKind& kind : backend_kinds()) out.push_back(engine_of(kind));
  out.push_back({.name = "cuda",
                 .what = "captures and replays pieces on a GPU, or emulates it on the CPU",
                 .can = {.strict = true, .fuse = true, .capture = true, .loop = true},
                 .open = CudaEngine::open,
                 .runs = cuda::has_kernel});
  return out;
}

}  // namespace pw
