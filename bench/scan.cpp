#include "bench/scan.hpp"

#include "rewriter/engine/engine.hpp"
#include "rewriter/engine/legality.hpp"

namespace pw {

struct Scan::State {
  State(Graph& graph, const RuleSet& set, const Strategy& strategy, const Env& params,
        const RewriteOptions& given)
      : rules(set),
        options(given),
        run{graph, rules, params, options, {}, has_barriers(graph), 0, {}, {}, {}, {}, nullptr},
        engine(run, strategy, stats) {}

  RunRules rules;
  RewriteOptions options;
  RunState run;
  PassStats stats;
  RuleEngine engine;
};

Scan::Scan(Graph& graph, const RuleSet& rules, const Strategy& strategy, const Env& params,
           const RewriteOptions& options)
    : state_(std::make_unique<State>(graph, rules, strategy, params, options)) {
  state_->engine.ready();
}
Scan::~Scan() = default;

std::size_t Scan::run() { return state_->engine.scan(); }

}  // namespace pw
