// Owns the captured graphs of a runtime: of pieces, and of whole steps, by size.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cuda/launch_recorder.hpp"

namespace pw::cuda {

/// A captured graph; without an executable if the driver rejects it.
struct CapturedGraph {
  std::shared_ptr<GraphExecutable> executable;
  std::size_t number = 0;       ///< of the graph in the executable
  std::uint64_t addresses = 0;  ///< hash
  LaunchCounts launches = {};
};

/// Consecutive steps of a plan in one graph: all of them, unless an op on the host interrupts the
/// step.
struct StepSegment {
  std::size_t first = 0, end = 0;
  CapturedGraph graph;
};

/// Time of capture() for a size.
struct CaptureTime {
  std::int64_t tokens = 0;
  double seconds = 0;
};

class CapturedGraphs {
 public:
  CapturedGraphs(const RuntimeTask& task, const CompiledPieces& pieces, const RuntimeMemory& memory,
                 const DeviceAttention& pages, const LaunchRecorder& recorder, RuntimeLog& log)
      : task_(task),
        pieces_(pieces),
        memory_(memory),
        pages_(pages),
        recorder_(recorder),
        log_(log) {}

  /// Captures every captured piece at every size of the plan, then whole steps, in its order.
  Status capture();
  [[nodiscard]] bool captured() const { return captured_; }
  [[nodiscard]] const std::vector<CaptureTime>& times() const { return times_; }

  /// Returns the segments of a captured step; null if none of that size was captured.
  [[nodiscard]] const std::vector<StepSegment>* step(std::int64_t size) const;
  /// Replay a graph and add its launches. Return false without running if there is no graph, or if
  /// memory that it was captured with has moved.
  Result<bool> replay(PieceId piece, std::int64_t size, LaunchCounts& launches);
  Result<bool> replay(const StepSegment& segment, LaunchCounts& launches);

  /// Returns the names of the pieces that the host runs.
  [[nodiscard]] std::string breaks() const;
  /// Returns a hash of all addresses of a step's launches.
  [[nodiscard]] std::uint64_t hash_of_step() const {
    return hash_of(StepSegment{0, task_.plan.steps.size(), {}});
  }

 private:
  Result<bool> replay(const CapturedGraph& graph, std::uint64_t addresses, const std::string& name,
                      LaunchCounts& launches);
  [[nodiscard]] std::uint64_t hash_of(const StepSegment& segment) const;
  [[nodiscard]] std::uint64_t hash_of(PieceId piece) const;
  [[nodiscard]] bool on_host(std::size_t step) const {
    return pieces_.between(task_.plan.steps[step].piece) != nullptr;
  }
  /// Returns the runs of pieces between those on the host, with nothing recorded.
  [[nodiscard]] std::vector<StepSegment> segments() const;
  using Executables = std::vector<std::shared_ptr<GraphExecutable>>;
  /// Instantiates a graph, or adds it to one of `others`, the executables of other sizes, if they
  /// may be shared. Adds a note if the driver rejects it.
  CapturedGraph instantiate(RecordedGraph graph, std::uint64_t addresses, Executables& others);
  void count_full_edges(const RecordedGraph& graph);
  /// Notes how many nodes start early, and why the others do not.
  void note_full_edges();
  Status capture_pieces(std::int64_t size);
  Status capture_step(std::int64_t size, std::int64_t query);

  const RuntimeTask& task_;
  const CompiledPieces& pieces_;
  const RuntimeMemory& memory_;
  const DeviceAttention& pages_;
  const LaunchRecorder& recorder_;
  RuntimeLog& log_;
  std::vector<std::map<std::int64_t, CapturedGraph>> graphs_;   ///< by piece, then size
  std::map<std::int64_t, std::vector<StepSegment>> steps_;      ///< whole steps, by size
  std::map<std::size_t, Executables> of_pieces_, of_segments_;  ///< by piece, by first step
  std::map<std::string, std::size_t> full_edges_;  ///< nodes by the reason for full edges
  bool captured_ = false;
  std::vector<CaptureTime> times_;
};

}  // namespace pw::cuda
