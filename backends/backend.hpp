// The compiler interface between planning and running: a backend turns a piece into an executable.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/diagnostic.hpp"
#include "graph/graph.hpp"
#include "tensor/tensor.hpp"

namespace pw {

class Communicator;
class CompileCache;
class KvCache;
class OpTimes;
struct CpuReport;
namespace cpu {
class FrozenRun;
class FrozenSlots;
}  // namespace cpu

/// One sequence's share of a step.
struct Sequence {
  std::int64_t id = 0;
  std::int64_t new_tokens = 0;
  std::int64_t past = 0;  ///< tokens already in the cache
};
/// The ranks of a named group: `size` of them, `stride` apart. Groups of that form cover all ranks.
struct RankGroup {
  std::int64_t size = 0;  ///< 0: all ranks
  std::int64_t stride = 1;
  /// Returns the index of the group that holds the rank, counted from 0.
  [[nodiscard]] std::int64_t index(std::int64_t rank) const {
    return size == 0 ? 0 : rank / (size * stride) * stride + rank % stride;
  }
};
using RankGroups = std::map<std::string, RankGroup, std::less<>>;

struct Step {
  std::vector<Sequence> sequences;
  /// Keys and values of earlier tokens; attention appends this step's rows. Null: attention sees no
  /// earlier tokens. Each engine that runs the step has its own cache.
  KvCache* cache = nullptr;
  /// The ranks of groups that no op of the graph determines, for runs of several ranks in one
  /// process. Null: neighbouring ranks, or all ranks where an op states no `world`.
  const RankGroups* groups = nullptr;
  /// This rank's end of the collectives of a multi-process run. Null: all ranks are in this
  /// process.
  Communicator* ranks = nullptr;
  [[nodiscard]] std::int64_t tokens() const;  ///< number of valid rows
};

/// Inputs of an executable beyond its tensors.
struct RunContext {
  std::map<std::string, std::int64_t, std::less<>>
      symbols;  ///< the token symbol holds the padded count
  const Step* step = nullptr;
  /// Number of rows that hold real tokens; 0: all. Reductions over the tokens cover these rows
  /// only.
  std::int64_t valid = 0;
  /// Cached values for weights that the caller froze, or null. See Backend::freeze.
  cpu::FrozenRun* frozen = nullptr;
  /// Receives the times of all calls, if it is not null.
  OpTimes* times = nullptr;
};

/// The tensors of one rank.
struct RankTensors {
  std::vector<TensorView> inputs, outputs;
};

/// Launch counters of one run.
struct LaunchCounts {
  std::size_t kernels = 0;  ///< kernels and copies
  std::size_t library = 0;  ///< matrix products, attention, collectives
  std::size_t graphs = 0;   ///< replayed graphs; their nodes are counted as well
  void add(const LaunchCounts& other) {
    kernels += other.kernels;
    library += other.library;
    graphs += other.graphs;
  }
};

class Executable {
 public:
  virtual ~Executable() = default;
  [[nodiscard]] virtual LaunchCounts launches() const { return {}; }
  /// Runs the executable once. Inputs and outputs are in the graph's order; the caller allocates
  /// the outputs. Executables of eager, cpu and the interpreter keep no state between runs, so
  /// concurrent and nested runs are allowed.
  virtual Status run(std::span<const TensorView> inputs, std::span<const TensorView> outputs,
                     const RunContext& context) = 0;
  /// Runs several ranks in step, with collectives between them. Fails with PW1201 if the executable
  /// supports one rank only; a single rank always works.
  virtual Status run_ranks(std::span<const RankTensors> ranks, const RunContext& context);
};

class Backend {
 public:
  virtual ~Backend() = default;
  [[nodiscard]] virtual std::string name() const = 0;
  [[nodiscard]] virtual Result<std::unique_ptr<Executable>> compile(const Graph& piece) = 0;
  /// Returns lines that describe what the backend compiled so far, for people.
  [[nodiscard]] virtual std::vector<std::string> summary() const { return {}; }
  /// Returns how the nodes compiled so far run; null from backends that compile nothing.
  [[nodiscard]] virtual std::shared_ptr<const CpuReport> compile_report() const { return nullptr; }
  /// Enables the caching of weight-only computations in single-rank runs whose context holds frozen
  /// weights. Returns the slots of the next executable that is compiled; null: unsupported.
  [[nodiscard]] virtual std::shared_ptr<const cpu::FrozenSlots> freeze() { return nullptr; }
};

struct EngineCapabilities {
  bool ranks = false;    ///< runs several ranks of one process in step
  bool strict = false;   ///< can match the interpreter's bits in single precision
  bool fuse = false;     ///< fuses neighbouring row ops into kernels
  bool capture = false;  ///< records pieces or whole steps, and replays them
  bool loop = false;     ///< runs many steps in one launch
};

struct BackendOptions {
  bool strict = false;
  bool fuse = true;  ///< fuse neighbouring row ops into one kernel
  /// Cache for compiled kernels; null: the cache that the environment names.
  std::shared_ptr<CompileCache> cache = {};
};

struct BackendKind {
  std::string name, what;  ///< `what`: a one-line description for people
  EngineCapabilities can;
  std::function<std::unique_ptr<Backend>(const BackendOptions&)> make;
  /// Returns true if the backend runs a node of this op directly, without expanding its body.
  /// Empty: same answer as eager.
  std::function<bool(const Op&)> runs = {};
  /// True: runs are compared with the backend's own run of the unrewritten graph. False: they are
  /// compared with eager's run, which also finds a backend that is wrong everywhere. True for the
  /// backends that this repository tests.
  bool own_whole = false;
};

/// Returns the built-in kinds, one NAME_backend() function for each entry of backends.def.
std::vector<BackendKind> backend_kinds();
/// Returns one backend of each kind.
std::vector<std::unique_ptr<Backend>> all_backends();

}  // namespace pw
