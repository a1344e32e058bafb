// Searches the fastest schedule of a kernel: candidates that NVRTC refuses or that spill are
// dropped, the others are timed on a device, or by a model of the machine where there is none. No
// candidate changes a bit of the results.
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
  std::vector<std::int64_t> tokens;  ///< values of the graph's token symbol, each tuned for
  bool strict = false;
  int threads = 2;
  CompileCache* cache = nullptr;
  Driver* device = nullptr;  ///< null: the model of the machine tells the times
  /// Called after each kernel with how many are done.
  std::function<void(std::size_t)> progress;
};

/// One kernel at one number of rows.
struct Tuned {
  TunedSchedule chosen;
  std::int64_t tokens = 0;
  std::int64_t bytes = 0;             ///< of its arguments
  std::size_t candidates = 0;         ///< kernels that differ
  std::size_t spilled = 0;            ///< of them, or refused
  std::vector<TunedSchedule> others;  ///< those that were timed, the fastest first
};

struct TuneReport {
  std::string by;                    ///< the device, or the machine of the model
  std::vector<Tuned> tuned;          ///< by kernel, then tokens
  std::vector<std::string> skipped;  ///< kernels that could not be, each with the reason
};

/// The schedules that are worth trying for a program: the default first, none twice the same
/// kernel.
[[nodiscard]] std::vector<Kernel> candidates(const rows::RowProgram& program);

/// Fills a tensor of floats with normal numbers, the same ones every so many bytes: zeros take less
/// power, and time. Others stay as they are.
Status randomize(Driver& device, const DeviceTensor& tensor);

/// Device memory that is measured with, released by the destructor.
class MeasuredMemory {
 public:
  explicit MeasuredMemory(Driver& device) : device_(device) {}
  ~MeasuredMemory();
  MeasuredMemory(const MeasuredMemory&) = delete;
  MeasuredMemory& operator=(const MeasuredMemory&) = delete;
  /// Of zeros; nothing where there is not as much.
  [[nodiscard]] std::optional<Address> zeros(std::int64_t bytes);
  /// A tensor of what its type's extents are, as randomize() has it. Integers are 0, which indices
  /// may be.
  [[nodiscard]] std::optional<DeviceTensor> tensor(const Context& context, TypeId type,
                                                   const Symbols& symbols);

 private:
  Driver& device_;
  std::vector<Address> held_;
};

/// Seconds of one launch among many in a graph that is replayed, the least of several; on memory of
/// its own. Nothing where the device cannot run it. `cold`: an argument that comes from memory each
/// time, as weights do, and not from a cache.
[[nodiscard]] std::optional<double> measure(Driver& device, const Kernel& kernel,
                                            const Context& context, const Symbols& symbols,
                                            std::optional<std::size_t> cold = std::nullopt);

/// The same of a node that is ready: its memory is there, and what it needs is loaded. `cold`: one
/// of its reads, of that type.
[[nodiscard]] std::optional<double> measure_node(Driver& device, const LaunchNode& node,
                                                 std::optional<std::size_t> cold = std::nullopt);

/// Tunes every kernel of the report once. `tokens_symbol` stands for the tokens in its dims. PW1243
/// for an architecture without a machine, PW1244 without NVRTC.
Result<TuneReport> tune(const CompileReport& report, const std::string& tokens_symbol,
                        const TuneOptions& options, const Nvrtc& nvrtc);

}  // namespace pw::cuda
