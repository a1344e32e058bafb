// Ranks as processes that torchrun started, one for each device, connected by NCCL. Sums are those
// of HostCommunicator, so the bits equal those of every other run. The library is loaded on demand.
#pragma once

#include <memory>
#include <string>

#include "backends/communicator.hpp"
#include "cuda/device/driver.hpp"
#include "ranks/liveness.hpp"
#include "ranks/rendezvous.hpp"

namespace pw::cuda {

/// Joins the other ranks; `driver` belongs to this rank's device and provides the send buffers.
/// Fails with PW1201 without NCCL, and with PW1290 if the ranks do not connect.
Result<std::unique_ptr<Communicator>> open_nccl_ranks(const LaunchedRank& own,
                                                      std::unique_ptr<Driver> driver,
                                                      Lifeline::Lost lost);
/// Returns the library and its version, or why it is absent.
[[nodiscard]] std::string nccl_state();

}  // namespace pw::cuda
