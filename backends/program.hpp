// A graph compiled to run op by op: inlined bodies, a kernel for every node, and last uses. The
// interpreter and eager are instances with different kernels and storage.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "backends/collectives.hpp"
#include "backends/kernel.hpp"

namespace pw {

/// Error code for an op that has neither a body nor a kernel in the backend.
inline constexpr const char* kNoKernel = "PW1201";

/// A function that runs one node.
using RunCall = std::function<Status(Call&)>;

struct Engine {
  std::string name;
  KernelTable kernels;      ///< looked up before the layout kernels
  DType (*storage)(DType);  ///< maps a declared dtype to its storage dtype
  /// Consulted first, for nodes that only this engine has. It may be empty, and may return an empty
  /// call.
  std::function<RunCall(const Graph&, NodeId)> special = {};
  /// Groups that the graph's source states. The op that states the number of ranks may be removed
  /// from the graph, since nothing reads it.
  RankGroups stated = {};
};

class OpProgram {
 public:
  /// Compiles a graph. Fails with PW1201 and the names of the ops that have no kernel, body or host
  /// function.
  static Result<OpProgram> make(const Graph& graph, const Engine& engine);
  /// Runs the program. Inputs have their declared dtype; outputs may have any dtype and are
  /// converted like `store`.
  Status run(std::span<const TensorView> inputs, std::span<const TensorView> outputs,
             const RunContext& context) const;
  /// Runs several ranks in step: each node runs on all of them before the next one.
  Status run_ranks(std::span<const RankTensors> ranks, const RunContext& context) const;
  [[nodiscard]] const Graph& graph() const { return graph_; }
  [[nodiscard]] LaunchCounts launches() const;

 private:
  struct Instruction {
    NodeId node;
    RunCall kernel;         ///< empty for a collective
    Collective collective;  ///< null for any other op
    RankGroup group;        ///< ranks that a collective spans, as far as the graph determines them
    std::vector<ValueId> dies;  ///< values whose last use is this node
  };
  using Values = std::vector<Array>;  ///< the values of one rank, by value id
  OpProgram(Graph graph, const Engine& engine) : graph_(std::move(graph)), engine_(engine) {}
  Status choose_kernels();
  void find_last_uses();
  Status bind_inputs(std::span<const TensorView> inputs, const RunContext& context,
                     Values& values) const;
  Result<Call> call_of(const Instruction& instruction, const Values& values,
                       const RunContext& context) const;
  [[nodiscard]] Result<RankGroup> group_in(const Instruction& instruction,
                                           const RunContext& context) const;
  /// The state of one rank's run.
  struct RankRun {
    std::span<const TensorView> inputs, outputs;
    std::vector<bool> alone;  ///< by output: true if it may be written before all inputs are read
    Values values;
    std::deque<TensorView> reshaped;  ///< places of results that a reshape turns into outputs
  };
  Status run_all(std::vector<RankRun>& ranks, const RunContext& context) const;
  Status step(const Instruction& instruction, std::span<RankRun> ranks,
              const RunContext& context) const;
  void find_output_places();
  void place_results(const Instruction& instruction, Call& call, RankRun& rank) const;
  void keep_results(const Instruction& instruction, Call& call, Values& values) const;

  Graph graph_;
  Engine engine_;
  std::vector<Instruction> instructions_;
  using OutputPlaces = std::map<ValueId, std::vector<std::size_t>>;
  OutputPlaces output_places_;    ///< places of returned values
  OutputPlaces reshaped_places_;  ///< places of values that are returned reshaped
};

/// Returns true for an untyped value that nothing reads; engines pass nothing for it.
[[nodiscard]] bool has_no_tensor(const Graph& graph, ValueId value);
/// Returns the extents of a value for given symbols. Fails with PW1202 if a symbol has no value.
Result<Extents> extents_of(const Graph& graph, ValueId value, const Symbols& symbols);
/// Returns the extents of a type; `place` is called only to report an error.
Result<Extents> extents_of(const Context& context, TypeId type, const Symbols& symbols,
                           const std::function<std::string()>& place);
/// Compiles a graph to an executable of an engine.
Result<std::unique_ptr<Executable>> compile_program(const Graph& graph, const Engine& engine);

}  // namespace pw
