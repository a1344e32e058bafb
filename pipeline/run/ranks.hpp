// Ranks that are processes, by who starts them.
#pragma once

#include <memory>
#include <string>

#include "backends/communicator.hpp"
#include "engines/step_engine.hpp"
#include "ranks/liveness.hpp"

namespace pw {

/// Joins the other processes of a run: "mpi", of mpirun; "nccl", of torchrun, one a device, or on
/// the host with driver "host". PW1201 where the library is not there, PW1406 for another name.
Result<std::shared_ptr<Communicator>> open_ranks(const std::string& by,
                                                 const EngineOptions& options, Lifeline::Lost lost);

}  // namespace pw
