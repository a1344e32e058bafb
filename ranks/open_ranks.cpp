#include <cstdlib>
#include <sstream>

#include "base/environment.hpp"
#include "base/try.hpp"
#include "cuda/device/cuda_driver.hpp"
#include "cuda/device/host_driver.hpp"
#include "engines/rank_library.hpp"
#include "ranks/mpi_ranks.hpp"
#include "ranks/nccl_ranks.hpp"

namespace pw {
namespace {

/// Restricts the process to one device: the one with its number among the visible devices.
void see_device(std::int64_t number) {
  std::istringstream seen(environment("CUDA_VISIBLE_DEVICES"));
  std::string device = std::to_string(number);
  std::string name;
  for (std::int64_t i = 0; std::getline(seen, name, ','); ++i)
    if (i == number) device = name;
  ::setenv("CUDA_VISIBLE_DEVICES", device.c_str(), 1);
}

Result<std::unique_ptr<cuda::Driver>> driver_of(const EngineOptions& options,
                                                const LaunchedRank& own) {
  if (options.driver == "host")
    return std::unique_ptr<cuda::Driver>(std::make_unique<cuda::HostDriver>());
  see_device(own.device);
  return std::unique_ptr<cuda::Driver>(PW_TRY(cuda::CudaDriver::open({})));
}

Result<std::shared_ptr<Communicator>> open(const std::string& by, const EngineOptions& options,
                                           RankLost lost) {
  if (by == "mpi") return std::shared_ptr<Communicator>(PW_TRY(open_mpi_ranks(std::move(lost))));
  if (by != "nccl")
    return fail(error_in("ranks", "PW1406", "`" + by + "` is not a way to start ranks",
                         "use a number, mpi or nccl"));
  const LaunchedRank own = PW_TRY(launched_rank());
  return std::shared_ptr<Communicator>(
      PW_TRY(cuda::open_nccl_ranks(own, PW_TRY(driver_of(options, own)), std::move(lost))));
}

constexpr RankLibrary kLibrary = {open, mpi_state, cuda::nccl_state};

}  // namespace

const RankLibrary* rank_library() { return &kLibrary; }

}  // namespace pw
