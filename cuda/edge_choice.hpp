// Chooses the edges of recorded graphs: programmatic where that is safe and the model of times
// predicts no loss, full otherwise.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cuda/device/driver.hpp"
#include "cuda/kernels/matmul/stream_model.hpp"

namespace pw::cuda {

class EdgeChooser {
 public:
  /// The kernels must outlive it.
  EdgeChooser(std::string_view arch, const std::vector<Kernel>& kernels);

  /// Returns a node's kernel, or null.
  [[nodiscard]] const Kernel* kernel_of(const LaunchNode& node) const;
  /// Returns what the model needs of a node, without its bytes.
  [[nodiscard]] StreamedLaunch modelled(const LaunchNode& node) const;
  /// Returns the node's edge as one that is programmatic.
  [[nodiscard]] StreamEdge early_edge(const LaunchNode& node) const;
  /// Returns the seconds that a programmatic edge adds to a node with one predecessor.
  [[nodiscard]] double added(const RecordedGraph& graph, std::size_t node) const;
  /// Makes programmatic edges full if they add time.
  void choose(RecordedGraph& graph) const;
  [[nodiscard]] const StreamMachine& machine() const { return machine_; }

 private:
  StreamMachine machine_;
  std::map<std::string, const Kernel*, std::less<>> kernels_;
};

}  // namespace pw::cuda
