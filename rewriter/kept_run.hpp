// What a KeptPass keeps alive of its run: the rewritten graph, and the engine with its guard cache.
#pragma once

#include <memory>

#include "rewriter/engine.hpp"
#include "rewriter/kept_pass.hpp"
#include "rewriter/legality.hpp"

namespace pw {

struct KeptPass::Run {
  Run(const Graph& input, const RuleSet& set, const Strategy& strategy, const Env& params)
      : graph(input),
        rules(set),
        state{graph, rules, params, options, {}, has_barriers(graph), 0, {}, {}, {}, {}, nullptr},
        engine(state, strategy, stats) {}

  Graph graph;
  RunRules rules;
  RewriteOptions options;
  RunState state;
  PassStats stats;
  RuleEngine engine;
};

}  // namespace pw
