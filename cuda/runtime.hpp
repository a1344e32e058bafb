// Runs steps through a plan on a device. Captured pieces, or whole steps, are recorded once for
// each size and replayed; ops between pieces are launched directly. All memory is allocated and
// everything recorded before the first step.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cuda/captured_graphs.hpp"
#include "cuda/step_loop.hpp"

namespace pw::cuda {

class Runtime {
 public:
  /// Compiles and allocates everything except the contents of inputs. Fails with PW1250 and a table
  /// of the requested memory if memory is short. A plan with scratch places comes from an earlier
  /// runtime: its places are reused, or rejected with PW1256 if they do not suit the graph or its
  /// launches. The stitched graph, its source, the plan and the driver must outlive the runtime.
  static Result<std::unique_ptr<Runtime>> make(const StitchedGraph& stitched, const Graph& source,
                                               const Plan& plan, Driver& driver,
                                               const RuntimeOptions& options = {});
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  /// Copies weights and buffers to the device, each to its own memory. A second call uses other
  /// memory and makes earlier captures stale.
  Status load(Weights& weights);
  /// Gives weights and buffers memory without contents, for recording alone.
  Status reserve_weights() { return memory_.reserve_weights(); }
  /// Returns the weights in device memory all of which a step reads.
  [[nodiscard]] std::vector<DeviceTensor> weights() const { return memory_.weights(); }
  /// Captures every captured piece at every size of the plan, then whole steps, largest first. Call
  /// it once, after load(); fails with PW1255 after the first step.
  Status capture();
  Result<StepResult> run(const Step& step, Weights& weights, const RunOptions& options = {});
  /// Runs a step and returns the tokens of its graph's first output, an i64 for each row. If each
  /// sequence has one new token and a loop of their number was captured, runs several steps in one
  /// launch (see run_many).
  Result<ChosenTokens> run_some(const Step& step, Weights& weights, const GenerationLimits& limits,
                                const RunOptions& options = {});
  [[nodiscard]] StepLoop& loop() { return loop_; }
  [[nodiscard]] const Graph& source() const { return task_.source; }

  // ---- a step by hand: begin, every piece in the plan's order, then the outputs. Any other order
  // fails with PW1254.
  Result<StepReport> begin_step(const Step& step, Weights& weights, const RunOptions& options = {});
  Status run_piece(PieceId piece);
  Result<std::vector<Tensor>> end_step();

  /// Returns the memory plan; a runtime made with it gets the same addresses.
  [[nodiscard]] const MemoryPlan& memory() const { return memory_.layout(); }
  [[nodiscard]] const RuntimeCounters& counters() const { return log_.counters; }
  /// Returns why pieces are not captured, and other deviations from the plan, each once.
  [[nodiscard]] const std::vector<std::string>& notes() const { return log_.notes; }
  /// Returns the kernels of its launches, each once.
  [[nodiscard]] const std::vector<Kernel>& kernels() const { return pieces_.kernels(); }
  /// Returns the recorded graph of a piece at a size.
  Result<RecordedGraph> record(PieceId piece, std::int64_t tokens) const {
    return recorder_.record(piece, tokens);
  }
  /// Returns the recorded graph of a whole step with `query` new tokens of each sequence; 0: they
  /// may differ.
  Result<RecordedGraph> record_step(std::int64_t tokens, std::int64_t query = 0) const {
    return recorder_.record_steps(0, task_.plan.steps.size(), tokens, query);
  }
  /// Returns the times of capture() for each size, in recording order.
  [[nodiscard]] const std::vector<CaptureTime>& capture_times() const { return graphs_.times(); }

 private:
  /// The current step.
  struct Live {
    Step step;
    StepReport report;
    RunOptions options;
    std::int64_t query = 0;  ///< new tokens of each sequence; 0: they differ
    std::size_t next = 0;    ///< index in the plan's steps
    bool continued = false;  ///< the inputs of the next step are written
  };

  Runtime(const StitchedGraph& stitched, const Graph& source, const Plan& plan, Driver& driver,
          const RuntimeOptions& options);
  Status compile();
  Status allocate();
  Result<StepReport> begin(const Step& step, Weights& weights, const RunOptions& options,
                           std::int64_t ahead);
  Result<ChosenTokens> run_loop(const Step& step, Weights& weights, const GenerationLimits& limits);
  /// Returns the initial number of key-value pages in each layer.
  [[nodiscard]] std::int64_t first_pages() const;
  Result<StepReport> dispatch(const Step& step, const RunOptions& options) const;
  /// Returns the key of a step's graphs; 0 if sizes do not depend on tokens.
  [[nodiscard]] std::int64_t captured_size(const StepReport& report) const {
    return task_.plan.tokens.empty() ? 0 : report.padded;
  }
  Status bind_input(ValueId input, const Tensor& tensor);
  Status check_due(PieceId piece) const;
  Status run_due_piece(PieceId piece);
  class Call;  ///< view for a hook
  Status call_hook(PieceId piece, bool after);
  Status write_back(const std::vector<Tensor>& outputs);
  /// Writes the inputs of the next step, unless a replayed graph has, and reads them.
  Status continue_inputs();
  Status run_pieces();
  Status run_segment(const StepSegment& segment);
  Status run_between(PieceId piece);
  Status launch_all(PieceId piece);

  RuntimeTask task_;
  RuntimeLog log_;
  Dispatcher dispatcher_;
  CompiledPieces pieces_;
  RuntimeMemory memory_;
  DeviceAttention pages_;
  LaunchRecorder recorder_;
  CapturedGraphs graphs_;
  StepLoop loop_;
  std::optional<Live> live_;
  std::map<ValueId, Tensor> next_inputs_;  ///< contents that the last step left in memory
  RankGroups stated_;  ///< groups that the source states; a piece may only name them
  RankGroups groups_;  ///< groups of the current step
  bool stepped_ = false;
};

}  // namespace pw::cuda
