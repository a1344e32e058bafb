// plan_search is join ordering by branch and bound (as for database queries: Selinger et al. 1979).
// The cost of an order is the expected number of nodes visited. It starts with the number of nodes
// of the anchor's op, or zero if another rule begins there, since they are visited anyway. Each
// step to a user multiplies by the average number of users. A step to a producer multiplies
// nothing, so those are chosen greedily, and only the choice of users branches. At most 64 orders
// are tried from each anchor. An anchor whose op occurs once in the pattern is preferred, since
// other anchors may find one set of nodes twice.
//
// find_ways_back is a shortest-path relaxation over the edges of the pattern towards the anchor.
// Producers are cheap, users of a result cost more, and other users of an operand cost most.
#include "rewriter/matcher/anchor.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>

namespace pw {
namespace {

/// Planner of the order in which roots join the nodes found already. Producers are free, so only
/// the choice of users branches. Patterns have few roots; a bound on the attempts keeps unusual
/// ones cheap.
class Planner {
 public:
  Planner(const Rule& rule, const GraphStatistics& statistics, const std::set<OpId>& begun)
      : rule_(rule), statistics_(statistics), begun_(begun) {}

  SearchPlan run() {
    best_.cost = std::numeric_limits<double>::infinity();
    // From a node whose op occurs twice, one set of nodes may be found twice.
    for (const bool unique : {true, false}) {
      for (std::size_t i = 0; i < rule_.nodes.size(); ++i) {
        const PatternNode& node = rule_.nodes[PatternNodeId(i)];
        if (matched_once(node) && node.own() && stands_once(node.op) == unique)
          start(PatternNodeId(i));
      }
      if (best_.anchor.valid()) break;
    }
    best_.cost += best_spared_;
    return std::move(best_);
  }

  SearchPlan run_from(PatternNodeId anchor) {
    best_.cost = std::numeric_limits<double>::infinity();
    start(anchor);
    best_.cost += best_spared_;
    return std::move(best_);
  }

 private:
  struct Partial {
    std::vector<SearchStep> steps;
    IdVec<PatternNodeId, char> visited;
    IdVec<PatternValueId, char> bound;
    double states = 0, cost = 0;
  };

  [[nodiscard]] bool stands_once(OpId op) const {
    return std::count_if(rule_.nodes.begin(), rule_.nodes.end(),
                         [&](const PatternNode& n) { return n.op == op; }) == 1;
  }

  void start(PatternNodeId anchor) {
    tries_ = 0;
    anchor_ = anchor;
    Partial partial;
    partial.visited.resize(rule_.nodes.size(), 0);
    partial.bound.resize(rule_.values.size(), 0);
    partial.states = statistics_.nodes_of(rule_.nodes[anchor].op);
    spared_ = begun_.contains(rule_.nodes[anchor].op) ? partial.states : 0;
    partial.cost = partial.states - spared_;
    visit(partial, {SearchStep::From::anchor, anchor, {}, {}, 0, {}, {}});
    extend(std::move(partial));
  }

  void visit(Partial& partial, const SearchStep& step) const {
    partial.visited[step.node] = 1;
    for (PatternValueId v : rule_.nodes[step.node].operands) partial.bound[v] = 1;
    for (PatternValueId v : rule_.nodes[step.node].results) partial.bound[v] = 1;
    partial.steps.push_back(step);
  }

  void extend(Partial partial) {
    while (follow_producer(partial)) {
    }
    if (partial.cost >= best_.cost) return;
    constexpr int kMostTries = 64;
    bool complete = true;
    for (std::size_t i = 0; i < rule_.nodes.size(); ++i) {
      const PatternNodeId id(i);
      if (partial.visited[id] != 0 || !matched_once(rule_.nodes[id])) continue;
      complete = false;
      if (++tries_ > kMostTries && partial.steps.size() > 1 && best_.cost < kInfinite) return;
      double fan = kInfinite;
      SearchStep step = user_step(partial, id, fan);
      if (step.connectors.empty()) continue;
      Partial next = partial;
      next.cost += next.states * fan;
      next.states *= fan;
      visit(next, step);
      extend(std::move(next));
    }
    if (complete) {
      best_.anchor = anchor_;
      best_.cost = partial.cost;
      best_spared_ = spared_;
      best_.steps = std::move(partial.steps);
    }
  }

  bool follow_producer(Partial& partial) const {
    for (std::size_t s = 0; s < partial.steps.size(); ++s) {
      const PatternNodeId reader = partial.steps[s].node;
      const auto& operands = rule_.nodes[reader].operands;
      for (std::size_t i = 0; i < operands.size(); ++i) {
        if (rule_.values[operands[i]].list) break;  // the position of the remaining operands varies
        const PatternNodeId producer = rule_.values[operands[i]].producer;
        if (!producer.valid() || partial.visited[producer] != 0 ||
            !matched_once(rule_.nodes[producer]))
          continue;
        visit(partial, {SearchStep::From::producer,
                        producer,
                        operands[i],
                        reader,
                        static_cast<int>(i),
                        {},
                        {}});
        partial.cost += partial.states;
        return true;
      }
    }
    return false;
  }

  /// Returns the step to a user. Connectors are in the order of their slots; `fan` is the least of
  /// their expected users.
  SearchStep user_step(const Partial& partial, PatternNodeId id, double& fan) const {
    SearchStep step{SearchStep::From::user, id, {}, {}, 0, {}, {}};
    const PatternNode& node = rule_.nodes[id];
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
      const PatternValue& value = rule_.values[node.operands[i]];
      if (partial.bound[node.operands[i]] == 0 || !connects(value) || value.list) continue;
      const double users = value.producer.valid()
                               ? statistics_.users_of(rule_.nodes[value.producer].op)
                               : statistics_.input_users;
      if (users < fan) {
        fan = std::max(users, 1.0);
        step.connectors.insert(step.connectors.begin(), static_cast<int>(i));
      } else {
        step.connectors.push_back(static_cast<int>(i));
      }
    }
    return step;
  }

  static constexpr double kInfinite = std::numeric_limits<double>::infinity();
  const Rule& rule_;
  const GraphStatistics& statistics_;
  const std::set<OpId>& begun_;
  PatternNodeId anchor_;
  SearchPlan best_;
  double spared_ = 0, best_spared_ = 0;  ///< of the looks at nodes of anchor_, and of the best one
  int tries_ = 0;
};

struct Edge {
  PatternNodeId from;
  Hop hop;
  int cost;
};

/// Returns the edges with their costs: up to a producer is one step, down to users of a result a
/// few, to other users of an operand possibly very many.
std::vector<Edge> edges_of(const RuleSet& rules, const Rule& rule) {
  constexpr int kUp = 1, kDown = 8, kAcross = 64;
  std::vector<Edge> out;
  for (std::size_t i = 0; i < rule.nodes.size(); ++i) {
    const PatternNodeId id(i);
    const PatternNode& node = rule.nodes[id];
    const bool commutes = rules.context->ops[node.op].traits.commutative;
    for (std::size_t k = 0; k < node.operands.size(); ++k) {
      const PatternValueId v = node.operands[k];
      const int slot = static_cast<int>(k);
      const bool either = commutes && k < 2;
      const PatternNodeId producer = rule.values[v].producer;
      if (producer.valid()) {
        out.push_back({id, {Hop::Kind::producer, producer, slot, either}, kUp});
        out.push_back(
            {producer, {Hop::Kind::user_of_result, id, rule.values[v].result, false}, kDown});
      }
      if (!connects(rule.values[v])) continue;
      for (std::size_t j = 0; j < rule.nodes.size(); ++j) {  // `unless` may name an input's maker
        const auto& results = rule.nodes[PatternNodeId(j)].results;
        const auto at = std::find(results.begin(), results.end(), v);
        if (at == results.end() || producer == PatternNodeId(j)) continue;
        out.push_back({id, {Hop::Kind::producer, PatternNodeId(j), slot, either}, kUp});
        const auto result = static_cast<int>(at - results.begin());
        out.push_back({PatternNodeId(j), {Hop::Kind::user_of_result, id, result, false}, kDown});
      }
      for (std::size_t j = 0; j < rule.nodes.size(); ++j) {
        const auto& others = rule.nodes[PatternNodeId(j)].operands;
        if (j != i && std::find(others.begin(), others.end(), v) != others.end())
          out.push_back(
              {id, {Hop::Kind::user_of_operand, PatternNodeId(j), slot, either}, kAcross});
      }
    }
  }
  // Nodes that must be absent lead nowhere, except from one to another of the same `unless`.
  std::erase_if(out, [&](const Edge& edge) {
    const int to = rule.nodes[edge.hop.to].negation;
    return to >= 0 && to != rule.nodes[edge.from].negation;
  });
  return out;
}

}  // namespace

SearchPlan plan_search(const Rule& rule, const GraphStatistics& statistics,
                       const std::set<OpId>& begun) {
  return Planner(rule, statistics, begun).run();
}

SearchPlan plan_search_from(const Rule& rule, PatternNodeId anchor,
                            const GraphStatistics& statistics) {
  const std::set<OpId> begun;
  return Planner(rule, statistics, begun).run_from(anchor);
}

IdVec<PatternNodeId, std::vector<Hop>> find_ways_back(const RuleSet& rules, const Rule& rule,
                                                      PatternNodeId anchor) {
  constexpr int kFar = 1 << 28;
  IdVec<PatternNodeId, std::vector<Hop>> out;
  out.resize(rule.nodes.size());
  if (!anchor.valid()) return out;
  IdVec<PatternNodeId, int> cost(rule.nodes.size(), kFar);
  cost[anchor] = 0;
  const std::vector<Edge> edges = edges_of(rules, rule);
  for (bool changed = true; changed;) {
    changed = false;
    for (const Edge& edge : edges) {
      const int through = cost[edge.hop.to] + edge.cost;
      if (through >= cost[edge.from]) continue;
      cost[edge.from] = through;
      out[edge.from] = out[edge.hop.to];
      out[edge.from].insert(out[edge.from].begin(), edge.hop);
      changed = true;
    }
  }
  // Any member leads to the first one, which is the anchor.
  const MembersId members = rule.nodes[anchor].members;
  const std::optional<std::size_t> slot =
      members.valid() ? common_slot(rule, members) : std::nullopt;
  if (!slot) return out;
  const bool either = *slot < 2 && rules.context->ops[rule.nodes[anchor].op].traits.commutative;
  for (std::vector<Hop>& way : out)
    way.push_back({Hop::Kind::user_of_operand, anchor, static_cast<int>(*slot), either});
  return out;
}

}  // namespace pw
