// Graphs that passes reach, each identified by its structural hash, and the result of each pass on
// each. A pass does the same to equal graphs, so it runs once on each.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "rewriter/egraph/cost.hpp"
#include "rewriter/rewriter.hpp"

namespace pw {

/// A graph that some order reaches.
struct SeenGraph {
  std::uint64_t hash = 0;
  std::vector<std::int64_t> costs;              ///< in the order of Cost
  std::map<std::size_t, std::size_t> next;      ///< by pass: the graph that it makes
  std::map<std::size_t, std::size_t> rewrites;  ///< by pass
};

class PassStates {
 public:
  /// Creates the states. `rules` and `params` must outlive its steps; `graph` is the first state.
  PassStates(const Graph& graph, const RuleSet& rules, const Env& params,
             std::vector<Strategy> passes, std::size_t most_runs);

  /// Returns the state that a pass makes of one. PW1114 if passes would run too often in total; a
  /// failing run is returned as the error.
  Result<std::size_t> step(std::size_t state, std::size_t pass);
  [[nodiscard]] const std::vector<SeenGraph>& seen() const { return seen_; }
  [[nodiscard]] const Graph& graph(std::size_t state) const { return graphs_[state]; }
  [[nodiscard]] std::size_t runs() const { return runs_; }

 private:
  std::size_t note(Graph graph);

  const RuleSet& rules_;
  const Env& params_;
  std::vector<Strategy> passes_;
  std::size_t most_runs_, runs_ = 0;
  std::vector<SeenGraph> seen_;
  std::vector<Graph> graphs_;  ///< of `seen_`
  std::map<std::uint64_t, std::size_t> by_hash_;
};

}  // namespace pw
