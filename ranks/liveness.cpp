#include "ranks/liveness.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <mutex>
#include <optional>
#include <random>
#include <sstream>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/try.hpp"
#include "ranks/socket.hpp"

namespace pw {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kBeat{500}, kSilence{3000}, kLook{100};
constexpr int kConnectMs = 20000;
constexpr char kAlive = '.', kDone = 'd', kReported = 't';

tl::unexpected<Diagnostics> no_network(const std::string& what) {
  return fail(
      error_in("ranks", "PW1290", fmt::format("{} failed: {}", what, std::strerror(errno)),
               "allow TCP connections between the ranks; on one machine they use the loopback"));
}

/// First message of a rank on a connection that it opens.
struct Hello {
  std::array<char, 32> secret;  ///< secret of the rank it connects to
  std::int64_t rank;
};

std::string new_secret() {
  std::random_device random;
  std::string out;
  while (out.size() < sizeof(Hello::secret)) out += fmt::format("{:08x}", random());
  return out;
}

/// A launcher sends SIGTERM when one of its processes has died; there is time to report which.
std::atomic<bool> ending{false};
void note_end(int) { ending = true; }

}  // namespace

struct Lifeline::State {
  std::int64_t rank = 0;
  bool local = true;
  Lost lost;
  Socket listener;
  int port = 0;
  std::string secret;
  std::vector<Socket> peers;  ///< by rank; none at this rank
  std::thread watch;
  std::atomic<bool> finished{false}, stop{false};
  std::mutex at_mutex;
  std::string at;  ///< guarded by it
  struct sigaction before{};

  struct Peer {
    Clock::time_point heard;
    bool done = false, reported = false, gone = false;
  };

  void send_all(char sign) {
    for (const Socket& peer : peers)
      if (peer.open()) (void)::send(peer.fd(), &sign, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
  }

  void hear(int fd, Peer& peer) const {
    std::array<char, 64> signs{};
    const ssize_t got = ::recv(fd, signs.data(), signs.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) {
      peer.gone = true;
      return;
    }
    peer.heard = Clock::now();
    for (ssize_t i = 0; i < got; ++i) {
      peer.done = peer.done || signs[static_cast<std::size_t>(i)] == kDone;
      peer.reported = peer.reported || signs[static_cast<std::size_t>(i)] == kReported;
    }
  }

  void poll_all(std::vector<Peer>& known) {
    std::vector<pollfd> waits;
    std::vector<std::size_t> ranks;
    for (std::size_t r = 0; r < peers.size(); ++r)
      if (peers[r].open() && !known[r].gone) {
        waits.push_back({peers[r].fd(), POLLIN, 0});
        ranks.push_back(r);
      }
    ::poll(waits.data(), waits.size(), static_cast<int>(kLook.count()));
    for (std::size_t i = 0; i < waits.size(); ++i)
      if (waits[i].revents != 0) hear(waits[i].fd, known[ranks[i]]);
  }

  void run() {
    std::vector<Peer> known(peers.size(), Peer{Clock::now()});
    Clock::time_point beat, last = Clock::now();
    std::optional<Clock::time_point> end;
    while (!stop) {
      if (Clock::now() - beat >= kBeat) {
        send_all(finished ? kDone : kAlive);
        beat = Clock::now();
      }
      poll_all(known);
      const Clock::time_point now = Clock::now();
      // A rank that was itself stopped has heard no one.
      if (now - last > kSilence / 2)
        for (Peer& peer : known) peer.heard = now;
      last = now;
      look(known, now);
      if (ending && !end) end = now + kBeat;
      if (end && now >= *end) give_up();
    }
  }

  void look(const std::vector<Peer>& known, Clock::time_point now) {
    std::vector<std::size_t> dead;
    bool reported = false, least = true;
    for (std::size_t r = 0; r < peers.size(); ++r) {
      if (!peers[r].open() || known[r].done || finished) continue;
      reported = reported || known[r].reported;
      const bool silent = now - known[r].heard > kSilence;
      if ((known[r].gone && !known[r].reported) || silent)
        dead.push_back(r);
      else if (static_cast<std::int64_t>(r) < rank)
        least = false;
    }
    if (dead.empty() && !reported) return;
    if (reported || !least) {
      // A lower rank reports it; if that rank is lost too, the next check finds this.
      if (reported) end_with({});
      return;
    }
    const std::size_t r = dead.front();
    std::string where;
    {
      const std::lock_guard lock(at_mutex);
      where = at.empty() ? "before the first collective" : "the last collective is " + at;
    }
    const Diagnostics diagnostics{
        error_in(fmt::format("rank {}", rank), "PW1290",
                 fmt::format("rank {} {}: {}", r,
                             known[r].gone ? "is lost" : "has not responded for 3 s", where),
                 "the remaining ranks exit; the last output of rank " + std::to_string(r) +
                     " has the cause")};
    send_all(kReported);
    end_with(diagnostics);
  }

  void end_with(const Diagnostics& diagnostics) {
    stop = true;
    lost(diagnostics);
  }

  /// Restores the effect of SIGTERM.
  void give_up() {
    ::sigaction(SIGTERM, &before, nullptr);
    ::kill(::getpid(), SIGTERM);
    stop = true;
  }
};

Lifeline::Lifeline(std::unique_ptr<State> state) : state_(std::move(state)) {}

Result<std::unique_ptr<Lifeline>> Lifeline::open(std::int64_t rank, bool local, Lost lost) {
  auto state = std::make_unique<State>();
  state->rank = rank;
  state->local = local;
  state->lost = std::move(lost);
  state->secret = new_secret();
  state->listener = listen_at(local, state->port);
  if (!state->listener.open()) return no_network("listening");
  return std::unique_ptr<Lifeline>(new Lifeline(std::move(state)));
}

std::string Lifeline::address() const {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  return fmt::format("{} {} {}", state_->local ? "127.0.0.1" : host.data(), state_->port,
                     state_->secret);
}

namespace {

Result<Socket> connected(const std::string& address, std::int64_t rank) {
  std::istringstream words(address);
  std::string host, port, secret;
  words >> host >> port >> secret;
  Hello hello{{}, rank};
  std::memcpy(hello.secret.data(), secret.data(), std::min(secret.size(), hello.secret.size()));
  Socket out = connect_to(host, port);
  if (!out.open() || !out.send(&hello, sizeof hello))
    return no_network("connecting to host " + host);
  return out;
}

}  // namespace

Status Lifeline::connect(const std::vector<std::string>& addresses) {
  State& s = *state_;
  s.peers.resize(addresses.size());
  const auto own = static_cast<std::size_t>(s.rank);
  for (std::size_t r = 0; r < own; ++r) s.peers[r] = PW_TRY(connected(addresses[r], s.rank));
  for (std::size_t missing = addresses.size() - own - 1; missing > 0;) {
    if (!s.listener.readable(kConnectMs)) return no_network("waiting for the ranks");
    Socket peer = s.listener.accept();
    Hello hello{};
    // Reject connections from other programs.
    if (!peer.open() || !peer.receive(&hello, sizeof hello, kConnectMs)) continue;
    const auto r = static_cast<std::size_t>(hello.rank);
    if (std::memcmp(hello.secret.data(), s.secret.data(), hello.secret.size()) != 0 || r <= own ||
        r >= s.peers.size() || s.peers[r].open())
      continue;
    s.peers[r] = std::move(peer);
    --missing;
  }
  struct sigaction noted{};
  noted.sa_handler = note_end;
  ::sigaction(SIGTERM, &noted, &s.before);
  s.watch = std::thread([&s] { s.run(); });
  return {};
}

void Lifeline::enter(const std::string& collective) {
  const std::lock_guard lock(state_->at_mutex);
  state_->at = collective;
}

void Lifeline::finish() {
  state_->finished = true;
  state_->send_all(kDone);
}

Lifeline::~Lifeline() {
  state_->stop = true;
  if (!state_->watch.joinable()) return;
  state_->watch.join();
  ::sigaction(SIGTERM, &state_->before, nullptr);
}

}  // namespace pw
