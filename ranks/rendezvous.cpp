#include "ranks/rendezvous.hpp"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/environment.hpp"
#include "base/parse_number.hpp"
#include "base/try.hpp"
#include "ranks/socket.hpp"

namespace pw {
namespace {

constexpr int kMeetMs = 60000;
constexpr std::int64_t kMostText = 1 << 20;

Result<std::int64_t> number_of_variable(const char* name, std::int64_t most) {
  const std::string text = environment(name);
  if (text.empty())
    return fail(error_in("ranks", "PW1201", fmt::format("{} is not set", name),
                         "start with torchrun --no-python --nproc-per-node 4 pwr run … --ranks "
                         "nccl, which sets it"));
  if (const auto out = parse_number<std::int64_t>(text); out && *out >= 0 && *out <= most)
    return *out;
  return fail(
      error_in("ranks", "PW1201",
               fmt::format("{} is `{}`, which is not a number from 0 to {}", name, text, most)));
}

bool send_text(const Socket& to, const std::string& text) {
  const auto size = static_cast<std::int64_t>(text.size());
  return to.send(&size, sizeof size) && to.send(text.data(), text.size());
}

bool receive_text(const Socket& from, std::string& text) {
  std::int64_t size = 0;
  if (!from.receive(&size, sizeof size, kMeetMs) || size < 0 || size > kMostText) return false;
  text.resize(static_cast<std::size_t>(size));
  return from.receive(text.data(), text.size(), kMeetMs);
}

tl::unexpected<Diagnostics> not_met(const LaunchedRank& own, const std::string& what) {
  return fail(error_in(fmt::format("rank {}", own.rank), "PW1290", what,
                       "start all ranks with the same MASTER_ADDR and MASTER_PORT"));
}

Result<std::vector<std::string>> gather_at(const LaunchedRank& own, const std::string& text,
                                           int port) {
  const Socket listener = listen_at(false, port);
  if (!listener.open()) return not_met(own, fmt::format("port {} is taken", port));
  std::vector<Socket> others(static_cast<std::size_t>(own.size));
  std::vector<std::string> texts(others.size());
  texts[0] = text;
  for (std::size_t missing = others.size() - 1; missing > 0;) {
    if (!listener.readable(kMeetMs))
      return not_met(own, fmt::format("{} of {} ranks have not connected", missing, own.size));
    Socket other = listener.accept();
    std::int64_t rank = 0;
    std::string received;
    if (!other.open() || !other.receive(&rank, sizeof rank, kMeetMs) || rank < 1 ||
        rank >= own.size || others[static_cast<std::size_t>(rank)].open() ||
        !receive_text(other, received))
      continue;
    others[static_cast<std::size_t>(rank)] = std::move(other);
    texts[static_cast<std::size_t>(rank)] = std::move(received);
    --missing;
  }
  for (std::size_t r = 1; r < others.size(); ++r)
    for (const std::string& one : texts)
      if (!send_text(others[r], one)) return not_met(own, fmt::format("rank {} has left", r));
  return texts;
}

}  // namespace

Result<LaunchedRank> launched_rank() {
  constexpr std::int64_t kMostRanks = 1 << 16, kMostPort = 65534;
  LaunchedRank out;
  out.size = PW_TRY(number_of_variable("WORLD_SIZE", kMostRanks));
  out.rank = PW_TRY(number_of_variable("RANK", std::max<std::int64_t>(out.size - 1, 0)));
  out.device = PW_TRY(number_of_variable("LOCAL_RANK", kMostRanks));
  out.port = PW_TRY(number_of_variable("MASTER_PORT", kMostPort));
  out.host = environment("MASTER_ADDR");
  if (out.host.empty())
    return fail(error_in("ranks", "PW1201", "MASTER_ADDR is not set",
                         "start with torchrun, which sets it"));
  return out;
}

Result<std::vector<std::string>> meet(const LaunchedRank& own, const std::string& text) {
  const auto port = static_cast<int>(own.port + 1);
  if (own.rank == 0) return gather_at(own, text, port);
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + std::chrono::milliseconds(kMeetMs);
  while (Clock::now() < end) {
    const Socket first = connect_to(own.host, std::to_string(port));
    if (!first.open() || !first.send(&own.rank, sizeof own.rank) || !send_text(first, text)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));  // rank 0 is not listening yet
      continue;
    }
    std::vector<std::string> texts(static_cast<std::size_t>(own.size));
    for (std::string& one : texts)
      if (!receive_text(first, one)) return not_met(own, "rank 0 has left");
    return texts;
  }
  return not_met(own, fmt::format("rank 0 is not at {}:{}", own.host, port));
}

}  // namespace pw
