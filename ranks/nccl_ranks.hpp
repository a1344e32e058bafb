// NCCL's ranks: processes that torchrun started, one a device. NCCL carries the bytes; sums are
// those of HostCommunicator, so that they are the bits of every other run. The library is loaded
// where it is.
#pragma once

#include <memory>
#include <string>

#include "backends/communicator.hpp"
#include "cuda/device/driver.hpp"
#include "ranks/liveness.hpp"
#include "ranks/rendezvous.hpp"

namespace pw::cuda {

/// Meets the other ranks and joins them; `driver` is of this rank's device, and has the places that
/// bytes are sent from. PW1201 where there is no NCCL, PW1290 where the ranks do not meet.
Result<std::unique_ptr<Communicator>> open_nccl_ranks(const LaunchedRank& own,
                                                      std::unique_ptr<Driver> driver,
                                                      Lifeline::Lost lost);
/// The library and its version, or why there is none.
[[nodiscard]] std::string nccl_state();

}  // namespace pw::cuda
