// Times of the calls of a program, by node.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace pw {

/// The calls and seconds of each node, by op and node name, over all runs whose context refers to
/// it. Thread-safe.
class OpTimes {
 public:
  struct Sum {
    std::int64_t calls = 0;
    double seconds = 0;
  };
  using Sums = std::map<std::pair<std::string, std::string>, Sum>;

  void add(std::string op, std::string node, double seconds) {
    const std::lock_guard<std::mutex> lock(mutex_);
    Sum& sum = sums_[{std::move(op), std::move(node)}];
    ++sum.calls;
    sum.seconds += seconds;
  }
  [[nodiscard]] Sums sums() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return sums_;
  }

 private:
  mutable std::mutex mutex_;
  Sums sums_;
};

}  // namespace pw
