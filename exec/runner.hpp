// Runs steps through a plan: pads the token count, keeps values that cross pieces in the plan's
// arena, runs the pieces in order, and cuts the outputs back to the valid rows.
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
  bool pad = true;        ///< false: every step runs at its own size
  bool poison = false;    ///< arena and padding rows hold NaN, indices of padding 0
  Symbols symbols = {};   ///< of dynamic dims other than the tokens; the plan's bounds otherwise
  std::int64_t rows = 0;  ///< not 0: every step runs as if it had as many tokens
  PieceHook* hook = nullptr;  ///< called before and after each piece
  bool captures = true;       ///< false: the engine runs the plan's sizes eagerly
};

enum class StepMode : std::uint8_t { eager, captured };
[[nodiscard]] std::string_view name(StepMode mode);

struct StepReport {
  std::int64_t tokens = 0, padded = 0;
  StepMode mode = StepMode::eager;
  std::string reason;  ///< why this mode
  double seconds = 0;
  std::string key = {};  ///< of the captured graphs; empty where none runs
  bool whole = false;    ///< one graph is the whole step
  LaunchCounts launches = {};
  std::vector<double> piece_seconds = {};  ///< by piece; 0 where the whole step is one graph
};
struct StepResult {
  /// In the graph's order, valid rows only: what it returns, then what its written inputs hold.
  std::vector<Tensor> outputs;
  StepReport report;
};
/// By rank, then in the graph's order.
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
  /// The same step on several ranks of this process, each with its own contents and arena.
  Result<RankStepResult> run(const Step& step, std::span<Weights> ranks,
                             const RunOptions& options = {});

 private:
  struct Live;  ///< one rank's step
  class Call;   ///< what a hook sees of it
  Runner(const StitchedGraph& stitched, const Graph& source, const Plan& plan)
      : stitched_(&stitched), source_(&source), plan_(&plan), dispatcher_(plan) {}

  Status bind_inputs(Live& live, Weights& weights) const;
  Status bind_values(Live& live) const;
  Status run_pieces(std::span<Live> ranks, StepReport& report);
  /// Each rank's call of the hook, one after another.
  Status tell(const Piece& piece, std::span<Live> ranks, bool after) const;
  std::byte* arena(std::size_t rank);
  Result<std::vector<Tensor>> cut_outputs(const Live& live) const;

  const StitchedGraph* stitched_;
  const Graph* source_;
  const Plan* plan_;
  Dispatcher dispatcher_;
  std::vector<std::unique_ptr<Executable>> executables_;
  RankGroups groups_;  ///< that the source states; a piece may only name them
  std::vector<std::shared_ptr<void>> arenas_;  ///< one a rank
};

/// One sequence of `tokens` new tokens.
[[nodiscard]] Step one_sequence(std::int64_t tokens);
/// The tensors of all inputs of a graph, in order.
Result<std::vector<Tensor>> input_tensors(const Graph& graph, Weights& weights,
                                          const Symbols& symbols, const Step& step);
/// A graph run whole, at its own size: no pieces, no padding.
Result<std::vector<Tensor>> run_whole(const Graph& graph, Backend& backend, Weights& weights,
                                      const Step& step, const Symbols& symbols = {});
/// The same on the double-precision interpreter, `exact` or `stated`; f64 tensors.
Result<std::vector<Tensor>> run_reference(const Graph& graph, Weights& weights, const Step& step,
                                          const Symbols& symbols = {},
                                          Precision precision = Precision::exact);
/// Both on several ranks of this process, with their collectives.
Result<RankOutputs> run_whole(const Graph& graph, Backend& backend, std::span<Weights> ranks,
                              const Step& step, const Symbols& symbols = {});
Result<RankOutputs> run_reference(const Graph& graph, std::span<Weights> ranks, const Step& step,
                                  const Symbols& symbols = {},
                                  Precision precision = Precision::exact);

}  // namespace pw
