// Counters of splitting and planning, for comparisons of capture modes.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "splitter/plan.hpp"

namespace pw {

struct Counters {
  std::size_t graphs_seen = 0;           ///< graphs that were split
  std::size_t pieces = 0;                ///< pieces of all graphs
  std::size_t capturable_pieces = 0;     ///< pieces without splitting ops
  std::size_t piece_classes = 0;         ///< classes of capturable pieces, summed over graphs
  std::size_t backend_compilations = 0;  ///< one for each class, range and exact size; classes that
                                         ///< graphs share count once
  std::size_t graphs_captured = 0;  ///< one for each class and key, or for each whole step and key
                                    /// in mode none all counters but graphs_seen are 0
  /// Returns the counters by name, in this order.
  [[nodiscard]] std::vector<std::pair<std::string, std::size_t>> list() const;
};

/// Sums counters over the graphs of a pipeline's ranges.
class Counting {
 public:
  void add(const StitchedGraph& pieces, const Plan& plan);
  [[nodiscard]] const Counters& counters() const { return counters_; }

 private:
  /// Identity of a compilation: the hash of a class, the number of earlier classes with that hash
  /// in its graph (unfolded classes may be equal), and the range it is compiled for.
  std::set<std::tuple<std::uint64_t, std::size_t, std::int64_t, std::int64_t>> compiled_;
  Counters counters_;
};

}  // namespace pw
