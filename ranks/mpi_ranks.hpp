// Ranks as MPI processes, by libpw_mpi.so (ranks/mpi/). The library is loaded on demand, so
// programs build and run without MPI.
#pragma once

#include <memory>
#include <string>

#include "backends/communicator.hpp"
#include "ranks/liveness.hpp"

namespace pw {

/// Joins the other processes that mpirun started; without mpirun the rank is alone. Fails with
/// PW1201 without MPI. Once per process, because MPI cannot be initialised again.
Result<std::unique_ptr<Communicator>> open_mpi_ranks(Lifeline::Lost lost);
/// Returns the library and its version, or why it is absent; initialises nothing.
[[nodiscard]] std::string mpi_state();

}  // namespace pw
