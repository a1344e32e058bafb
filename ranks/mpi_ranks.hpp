// MPI's processes as ranks, by libpw_mpi.so (ranks/mpi/): loaded where it is, so that programs
// build and run without MPI.
#pragma once

#include <memory>
#include <string>

#include "backends/communicator.hpp"
#include "ranks/liveness.hpp"

namespace pw {

/// Joins the other processes that mpirun started; alone without it. PW1201 where there is no MPI.
/// Once a process: MPI cannot be entered again.
Result<std::unique_ptr<Communicator>> open_mpi_ranks(Lifeline::Lost lost);
/// The library and its version, or why there is none; starts nothing.
[[nodiscard]] std::string mpi_state();

}  // namespace pw
