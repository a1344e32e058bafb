// The compiler interface: a backend turns a piece into an executable. The seam between planning and
// running.
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
namespace cpu {
class FrozenRun;
}

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
  /// Which of these groups a rank is in, counted from the first.
  [[nodiscard]] std::int64_t index(std::int64_t rank) const {
    return size == 0 ? 0 : rank / (size * stride) * stride + rank % stride;
  }
};
using RankGroups = std::map<std::string, RankGroup, std::less<>>;

struct Step {
  std::vector<Sequence> sequences;
  /// What attention reads of earlier tokens, and adds this step's to; null: earlier tokens are not
  /// seen. Each engine that runs the step has one of its own.
  KvCache* cache = nullptr;
  /// The ranks of groups that no op of the graph determines; null: neighbouring ranks, or all ranks
  /// where there is no `world`. For runs of several ranks in this process.
  const RankGroups* groups = nullptr;
  /// Of a run whose ranks are processes: this one's end of its collectives. Null: all ranks are
  /// here.
  Communicator* ranks = nullptr;
  [[nodiscard]] std::int64_t tokens() const;  ///< sum of new tokens: the valid rows
};

/// What an executable needs to know beyond its tensors.
struct RunContext {
  std::map<std::string, std::int64_t, std::less<>>
      symbols;  ///< the token symbol holds the padded count
  const Step* step = nullptr;
  /// Rows that hold real tokens; 0: all. Reductions over the tokens cover no others.
  std::int64_t valid = 0;
  /// The values cached for weights that the caller froze, or null. See CpuBackend::freeze.
  cpu::FrozenRun* frozen = nullptr;
};

/// The tensors of one rank.
struct RankTensors {
  std::vector<TensorView> inputs, outputs;
};

/// Launch counters of one run.
struct LaunchCounts {
  std::size_t kernels = 0;  ///< and copies
  std::size_t library = 0;  ///< matrix products, attention, collectives
  std::size_t graphs = 0;   ///< replayed; what is in them is counted too
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
  /// Inputs and outputs in the order of the graph's; outputs are allocated by the caller. Those of
  /// eager, cpu and the interpreter keep nothing of a run: several may be at the same time, also
  /// within each other.
  virtual Status run(std::span<const TensorView> inputs, std::span<const TensorView> outputs,
                     const RunContext& context) = 0;
  /// The same on several ranks in step, with their collectives between them. PW1201 where an
  /// executable cannot; one rank is always possible.
  virtual Status run_ranks(std::span<const RankTensors> ranks, const RunContext& context);
};

class Backend {
 public:
  virtual ~Backend() = default;
  [[nodiscard]] virtual std::string name() const = 0;
  [[nodiscard]] virtual Result<std::unique_ptr<Executable>> compile(const Graph& piece) = 0;
  /// What it made of all pieces so far, in lines for people.
  [[nodiscard]] virtual std::vector<std::string> summary() const { return {}; }
};

struct EngineCapabilities {
  bool ranks = false;    ///< runs several ranks of one process in step
  bool strict = false;   ///< can give the interpreter's bits in single precision
  bool fuse = false;     ///< makes kernels of neighbouring row ops
  bool capture = false;  ///< records pieces or whole steps, and replays them
};

struct BackendOptions {
  bool strict = false;
  bool fuse = true;  ///< neighbouring row ops are one kernel
  /// Of compiled kernels; null: the one of the environment.
  std::shared_ptr<CompileCache> cache = {};
};

struct BackendKind {
  std::string name, what;  ///< `what`: for people, in a line
  EngineCapabilities can;
  std::function<std::unique_ptr<Backend>(const BackendOptions&)> make;
  /// Whether it runs a node of this op as it is, without looking into a body; absent: as eager
  /// does.
  std::function<bool(const Op&)> runs = {};
  /// Its runs are compared with its own of the unrewritten graph, as those of the backends that are
  /// tested here; false: with those of eager, so that a backend that is wrong everywhere is found.
  bool own_whole = false;
};

/// Those built in, as backends.def lists them: a function NAME_backend() each.
std::vector<BackendKind> backend_kinds();
/// One of each kind.
std::vector<std::unique_ptr<Backend>> all_backends();

}  // namespace pw
