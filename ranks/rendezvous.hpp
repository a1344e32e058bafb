// Rendezvous of the ranks before they have a communicator: torchrun's environment variables, and
// one exchange of texts over TCP with rank 0.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/diagnostic.hpp"

namespace pw {

/// RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT of the environment.
struct LaunchedRank {
  std::int64_t rank = 0, size = 1;
  std::int64_t device = 0;  ///< index among this machine's devices
  std::string host;
  std::int64_t port = 0;
};

/// Reads the environment. Fails with PW1201 if a launcher did not set the variables, or set invalid
/// numbers.
Result<LaunchedRank> launched_rank();
/// Returns the texts of all ranks, by rank, of at most 1 MiB each. Uses MASTER_PORT + 1, because
/// the launcher's store occupies the port itself. Fails with PW1290 if the ranks do not connect
/// within a minute.
Result<std::vector<std::string>> meet(const LaunchedRank& own, const std::string& text);

}  // namespace pw
