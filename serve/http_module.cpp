// HttpServer on cpp-httplib. Adds limits that the library lacks: the address, how much and how long
// a client may send, and the number of idle connections.

// Debian builds the library with it, which adds a member to Request.
#define CPPHTTPLIB_OPENSSL_SUPPORT
#include <cstring>

#include <arpa/inet.h>
#include <httplib.h>
#include <poll.h>

#include "serve/http.hpp"
#include "serve/waiting_room.hpp"

namespace pw::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kMostTime = std::chrono::seconds(30);  // to send a body; to receive an answer
constexpr auto kSlice = std::chrono::milliseconds(100);
constexpr std::size_t kThreads = 32;  // concurrent requests
constexpr int kMostPending = 128;     // connections that wait to be accepted

/// A connection whose headers have arrived. Its time and memory are limited.
class BoundedStream : public httplib::Stream {
 public:
  /// `read`: the bytes already read from it.
  BoundedStream(int socket, std::string read, std::size_t most_bytes,
                const std::atomic<bool>& stopped)
      : socket_(socket), read_(std::move(read)), most_bytes_(most_bytes), stopped_(stopped) {}

  bool is_readable() const override { return at_ < read_.size() || wait(POLLIN); }
  bool is_writable() const override { return wait(POLLOUT); }
  ssize_t read(char* to, size_t size) override {
    size = std::min(size, left_);
    if (size == 0 || !is_readable()) return -1;
    const std::size_t kept = std::min(size, read_.size() - at_);
    std::memcpy(to, read_.data() + at_, kept);
    at_ += kept;
    const ssize_t got = kept > 0 ? static_cast<ssize_t>(kept) : ::recv(socket_, to, size, 0);
    if (got > 0) count({to, static_cast<std::size_t>(got)});
    return got;
  }
  ssize_t write(const char* from, size_t size) override {
    if (!std::exchange(answering_, true)) deadline_ = Clock::now() + kMostTime;
    if (!wait(POLLOUT)) return -1;
    return ::send(socket_, from, size, MSG_NOSIGNAL);
  }
  void get_remote_ip_and_port(std::string& ip, int& port) const override {
    ip = "127.0.0.1";
    port = 0;
  }
  void get_local_ip_and_port(std::string& ip, int& port) const override {
    get_remote_ip_and_port(ip, port);
  }
  socket_t socket() const override { return socket_; }

 private:
  /// The library reads headers byte by byte, so the count excludes the body.
  void count(std::string_view bytes) {
    left_ -= bytes.size();
    for (const char byte : bytes) end_ = end_ << 8 | static_cast<unsigned char>(byte);
    constexpr std::uint32_t kEmptyLine = 0x0d0a0d0a;
    if (in_body_ || end_ != kEmptyLine) return;
    in_body_ = true;
    left_ = most_bytes_;
  }
  [[nodiscard]] bool wait(short events) const {
    while (!stopped_ && Clock::now() < deadline_) {
      pollfd one{socket_, events, 0};
      const int ready = ::poll(&one, 1, static_cast<int>(kSlice.count()));
      if (ready > 0) return true;
      if (ready < 0 && errno != EINTR) return false;
    }
    return false;
  }

  int socket_;
  std::string read_;
  std::size_t at_ = 0;  // in `read_`
  std::size_t most_bytes_, left_ = WaitingRoom::kMostHeaders;
  std::uint32_t end_ = 0;  // the last four bytes of the headers
  bool in_body_ = false;
  const std::atomic<bool>& stopped_;
  bool answering_ = false;
  Clock::time_point deadline_ = Clock::now() + kMostTime;
};

HttpRequest plain(const httplib::Request& request) {
  HttpRequest out{request.method, request.target, {}, request.body};
  out.headers.assign(request.headers.begin(), request.headers.end());
  return out;
}

void fill(httplib::Response& to, const HttpAnswer& from) {
  to.status = from.status;
  for (const auto& [name, value] : from.headers) to.set_header(name, value);
  to.set_content(from.body, from.type);
}

/// Passes accepted connections to the waiting room.
class AtOnce : public httplib::TaskQueue {
 public:
  void enqueue(std::function<void()> task) override { task(); }
  void shutdown() override {}
};

class Server : public HttpServer, private httplib::Server {
 public:
  explicit Server(HttpService service) : service_(std::move(service)) {
    new_task_queue = [] { return new AtOnce; };
    set_payload_max_length(service_.most_bytes);
    set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& to) {
      const std::optional<HttpAnswer> refused = service_.refuse(plain(request));
      if (refused) fill(to, *refused);
      return refused ? HandlerResponse::Handled : HandlerResponse::Unhandled;
    });
    const auto answer = [this](const httplib::Request& request, httplib::Response& to) {
      fill(to, service_.answer(plain(request)));
    };
    Get(".*", answer);
    Post(".*", answer);
    set_exception_handler(
        [](const httplib::Request&, httplib::Response& to, const std::exception_ptr&) {
          fill(to, {500, "text/plain; charset=utf-8", "the request failed\n"});
        });
  }

  int bind(int port) override {
    const int taken = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (taken < 0) return errno;
    const int yes = 1;  // reuse the port of a server that has just ended
    ::setsockopt(taken, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(static_cast<std::uint16_t>(port));
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    auto* const address = reinterpret_cast<sockaddr*>(&at);
    if (::bind(taken, address, size) != 0 || ::listen(taken, kMostPending) != 0 ||
        ::getsockname(taken, address, &size) != 0) {
      const int why = errno;
      ::close(taken);
      return why;
    }
    port_ = ntohs(at.sin_port);
    svr_sock_ = taken;
    return 0;
  }
  [[nodiscard]] int port() const override { return port_; }
  void serve() override {
    if (!stopped_) accept_all();
    ended_ = true;
  }
  /// The library ignores stop() while a server is about to listen.
  void stop() override {
    stopped_ = true;
    while (!is_running() && !ended_) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    httplib::Server::stop();
  }

 private:
  void accept_all() {
    httplib::ThreadPool threads(kThreads);
    WaitingRoom room(service_.most_bytes, [&](int socket, std::string read) {
      threads.enqueue([this, socket, read = std::move(read)] {
        BoundedStream stream(socket, read, service_.most_bytes, stopped_);
        bool closed = false;
        process_request(stream, true, closed, nullptr);
        room_->say_goodbye(socket);
      });
    });
    room_ = &room;
    listen_after_bind();
    room.stop();
    threads.shutdown();
  }
  bool process_and_close_socket(socket_t socket) override {
    room_->await_headers(socket);
    return true;
  }

  HttpService service_;
  std::atomic<bool> stopped_ = false, ended_ = false;
  int port_ = 0;
  WaitingRoom* room_ = nullptr;  // while it serves
};

}  // namespace
}  // namespace pw::cli

extern "C" pw::cli::HttpServer* piecewise_http_server(pw::cli::HttpService* service) {
  return new pw::cli::Server(std::move(*service));
}
