// Partitions a piece into fusion groups: greedy clustering from producers to consumers under a
// convexity constraint. Each node starts a group of its own, which then absorbs the groups of its
// operands' producers one after another. Two groups merge if
//
// * both are row programs or views that can be lowered, within the limits of nodes and arguments;
// * the union is convex: no path leads from one to the other through a third group (leads_around),
//   where the order of effects counts as an edge;
// * it lowers to one row program whose rows are those of one of the two, or between them, so that
//   no part runs with fewer rows than the less parallel one had alone.
//
// At the end, views at the boundary of a group are split off, since they run nothing. Invariant:
// every live node is in exactly one group, and the groups have a topological order, in which they
// are returned. Cost: leads_around visits at most all groups for each operand, so the worst case is
// quadratic; max_nodes bounds a group.
#include "codegen/rowprogram/grouping.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "graph/passes/view.hpp"

namespace pw::rows {
namespace {

using UnitKind = RunUnit::Kind;

bool makes_literal(const Graph& graph, NodeId n) { return graph.op_of(n).is_literal(); }

class Grouper {
 public:
  Grouper(const Graph& graph, const GroupingOptions& options) : graph_(graph), options_(options) {}

  std::vector<RunUnit> run() {
    NodeId effect;
    for (NodeId n : graph_.order()) {
      unit_of_[n] = units_.size();
      units_.push_back(single(n));
      if (graph_.op_of(n).traits.effect) {
        if (effect.valid()) effect_before_[n] = effect;
        effect = n;
      }
      if (options_.automatic) grow(n);
    }
    if (options_.automatic) {
      for (std::size_t i = 0, count = units_.size(); i < count; ++i) peel(i);
    }
    if (options_.wide_rows) {
      for (RunUnit& unit : units_) {
        if (unit.kind != UnitKind::rows) continue;
        if (auto wide = lower_with_wide_rows(graph_, unit.nodes, options_.checks))
          unit.program = std::move(*wide);
      }
    }
    return ordered();
  }

 private:
  RunUnit single(NodeId n) {
    RunUnit unit;
    unit.nodes = {n};
    if (makes_literal(graph_, n)) {
      unit.kind = UnitKind::literal;
    } else if (auto program =
                   lower_nodes(graph_, unit.nodes, unit.inputs, unit.outputs, options_.checks)) {
      unit.kind = keeps_bytes(graph_, n) ? UnitKind::view : UnitKind::rows;
      unit.program = std::move(*program);
    } else {
      unit.kind = keeps_bytes(graph_, n) ? UnitKind::view : UnitKind::opaque;
      unit.why = std::move(program.error());
    }
    return unit;
  }

  [[nodiscard]] bool grows(std::size_t unit) const {
    return units_[unit].kind == UnitKind::rows ||
           (units_[unit].kind == UnitKind::view && units_[unit].why.reason.empty());
  }

  /// Merges a node's unit with those of its producers.
  void grow(NodeId n) {
    if (!grows(unit_of_[n])) return;
    for (ValueId v : graph_.operands(n)) {
      if (!v.valid() || graph_.is_input(v)) continue;
      const std::size_t from = unit_of_[graph_.producer(v)], to = unit_of_[n];
      if (from != to && grows(from)) merge(from, to);
    }
  }

  /// Returns the units that produce the operands of a unit, and the effect that precedes its own.
  std::set<std::size_t> sources(std::size_t unit) const {
    std::set<std::size_t> out;
    for (NodeId n : units_[unit].nodes) {
      for (ValueId v : graph_.operands(n)) {
        if (v.valid() && !graph_.is_input(v)) out.insert(unit_of_.at(graph_.producer(v)));
      }
      if (const auto before = effect_before_.find(n); before != effect_before_.end())
        out.insert(unit_of_.at(before->second));
    }
    out.erase(unit);
    return out;
  }

  /// Returns true if a path leads from unit `from` to unit `to` through a third one.
  [[nodiscard]] bool leads_around(std::size_t from, std::size_t to) const {
    std::set<std::size_t> seen{from};
    std::vector<std::size_t> open;
    for (std::size_t s : sources(to)) {
      if (seen.insert(s).second) open.push_back(s);
    }
    while (!open.empty()) {
      const std::size_t unit = open.back();
      open.pop_back();
      for (std::size_t s : sources(unit)) {
        if (s == from) return true;
        if (seen.insert(s).second) open.push_back(s);
      }
    }
    return false;
  }

  void merge(std::size_t from, std::size_t to) {
    RunUnit &a = units_[from], &b = units_[to];
    if (a.nodes.size() + b.nodes.size() > options_.max_nodes || leads_around(from, to)) return;
    RunUnit both;
    both.kind = UnitKind::rows;
    std::merge(a.nodes.begin(), a.nodes.end(), b.nodes.begin(), b.nodes.end(),
               std::back_inserter(both.nodes),
               [&](NodeId x, NodeId y) { return graph_.label(x) < graph_.label(y); });
    auto program = lower_nodes(graph_, both.nodes, both.inputs, both.outputs, options_.checks);
    if (!program || program->arguments.size() > options_.max_arguments || !is_worth(a, b, *program))
      return;
    both.program = std::move(*program);
    for (NodeId n : a.nodes) unit_of_[n] = to;
    a.nodes.clear();
    b = std::move(both);
  }

  /// Returns true if the merged rows equal those of one unit or lie between them, so that nothing
  /// loses parallelism compared with the less parallel part.
  [[nodiscard]] static bool is_worth(const RunUnit& a, const RunUnit& b, const RowProgram& both) {
    const auto prefix = [](const Shape& shorter, const Shape& longer) {
      return shorter.size() <= longer.size() &&
             std::equal(shorter.begin(), shorter.end(), longer.begin());
    };
    const Shape &x = a.program.domain, &y = b.program.domain, &z = both.domain;
    const Shape &least = x.size() < y.size() ? x : y, &most = x.size() < y.size() ? y : x;
    return prefix(least, z) && prefix(z, most);
  }

  /// Splits off views at the boundary of a group; they run nothing.
  void peel(std::size_t index) {
    for (;;) {
      RunUnit& unit = units_[index];
      if (unit.kind != UnitKind::rows || unit.nodes.size() < 2) return;
      const auto own = [&](NodeId n) { return unit_of_.at(n) == index; };
      const auto at_rim = std::find_if(unit.nodes.begin(), unit.nodes.end(), [&](NodeId n) {
        if (!keeps_bytes(graph_, n)) return false;
        const ValueId x = graph_.operand(n, 0);
        if (graph_.is_input(x) || !own(graph_.producer(x))) return true;
        const std::vector<NodeId> users = graph_.users(graph_.result(n));
        return std::none_of(users.begin(), users.end(), own);
      });
      if (at_rim == unit.nodes.end()) return;
      const NodeId n = *at_rim;
      RunUnit rest;
      rest.kind = UnitKind::rows;
      rest.nodes = unit.nodes;
      rest.nodes.erase(rest.nodes.begin() + (at_rim - unit.nodes.begin()));
      auto program = lower_nodes(graph_, rest.nodes, rest.inputs, rest.outputs, options_.checks);
      if (!program) return;
      rest.program = std::move(*program);
      if (rest.nodes.size() == 1 && keeps_bytes(graph_, rest.nodes[0])) rest.kind = UnitKind::view;
      unit = std::move(rest);
      unit_of_[n] = units_.size();
      units_.push_back(single(n));
    }
  }

  /// Returns the units by first node, but never before their operands.
  std::vector<RunUnit> ordered() {
    std::vector<RunUnit> out;
    std::vector<std::uint8_t> state(units_.size(), 0);
    std::vector<std::size_t> open;
    for (NodeId n : graph_.order()) {
      open.push_back(unit_of_[n]);
      while (!open.empty()) {
        const std::size_t unit = open.back();
        if (state[unit] == 2) {
          open.pop_back();
          continue;
        }
        if (state[unit] == 0) {
          state[unit] = 1;
          for (std::size_t s : sources(unit)) {
            if (state[s] == 0) open.push_back(s);
          }
          continue;
        }
        state[unit] = 2;
        open.pop_back();
        out.push_back(std::move(units_[unit]));
        units_[unit].nodes = out.back().nodes;  // `sources` still reads them
      }
    }
    return out;
  }

  const Graph& graph_;
  const GroupingOptions& options_;
  std::vector<RunUnit> units_;
  std::map<NodeId, std::size_t> unit_of_;
  std::map<NodeId, NodeId> effect_before_;  // preceding effect of each effect: their order is kept
};

}  // namespace

std::vector<RunUnit> group_rows(const Graph& graph, const GroupingOptions& options) {
  return Grouper(graph, options).run();
}

}  // namespace pw::rows
