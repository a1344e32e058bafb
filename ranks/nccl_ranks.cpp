// Declares the functions and numbers of NVIDIA's nccl.h (2.18) under other names, so that nothing
// is linked or included.
#include "ranks/nccl_ranks.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include <dlfcn.h>
#include <fmt/format.h>

#include "base/dynamic_library.hpp"
#include "base/environment.hpp"
#include "base/try.hpp"

namespace pw::cuda {
namespace {

struct NcclId {  ///< ncclUniqueId
  std::array<char, 128> bytes{};
};
using NcclComm = void*;
constexpr int kNcclBytes = 1;              ///< ncclUint8
constexpr void* kDefaultStream = nullptr;  ///< in order with the driver's copies

struct NcclFunctions {
  int (*version)(int*) = nullptr;
  const char* (*error)(int) = nullptr;
  int (*new_id)(NcclId*) = nullptr;
  int (*init)(NcclComm*, int size, NcclId, int rank) = nullptr;
  int (*split)(NcclComm, int color, int key, NcclComm*, void* config) = nullptr;
  int (*destroy)(NcclComm) = nullptr;
  int (*all_gather)(const void*, void*, std::size_t, int type, NcclComm, void* stream) = nullptr;
  int (*broadcast)(const void*, void*, std::size_t, int type, int root, NcclComm,
                   void* stream) = nullptr;
  int (*send)(const void*, std::size_t, int type, int peer, NcclComm, void* stream) = nullptr;
  int (*receive)(void*, std::size_t, int type, int peer, NcclComm, void* stream) = nullptr;
  int (*group_begin)() = nullptr;
  int (*group_end)() = nullptr;
};

Result<NcclFunctions> load_nccl() {
  const std::string stated = environment("PWR_NCCL");
  std::string why;
  void* library = stated.empty() ? load_library({"libnccl.so.2", "libnccl.so"}, why)
                                 : load_library({stated.c_str()}, why);
  NcclFunctions f;
  if (library != nullptr) {
    FunctionFinder find(library);
    find(f.version, "ncclGetVersion");
    find(f.error, "ncclGetErrorString");
    find(f.new_id, "ncclGetUniqueId");
    find(f.init, "ncclCommInitRank");
    find(f.split, "ncclCommSplit");
    find(f.destroy, "ncclCommDestroy");
    find(f.all_gather, "ncclAllGather");
    find(f.broadcast, "ncclBroadcast");
    find(f.send, "ncclSend");
    find(f.receive, "ncclRecv");
    find(f.group_begin, "ncclGroupStart");
    find(f.group_end, "ncclGroupEnd");
    why = find.problem();
  }
  if (why.empty()) return f;
  return fail(
      error_in("ranks", "PW1201", "NCCL is unavailable: " + why,
               "install libnccl2, or set PWR_NCCL to its path; --ranks mpi works without it"));
}

/// Device buffers that grow with the messages.
class Places {
 public:
  explicit Places(Driver& driver) : driver_(driver) {}
  ~Places() {
    if (at_ != 0) driver_.release(at_);
  }
  Places(const Places&) = delete;
  Places& operator=(const Places&) = delete;
  Result<Address> of(std::int64_t bytes) {
    if (bytes <= bytes_) return at_;
    if (at_ != 0) driver_.release(std::exchange(at_, 0));
    at_ = PW_TRY(driver_.allocate(bytes));
    bytes_ = bytes;
    return at_;
  }

 private:
  Driver& driver_;
  Address at_ = 0;
  std::int64_t bytes_ = 0;
};

std::byte* pointer(Address at) { return reinterpret_cast<std::byte*>(at); }
std::int64_t bytes_in(const Array& x) { return x.count() * size_of(x.dtype); }

class NcclRanks final : public HostCommunicator {
 public:
  NcclRanks(const NcclFunctions& f, const LaunchedRank& own, std::unique_ptr<Driver> driver)
      : f_(f), own_(own), driver_(std::move(driver)), sent_(*driver_), received_(*driver_) {}
  ~NcclRanks() override {
    if (!ended_) return;
    for (const auto& [group, comm] : comms_) f_.destroy(comm);
  }

  [[nodiscard]] std::int64_t rank() const override { return own_.rank; }
  [[nodiscard]] std::int64_t size() const override { return own_.size; }
  void enter(const std::string& collective) override { lifeline_->enter(collective); }

  Status join(Lifeline::Lost lost) {
    const bool local = own_.host == "127.0.0.1" || own_.host == "localhost";
    lifeline_ = PW_TRY(Lifeline::open(own_.rank, local, std::move(lost)));
    NcclId id;
    if (own_.rank == 0) PW_TRY(check(f_.new_id(&id)));
    const std::string address = lifeline_->address();
    std::vector<std::string> met =
        PW_TRY(meet(own_, std::string(id.bytes.data(), id.bytes.size()) + address));
    std::copy_n(met[0].begin(), std::min(met[0].size(), id.bytes.size()), id.bytes.begin());
    for (std::string& text : met) text.erase(0, id.bytes.size());
    PW_TRY(lifeline_->connect(met));
    NcclComm all = nullptr;
    PW_TRY(check(f_.init(&all, static_cast<int>(own_.size), id, static_cast<int>(own_.rank))));
    comms_.emplace(std::pair(own_.size, std::int64_t{1}), all);
    return {};
  }

  Status all_gather(const Array& part, const Array& whole, RankGroup group) override {
    const std::int64_t bytes = bytes_in(part);
    const auto [from, to] = PW_TRY(staged(part, bytes_in(whole)));
    PW_TRY(check(f_.all_gather(pointer(from), pointer(to), static_cast<std::size_t>(bytes),
                               kNcclBytes, PW_TRY(comm(group)), kDefaultStream)));
    return driver_->read(whole.data, to, bytes_in(whole));
  }
  Status all_to_all(const Array& x, const Array& y, RankGroup group) override {
    const std::int64_t n = ranks_in(group, size()), bytes = bytes_in(x) / n;
    const auto [from, to] = PW_TRY(staged(x, bytes_in(y)));
    NcclComm over = PW_TRY(comm(group));
    PW_TRY(check(f_.group_begin()));
    for (std::int64_t r = 0; r < n; ++r) {
      const auto part = static_cast<std::size_t>(bytes);
      PW_TRY(check(f_.send(pointer(from) + r * bytes, part, kNcclBytes, static_cast<int>(r), over,
                           kDefaultStream)));
      PW_TRY(check(f_.receive(pointer(to) + r * bytes, part, kNcclBytes, static_cast<int>(r), over,
                              kDefaultStream)));
    }
    PW_TRY(check(f_.group_end()));
    return driver_->read(y.data, to, bytes_in(y));
  }
  Status broadcast(const Array& x, std::int64_t root, RankGroup group) override {
    const auto [from, to] = PW_TRY(staged(x, bytes_in(x)));
    PW_TRY(check(f_.broadcast(pointer(from), pointer(to), static_cast<std::size_t>(bytes_in(x)),
                              kNcclBytes, static_cast<int>(root), PW_TRY(comm(group)),
                              kDefaultStream)));
    return driver_->read(x.data, to, bytes_in(x));
  }
  Status barrier() override {
    const Array one = make_array(DType::u8, {1}), all = make_array(DType::u8, {size()});
    *one.data = std::byte{0};
    return all_gather(one, all, {});
  }
  Status finish() override {
    PW_TRY(barrier());
    lifeline_->finish();
    PW_TRY(barrier());
    ended_ = true;
    return {};
  }

 private:
  Status check(int status) const {
    if (status == 0) return {};
    return fail(error_in(fmt::format("rank {}", own_.rank), "PW1290",
                         fmt::format("NCCL failed: {}", f_.error(status))));
  }

  /// The array on the device and a buffer for the result.
  Result<std::pair<Address, Address>> staged(const Array& x, std::int64_t bytes) {
    const Address from = PW_TRY(sent_.of(bytes_in(x)));
    PW_TRY(driver_->write(from, x.data, bytes_in(x)));
    return std::pair(from, PW_TRY(received_.of(bytes)));
  }

  Result<NcclComm> comm(RankGroup group) {
    const std::pair key(ranks_in(group, own_.size), group.stride);
    const auto known = comms_.find(key);
    if (known != comms_.end()) return known->second;
    NcclComm made = nullptr;
    const RankGroup sized{key.first, key.second};
    PW_TRY(check(f_.split(comms_.at({own_.size, 1}), static_cast<int>(sized.index(own_.rank)),
                          static_cast<int>(own_.rank), &made, nullptr)));
    comms_.emplace(key, made);
    return made;
  }

  NcclFunctions f_;
  LaunchedRank own_;
  bool ended_ = false;
  std::unique_ptr<Driver> driver_;
  Places sent_, received_;
  std::map<std::pair<std::int64_t, std::int64_t>, NcclComm> comms_;
  std::unique_ptr<Lifeline> lifeline_;
};

}  // namespace

Result<std::unique_ptr<Communicator>> open_nccl_ranks(const LaunchedRank& own,
                                                      std::unique_ptr<Driver> driver,
                                                      Lifeline::Lost lost) {
  auto ranks = std::make_unique<NcclRanks>(PW_TRY(load_nccl()), own, std::move(driver));
  PW_TRY(ranks->join(std::move(lost)));
  return ranks;
}

std::string nccl_state() {
  const auto f = load_nccl();
  if (!f) return f.error().front().message;
  int version = 0;
  f->version(&version);
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace pw::cuda
