// Attempts from every node of the pattern, so that a match with one part missing is found from the
// parts that are there.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "rewriter/engine/legality.hpp"
#include "rewriter/explain/explain.hpp"
#include "rewriter/matcher/probe.hpp"

namespace pw {
namespace {

struct Attempt {
  int matched = 0, gate = 0;
  std::uint32_t layout = 0;
  NodeId anchor, at;
  std::vector<NodeId> nodes;
};

class Finder {
 public:
  Finder(const Graph& graph, const RunRules& rules, RuleId id, const Env& params)
      : graph_(graph),
        rule_(rules[id]),
        id_(id),
        base_(starting_env(rule_, params)),
        layouts_(layouts_of(graph, rules, id)) {}

  std::vector<NearMiss> run() {
    for (std::uint32_t i = 0; i < layouts_.size(); ++i) attempt_all(i);
    std::stable_sort(attempts_.begin(), attempts_.end(), [&](const Attempt& a, const Attempt& b) {
      if (a.matched != b.matched) return a.matched > b.matched;
      if (a.gate != b.gate) return a.gate > b.gate;
      if (stopped_outside(a) != stopped_outside(b)) return stopped_outside(a);
      return graph_.label(a.anchor) < graph_.label(b.anchor);
    });
    std::vector<NearMiss> out;
    for (const Attempt& a : attempts_)
      if (claim(a)) out.push_back(describe(a));
    return out;
  }

 private:
  void attempt_all(std::uint32_t index) {
    const RuleLayout& layout = layouts_[index];
    if (layout.steps.empty()) return;
    const OpId op = rule_.nodes[layout.steps.front().node].op;
    Search search(graph_, layout, base_, false);
    for (NodeId n = graph_.first(); n.valid(); n = graph_.next(n)) {
      if (graph_.op(n) != op) continue;
      bool matches = false;
      search.run(n, [&](const Match& match) {
        for (NodeId m : all_nodes(match)) taken_.insert(m.index);
        return !(matches = true);
      });
      const Failure& failure = search.furthest();
      if (matches || !failure.any()) continue;
      attempts_.push_back({failure.matched, failure.gate, index, n, failure.at, failure.nodes});
    }
  }

  /// Returns true if the attempt stopped at a missing node. An existing node that does not fit is
  /// more informative.
  static bool stopped_outside(const Attempt& a) {
    return std::find(a.nodes.begin(), a.nodes.end(), a.at) == a.nodes.end();
  }

  /// Claims a place for one near miss. A worse one is a duplicate found from another node if it
  /// shares a node with it or with a match, or begins on the other side of the node where it
  /// stopped.
  bool claim(const Attempt& a) {
    const auto known = [&](NodeId n) { return n.valid() && taken_.contains(n.index); };
    if (known(a.anchor) || std::any_of(a.nodes.begin(), a.nodes.end(), known)) return false;
    if (std::any_of(a.nodes.begin(), a.nodes.end(), [&](NodeId n) { return next_to_stop(n); }))
      return false;
    taken_.insert(a.anchor.index);
    for (NodeId n : a.nodes)
      if (n.valid()) taken_.insert(n.index);
    if (!a.at.valid()) return true;
    taken_.insert(a.at.index);
    if (stopped_outside(a)) stops_.insert(a.at.index);
    return true;
  }

  [[nodiscard]] bool next_to_stop(NodeId node) const {
    if (!node.valid() || stops_.empty()) return false;
    for (std::size_t i = 0; i < graph_.result_count(node); ++i) {
      const ValueId v = graph_.result(node, i);
      for (UseId u = graph_.first_use(v); u.valid(); u = graph_.next_use(u))
        if (stops_.contains(graph_.user(u).index)) return true;
    }
    return false;
  }

  NearMiss describe(const Attempt& a) {
    Search talking(graph_, layouts_[a.layout], base_, true);
    talking.run(a.anchor, [](const Match&) { return true; });
    const Failure& failure = talking.furthest();
    NearMiss out;
    out.rule = id_;
    out.rule_name = rule_.name;
    out.rule_size = rule_.nodes.size();
    out.why = {failure.code, failure.message, failure.span, failure.at, failure.matched};
    out.help = failure.help;
    for (NodeId n : failure.nodes)
      if (n.valid()) {
        out.nodes.push_back(n);
        out.node_names.emplace_back(graph_.node_name(n));
      }
    if (failure.at.valid()) out.at = see(graph_, failure.at);
    out.gate = failure.gate;
    out.place = without_numbers(graph_.group(a.anchor));
    return out;
  }

  const Graph& graph_;
  const Rule& rule_;
  RuleId id_;
  Env base_;
  std::vector<RuleLayout> layouts_;
  std::vector<Attempt> attempts_;
  std::unordered_set<std::uint32_t> taken_, stops_;  // for lookups only
};

}  // namespace

std::vector<NearMiss> find_near_misses(const Graph& graph, const RunRules& rules, RuleId rule,
                                       const Env& params) {
  return Finder(graph, rules, rule, params).run();
}

std::optional<Rejection> explain(const Graph& graph, const RunRules& rules, RuleId rule,
                                 const Env& params) {
  if (!find_matches(graph, rules, rule, params).empty()) return std::nullopt;
  std::vector<NearMiss> misses = find_near_misses(graph, rules, rule, params);
  if (misses.empty()) return std::nullopt;
  return std::move(misses.front().why);
}

}  // namespace pw
