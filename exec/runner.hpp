// Runs steps through a plan: pads the token count, stores values that cross pieces in the plan's
// arena, runs the pieces in order, and slices the outputs to the valid rows.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/interpreter/interpreter.hpp"
#include "exec/piece_hook.hpp"
#include "exec/weights.hpp"
#include "splitter/plan.hpp"

namespace pw {

struct RunOptions {
  bool pad = true;            ///< false: every step runs at its own size
  bool poison = false;        ///< arena and padding rows hold NaN, indices of padding 0
  Symbols symbols = {};       ///< dynamic dims other than the tokens; default: the plan's bounds
  std::int64_t rows = 0;      ///< nonzero: every step runs as if it had this many tokens
  PieceHook* hook = nullptr;  ///< called before and after each piece
  bool captures = true;       ///< false: the engine runs the plan's sizes eagerly
};

enum class StepMode : std::uint8_t { eager, captured };
[[nodiscard]] std::string_view name(StepMode mode);

struct StepReport {
  std::int64_t tokens = 0, padded = 0;
  StepMode mode = StepMode::eager;
  std::string reason;  ///< reason for this mode
  double seconds = 0;
  std::string key = {};  ///< key of the captured graphs; empty if none runs
  bool whole = false;    ///< one graph runs the whole step
  LaunchCounts launches = {};
  std::vector<double> piece_seconds = {};  ///< by piece; 0 if one graph runs the whole step
};
struct StepResult {
  /// Valid rows in the graph's order: the returned values, then the contents of written inputs.
  std::vector<Tensor> outputs;
  StepReport report;
};
/// Outputs by rank, then in the graph's order.
using RankOutputs = std::vector<std::vector<Tensor>>;
struct RankStepResult {
  RankOutputs outputs;
  StepReport report;
};

class Runner {
 public:
  /// Compiles every piece. The stitched graph, its source and the plan must outlive the runner.
  static Result<Runner> make(const StitchedGraph& stitched, const Graph& source, const Plan& plan,
                             Backend& backend);
  Result<StepResult> run(const Step& step, Weights& weights, const RunOptions& options = {});
  /// Runs the step on several ranks of this process, each with its own contents and arena.
  Result<RankStepResult> run(const Step& step, std::span<Weights> ranks,
                             const RunOptions& options = {});

 private:
  struct Live;  ///< the state of one rank's step
  class Call;   ///< the hook's view of a piece
  Runner(const StitchedGraph& stitched, const Graph& source, const Plan& plan)
      : stitched_(&stitched), source_(&source), plan_(&plan), dispatcher_(plan) {}

  Status bind_inputs(Live& live, Weights& weights) const;
  Status bind_values(Live& live) const;
  Status run_pieces(std::span<Live> ranks, StepReport& report);
  /// Calls the hook for each rank, one after another.
  Status tell(const Piece& piece, std::span<Live> ranks, bool after) const;
  std::byte* arena(std::size_t rank);
  Result<std::vector<Tensor>> cut_outputs(const Live& live) const;

  const StitchedGraph* stitched_;
  const Graph* source_;
  const Plan* plan_;
  Dispatcher dispatcher_;
  std::vector<std::unique_ptr<Executable>> executables_;
  RankGroups groups_;  ///< groups that the source states; a piece may only name them
  std::vector<std::shared_ptr<void>> arenas_;  ///< one for each rank
};

/// Returns a step of one sequence with `tokens` new tokens.
[[nodiscard]] Step one_sequence(std::int64_t tokens);
/// Returns the tensors of all inputs of a graph, in order.
Result<std::vector<Tensor>> input_tensors(const Graph& graph, Weights& weights,
                                          const Symbols& symbols, const Step& step);
/// Runs a whole graph at its own size, without pieces or padding.
Result<std::vector<Tensor>> run_whole(const Graph& graph, Backend& backend, Weights& weights,
                                      const Step& step, const Symbols& symbols = {});
/// Runs a whole graph on the double-precision interpreter, in mode `exact` or `stated`; returns f64
/// tensors.
Result<std::vector<Tensor>> run_reference(const Graph& graph, Weights& weights, const Step& step,
                                          const Symbols& symbols = {},
                                          Precision precision = Precision::exact);
/// Runs a whole graph on several ranks of this process, with their collectives.
Result<RankOutputs> run_whole(const Graph& graph, Backend& backend, std::span<Weights> ranks,
                              const Step& step, const Symbols& symbols = {});
Result<RankOutputs> run_reference(const Graph& graph, std::span<Weights> ranks, const Step& step,
                                  const Symbols& symbols = {},
                                  Precision precision = Precision::exact);

}  // namespace pw
