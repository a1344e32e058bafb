#include "ranks/mpi_ranks.hpp"

#include <algorithm>
#include <array>
#include <climits>
#include <filesystem>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/dynamic_library.hpp"
#include "base/environment.hpp"
#include "base/try.hpp"
#include "ranks/mpi/pw_mpi.h"

namespace pw {
namespace {

constexpr const char* kNoMpi =
    "install MPI and rebuild (Debian: libopenmpi-dev openmpi-bin); --ranks N works without it";

/// Returns candidate paths: next to the binary of this code (build or installation), or in PWR_MPI.
std::vector<std::string> places() {
  if (const std::string stated = environment("PWR_MPI"); !stated.empty())
    return {std::filesystem::absolute(stated).string()};
  return places_beside(reinterpret_cast<void*>(&mpi_state),
                       {"libpw_mpi.so", "../lib/piecewise/libpw_mpi.so"});
}

/// The library stays loaded until the process ends.
Result<const pw_mpi*> load_mpi() {
  std::string why = "libpw_mpi.so was not found";
  for (const std::string& path : places()) {
    if (::access(path.c_str(), R_OK) != 0) continue;
    // Global: MPI libraries load parts of themselves, which look for the rest.
    void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (library == nullptr) {
      why = ::dlerror();
      continue;
    }
    const auto functions = reinterpret_cast<pw_mpi_functions>(::dlsym(library, PW_MPI_SYMBOL));
    if (functions != nullptr && functions()->version == PW_MPI_VERSION) return functions();
    why = path + " has another version";
  }
  return fail(error_in("ranks", "PW1201", "MPI is unavailable: " + why, kNoMpi));
}

class MpiRanks final : public HostCommunicator {
 public:
  MpiRanks(const pw_mpi* mpi, int rank, int size) : mpi_(mpi), rank_(rank), size_(size) {}
  ~MpiRanks() override {
    // Without a barrier of all ranks MPI is not finalised; the launcher reports the failure.
    if (ended_) mpi_->finish();
  }

  [[nodiscard]] std::int64_t rank() const override { return rank_; }
  [[nodiscard]] std::int64_t size() const override { return size_; }
  void enter(const std::string& collective) override { lifeline_->enter(collective); }

  Status watch(Lifeline::Lost lost) {
    std::array<char, 256> host{};
    ::gethostname(host.data(), host.size() - 1);
    const std::vector<std::string> hosts = PW_TRY(gather_texts(*this, host.data()));
    const bool local = std::all_of(hosts.begin(), hosts.end(),
                                   [&](const std::string& other) { return other == hosts[0]; });
    lifeline_ = PW_TRY(Lifeline::open(rank_, local, std::move(lost)));
    return lifeline_->connect(PW_TRY(gather_texts(*this, lifeline_->address())));
  }

  Status all_gather(const Array& part, const Array& whole, RankGroup group) override {
    return move(PW_MPI_ALL_GATHER, part.data, whole.data, part.count(), part.dtype, 0, group);
  }
  Status all_to_all(const Array& x, const Array& y, RankGroup group) override {
    return move(PW_MPI_ALL_TO_ALL, x.data, y.data, x.count() / ranks_in(group, size_), x.dtype, 0,
                group);
  }
  Status broadcast(const Array& x, std::int64_t root, RankGroup group) override {
    return move(PW_MPI_BROADCAST, nullptr, x.data, x.count(), x.dtype, static_cast<int>(root),
                group);
  }
  Status barrier() override { return move(PW_MPI_BARRIER, nullptr, nullptr, 0, DType::u8, 0, {}); }
  Status finish() override {
    PW_TRY(barrier());
    lifeline_->finish();
    PW_TRY(barrier());  // another rank may check for life until here
    ended_ = true;
    return {};
  }

 private:
  tl::unexpected<Diagnostics> failed(int code) const {
    std::array<char, 512> text{};
    mpi_->error(code, text.data(), text.size());
    return fail(error_in(fmt::format("rank {}", rank_), "PW1290",
                         fmt::format("MPI failed: {}", text.data())));
  }

  Result<int> handle(RankGroup group) {
    const std::pair key(ranks_in(group, size_), group.stride);
    const auto known = handles_.find(key);
    if (known != handles_.end()) return known->second;
    int made = 0;
    if (const int code =
            mpi_->group(static_cast<int>(key.first), static_cast<int>(key.second), &made))
      return failed(code);
    handles_.emplace(key, made);
    return made;
  }

  Status move(pw_mpi_collective what, const void* send, void* receive, std::int64_t count,
              DType dtype, int root, RankGroup group) {
    if (count > INT_MAX)
      return fail(error_in(fmt::format("rank {}", rank_), "PW1290",
                           fmt::format("a part of {} elements exceeds MPI's limit", count),
                           "run fewer tokens"));
    const int over = PW_TRY(handle(group));
    if (const int code = mpi_->begin(what, send, receive, static_cast<int>(count),
                                     static_cast<int>(size_of(dtype)), root, over))
      return failed(code);
    return wait();
  }

  /// Yields the processor between polls, because there may be more ranks than cores. The liveness
  /// monitor's thread ends the process if a rank is lost.
  Status wait() {
    constexpr int kEager = 100;
    for (int look = 0;; ++look) {
      int done = 0;
      if (const int code = mpi_->test(&done)) return failed(code);
      if (done != 0) return {};
      if (look < kEager)
        std::this_thread::yield();
      else
        std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }

  const pw_mpi* mpi_;
  int rank_, size_;
  bool ended_ = false;
  std::map<std::pair<std::int64_t, std::int64_t>, int> handles_;
  std::unique_ptr<Lifeline> lifeline_;
};

}  // namespace

Result<std::unique_ptr<Communicator>> open_mpi_ranks(Lifeline::Lost lost) {
  const pw_mpi* mpi = PW_TRY(load_mpi());
  int rank = 0, size = 1;
  if (mpi->init(&rank, &size) != 0)
    return fail(
        error_in("ranks", "PW1201", "MPI cannot be started",
                 "use mpirun -n 4 pwr run … --ranks mpi; MPI's own message has the reason"));
  auto ranks = std::make_unique<MpiRanks>(mpi, rank, size);
  PW_TRY(ranks->watch(std::move(lost)));
  return ranks;
}

std::string mpi_state() {
  const auto mpi = load_mpi();
  return mpi ? (*mpi)->library() : mpi.error().front().message;
}

}  // namespace pw
