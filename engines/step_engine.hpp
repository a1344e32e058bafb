// The seam of everything that runs a planned graph: interpreter, eager, cpu, cuda, and what a
// user's program adds. An engine is opened once; what it builds of a plan runs steps.
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
#include "exec/runner.hpp"

namespace pw {

struct EngineOptions : BackendOptions {
  std::string driver{"cuda"};      ///< of cuda: the first device; "host": the emulator
  std::uint64_t seed = 1;          ///< of the order in which the emulator runs threads
  std::int64_t cached_tokens = 0;  ///< see cuda::RuntimeOptions
  /// Of cuda: a table that `pwr tune` wrote, or none; empty: the one of the program.
  std::string schedules;
};

/// A graph, cut and planned; all three outlive what is built of them.
struct PlannedGraph {
  const Graph& graph;
  const StitchedGraph& pieces;
  const Plan& plan;
};

/// A kernel that an engine launches: what `--dump` shows of it.
struct KernelSource {
  std::string name, text;
};

/// What a part of making a plan ready took.
struct BuildTime {
  std::string stage;        ///< "compile", "capture"
  std::int64_t tokens = 0;  ///< the size that was captured; 0: of all sizes
  double seconds = 0;
};

/// What an engine made of a plan.
struct EngineReport {
  std::vector<std::string> built;     ///< lines for people: what was compiled and captured
  std::optional<CpuReport> cpu;       ///< of that engine
  std::optional<MemoryPlan> memory;   ///< of a device: the plan's, with the addresses it has there
  std::vector<KernelSource> kernels;  ///< of a device, each once
  std::vector<BuildTime> times;       ///< in the order in which it was done
};

/// What an engine did with a plan so far.
struct EngineCounts {
  std::vector<std::string> notes;                             ///< what went otherwise than planned
  std::vector<std::pair<std::string, std::size_t>> counters;  ///< of a device, by name
};

/// A planned graph, ready to run steps.
class StepExecutable {
 public:
  virtual ~StepExecutable() = default;
  /// On all ranks; one Weights a rank.
  virtual Result<RankStepResult> run(const Step& step, std::span<Weights> ranks,
                                     const RunOptions& options) = 0;
  [[nodiscard]] virtual EngineReport report() const = 0;
  [[nodiscard]] virtual EngineCounts counts() const { return {}; }
};

class StepEngine {
 public:
  virtual ~StepEngine() = default;
  /// Compiles, and captures where it can. The engine outlives what it builds.
  virtual Result<std::unique_ptr<StepExecutable>> build(const PlannedGraph& planned,
                                                        Weights& weights) = 0;
  /// What a device compiles for: "sm_90". Of an engine without one: empty.
  [[nodiscard]] virtual std::string arch() const { return {}; }
  /// What runs a graph whole, op by op, for a comparison.
  virtual Backend& whole() = 0;
};

struct StepEngineKind {
  std::string name, what;  ///< `what`: for people, in a line
  EngineCapabilities can;
  /// Fails before any work is done: PW1260 where there is no device.
  std::function<Result<std::unique_ptr<StepEngine>>(const EngineOptions&)> open;
  std::function<bool(const Op&)> runs = {};  ///< see BackendKind
};

/// The engines a program knows, in the order in which they are listed.
using EngineList = std::vector<StepEngineKind>;

/// Those of the backends built in, and cuda.
[[nodiscard]] EngineList builtin_engines();
/// An engine of a backend: it runs pieces one after another and captures nothing.
[[nodiscard]] StepEngineKind engine_of(const BackendKind& kind);
/// Null where the list has none of the name.
[[nodiscard]] const StepEngineKind* find_engine(const EngineList& engines, std::string_view name);
/// Opens the engine of the name. PW1405 where the list has none, PW1406 where it cannot do what the
/// options ask for.
Result<std::unique_ptr<StepEngine>> open_engine(const EngineList& engines, const std::string& name,
                                                const EngineOptions& options);
/// The names, as messages list them.
[[nodiscard]] std::string engine_names(const EngineList& engines);

}  // namespace pw
