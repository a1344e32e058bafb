// The interface to ranks in separate processes (MPI and NCCL), which a build without libraries
// lacks.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "backends/communicator.hpp"
#include "engines/step_engine.hpp"

namespace pw {

/// Ends this process when another rank is lost; the diagnostics name it if this rank has detected
/// it.
using RankLost = std::function<void(const Diagnostics&)>;

struct RankLibrary {
  /// Joins the other processes of a run: "mpi", of mpirun; "nccl", of torchrun, one a device, or on
  /// the host with driver "host". Fails with PW1201 if the library is not installed, and with
  /// PW1406 for another name.
  Result<std::shared_ptr<Communicator>> (*open)(const std::string& by, const EngineOptions& options,
                                                RankLost lost);
  /// Returns the library's version, or why it cannot be used.
  std::string (*mpi_state)();
  std::string (*nccl_state)();
};
/// Returns the library, or null in a build without it.
[[nodiscard]] const RankLibrary* rank_library();

/// Calls the library's `open`; fails with PW1201 in a build without it.
Result<std::shared_ptr<Communicator>> open_ranks(const std::string& by,
                                                 const EngineOptions& options, RankLost lost);

}  // namespace pw
