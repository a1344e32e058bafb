// Exports lay_out.
#include "viz/graphviz.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <thread>

#include <gvc.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace pw::viz {
namespace {

constexpr double kLargestPng = 32'767;  // pixels a side, the limit of cairo
constexpr double kPixelsPerPoint = 96.0 / 72.0;

enum Exit : int { kDone = 0, kSyntax = 3, kLayout = 4, kTooLarge = 5, kRender = 6 };

bool write_all(int file, const char* bytes, std::size_t count) {
  while (count > 0) {
    const ssize_t done = ::write(file, bytes, count);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    bytes += done;
    count -= static_cast<std::size_t>(done);
  }
  return true;
}

int ignore_message(char*) { return 0; }

/// In the child. Its memory goes with it, so nothing is freed.
int render(const std::string& dot, const std::string& format, const char* engine, int file) {
  agseterrf(ignore_message);
  GVC_t* context = gvContext();
  Agraph_t* graph = agmemread(dot.c_str());
  if (graph == nullptr) return kSyntax;
  if (gvLayout(context, graph, engine) != 0) return kLayout;
  const boxf box = GD_bb(graph);
  if (format == "png" && ((box.UR.x - box.LL.x) * kPixelsPerPoint > kLargestPng ||
                          (box.UR.y - box.LL.y) * kPixelsPerPoint > kLargestPng))
    return kTooLarge;
  char* bytes = nullptr;
  unsigned int count = 0;
  if (gvRenderData(context, graph, format.c_str(), &bytes, &count) != 0 || count == 0)
    return kRender;
  return write_all(file, bytes, count) ? kDone : kRender;
}

using Clock = std::chrono::steady_clock;

/// Reads until the child closes its end; false at the deadline.
bool read_until(int file, Clock::time_point deadline, std::string& out) {
  std::array<char, 65536> buffer;
  while (true) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return false;
    pollfd wait{file, POLLIN, 0};
    const int ready = ::poll(&wait, 1, static_cast<int>(left));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    const ssize_t count = ::read(file, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return true;
    out.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

Diagnostic problem(const std::string& message, const std::string& help = "") {
  return error_in("the picture", "PW0901", message, help);
}

tl::unexpected<Diagnostics> explain(int status) {
  if (!WIFEXITED(status))
    return fail(problem("Graphviz ended by signal " + std::to_string(WTERMSIG(status)),
                        "write .dot or .txt instead"));
  switch (WEXITSTATUS(status)) {
    case kSyntax: return fail(problem("Graphviz does not read the DOT text"));
    case kLayout:
      return fail(problem("Graphviz found no layout", "write .dot and try another program"));
    case kTooLarge:
      return fail(problem("larger than 32 767 pixels, which a PNG cannot be",
                          "write .svg, or fold more with --collapse"));
    default:
      return fail(problem("Graphviz could not draw this format", "is its plugin installed?"));
  }
}

}  // namespace

Result<std::string> lay_out(const std::string& dot, const std::string& format, int deadline_ms,
                            const char* engine) {
  int ends[2];
  if (::pipe(ends) != 0) return fail(problem("no pipe could be opened"));
  const pid_t child = ::fork();
  if (child < 0) {
    ::close(ends[0]);
    ::close(ends[1]);
    return fail(problem("no process could be started"));
  }
  if (child == 0) {
    ::close(ends[0]);
    // Graphviz orders some things by address, so the picture would depend on how the heap was used
    // before. A new thread has a heap of its own, which starts empty.
    int status = kRender;
    std::thread([&] { status = render(dot, format, engine, ends[1]); }).join();
    ::_exit(status);
  }
  ::close(ends[1]);
  std::string out;
  const bool in_time =
      read_until(ends[0], Clock::now() + std::chrono::milliseconds(deadline_ms), out);
  ::close(ends[0]);
  if (!in_time) ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!in_time)
    return fail(error_in("the picture", kTooSlow,
                         "the layout took longer than " + std::to_string(deadline_ms) + " ms",
                         "fold more with --collapse, or write .html, .dot or .txt"));
  if (!WIFEXITED(status) || WEXITSTATUS(status) != kDone) return explain(status);
  return out;
}

}  // namespace pw::viz
