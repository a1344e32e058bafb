// Records the launches of pieces and whole steps for a number of tokens.
#pragma once

#include <vector>

#include "cuda/compiled_pieces.hpp"
#include "cuda/runtime_memory.hpp"

namespace pw::cuda {

class LaunchRecorder {
 public:
  LaunchRecorder(const RuntimeTask& task, const CompiledPieces& pieces, const RuntimeMemory& memory,
                 const DeviceAttention& pages)
      : task_(task), pieces_(pieces), memory_(memory), pages_(pages) {}

  /// Returns the launches of a piece at a size, in order. Those of attention are tuned for `query`
  /// new tokens of each sequence; 0: they differ.
  Result<std::vector<LaunchNode>> launches(PieceId piece, std::int64_t tokens,
                                           std::int64_t query) const;
  /// Returns the copies that end a step: what the graph writes to integer inputs with a row for
  /// each token, such as the next ids and positions, to the memory of these inputs. An input is
  /// omitted if an output is in its memory.
  Result<std::vector<LaunchNode>> next_inputs(std::int64_t tokens) const;
  /// Returns the graph of a piece.
  Result<RecordedGraph> record(PieceId piece, std::int64_t tokens) const;
  /// Returns the graph of the steps of the plan from `first` up to `end`. The last one includes
  /// next_inputs().
  Result<RecordedGraph> record_steps(std::size_t first, std::size_t end, std::int64_t tokens,
                                     std::int64_t query) const;
  /// Returns the graph of a whole step as the body of a loop, of which `end` ends each pass.
  Result<RecordedGraph> record_loop(std::int64_t tokens, std::int64_t query, LaunchNode end) const;

 private:
  Result<std::vector<LaunchNode>> program(PieceId piece, std::int64_t tokens) const;
  /// Gives a launch the pages of the attention that follows the piece.
  void use_pages(PieceId piece, const ProgramLaunch& launch, LaunchNode& node) const;
  Result<LaunchNode> node(PieceId piece, const ProgramLaunch& launch, const Symbols& symbols,
                          std::int64_t tokens) const;
  Result<std::vector<LaunchNode>> attention(PieceId piece, std::int64_t tokens,
                                            std::int64_t query) const;
  /// Returns the launches of a step of the plan. Keys and values are put into pages once, by the
  /// piece before if it can.
  Result<std::vector<LaunchNode>> in_step(std::size_t step, std::int64_t tokens,
                                          std::int64_t query) const;

  /// Gives the nodes their edges.
  void connect(RecordedGraph& graph) const;

  const RuntimeTask& task_;
  const CompiledPieces& pieces_;
  const RuntimeMemory& memory_;
  const DeviceAttention& pages_;
};

}  // namespace pw::cuda
