// What a KeptPass keeps alive of its run: the rewritten graph, and the engine with its guard cache.
#pragma once

#include <memory>

#include "rewriter/engine.hpp"
#include "rewriter/kept_pass.hpp"

namespace pw {

struct KeptPass::Run {
  Run(std::shared_ptr<Graph> rewritten, const RuleSet& set, const Strategy& strategy,
      const Env& params)
      : shared(std::move(rewritten)),
        graph(*shared),
        rules(set),
        state{graph, rules, params, options, {}, false, 0, {}, {}, {}, {}, nullptr},
        engine(state, strategy, stats) {}

  std::shared_ptr<Graph> shared;  ///< with the runs of older rules
  Graph& graph;
  RunRules rules;
  RewriteOptions options;
  RunState state;
  PassStats stats;
  RuleEngine engine;
};

}  // namespace pw
