// Finds the fastest schedule of a kernel. Candidates that NVRTC rejects or that spill are dropped;
// the others are timed on a device or, without one, by a model of the machine. No candidate changes
// a bit of the results.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "backends/kernel.hpp"
#include "cuda/compile.hpp"
#include "cuda/device/driver.hpp"
#include "cuda/kernels/matmul/schedules.hpp"

namespace pw::cuda {

struct TuneOptions {
  std::string arch = "sm_90";
  std::vector<std::int64_t> tokens;  ///< values of the graph's token symbol to tune for
  bool strict = false;
  int threads = 2;
  CompileCache* cache = nullptr;
  Driver* device = nullptr;  ///< null: the machine model estimates the times
  /// Called after each kernel with the number of finished kernels.
  std::function<void(std::size_t)> progress;
};

/// The result for one kernel at one number of rows.
struct Tuned {
  TunedSchedule chosen;
  std::int64_t tokens = 0;
  std::int64_t bytes = 0;             ///< total of its arguments
  std::size_t candidates = 0;         ///< distinct kernels
  std::size_t spilled = 0;            ///< of these, spilled or rejected
  std::vector<TunedSchedule> others;  ///< timed candidates, fastest first
};

struct TuneReport {
  std::string by;                    ///< the device, or the machine of the model
  std::vector<Tuned> tuned;          ///< by kernel, then tokens
  std::vector<std::string> skipped;  ///< untuned kernels, each with the reason
};

/// Returns the candidate schedules of a program: the default first, no kernel twice.
[[nodiscard]] std::vector<Kernel> candidates(const rows::RowProgram& program);

/// Fills a float tensor with normal numbers that repeat periodically, because zeros take less power
/// and time. Other tensors are unchanged.
Status randomize(Driver& device, const DeviceTensor& tensor);

/// Device memory for measurements, released by the destructor.
class MeasuredMemory {
 public:
  explicit MeasuredMemory(Driver& device) : device_(device) {}
  ~MeasuredMemory();
  MeasuredMemory(const MeasuredMemory&) = delete;
  MeasuredMemory& operator=(const MeasuredMemory&) = delete;
  /// Returns zeroed memory, or nothing if memory is short.
  [[nodiscard]] std::optional<Address> zeros(std::int64_t bytes);
  /// Returns a tensor of the type's extents with contents like randomize(). Integers are 0, because
  /// they may be indices.
  [[nodiscard]] std::optional<DeviceTensor> tensor(const Context& context, TypeId type,
                                                   const Symbols& symbols);

 private:
  Driver& device_;
  std::vector<Address> held_;
};

/// Returns the least seconds of one launch among many in a replayed graph, on its own memory;
/// nothing if the device cannot run the kernel. `cold`: an argument that comes from memory each
/// time, like a weight, and not from a cache.
[[nodiscard]] std::optional<double> measure(Driver& device, const Kernel& kernel,
                                            const Context& context, const Symbols& symbols,
                                            std::optional<std::size_t> cold = std::nullopt);

/// Measures a node whose memory and kernel are ready. `cold`: one of its reads, of that type.
[[nodiscard]] std::optional<double> measure_node(Driver& device, const LaunchNode& node,
                                                 std::optional<std::size_t> cold = std::nullopt);

/// Tunes every kernel of the report once. `tokens_symbol` is the symbol of the tokens in its dims.
/// Fails with PW1243 for an architecture without a machine, and with PW1244 without NVRTC.
Result<TuneReport> tune(const CompileReport& report, const std::string& tokens_symbol,
                        const TuneOptions& options, const Nvrtc& nvrtc);

}  // namespace pw::cuda
