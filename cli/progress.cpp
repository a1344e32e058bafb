#include "cli/progress.hpp"

#include <chrono>
#include <condition_variable>
#include <thread>

#include <fmt/format.h>
#include <unistd.h>

#include "base/printable.hpp"
#include "cli/session.hpp"

namespace pw::cli {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kSilence = std::chrono::milliseconds(500);  // shorter activities are not shown
constexpr auto kFrame = std::chrono::milliseconds(100);
constexpr auto kLine = std::chrono::seconds(1);  // if each update is a separate line

class ProgressLine {
 public:
  ~ProgressLine() { end(); }

  void set(const Progress& progress, bool terminal) {
    const std::lock_guard held(lock_);
    const Clock::time_point now = Clock::now();
    if (progress.what != now_.what) stage_began_ = now;
    now_ = progress;
    terminal_ = terminal;
    if (thread_.joinable()) return;
    began_ = now;
    going_ = true;
    thread_ = std::thread([this] { draw_until_the_end(); });
  }
  void end() {
    {
      const std::lock_guard held(lock_);
      going_ = false;
      erase();
    }
    ended_.notify_all();
    if (thread_.joinable()) thread_.join();
  }
  std::unique_lock<std::mutex> pause() {
    std::unique_lock held(lock_);
    erase();
    return held;
  }

 private:
  static void put(const std::string& text) {
    // Losing a line is harmless.
    if (::write(STDERR_FILENO, text.data(), text.size()) < 0) return;
  }
  void erase() {
    if (shown_) put("\r\x1b[K");
    shown_ = false;
  }
  void draw() {
    const double seconds = std::chrono::duration<double>(Clock::now() - stage_began_).count();
    const std::string line = printable(progress_line(now_, seconds));
    if (terminal_)
      put("\r\x1b[K" + line);
    else
      put(line + "\n");
    shown_ = terminal_;
  }
  void draw_until_the_end() {
    std::unique_lock held(lock_);
    Clock::time_point next = began_ + kSilence;
    while (!ended_.wait_until(held, next, [&] { return !going_; })) {
      draw();
      next = Clock::now() + (terminal_ ? Clock::duration(kFrame) : Clock::duration(kLine));
    }
  }

  std::mutex lock_;
  std::condition_variable ended_;
  std::thread thread_;
  Progress now_;
  Clock::time_point began_, stage_began_;
  bool going_ = false, terminal_ = false, shown_ = false;
};

ProgressLine& the_line() {
  static ProgressLine line;
  return line;
}

std::string duration(double seconds) {
  if (seconds < 10) return fmt::format("{:.1f} s", seconds);
  if (seconds < 100) return fmt::format("{:.0f} s", seconds);
  return fmt::format("{:.0f} min", seconds / 60);
}

}  // namespace

std::string progress_line(const Progress& progress, double seconds) {
  if (progress.done == 0 || seconds <= 0)
    return fmt::format("{}, {}", progress.what, duration(seconds));
  const double rate = static_cast<double>(progress.done) / seconds;
  std::string out = fmt::format("{}: {}", progress.what, progress.done);
  if (progress.total > 0) out += fmt::format(" of {}", progress.total);
  out += fmt::format(" {}, {:.{}f}/s", progress.unit, rate, rate < 10 ? 1 : 0);
  if (progress.total > progress.done)
    out += fmt::format(", {} left",
                       duration(static_cast<double>(progress.total - progress.done) / rate));
  return out;
}

void show_progress(const Progress& progress, const Options& options) {
  const bool terminal = ::isatty(STDERR_FILENO) != 0;
  const bool wanted =
      options.progress == "always" || (options.progress == "auto" && terminal && !options.quiet);
  if (wanted) the_line().set(progress, terminal);
}

void end_progress() { the_line().end(); }

ProgressPause::ProgressPause() : held_(the_line().pause()) {}

}  // namespace pw::cli
