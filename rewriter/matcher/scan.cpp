#include "rewriter/matcher/scan.hpp"

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

void RuleEngine::ready() {
  careful_ = true;
  prepare();
  compile();
}

std::size_t RuleEngine::scan() {
  heap_.clear();
  seeds_.clear();
  pool_.clear();
  latest_.clear();
  listed_.clear();
  queued_.clear();
  waiters_.clear();
  refused_.clear();
  counting_ = true;
  counted_ = 0;
  seed();
  if (!frontiers_.empty()) {
    counting_ = false;
    start();
    return heap_.size() + seeds_.size();
  }
  return counted_ + seeds_.size();  // those of rules with lists are kept
}

}  // namespace pw
