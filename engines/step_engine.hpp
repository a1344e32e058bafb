// The interface of every engine that runs a planned graph: interpreter, eager, cpu, cuda, and
// engines of plugins. An engine is opened once; it builds plans into executables that run steps.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/cpu/cpu.hpp"
#include "codegen/cache/cache.hpp"
#include "exec/generation.hpp"
#include "exec/runner.hpp"

namespace pw {

struct EngineOptions : BackendOptions {
  std::string driver{"cuda"};        ///< for cuda: the first device; "host": the emulator
  std::uint64_t seed = 1;            ///< seed of the emulator's thread order
  std::int64_t cached_tokens = 0;    ///< see cuda::RuntimeOptions
  bool programmatic_edges = false;   ///< see cuda::RuntimeOptions
  bool share_executables = false;    ///< see cuda::RuntimeOptions
  bool stream_weights = false;       ///< see cuda::RuntimeOptions
  std::int64_t steps_in_launch = 0;  ///< see cuda::RuntimeOptions
  /// For cuda: a table that `pwr tune` wrote, or "none"; empty: the built-in table.
  std::string schedules;
};

/// A graph, its pieces and its plan; all three must outlive what is built from them.
struct PlannedGraph {
  const Graph& graph;
  const StitchedGraph& pieces;
  const Plan& plan;
};

/// A kernel that an engine launches, as `--dump` shows it.
struct KernelSource {
  std::string name, text;
};

/// The time of one stage of preparing a plan.
struct BuildTime {
  std::string stage;        ///< "compile", "capture"
  std::int64_t tokens = 0;  ///< captured size; 0: all sizes
  double seconds = 0;
};

/// The results of building a plan.
struct EngineReport {
  std::vector<std::string> built;     ///< lines for people: what was compiled and captured
  std::optional<CpuReport> cpu;       ///< for the cpu engine
  std::optional<MemoryPlan> memory;   ///< for a device: the plan's memory with device addresses
  std::vector<KernelSource> kernels;  ///< for a device, each once
  std::vector<BuildTime> times;       ///< in execution order
};

/// Counters of an engine for a plan, since it was built.
struct EngineCounts {
  std::vector<std::string> notes;                             ///< deviations from the plan
  std::vector<std::pair<std::string, std::size_t>> counters;  ///< for a device, by name
};

/// A planned graph, ready to run steps.
class StepExecutable {
 public:
  virtual ~StepExecutable() = default;
  /// Runs a step on all ranks, with one Weights for each rank.
  virtual Result<RankStepResult> run(const Step& step, std::span<Weights> ranks,
                                     const RunOptions& options) = 0;
  /// Runs a step, or several in one launch, and returns the tokens of the graph's first output; see
  /// generate(). Stores in the weights what the next step reads.
  virtual Result<ChosenTokens> run_some(const Step& step, std::span<Weights> ranks,
                                        const GenerationLimits& limits,
                                        const RunOptions& options) = 0;
  [[nodiscard]] virtual EngineReport report() const = 0;
  [[nodiscard]] virtual EngineCounts counts() const { return {}; }
};

class StepEngine {
 public:
  virtual ~StepEngine() = default;
  /// Compiles the plan, and captures if the engine can. The engine outlives its executables.
  virtual Result<std::unique_ptr<StepExecutable>> build(const PlannedGraph& planned,
                                                        Weights& weights) = 0;
  /// Returns the architecture that kernels are compiled for, "sm_90"; empty for engines without a
  /// device.
  [[nodiscard]] virtual std::string arch() const { return {}; }
  /// Returns the backend that runs a whole graph op by op, for comparisons.
  virtual Backend& whole() = 0;
};

struct StepEngineKind {
  std::string name, what;  ///< `what`: a one-line description for people
  EngineCapabilities can;
  /// Opens the engine, before any work is done. Fails with PW1260 if there is no device.
  std::function<Result<std::unique_ptr<StepEngine>>(const EngineOptions&)> open;
  std::function<bool(const Op&)> runs = {};  ///< see BackendKind
};

/// The available engines of a program, in listing order.
using EngineList = std::vector<StepEngineKind>;

/// Returns the engines of the built-in backends, and cuda.
[[nodiscard]] EngineList builtin_engines();
/// Returns an engine for a backend: it runs pieces one after another and captures nothing.
[[nodiscard]] StepEngineKind engine_of(const BackendKind& kind);
/// Returns the engine of that name, or null.
[[nodiscard]] const StepEngineKind* find_engine(const EngineList& engines, std::string_view name);
/// Opens the engine of that name. Fails with PW1405 if the list has none, and with PW1406 if it
/// cannot satisfy the options.
Result<std::unique_ptr<StepEngine>> open_engine(const EngineList& engines, const std::string& name,
                                                const EngineOptions& options);
/// Returns the names in the form for messages.
[[nodiscard]] std::string engine_names(const EngineList& engines);

}  // namespace pw
