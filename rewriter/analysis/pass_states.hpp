// The graphs that passes come to, each known by its structural hash, and what each pass makes of
// each. A pass does the same to equal graphs, so it is run once on each.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "rewriter/egraph/cost.hpp"
#include "rewriter/rewriter.hpp"

namespace pw {

/// A graph that some order comes to.
struct SeenGraph {
  std::uint64_t hash = 0;
  std::vector<std::int64_t> costs;              ///< in the order of Cost
  std::map<std::size_t, std::size_t> next;      ///< by pass: the graph that it makes
  std::map<std::size_t, std::size_t> rewrites;  ///< by pass
};

class PassStates {
 public:
  /// `rules` and `params` outlive its steps; `graph` is the first state.
  PassStates(const Graph& graph, const RuleSet& rules, const Env& params,
             std::vector<Strategy> passes, std::size_t most_runs);

  /// The state that a pass makes of one. PW1114 where the pass would be run too often in all; a run
  /// that fails is the mistake.
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
