#include <algorithm>
#include <set>

#include "base/try.hpp"
#include "graph/text/text.hpp"
#include "rewriter/analysis/orders/orders.hpp"
#include "rewriter/analysis/passes.hpp"
#include "rewriter/strategies/driver.hpp"

namespace pw {
namespace {

/// A rewrite, by nodes of the graph that its pass began with.
struct Taking {
  std::string rule;
  std::vector<NodeId> nodes;  ///< that it matched
  std::vector<NodeId> gone;   ///< of these, or of their users: erased
};

struct PassRun {
  Graph graph;
  std::vector<Taking> takings;
  std::map<std::string, std::size_t> counts;  ///< rewrites by rule
};

Result<PassRun> run_pass(const Graph& graph, const RuleSet& rules, const Env& params,
                         const Strategy& pass) {
  PassRun out{graph, {}, {}};
  RunRules opened(rules);
  auto report = PW_TRY(run_strategy(out.graph, opened, pass, params, {}));
  for (const JournalEvent& event : report.journal) {
    const auto* match = std::get_if<MatchEvent>(&event);
    if (match == nullptr) continue;
    const std::string rule = written_name(rules.rules[opened.loaded(match->rule)]);
    ++out.counts[rule];
    out.takings.push_back({rule, match->matched, match->erased});
  }
  return out;
}

bool meet(const std::vector<NodeId>& a, const std::vector<NodeId>& b, NodeId* where) {
  for (NodeId n : a)
    if (n.valid() && std::find(b.begin(), b.end(), n) != b.end()) {
      *where = n;
      return true;
    }
  return false;
}

/// Returns the first rewrite that erased a node of the match, or else that matched one of its
/// nodes.
const Taking* thief_of(const std::vector<Taking>& takings, const Taking& match, NodeId* where) {
  for (const Taking& taking : takings)
    if (meet(match.nodes, taking.gone, where)) return &taking;
  for (const Taking& taking : takings)
    if (meet(match.nodes, taking.nodes, where)) return &taking;
  return nullptr;
}

/// Returns what the pass `second` loses if `first` runs before it.
Result<std::vector<Theft>> thefts_of(const Graph& graph, const RuleSet& rules, const Env& params,
                                     const OrderSpace& space, std::size_t first, std::size_t second,
                                     const PassRun& thief, const PassRun& alone) {
  std::vector<Theft> out;
  if (thief.takings.empty() || alone.takings.empty()) return out;
  auto after = PW_TRY(run_pass(thief.graph, rules, params, space.passes[second]));
  for (const auto& [rule, count] : alone.counts) {
    const auto left = after.counts.find(rule);
    const std::size_t there = left == after.counts.end() ? 0 : left->second;
    if (there >= count) continue;
    std::map<std::string, Theft> by_rule;
    for (const Taking& match : alone.takings) {
      NodeId where;
      if (match.rule != rule) continue;
      const Taking* taking = thief_of(thief.takings, match, &where);
      if (taking == nullptr) continue;
      Theft& theft = by_rule[taking->rule];
      if (theft.lost++ == 0)
        theft = {first, second, taking->rule, rule, 1, print_node(graph, where), {}, {}};
    }
    for (auto& [name, theft] : by_rule) {
      theft.lost = std::min(theft.lost, count - there);
      out.push_back(std::move(theft));
    }
  }
  return out;
}

}  // namespace

Result<std::vector<Theft>> find_thefts(const Graph& graph, const RuleSet& rules, const Env& params,
                                       const OrderSpace& space) {
  std::vector<Theft> out;
  std::set<std::tuple<std::size_t, std::size_t, std::string, std::string>> reported;
  const std::size_t count = space.passes.size();
  const auto run_each = [&](const Graph& start) -> Result<std::vector<PassRun>> {
    std::vector<PassRun> runs;
    for (const Strategy& pass : space.passes) {
      auto run = PW_TRY(run_pass(start, rules, params, pass));
      runs.push_back(std::move(run));
    }
    return runs;
  };
  /// Compares runs. `runs`: of each pass on `start`, the result of the passes of `prefix`.
  const auto look = [&](const Graph& start, const std::vector<PassRun>& runs,
                        const std::vector<std::size_t>& prefix) -> Status {
    for (std::size_t a = 0; a < count; ++a)
      for (std::size_t b = 0; b < count; ++b) {
        const auto used = [&](std::size_t pass) {
          return std::find(prefix.begin(), prefix.end(), pass) != prefix.end();
        };
        if (a == b || used(a) || used(b)) continue;
        auto found = PW_TRY(thefts_of(start, rules, params, space, a, b, runs[a], runs[b]));
        for (Theft& theft : found) {
          if (!reported.insert({a, b, theft.thief_rule, theft.victim_rule}).second) continue;
          theft.losing = theft.keeping = prefix;
          theft.losing.insert(theft.losing.end(), {a, b});
          theft.keeping.insert(theft.keeping.end(), {b, a});
          out.push_back(std::move(theft));
        }
      }
    return {};
  };
  const Graph begin = graph.compact();
  auto firsts = PW_TRY(run_each(begin));
  PW_TRY(look(begin, firsts, {}));
  for (std::size_t c = 0; c < count; ++c) {
    if (firsts[c].takings.empty()) continue;
    const Graph start = firsts[c].graph.compact();
    auto runs = PW_TRY(run_each(start));
    PW_TRY(look(start, runs, {c}));
  }
  return out;
}

}  // namespace pw
