// Exports find_near_misses, explain: attempts from every node of the pattern, so that a match with
// one part missing is found from the parts that are there.
#include <algorithm>
#include <cctype>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "rewriter/anchor.hpp"
#include "rewriter/explain.hpp"
#include "rewriter/legality.hpp"
#include "rewriter/search.hpp"

namespace pw {
namespace {

struct Attempt {
  int matched = 0, gate = 0;
  std::uint32_t layout = 0;
  NodeId anchor, at;
  std::vector<NodeId> nodes;
};

/// The rule laid out from each of its nodes that is matched once.
std::vector<RuleLayout> layouts_of(const Graph& graph, const RuleSet& rules, RuleId id) {
  std::vector<RuleLayout> out{lay_out(rules, id)};
  if (!out.front().plain()) return out;
  const GraphStatistics statistics = gather_statistics(graph);
  for (std::size_t i = 0; i < rules.rules[id].nodes.size(); ++i) {
    const PatternNodeId anchor(i);
    if (out.front().steps.empty() || anchor == out.front().steps.front().node) continue;
    SearchPlan plan = plan_search_from(rules, rules.rules[id], anchor, statistics);
    if (plan.steps.empty()) continue;
    RuleLayout layout = out.front();
    layout.steps = std::move(plan.steps);
    out.push_back(std::move(layout));
  }
  return out;
}

class Finder {
 public:
  Finder(const Graph& graph, const RuleSet& rules, RuleId id, const Env& params)
      : graph_(graph),
        rule_(rules.rules[id]),
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

  /// A node that is there and wrong says more than one that is missing.
  static bool stopped_outside(const Attempt& a) {
    return std::find(a.nodes.begin(), a.nodes.end(), a.at) == a.nodes.end();
  }

  /// One near miss a place: a worse one that shares a node with it, or with a match, or that begins
  /// on the other side of the node it stopped at, is the same story told from another node.
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
    out.why = {failure.code, failure.message, failure.span, failure.at, failure.matched};
    for (NodeId n : failure.nodes)
      if (n.valid()) out.nodes.push_back(n);
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
  std::unordered_set<std::uint32_t> taken_, stops_;  // asked only
};

}  // namespace

std::string without_numbers(std::string_view text) {
  std::string out;
  for (char c : text) {
    const bool digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (!digit)
      out += c;
    else if (out.empty() || out.back() != '*')
      out += '*';
  }
  return out;
}

std::vector<NearMiss> find_near_misses(const Graph& graph, const RuleSet& rules, RuleId rule,
                                       const Env& params) {
  return Finder(graph, rules, rule, params).run();
}

std::optional<Rejection> explain(const Graph& graph, const RuleSet& rules, RuleId rule,
                                 const Env& params) {
  if (!find_matches(graph, rules, rule, params).empty()) return std::nullopt;
  std::vector<NearMiss> misses = find_near_misses(graph, rules, rule, params);
  if (misses.empty()) return std::nullopt;
  return std::move(misses.front().why);
}

}  // namespace pw
