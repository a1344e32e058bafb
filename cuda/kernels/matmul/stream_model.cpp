// A launch takes a start and a ramp, the time of its bytes, and a part of a ramp for each further
// wave of blocks. Several blocks on a multiprocessor hide each other's ramps.
//
// A programmatic edge hides a part of the start if the waiting blocks take the place of running
// ones as these end. If running blocks leave room, waiting ones take it at once. A grid that does
// not fill the device is then spread unevenly: such chains were slower than with full edges. One
// that does fill it is even in any case.
//
// Phases of a launch are assumed to take a ramp each, and no start.
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

StreamBound streamed_bound(std::string_view arch, const ProductShape& shape) {
  const TensorMachine machine = tensor_machine_or_nearest(arch);
  const auto weights = static_cast<double>(shape.depth * shape.columns * shape.in_bytes);
  const double reading = weights / machine.read_bandwidth();
  const double of_rows = weights * static_cast<double>(shape.rows) /
                         (machine.shared_bandwidth() * machine.multiprocessors);
  if (of_rows > reading) return {of_rows, "shared memory"};
  return {reading, "memory"};
}

bool leaves_room(const StreamMachine& machine, const StreamedLaunch& launch) {
  const double wanted = static_cast<double>(launch.blocks) / machine.multiprocessors;
  return std::max(launch.resident, 1) - wanted >= kRoom;
}

double seconds_of(const StreamMachine& machine, const StreamedLaunch& launch, StreamEdge edge,
                  const StreamedLaunch& before) {
  const double all = machine.multiprocessors, most = std::max(launch.resident, 1);
  const std::int64_t blocks = std::max<std::int64_t>(launch.blocks / launch.phases, 1);
  const double wanted = static_cast<double>(blocks) / all;  // blocks of a multiprocessor
  const double together = std::min(wanted, most);
  const auto at_once = static_cast<std::int64_t>(all * most);
  const auto waves = static_cast<double>(ceil_div(blocks, at_once));
  const double under_way = together * all * static_cast<double>(launch.ahead);
  const double rate = std::min(machine.bandwidth, under_way / kLatency);
  const double ramp = kRamp / std::max(together, 1.0) + (waves - 1) * kWave;
  double seconds = kStart + launch.phases * ramp + static_cast<double>(launch.bytes) / rate;
  if (edge == StreamEdge::full) return seconds;
  if (leaves_room(machine, before) && leaves_room(machine, launch)) return seconds + kUneven;
  const bool hides = edge == StreamEdge::reads_first && launch.ahead >= kDeep;
  return hides ? seconds - kHidden : seconds;
}

}  // namespace pw::cuda
