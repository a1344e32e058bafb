// Counters of splitting and planning, by which captures are compared.
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
  std::size_t graphs_seen = 0;           ///< that were split
  std::size_t pieces = 0;                ///< of all graphs
  std::size_t capturable_pieces = 0;     ///< those without splitting ops
  std::size_t piece_classes = 0;         ///< of capturable pieces, in each graph
  std::size_t backend_compilations = 0;  ///< a class for each range and exact size; what graphs
                                         ///< share, once
  std::size_t graphs_captured = 0;       ///< a class for each key; a whole step for each key
                                         ///< of mode none all but graphs_seen are 0
  /// In this order, by name.
  [[nodiscard]] std::vector<std::pair<std::string, std::size_t>> list() const;
};

/// Adds up over the graphs of a pipeline's ranges.
class Counting {
 public:
  void add(const StitchedGraph& pieces, const Plan& plan);
  [[nodiscard]] const Counters& counters() const { return counters_; }

 private:
  /// Hash of a class, how many with that hash came before it in its graph (unfolded classes may be
  /// equal), and what it is compiled for.
  std::set<std::tuple<std::uint64_t, std::size_t, std::int64_t, std::int64_t>> compiled_;
  Counters counters_;
};

}  // namespace pw
