#include "rewriter/analysis/pass_states.hpp"

#include <fmt/format.h>

#include "base/try.hpp"
#include "graph/text/text.hpp"
#include "rewriter/strategies/driver.hpp"

namespace pw {

PassStates::PassStates(const Graph& graph, const RuleSet& rules, const Env& params,
                       std::vector<Strategy> passes, std::size_t most_runs)
    : rules_(rules), params_(params), passes_(std::move(passes)), most_runs_(most_runs) {
  note(graph.compact());
}

Result<std::size_t> PassStates::step(std::size_t state, std::size_t pass) {
  if (const auto known = seen_[state].next.find(pass); known != seen_[state].next.end())
    return known->second;
  if (++runs_ > most_runs_)
    return fail(error_in("explore", "PW1114",
                         fmt::format("{} runs of a pass are not enough", most_runs_),
                         "reorder fewer passes, or state with --before which run before others"));
  Graph graph = graphs_[state];
  auto report = PW_TRY(run_strategy(graph, rules_, passes_[pass], params_, {}));
  std::size_t rewrites = 0;
  for (const PassStats& stats : report.passes) rewrites += stats.rewrites;
  const std::size_t to = rewrites == 0 ? state : note(graph.compact());
  seen_[state].next[pass] = to;
  seen_[state].rewrites[pass] = rewrites;
  return to;
}

std::size_t PassStates::note(Graph graph) {
  const std::uint64_t hash = structural_hash(graph);
  const auto [place, fresh] = by_hash_.emplace(hash, graphs_.size());
  if (!fresh) return place->second;
  SeenGraph seen{hash, {}, {}, {}};
  for (std::size_t cost = 0; cost < kCostNames.size(); ++cost)
    seen.costs.push_back(cost_of(graph, static_cast<Cost>(cost)));
  seen_.push_back(std::move(seen));
  graphs_.push_back(std::move(graph));
  return place->second;
}

}  // namespace pw
