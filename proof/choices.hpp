// Depth-first enumeration of all paths through a nondeterministic construction: the construction
// runs once for each sequence of choices.
// This is the list monad by replay: it needs no copies of the construction's state. n paths cost n
// runs. The number of options at a step may depend on the choices before it.
#pragma once

#include <cstddef>
#include <vector>

namespace pw::proof {

class Choices {
 public:
  // Returns the option of the current path, or the first option of a new step. `count` is at least
  // 1.
  std::size_t choose(std::size_t count) {
    if (at_ == path_.size()) path_.push_back({0, count});
    return path_[at_++].taken;
  }
  /// Restarts the current path from its first choice.
  void rewind() { at_ = 0; }
  /// Advances to the next path; returns false after the last one. Discards choices that the last
  /// run did not reach.
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
