// A graph compiled to run op by op: bodies inlined, a kernel chosen for every node, last uses
// computed. The interpreter and eager are this with different kernels and storage.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "backends/collectives.hpp"
#include "backends/kernel.hpp"

namespace pw {

/// The code of the error for an op that a backend has no kernel for, and that has no body.
inline constexpr const char* kNoKernel = "PW1201";

/// What runs one node.
using RunCall = std::function<Status(Call&)>;

struct Engine {
  std::string name;
  KernelTable kernels;      ///< looked up before the layout kernels
  DType (*storage)(DType);  ///< the dtype that values of a declared dtype are stored in
  /// Asked first, of nodes that only this engine has; may be empty, and give an empty one.
  std::function<RunCall(const Graph&, NodeId)> special = {};
  /// The groups that the graph states from which the one at hand was made: an op that says how many
  /// ranks there are may be gone, since nothing reads it.
  RankGroups stated = {};
};

class OpProgram {
 public:
  /// Fails with PW1201 that names the ops without kernel, body and host function.
  static Result<OpProgram> make(const Graph& graph, const Engine& engine);
  /// Inputs in their declared dtype. Outputs may have any dtype: they are converted as `store`
  /// does.
  Status run(std::span<const TensorView> inputs, std::span<const TensorView> outputs,
             const RunContext& context) const;
  /// Several ranks in step: each node runs on all of them before the next one does.
  Status run_ranks(std::span<const RankTensors> ranks, const RunContext& context) const;
  [[nodiscard]] const Graph& graph() const { return graph_; }
  [[nodiscard]] LaunchCounts launches() const;

 private:
  struct Instruction {
    NodeId node;
    RunCall kernel;             ///< empty for a collective
    Collective collective;      ///< null for any other op
    RankGroup group;            ///< the ranks that a collective spans, as far as the graph says
    std::vector<ValueId> dies;  ///< values not needed after it
  };
  using Values = std::vector<Array>;  ///< of one rank, by value
  OpProgram(Graph graph, const Engine& engine) : graph_(std::move(graph)), engine_(engine) {}
  Status choose_kernels();
  void find_last_uses();
  Status bind_inputs(std::span<const TensorView> inputs, const RunContext& context,
                     Values& values) const;
  Result<Call> call_of(const Instruction& instruction, const Values& values,
                       const RunContext& context) const;
  [[nodiscard]] Result<RankGroup> group_in(const Instruction& instruction,
                                           const RunContext& context) const;
  /// What one rank runs on.
  struct RankRun {
    std::span<const TensorView> inputs, outputs;
    std::vector<bool> alone;  ///< by output: may be written to before all inputs are read
    Values values;
    std::deque<TensorView> reshaped;  ///< places of results that reshapes make outputs of
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
  OutputPlaces output_places_;    ///< of what the graph returns
  OutputPlaces reshaped_places_;  ///< of what it returns reshaped
};

/// A value of no type that nobody reads: engines pass nothing for it.
[[nodiscard]] bool has_no_tensor(const Graph& graph, ValueId value);
/// The extents of a value for given symbols; PW1202 if a symbol has no value.
Result<Extents> extents_of(const Graph& graph, ValueId value, const Symbols& symbols);
/// Those of a type; `place` is asked only where something is wrong.
Result<Extents> extents_of(const Context& context, TypeId type, const Symbols& symbols,
                           const std::function<std::string()>& place);
/// A graph as an executable of an engine.
Result<std::unique_ptr<Executable>> compile_program(const Graph& graph, const Engine& engine);

}  // namespace pw
