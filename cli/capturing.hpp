// The backend cuda from the command line: a device, or the host in its place, and what is captured
// on it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "backends/cuda/runtime.hpp"
#include "cli/running.hpp"

namespace pw::cli {

struct Device {
  std::optional<CompileCache> cubins;  ///< of a real one
  std::unique_ptr<cuda::Driver> driver;
};
/// "cuda": the first device, or the end of the program with 5; "host": its stand-in.
std::unique_ptr<Device> open_device(const Session& session, const std::string& driver, bool strict,
                                    std::uint64_t seed);
/// Everything that is done before the first step; says what was captured.
Result<std::unique_ptr<cuda::Runtime>> capture(const Session& session, Device& device,
                                               const Graph& graph, const RunRecord& record,
                                               const cuda::RuntimeOptions& options,
                                               Weights& weights);

}  // namespace pw::cli
