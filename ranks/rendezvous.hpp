// Where the ranks of a run meet before they have a communicator: the variables that torchrun sets,
// and one exchange of texts over TCP with rank 0.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/diagnostic.hpp"

namespace pw {

/// RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT of the environment.
struct LaunchedRank {
  std::int64_t rank = 0, size = 1;
  std::int64_t device = 0;  ///< of this machine's
  std::string host;
  std::int64_t port = 0;
};

/// PW1201 where a launcher did not set them, or not to such numbers.
Result<LaunchedRank> launched_rank();
/// The texts of all ranks, by rank, of at most a MiB each, at MASTER_PORT + 1: the launcher's own
/// store keeps the port itself. PW1290 where they do not meet within a minute.
Result<std::vector<std::string>> meet(const LaunchedRank& own, const std::string& text);

}  // namespace pw
