// All ways through a construction that asks now and then which of n it is to take: it is run once
// for each, depth first.
#pragma once

#include <cstddef>
#include <vector>

namespace pw::proof {

class Choices {
 public:
  std::size_t choose(std::size_t count) {
    if (at_ == path_.size()) path_.push_back({0, count});
    return path_[at_++].taken;
  }
  /// Starts the same way again.
  void rewind() { at_ = 0; }
  /// Goes on to the next way; false behind the last. What was not asked again is forgotten.
  bool next() {
    path_.resize(at_);
    while (!path_.empty() && ++path_.back().taken >= path_.back().count) path_.pop_back();
    at_ = 0;
    return !path_.empty();
  }

 private:
  struct Step {
    std::size_t taken, count;
  };
  std::vector<Step> path_;
  std::size_t at_ = 0;
};

}  // namespace pw::proof
