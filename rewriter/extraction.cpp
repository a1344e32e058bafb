// Exports extract. Two phases:
//  * Bottom up to a fixed point, each value gets the form whose set of nodes costs least; sets are
//    bit vectors, so that a shared node is counted once. Each node also counts one, so that no form
//    of a value is as cheap as a part of it.
//  * Local search: for each value, each other form is tried and kept if the whole graph becomes
//    cheaper, since a form may be free where another output needs it anyway. Bounded by a number of
//    visited nodes.
//
// The result is an upper bound, not the optimum: minimal extraction with sharing is NP-hard. A
// sweep of the first phase is quadratic in the forms.
#include "rewriter/extraction.hpp"

#include <limits>
#include <set>

namespace pw {
namespace {

using Bits = std::vector<std::uint64_t>;

void add_bits(Bits& to, const Bits& from) {
  for (std::size_t i = 0; i < from.size(); ++i) to[i] |= from[i];
}
bool has_bit(const Bits& bits, std::size_t i) { return (bits[i / 64] >> (i % 64) & 1) != 0; }
void set_bit(Bits& bits, std::size_t i) { bits[i / 64] |= std::uint64_t{1} << (i % 64); }

class Extractor {
 public:
  Extractor(const Graph& graph, const EGraph& equal,
            const std::function<std::int64_t(NodeId)>& cost)
      : graph_(graph), equal_(equal), words_(equal.forms().size() / 64 + 1) {
    for (NodeId n : equal.forms()) {
      index_[n] = costs_.size();
      costs_.push_back(cost(n));
    }
  }

  std::optional<Extraction> run() {
    for (ValueId input : graph_.inputs()) picks_[equal_.find(input)] = {0, 0, Bits(words_), input};
    choose();
    std::optional<Extraction> best = walk();
    if (best) improve(*best);
    return best;
  }

 private:
  /// The best known form of a value. Each node counts one besides its cost, so that no form is as
  /// cheap as a part of it.
  struct Pick {
    std::int64_t cost = 0;
    std::size_t count = 0;
    Bits nodes;
    ValueId value;
  };

  void choose() {
    for (bool changed = true; changed;) {
      changed = false;
      for (NodeId n : equal_.forms()) changed = offer(n) || changed;
    }
  }

  bool offer(NodeId n) {
    Bits nodes(words_);
    for (ValueId operand : graph_.operands(n)) {
      if (!operand.valid()) continue;
      const auto pick = picks_.find(equal_.find(operand));
      if (pick == picks_.end()) return false;
      add_bits(nodes, pick->second.nodes);
    }
    const std::size_t self = index_.at(n);
    if (has_bit(nodes, self)) return false;
    set_bit(nodes, self);
    std::int64_t cost = 0;
    std::size_t count = 0;
    for (std::size_t i = 0; i < costs_.size(); ++i) {
      if (!has_bit(nodes, i)) continue;
      cost += costs_[i];
      ++count;
    }
    bool taken = false;
    for (std::size_t i = 0; i < graph_.result_count(n); ++i) {
      const ValueId value = graph_.result(n, i);
      const auto [known, fresh] = picks_.try_emplace(equal_.find(value));
      const Pick& now = known->second;
      if (!fresh && std::pair(now.cost, now.count) <= std::pair(cost, count)) continue;
      known->second = {cost, count, nodes, value};
      taken = true;
    }
    return taken;
  }

  /// The graph that the choices give; nothing if they are cyclic.
  std::optional<Extraction> walk() {
    Extraction out;
    std::set<NodeId> done, open;
    std::vector<ValueId> stack;
    for (ValueId v : graph_.outputs()) stack.push_back(v);
    while (!stack.empty()) {
      const ValueId root = equal_.find(stack.back());
      const auto pick = picks_.find(root);
      if (pick == picks_.end()) return std::nullopt;
      const ValueId value = pick->second.value;
      out.chosen[root] = value;
      const NodeId n = graph_.is_input(value) ? NodeId() : graph_.producer(value);
      if (!n.valid() || done.contains(n)) {
        stack.pop_back();
      } else if (open.insert(n).second) {
        for (ValueId operand : graph_.operands(n)) {
          if (!operand.valid()) continue;
          stack.push_back(operand);
          const auto next = picks_.find(equal_.find(operand));
          if (next == picks_.end()) return std::nullopt;
          const ValueId made = next->second.value;
          if (graph_.is_input(made)) continue;
          const NodeId producer = graph_.producer(made);
          if (open.contains(producer) && !done.contains(producer)) return std::nullopt;
        }
      } else {
        stack.pop_back();
        done.insert(n);
        out.nodes.push_back(n);
        out.cost += costs_[index_.at(n)];
      }
    }
    return out;
  }

  /// A value chosen for itself may be had for nothing from a node that is needed anyway.
  void improve(Extraction& best) {
    constexpr std::size_t kMostVisits = 20'000'000;
    std::map<ValueId, std::vector<ValueId>> others;
    for (NodeId n : equal_.forms())
      for (std::size_t i = 0; i < graph_.result_count(n); ++i)
        others[equal_.find(graph_.result(n, i))].push_back(graph_.result(n, i));
    std::size_t visits = 0;
    for (bool changed = true; changed && visits < kMostVisits;) {
      changed = false;
      const std::map<ValueId, ValueId> chosen = best.chosen;
      for (const auto& [root, value] : chosen) {
        for (ValueId other : others[root]) {
          ValueId& pick = picks_[root].value;
          if (other == pick || visits >= kMostVisits) continue;
          const ValueId before = std::exchange(pick, other);
          std::optional<Extraction> now = walk();
          visits += now ? now->nodes.size() : 1;
          if (now &&
              std::pair(now->cost, now->nodes.size()) < std::pair(best.cost, best.nodes.size())) {
            best = std::move(*now);
            changed = true;
          } else {
            pick = before;
          }
        }
      }
    }
  }

  const Graph& graph_;
  const EGraph& equal_;
  std::size_t words_;
  std::map<NodeId, std::size_t> index_;
  std::vector<std::int64_t> costs_;  // by index
  std::map<ValueId, Pick> picks_;    // by representative
};

}  // namespace

std::optional<Extraction> extract(const Graph& graph, const EGraph& equal,
                                  const std::function<std::int64_t(NodeId)>& cost) {
  return Extractor(graph, equal, cost).run();
}

}  // namespace pw
