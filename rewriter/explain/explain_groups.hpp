// Groups near misses with the same reason in repeated layers.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "rewriter/explain/explain.hpp"

namespace pw {

class NearMissGroups {
 public:
  /// Creates groups. Of the options only `at` and `most` apply.
  explicit NearMissGroups(const ExplainOptions& options) : options_(options) {}

  /// Adds a miss, unless it does not concern the requested node. `graph`: of its nodes.
  void add(NearMiss miss);
  /// Adds a miss that concerns no node; always reported.
  void note(NearMiss miss);
  /// Notes a match in a part of the model with this name.
  void note_good(std::string_view group);
  /// Returns the groups, those that reached furthest first.
  std::vector<NearMissGroup> take();

 private:
  using Score = std::pair<int, int>;
  using Place = std::pair<std::string, std::vector<NodeId>>;
  using Key = std::tuple<std::string, std::uint32_t, std::string, std::string, std::string>;

  [[nodiscard]] bool concerns(const NearMiss& miss) const;
  void forget(std::size_t group);

  const ExplainOptions& options_;
  std::vector<NearMissGroup> groups_;
  std::map<Key, std::size_t> index_;
  std::map<Place, std::pair<Score, std::size_t>> places_;
  std::map<std::string, std::size_t> good_;
};

}  // namespace pw
