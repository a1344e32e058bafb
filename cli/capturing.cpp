// Exports open_device and capture.
#include "cli/capturing.hpp"

#include <fmt/format.h>

#include "backends/cuda/cuda_driver.hpp"
#include "backends/cuda/host_driver.hpp"

namespace pw::cli {

std::unique_ptr<Device> open_device(const Session& session, const std::string& driver, bool strict,
                                    std::uint64_t seed) {
  auto out = std::make_unique<Device>();
  if (driver == "host") {
    cuda::HostDriverOptions host;
    host.seed = seed;
    out->driver = std::make_unique<cuda::HostDriver>(host);
    return out;
  }
  out->cubins.emplace(CacheOptions::from_environment());
  cuda::CudaDriverOptions device;
  device.strict = strict;
  device.cache = &*out->cubins;
  out->driver = session.need(cuda::CudaDriver::open(device), kMissingCapability);
  return out;
}

Result<std::unique_ptr<cuda::Runtime>> capture(const Session& session, Device& device,
                                               const Graph& graph, const RunRecord& record,
                                               const cuda::RuntimeOptions& options,
                                               Weights& weights) {
  session.progress("capturing");
  auto runtime = cuda::Runtime::make(*record.pieces, graph, record.plan, *device.driver, options);
  if (!runtime) return runtime;
  if (auto done = (*runtime)->load(weights); !done) return forward(done);
  if (auto done = (*runtime)->capture(); !done) return forward(done);
  if (const std::uint64_t evicted = device.cubins ? device.cubins->counts().evicted : 0;
      evicted > 0)
    session.say(fmt::format(
        "  {} damaged objects of the cache, or such as the driver refuses, were thrown away",
        evicted));
  const cuda::RuntimeCounters& c = (*runtime)->counters();
  const bool pieces = c.executables > c.whole_steps;
  session.say(fmt::format(
      "cuda on {}: {} of {} pieces captured, {} classes compiled; {} graphs{}, {} executables of "
      "{} nodes, arena {}",
      device.driver->device(), pieces ? c.capturable_pieces : 0, c.pieces, c.compilations,
      c.graphs_captured,
      c.whole_steps > 0 ? fmt::format(", {} of them whole steps", c.whole_steps) : "",
      c.executables, c.graph_nodes, bytes((*runtime)->memory().arena_bytes)));
  return runtime;
}

}  // namespace pw::cli
