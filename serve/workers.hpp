// Worker processes with a time limit, one for each request. A page has at most one; a newer request
// cancels the previous one.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include <sys/types.h>

namespace pw::cli {

struct WorkerResult {
  enum class End : std::uint8_t {
    answered,
    late,       ///< it exceeded the time limit
    cancelled,  ///< by a newer request of its page
    stopped,    ///< by stop()
    failed,     ///< no answer: out of memory, or a bug
    busy,       ///< all workers are busy with other pages
  } end = End::failed;
  std::string answer, picture;
};

class Workers {
 public:
  /// Each worker is `pwr serve --answer` of this program, with this time limit.
  explicit Workers(std::chrono::seconds most) : most_(most) {}

  /// Runs a request and waits for the answer; thread-safe.
  WorkerResult run(const std::string& page, std::string_view question, std::string_view graph);
  /// Ends all workers and prevents new ones.
  void stop();

 private:
  struct Running {
    pid_t process = 0;
    bool cancelled = false;
  };
  std::shared_ptr<Running> begin(const std::string& page, int& to, int& from, WorkerResult& out);
  void end(const std::string& page, const std::shared_ptr<Running>& running, WorkerResult& out);

  std::chrono::seconds most_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Running>> running_;  // by page
  bool stopped_ = false;
};

}  // namespace pw::cli
