// The cost model of kernels that stream weights, against chains of matrix-vector products that were
// measured on an H200: 65 products in one graph, with the sizes of a decoder of 16 layers in bf16.
#include "cuda/kernels/matmul/stream_model.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <optional>
#include <vector>

#include "tests/catch.hpp"

using namespace pw;
using namespace pw::cuda;

namespace {

struct Product {
  std::int64_t columns = 0, depth = 0;
};
std::vector<Product> decoder_products() {
  std::vector<Product> out;
  for (int layer = 0; layer < 16; ++layer)
    for (const Product p :
         {Product{3072, 2048}, Product{2048, 2048}, Product{16384, 2048}, Product{2048, 8192}})
      out.push_back(p);
  out.push_back({128256, 2048});
  return out;
}

struct MeasuredChain {
  StreamEdge edge = StreamEdge::full;
  int blocks = 1;  ///< of a multiprocessor
  int reads = 2;   ///< under way in a thread, of 64 bytes
  double us = 0;   ///< median
};
constexpr StreamEdge kFull = StreamEdge::full, kWaits = StreamEdge::waits_first,
                     kReads = StreamEdge::reads_first;
// H200, driver 580.159, CUDA 13.0, 2026-11-27.
constexpr std::array<MeasuredChain, 15> kMeasured{{
    {kFull, 1, 2, 929.0},
    {kWaits, 1, 2, 1024.3},
    {kReads, 1, 2, 1026.9},
    {kFull, 1, 4, 904.7},
    {kReads, 1, 4, 920.3},
    {kFull, 2, 2, 778.0},
    {kWaits, 2, 2, 948.2},
    {kReads, 2, 2, 949.1},
    {kFull, 2, 4, 787.5},
    {kReads, 2, 4, 757.7},
    {kFull, 3, 2, 761.5},
    {kWaits, 3, 2, 764.0},
    {kReads, 3, 2, 761.2},
    {kFull, 3, 4, 825.2},
    {kReads, 3, 4, 791.9},
}};

/// The modelled microseconds of a chain.
double modelled(const MeasuredChain& chain) {
  constexpr int kWarps = 8, kThreadsOfBlock = 256;
  double out = 0;
  std::optional<StreamedLaunch> before;
  for (const Product& p : decoder_products()) {
    StreamedLaunch launch;
    launch.bytes = 2 * p.columns * p.depth;
    launch.blocks = std::min<std::int64_t>(chain.blocks * kMeasuredMachine.multiprocessors,
                                           (p.columns + kWarps - 1) / kWarps);
    launch.resident = chain.reads <= 3 ? 3 : 2;  // by the kernel's launch bounds
    launch.ahead = std::int64_t{kThreadsOfBlock} * chain.reads * 64;
    out += before ? seconds_of(kMeasuredMachine, launch, chain.edge, *before)
                  : seconds_of(kMeasuredMachine, launch, StreamEdge::full, launch);
    before = launch;
  }
  return out * 1e6;
}

}  // namespace

TEST_CASE("stream model: measured chains are within a quarter, and the best one is found",
          "[cuda][streamed]") {
  double worst = 0;
  std::printf("edges blocks reads  measured  modelled us\n");
  for (const MeasuredChain& chain : kMeasured) {
    const double us = modelled(chain);
    std::printf("%5d %6d %5d %9.1f %9.1f\n", static_cast<int>(chain.edge), chain.blocks,
                chain.reads, chain.us, us);
    CHECK(std::abs(us / chain.us - 1) <= 0.25);
    worst = std::max(worst, std::abs(us / chain.us - 1));
  }
  CHECK(worst <= 0.08);
  const auto by_model = [](const MeasuredChain& a, const MeasuredChain& b) {
    return modelled(a) < modelled(b);
  };
  const auto best = std::min_element(kMeasured.begin(), kMeasured.end(), by_model);
  CHECK(best->us == 757.7);
}

TEST_CASE("stream model: an edge is programmatic where measured chains gain by it, or lose nothing",
          "[cuda][streamed]") {
  for (const MeasuredChain& early : kMeasured) {
    if (early.edge == kFull) continue;
    const auto full = std::find_if(kMeasured.begin(), kMeasured.end(), [&](const MeasuredChain& c) {
      return c.edge == kFull && c.blocks == early.blocks && c.reads == early.reads;
    });
    INFO(early.blocks << " blocks, " << early.reads << " reads");
    const bool loses = early.us > 1.01 * full->us;
    CHECK((modelled(early) > modelled(*full)) == loses);
  }
}

TEST_CASE("stream model: more bytes take longer, and no more blocks than resident hide ramps",
          "[cuda][streamed]") {
  const StreamedLaunch small{1 << 20, 264, 3, 32 << 10}, large{16 << 20, 264, 3, 32 << 10};
  const auto seconds = [](const StreamedLaunch& launch, StreamEdge edge) {
    return seconds_of(kMeasuredMachine, launch, edge, launch);
  };
  for (const StreamEdge edge : {kFull, kWaits, kReads})
    CHECK(seconds(small, edge) < seconds(large, edge));
  StreamedLaunch launch = large;
  launch.blocks = 396;
  CHECK(seconds(launch, kFull) < seconds(large, kFull));
  CHECK(!leaves_room(kMeasuredMachine, launch));
  // Waiting blocks next to running ones cost more than they hide, unless they fill the device.
  CHECK(leaves_room(kMeasuredMachine, large));
  CHECK(seconds(large, kReads) > seconds(large, kFull));
  CHECK(seconds_of(kMeasuredMachine, launch, kReads, large) == seconds(launch, kFull));
  launch.blocks = 792;
  CHECK(seconds(launch, kFull) > seconds(large, kFull));
  // Two phases share a start.
  StreamedLaunch two = large;
  two.blocks *= 2;
  two.phases = 2;
  two.bytes *= 2;
  CHECK(seconds(two, kFull) < 2 * seconds(large, kFull));
  CHECK(stream_machine("sm_90").multiprocessors == 132);
}
