// An emulator of the device. Memory is the host's, kernels are the unchanged CUDA source run on
// fibers (see host_run.hpp), and a CPU backend runs library calls. A graph's nodes run in a random
// order, drawn from a seed and consistent with its edges, so that a missing edge shows. A node with
// a programmatic edge may run first, up to its wait, where its predecessor runs. A stream runs each
// launch at once, one launch at a time over all threads, on any memory of the process. A signal
// arrives between two passes of a loop.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "cuda/device/driver.hpp"
#include "cuda/device/host_run.hpp"

namespace pw::cuda {

struct HostDriverOptions {
  std::uint64_t seed = 1;
  std::int64_t capacity = std::int64_t{1} << 40;  ///< capacity in bytes
  bool libraries = true;          ///< false: a device without libraries, where products are kernels
  std::string arch = "sm_90";     ///< emulated architecture, which selects tuned schedules
  CompileCache* cache = nullptr;  ///< cache of compiled kernels; null: each module is compiled
  bool checks_edges = true;       ///< false: replays alone show faults of programmatic edges
  // Fault injection: the n-th instantiation (from 0) or the n-th replay fails.
  std::optional<std::size_t> refuse_graph = std::nullopt, break_replay = std::nullopt;
  /// Called after each pass of a loop with the number of passes of this replay.
  std::function<void(std::size_t)> after_pass = {};
};

class HostDriver : public Driver {
 public:
  explicit HostDriver(const HostDriverOptions& options = {});
  ~HostDriver() override;
  HostDriver(const HostDriver&) = delete;
  HostDriver& operator=(const HostDriver&) = delete;

  [[nodiscard]] std::string device() const override { return "the host"; }
  [[nodiscard]] std::string arch() const override { return options_.arch; }
  [[nodiscard]] DeviceMemory memory() const override;
  [[nodiscard]] bool calls_libraries() const override { return options_.libraries; }
  [[nodiscard]] Result<Address> allocate(std::int64_t bytes) override;
  void release(Address address) override;
  Status write(Address to, const void* from, std::int64_t bytes) override;
  Status read(void* to, Address from, std::int64_t bytes) override;
  Status fill(Address at, int byte, std::int64_t bytes) override;
  Status signal(Address at, std::int64_t value) override;
  Status load(std::span<const Kernel> kernels) override;
  Result<std::unique_ptr<GraphExecutable>> instantiate(RecordedGraph graph) override;
  Status launch(const LaunchNode& node) override;
  Result<std::unique_ptr<StreamLaunch>> prepare(LaunchNode node) override;
  Status fill_on(Stream stream, Address at, int byte, std::int64_t bytes) override;
  Status run(Executable& executable, std::span<const DeviceTensor> inputs,
             std::span<const DeviceTensor> outputs, const RunContext& context) override;

  /// Returns the allocated bytes; each allocation is aligned to 256.
  [[nodiscard]] std::int64_t allocated() const { return allocated_; }
  [[nodiscard]] std::size_t replays() const { return replays_; }
  /// Accesses of a kernel's launches since `forget_accesses`.
  struct Touched {
    std::size_t launches = 0;
    AccessCounts counted;
    /// Predicted accesses by the kernel's tree, the launch sizes, and the arrays that the tree
    /// requires. Nothing if one of these is unknown.
    std::optional<AccessCounts> foretold = AccessCounts();
  };
  /// Returns the accesses by kernel.
  [[nodiscard]] const std::map<std::string, Touched>& touched() const { return touched_; }
  /// Returns the bytes that copies moved, each read and written.
  [[nodiscard]] std::int64_t copied() const { return copied_; }
  void forget_accesses() {
    touched_.clear();
    copied_ = 0;
  }

 private:
  class Replay;
  class OnStream;
  /// Begins or ends the time in which signals wait for the end of a pass, and delivers those that
  /// wait.
  void deliver_signals(bool wait);
  [[nodiscard]] Status check(const MemoryRange& range, const std::string& what) const;
  /// Fails as `instantiate` does.
  [[nodiscard]] Status check(const RecordedGraph& graph) const;
  using Earlier = std::function<Status()>;
  Status run_node(const LaunchNode& node, std::uint64_t seed, const Earlier& earlier = {});
  Status run_unchecked(const LaunchNode& node, std::uint64_t seed, const Earlier& earlier = {});
  Status run_kernel(const LaunchNode& node, std::uint64_t seed, const Earlier& earlier);
  [[nodiscard]] std::optional<LaunchAccesses> foretell(const LaunchNode& node) const;

  HostDriverOptions options_;
  std::map<Address, std::int64_t> blocks_;  ///< aligned bytes by start address
  std::int64_t allocated_ = 0;
  std::vector<HostKernels> modules_;
  std::map<std::string, std::size_t, std::less<>> module_of_;       ///< by kernel
  std::map<std::string, std::shared_ptr<const AccessTree>> trees_;  ///< by kernel
  std::set<std::string> waiting_;  ///< kernels that wait before they do anything else
  std::map<std::string, Touched> touched_;
  std::int64_t copied_ = 0;
  std::size_t graphs_ = 0, replays_ = 0, enqueued_ = 0;
  bool broken_ = false;
  std::mutex signals_lock_;
  bool signals_wait_ = false;
  std::vector<std::pair<Address, std::int64_t>> signals_;
  std::mutex turn_;  ///< held by a launch on a stream, and while kernels are loaded
};

}  // namespace pw::cuda
