// Many steps in one launch: a loop on the device around the graph of a step, for steps of one new
// token of each sequence. The last node of its body records the tokens, ends sequences, and
// advances the tables of attention, so that the next pass needs no host.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cuda/captured_graphs.hpp"
#include "exec/generation.hpp"

namespace pw::cuda {

/// Returns the kernel that ends a pass. It reads the tokens of the rows, the tokens that end a
/// sequence, and the tables of attention; it writes the tables, the record of tokens, the state
/// (passes, their limit, whether to cancel, end tokens), and zeros to `continued` inputs of
/// sequences that end. Its last parameter is the handle of the loop's condition.
[[nodiscard]] Kernel pass_end_kernel(Context& context, DimId rows, std::int64_t page_tokens,
                                     const std::vector<DType>& continued);

class StepLoop {
 public:
  static constexpr std::size_t kMostEnds = 64;  ///< tokens that end a sequence

  StepLoop(const RuntimeTask& task, const CompiledPieces& pieces, RuntimeMemory& memory,
           const DeviceAttention& pages, const LaunchRecorder& recorder,
           const CapturedGraphs& graphs, RuntimeLog& log)
      : task_(task),
        pieces_(pieces),
        memory_(memory),
        pages_(pages),
        recorder_(recorder),
        graphs_(graphs),
        log_(log) {}

  /// Loads the kernel and allocates the state, if the task wants loops and its steps may be in one;
  /// otherwise adds a note.
  Status prepare();
  /// Captures a loop for each size of which whole steps are captured.
  Status capture();
  /// Returns the most passes of a loop that begins with this step; 0: it must not.
  [[nodiscard]] std::int64_t passes(const Step& step, const GenerationLimits& limits,
                                    const RunOptions& options) const;
  /// Returns true if a loop of this size was captured, and memory has not moved since.
  [[nodiscard]] bool ready(std::int64_t size) const;
  /// Runs the loop for the step that has begun, of `rows` sequences.
  Result<ChosenTokens> run(std::int64_t size, std::size_t rows, const GenerationLimits& limits);
  /// Ends the loop after the pass that runs, from any thread; later loops do not begin until
  /// `allow`.
  Status cancel();
  void allow() { cancelled_ = false; }
  [[nodiscard]] bool cancelled() const { return cancelled_; }
  /// Returns why the task has no loop although it requested one; empty if it has one.
  [[nodiscard]] const std::string& reason() const { return reason_; }

 private:
  struct Looped {
    std::unique_ptr<GraphExecutable> executable;
    std::uint64_t addresses = 0;
  };
  /// Returns why steps cannot be in a loop, or an empty text.
  [[nodiscard]] std::string why_not() const;
  [[nodiscard]] std::vector<ValueId> continued() const;
  void refuse(const std::string& why);
  Result<LaunchNode> pass_end(std::int64_t size) const;
  [[nodiscard]] DeviceTensor numbers(Address at, std::int64_t count) const {
    return {DType::i64, {count}, at};
  }

  const RuntimeTask& task_;
  const CompiledPieces& pieces_;
  RuntimeMemory& memory_;
  const DeviceAttention& pages_;
  const LaunchRecorder& recorder_;
  const CapturedGraphs& graphs_;
  RuntimeLog& log_;
  std::optional<Kernel> kernel_;  ///< nothing: there are no loops
  Address state_ = 0, ends_ = 0, record_ = 0;
  std::map<std::int64_t, Looped> loops_;  ///< by size
  std::atomic<bool> cancelled_ = false;
  std::string reason_;
};

}  // namespace pw::cuda
