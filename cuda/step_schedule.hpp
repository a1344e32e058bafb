// The schedule of a captured step, without a device: its launches, the edge of each with the proof
// or the reason for its kind, the bytes that they read, and the modelled time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cuda/runtime_task.hpp"

namespace pw::cuda {

struct ScheduledLaunch {
  std::string op;                 ///< of a kernel, or the name of a call
  std::int64_t weight_bytes = 0;  ///< that it reads and no launch of a step writes
  std::int64_t other_bytes = 0;   ///< of its other tensors; not those that depend on lengths
  std::int64_t early_bytes = 0;   ///< of the weights: those that it could read before its wait
  std::int64_t prefetched = 0;    ///< of these: those that it brings into the cache there
  bool early = false;             ///< its edge is programmatic
  std::string why;                ///< proof of a programmatic edge; else why it is a full one
  double full_seconds = 0, early_seconds = 0;  ///< modelled, with full and with these edges
};

/// A product of a step with too many rows for kernels that stream weights.
struct NotStreamed {
  std::string op;
  std::int64_t rows = 0, depth = 0, columns = 0;
  std::int64_t count = 0;       ///< products of this shape
  double streamed_seconds = 0;  ///< lower bound of a kernel that streams, by the model
  /// Modelled time on tensor cores; nothing if the architecture has none for the dtype.
  std::optional<double> seconds;
  std::string why;
};

struct StepSchedule {
  std::int64_t tokens = 0;
  std::vector<ScheduledLaunch> launches;
  std::vector<NotStreamed> not_streamed;  ///< if weights stream in steps of few tokens
  [[nodiscard]] std::size_t early() const;
  /// Sums a field over the launches.
  template <class T>
  [[nodiscard]] T total(T ScheduledLaunch::* field) const {
    T out{};
    for (const ScheduledLaunch& launch : launches) out += launch.*field;
    return out;
  }
};

/// Records a whole step of `tokens` tokens, one of each sequence, for an architecture. Fails as
/// Runtime::make does.
Result<StepSchedule> schedule_of(const StitchedGraph& stitched, const Graph& source,
                                 const Plan& plan, std::string_view arch, std::int64_t tokens,
                                 const RuntimeOptions& options);

}  // namespace pw::cuda
