// A launch takes a start and a ramp, the time of its bytes, and a part of a ramp for each further
// wave of blocks. Several blocks on a multiprocessor hide each other's ramps.
//
// A programmatic edge hides a part of the start if the waiting blocks take the place of running
// ones as these end. If running blocks leave room, waiting ones take it at once, and a grid is
// spread unevenly: the chains were slower then than with full edges.
#include "cuda/kernels/matmul/stream_model.hpp"

#include <algorithm>

#include "base/division.hpp"
#include "cuda/kernels/matmul/tensor_machine.hpp"

namespace pw::cuda {
namespace {

constexpr double kStart = 0.8e-6,
                 kRamp = 3.2e-6;     // the ramp is divided by the blocks that share it
constexpr double kWave = 0.7e-6;     // of each wave but the first
constexpr double kLatency = 0.7e-6;  // of a read
constexpr double kHidden = 0.45e-6;  // of the start, by reads before the wait
constexpr double kUneven = 1.8e-6;
constexpr double kRoom = 0.5;             // blocks of a multiprocessor that make a grid uneven
constexpr std::int64_t kDeep = 48 << 10;  // bytes under way that hide all of kHidden

}  // namespace

StreamMachine stream_machine(std::string_view arch) {
  // The part of the bandwidth that reading reaches on an H100 (STREAM Dot), and more than on an
  // H200.
  constexpr double kReached = 0.95;
  const TensorMachine machine = tensor_machine_or_nearest(arch);
  return {machine.multiprocessors, kReached * machine.bandwidth};
}

double seconds_of(const StreamMachine& machine, const StreamedLaunch& launch, StreamEdge edge) {
  const double all = machine.multiprocessors, most = std::max(launch.resident, 1);
  const double wanted = static_cast<double>(launch.blocks) / all;  // blocks of a multiprocessor
  const double together = std::min(wanted, most);
  const auto at_once = static_cast<std::int64_t>(all * most);
  const auto waves = static_cast<double>(ceil_div(launch.blocks, at_once));
  const double under_way = together * all * static_cast<double>(launch.ahead);
  const double rate = std::min(machine.bandwidth, under_way / kLatency);
  double seconds = kStart + kRamp / std::max(together, 1.0) +
                   static_cast<double>(launch.bytes) / rate + (waves - 1) * kWave;
  if (edge == StreamEdge::full) return seconds;
  if (most - wanted >= kRoom) return seconds + kUneven;
  const bool hides = edge == StreamEdge::reads_first && launch.ahead >= kDeep;
  return hides ? seconds - kHidden : seconds;
}

}  // namespace pw::cuda
