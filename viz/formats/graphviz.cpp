#include "viz/formats/graphviz.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <deque>
#include <string_view>
#include <thread>
#include <unordered_map>

#include <gvc.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/dynamic_library.hpp"
#include "base/io/write_all.hpp"

namespace pw::viz {
namespace {

constexpr double kLargestPng = 32'767;  // pixels on a side, the limit of cairo
constexpr double kMostPixels = 100e6;   // of a PNG: 400 MB during drawing
constexpr double kPixelsPerPoint = 96.0 / 72.0;

enum Exit : int { kDone = 0, kSyntax = 3, kLayout = 4, kTooLarge = 5, kRender = 6 };

int ignore_message(char*) { return 0; }

/// The functions used from Graphviz's two libraries. They are loaded for the first picture, so that
/// everything else works without Graphviz, and never closed.
struct Library {
  decltype(&::gvContext) context = nullptr;
  decltype(&::gvcVersion) version = nullptr;
  decltype(&::gvLayout) layout = nullptr;
  decltype(&::gvRenderData) render = nullptr;
  decltype(&::agread) read = nullptr;
  decltype(&::agget) get = nullptr;
  decltype(&::agseterrf) on_message = nullptr;
  Agmemdisc_t* memory = nullptr;
  Agiodisc_t* io = nullptr;
  std::string problem;  ///< why they are missing; empty if loaded

  Library();
};

Library::Library() {
  // The sonames that match gvc.h: in other versions, functions may have other arguments.
  void* const gvc = load_library({"libgvc.so.6"}, problem);
  if (gvc == nullptr) return;
  void* const graph = load_library({"libcgraph.so.6"}, problem);
  if (graph == nullptr) return;
  FunctionFinder of_layout(gvc), of_graph(graph);
  of_layout(context, "gvContext");
  of_layout(version, "gvcVersion");
  of_layout(layout, "gvLayout");
  of_layout(render, "gvRenderData");
  of_graph(read, "agread");
  of_graph(get, "agget");
  of_graph(on_message, "agseterrf");
  of_graph(memory, "AgMemDisc");
  of_graph(io, "AgIoDisc");
  problem = of_layout.missing().empty() ? of_graph.problem() : of_layout.problem();
}

const Library& library() {
  static const Library loaded;
  return loaded;
}

/// Numbers for the names of a graph. Graphviz's own numbers are addresses, which determine the
/// order in which it draws clusters.
class Numbers {
 public:
  static Agiddisc_t discipline() {
    Agiddisc_t out{};
    out.open = [](Agraph_t*, Agdisc_t*) -> void* { return new Numbers; };
    out.map = [](void* self, int, char* name, IDTYPE* number, int create) -> long {
      return static_cast<Numbers*>(self)->find(name, *number, create != 0) ? 1 : 0;
    };
    out.alloc = [](void*, int, IDTYPE) -> long { return 0; };
    out.free = [](void*, int, IDTYPE) {};
    out.print = [](void* self, int, IDTYPE number) {
      auto& names = static_cast<Numbers*>(self)->names_;
      return number % 2 == 0 ? names[number / 2 - 1].data() : nullptr;
    };
    out.close = [](void*) {};
    out.idregister = [](void*, int, void*) {};
    return out;
  }

 private:
  /// Even from 2 for named objects, odd for others.
  bool find(const char* name, IDTYPE& number, bool create) {
    if (name == nullptr) {
      number = nameless_ += 2;
      return true;
    }
    const auto known = numbers_.find(name);
    if (known != numbers_.end()) {
      number = known->second;
      return true;
    }
    if (!create) return false;
    names_.emplace_back(name);
    number = 2 * names_.size();
    numbers_.emplace(names_.back(), number);
    return true;
  }

  std::deque<std::string> names_;  // by number / 2 - 1; addresses are stable
  std::unordered_map<std::string, IDTYPE> numbers_;
  IDTYPE nameless_ = 1;
};

/// A text that is read from its start.
int read_front(void* text, char* to, int most) {
  auto& rest = *static_cast<std::string_view*>(text);
  const std::size_t count = rest.copy(to, static_cast<std::size_t>(most));
  rest.remove_prefix(count);
  return static_cast<int>(count);
}

Agraph_t* read_dot(std::string_view text) {
  static Agiddisc_t numbers = Numbers::discipline();
  static Agiodisc_t io{read_front, library().io->putstr, library().io->flush};
  static Agdisc_t how{library().memory, &numbers, &io};
  return library().read(&text, &how);
}

/// Reads the bounding box from the layout, "0,0,54,36" in points.
bool too_large_for_png(Agraph_t* graph) {
  const char* box = library().get(graph, const_cast<char*>("bb"));
  std::array<double, 4> at{};
  if (box == nullptr ||
      std::sscanf(box, "%lf%*[, ]%lf%*[, ]%lf%*[, ]%lf", &at[0], &at[1], &at[2], &at[3]) != 4)
    return false;
  const double wide = (at[2] - at[0]) * kPixelsPerPoint, high = (at[3] - at[1]) * kPixelsPerPoint;
  return wide > kLargestPng || high > kLargestPng || wide * high > kMostPixels;
}

/// Runs in the child process, whose exit frees all memory.
int render(const std::string& dot, const std::string& format, const char* engine, int file) {
  const Library& graphviz = library();
  graphviz.on_message(ignore_message);
  GVC_t* context = graphviz.context();
  Agraph_t* graph = read_dot(dot);
  if (graph == nullptr) return kSyntax;
  if (graphviz.layout(context, graph, engine) != 0) return kLayout;
  if (format == "png" && too_large_for_png(graph)) return kTooLarge;
  char* bytes = nullptr;
  unsigned int count = 0;
  if (graphviz.render(context, graph, format.c_str(), &bytes, &count) != 0 || count == 0)
    return kRender;
  return write_all(file, {bytes, count}).empty() ? kDone : kRender;
}

using Clock = std::chrono::steady_clock;

/// Reads until the child closes its end; returns false at the deadline.
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
    return fail(problem("Graphviz was terminated by signal " + std::to_string(WTERMSIG(status)),
                        "write .dot or .txt instead"));
  switch (WEXITSTATUS(status)) {
    case kSyntax: return fail(problem("Graphviz cannot parse the DOT text"));
    case kLayout:
      return fail(problem("Graphviz found no layout", "write .dot and use another program"));
    case kTooLarge:
      return fail(
          problem("the picture exceeds the limits of PNG: 32 767 pixels a side, 100 million in all",
                  "write .svg, or fold more with --collapse"));
    default:
      return fail(
          problem("Graphviz could not draw this format", "check that its plugin is installed"));
  }
}

}  // namespace

Result<std::string> lay_out(const std::string& dot, const std::string& format, int deadline_ms,
                            const char* engine) {
  if (!library().problem.empty())
    return fail(error_in("the picture", "PW0907", "Graphviz is missing: " + library().problem,
                         "install it (Debian: apt install graphviz), or write .html, .dot, .txt or "
                         ".md, which do not need it"));
  int ends[2];
  if (::pipe(ends) != 0) return fail(problem("cannot open a pipe"));
  const pid_t child = ::fork();
  if (child < 0) {
    ::close(ends[0]);
    ::close(ends[1]);
    return fail(problem("cannot start a process"));
  }
  if (child == 0) {
    ::close(ends[0]);
    // Graphviz orders some objects by address, so the picture would depend on earlier use of the
    // heap (see also Numbers). A new thread has a separate, empty heap.
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

std::string graphviz_state() {
  if (!library().problem.empty()) return "not found: " + library().problem;
  static GVC_t* const context = library().context();  // gvFreeContext would not free all of it
  return library().version(context);
}

}  // namespace pw::viz
