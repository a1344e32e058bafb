// The compiler interface: a backend turns a piece into an executable. The seam between planning and
// running.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/tensor.hpp"
#include "base/diagnostic.hpp"
#include "graph/graph.hpp"

namespace pw {

class KvCache;

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
  [[nodiscard]] std::int64_t tokens() const;  ///< sum of new tokens: the valid rows
};

/// What an executable needs to know beyond its tensors.
struct RunContext {
  std::map<std::string, std::int64_t, std::less<>>
      symbols;  ///< the token symbol holds the padded count
  const Step* step = nullptr;
  /// Rows that hold real tokens; 0: all. Reductions over the tokens cover no others.
  std::int64_t valid = 0;
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
  /// Inputs and outputs in the order of the graph's; outputs are allocated by the caller.
  virtual Result<std::monostate> run(std::span<const TensorView> inputs,
                                     std::span<const TensorView> outputs,
                                     const RunContext& context) = 0;
  /// The same on several ranks in step, with their collectives between them. PW1201 where an
  /// executable cannot; one rank is always possible.
  virtual Result<std::monostate> run_ranks(std::span<const RankTensors> ranks,
                                           const RunContext& context);
};

class Backend {
 public:
  virtual ~Backend() = default;
  [[nodiscard]] virtual std::string name() const = 0;
  [[nodiscard]] virtual Result<std::unique_ptr<Executable>> compile(const Graph& piece) = 0;
};

/// All backends built in: eager, interpreter, cpu.
std::vector<std::unique_ptr<Backend>> all_backends();

}  // namespace pw
