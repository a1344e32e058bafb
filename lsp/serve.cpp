// The server's streams and threads. One thread reads frames, one checks, one analyses; the main
// thread answers. Their results arrive in one queue.
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>

#include <unistd.h>

#include "base/io/write_all.hpp"
#include "lsp/frames.hpp"
#include "lsp/server.hpp"

namespace pw::cli {
namespace {

struct EndOfInput {};
using Event = std::variant<Frame, EndOfInput, CheckedDocument, AnalysedDocument, JudgedDocument>;

// Limit of unhandled input: above it, reading waits until a message has been handled.
constexpr std::size_t kMostQueuedMessages = 1000, kMostQueuedBytes = std::size_t{64} << 20;

class Events {
 public:
  void put(Event event) {
    {
      const std::lock_guard lock(mutex_);
      all_.push_back(std::move(event));
    }
    some_.notify_one();
  }
  /// Waits for room: the queue and the unhandled messages of the server are bounded.
  void put_frame(Frame frame) {
    std::unique_lock lock(mutex_);
    room_.wait(lock, [&] {
      return frames_.messages + backlog_.messages < kMostQueuedMessages &&
             frames_.bytes + backlog_.bytes < kMostQueuedBytes;
    });
    ++frames_.messages;
    frames_.bytes += frame.content.size();
    all_.emplace_back(std::move(frame));
    lock.unlock();
    some_.notify_one();
  }
  /// Returns nothing at the deadline; without a deadline it waits indefinitely.
  std::optional<Event> take(std::optional<Server::Clock::time_point> deadline) {
    std::unique_lock lock(mutex_);
    const auto there = [&] { return !all_.empty(); };
    if (!deadline)
      some_.wait(lock, there);
    else if (!some_.wait_until(lock, *deadline, there))
      return {};
    Event out = std::move(all_.front());
    all_.pop_front();
    if (const auto* frame = std::get_if<Frame>(&out)) {
      --frames_.messages;
      frames_.bytes -= frame->content.size();
    }
    return out;
  }
  /// Updates the messages that the server has not handled yet.
  void set_backlog(Server::Backlog backlog) {
    {
      const std::lock_guard lock(mutex_);
      backlog_ = backlog;
    }
    room_.notify_one();
  }

 private:
  std::mutex mutex_;
  std::condition_variable some_, room_;
  std::deque<Event> all_;
  Server::Backlog frames_, backlog_;  // in `all_`; in the server
};

/// Runs one job at a time on a separate thread. A job that crashes returns its input, so that the
/// server continues.
class Worker {
 public:
  explicit Worker(Events& events) : events_(events), thread_([this] { run(); }) {}
  [[nodiscard]] bool busy() {
    const std::lock_guard lock(mutex_);
    return busy_;
  }
  void start(std::function<Event()> job, Event failed) {
    {
      const std::lock_guard lock(mutex_);
      job_ = std::move(job);
      result_ = std::move(failed);
      busy_ = true;
    }
    some_.notify_one();
  }

 private:
  void run() {
    while (true) {
      std::function<Event()> job;
      {
        std::unique_lock lock(mutex_);
        some_.wait(lock, [&] { return job_ != nullptr; });
        job = std::exchange(job_, nullptr);
      }
      Event result = std::move(result_);
      try {
        result = job();
      } catch (const std::exception&) {
      }
      {
        const std::lock_guard lock(mutex_);
        busy_ = false;  // before the event, whose receiver may start the next job
      }
      events_.put(std::move(result));
    }
  }

  Events& events_;
  std::mutex mutex_;
  std::condition_variable some_;
  std::function<Event()> job_;
  Event result_;
  bool busy_ = false;
  std::thread thread_;
};

void send(const std::string& message) {
  if (!write_all(STDOUT_FILENO, framed(message)).empty())
    ::_exit(1);  // the client no longer reads answers
}

void read_frames(Events& events) {
  FrameReader frames;
  std::string block(std::size_t{1} << 16, '\0');
  while (true) {
    const ssize_t size = ::read(STDIN_FILENO, block.data(), block.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return events.put(EndOfInput{});
    frames.feed(std::string_view(block).substr(0, static_cast<std::size_t>(size)));
    while (std::optional<Frame> frame = frames.next()) events.put_frame(std::move(*frame));
  }
}

class Service {
 public:
  int run() {
    std::thread(read_frames, std::ref(events_)).detach();
    while (!server_.exit_code()) {
      start_jobs();
      // Reads pending input before it handles a message, because the input may cancel it. The bound
      // on waiting messages ensures that one is handled for each that arrives.
      const bool waiting = server_.backlog().messages > 0;
      std::optional<Event> event = events_.take(waiting ? Server::Clock::now() : deadline());
      if (event && !take(std::move(*event))) break;
      if (!event) server_.work();
      events_.set_backlog(server_.backlog());
    }
    return server_.exit_code().value_or(1);
  }

 private:
  /// Checks wait for their time; a job that ends brings an event.
  std::optional<Server::Clock::time_point> deadline() {
    return checker_.busy() ? std::nullopt : server_.checks().next_check();
  }

  bool take(Event event) {
    if (auto* frame = std::get_if<Frame>(&event)) {
      if (frame->problem.empty())
        server_.receive(frame->content);
      else
        server_.refuse_frame(frame->problem);
    } else if (auto* checked = std::get_if<CheckedDocument>(&event)) {
      server_.checks().checked(std::move(*checked));
    } else if (auto* analysed = std::get_if<AnalysedDocument>(&event)) {
      server_.checks().analysed(std::move(*analysed));
    } else if (auto* judged = std::get_if<JudgedDocument>(&event)) {
      server_.checks().judged(std::move(*judged));
    } else {
      while (server_.work()) {
      }
      return false;
    }
    return true;
  }

  void start_jobs() {
    if (!checker_.busy())
      if (auto job = server_.checks().take_check()) {
        CheckedDocument failed{job->uri, job->version, job->text, {}, {}, nullptr};
        failed.found.emplace_back().message =
            "the check crashed because of a bug in this program; run `pwr check` on the saved file "
            "for a full report";
        checker_.start([job = std::move(*job)] { return check_document(job); }, std::move(failed));
      }
    if (!analyst_.busy())
      if (auto job = server_.checks().take_analysis()) {
        AnalysedDocument failed{job->job.uri, job->job.version, {}, {}, {}, {}};
        analyst_.start([job = std::move(*job)] { return analyse_document(job.job, *job.draft); },
                       std::move(failed));
      }
    if (!analyst_.busy())
      if (auto job = server_.checks().take_judging()) {
        JudgedDocument failed{job->job.uri, job->job.version, {}, {}};
        analyst_.start([job = std::move(*job)] { return judge_document(job.job, *job.draft); },
                       std::move(failed));
      }
  }

  Events events_;
  Worker checker_{events_}, analyst_{events_};
  Server server_{send};
};

}  // namespace

int serve() {
  // Threads may still be working at the end; nothing waits for them.
  static auto* service = new Service;
  ::_exit(service->run());
}

}  // namespace pw::cli
