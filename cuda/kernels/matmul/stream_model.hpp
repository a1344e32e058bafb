// A cost model of kernels that stream weights, one after another in a graph. Its constants are
// fitted to chains of matrix-vector products measured on an H200 (tests/backends_cuda/
// stream_model_test.cpp), which it meets within 8 %. Other machines are assumed to behave alike.
#pragma once

#include <cstdint>
#include <string_view>

#include "cuda/kernels/matmul/tensor_model.hpp"

namespace pw::cuda {

struct StreamMachine {
  int multiprocessors = 0;
  double bandwidth = 0;  ///< bytes a second that a kernel reaches which only reads
};
/// An H200, on which the chains were measured.
inline constexpr StreamMachine kMeasuredMachine{132, 4.07e12};
/// Returns the machine of an architecture; for an unknown one the nearest older one.
[[nodiscard]] StreamMachine stream_machine(std::string_view arch);

struct StreamedLaunch {
  std::int64_t bytes = 0;   ///< that it reads
  std::int64_t blocks = 1;  ///< of its grid
  int resident = 1;         ///< most blocks of it on a multiprocessor
  std::int64_t ahead = 0;   ///< bytes that a block has under way
  int phases = 1;  ///< whose blocks wait for the phase before, all of which `blocks` counts
};

/// A lower bound of the seconds of a product whose kernel streams its weights, and the resource
/// that sets it: memory, or the shared memory from which each row of x is read for each column.
struct StreamBound {
  double seconds = 0;
  std::string_view bound;
};
[[nodiscard]] StreamBound streamed_bound(std::string_view arch, const ProductShape& shape);

/// How a launch follows its predecessor.
enum class StreamEdge : std::uint8_t {
  full,         ///< it starts after its predecessor's end
  waits_first,  ///< it starts early, and reads nothing before that end
  reads_first,  ///< it starts early, and reads weights before that end
};

/// Returns true if other blocks find room while all of its blocks run.
[[nodiscard]] bool leaves_room(const StreamMachine& machine, const StreamedLaunch& launch);
/// Returns the estimated seconds from the predecessor's end to its own.
[[nodiscard]] double seconds_of(const StreamMachine& machine, const StreamedLaunch& launch,
                                StreamEdge edge, const StreamedLaunch& before);

}  // namespace pw::cuda
