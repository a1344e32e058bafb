// Depth-first branch and bound over the needed classes without a chosen node, the class with the
// fewest alternatives first (fail-first). The bound of a partial choice is that of the prices plus
// known waste: the excess of each chosen node, and the price paid for a class by a node that avoids
// it. Choices are undone by a trail. Exact if the steps suffice; exponential in the worst case.
#include "rewriter/extract/branch.hpp"

#include <algorithm>
#include <cmath>

namespace pw::extract {
namespace {

class Branching {
 public:
  Branching(const Network& network, const Prices& prices, Search& search)
      : net_(network),
        p_(network.problem),
        prices_(prices),
        search_(search),
        chosen_(p_.classes.size(), kNone),
        needed_(p_.classes.size(), false),
        waste_(p_.classes.size(), 0),
        visited_(p_.classes.size(), 0) {
    for (ClassIndex c = 0; c < p_.classes.size(); ++c) {
      waste_[c] = prices.price[c];
      for (std::uint32_t e : net_.in_edges[c]) waste_[c] -= prices.paid[e];
      waste_[c] = std::max(waste_[c], 0.0);
    }
    bound_ = prices.bound;
  }

  Found run() {
    for (ClassIndex root : p_.roots) need(root);
    if (!open_level()) return close(true);
    while (!levels_.empty()) {
      if (search_.steps == 0) return close(false);
      if (try_next())
        open_level();
      else
        levels_.pop_back();
    }
    return close(search_.steps > 0);
  }

 private:
  struct Level {
    ClassIndex at;
    std::vector<NodeIndex> ways;
    std::size_t mark;  ///< the trail at its beginning
    std::size_t next = 0;
  };
  struct Mark {
    ClassIndex needed = kNone;  ///< it became needed
    ClassIndex chosen = kNone;  ///< it got a node
    double bound, cost;
  };

  Found close(bool complete) {
    found_.complete = complete;
    return std::move(found_);
  }

  void spend(std::uint64_t steps) { search_.steps -= std::min(search_.steps, steps); }

  [[nodiscard]] const std::vector<NodeIndex>& allowed(ClassIndex c) const {
    const bool all = search_.allowed.empty() || search_.allowed[c].empty();
    return all ? p_.classes[c] : search_.allowed[c];
  }

  [[nodiscard]] bool hopeless() const {
    const double slack = 1e-9 * std::max(1.0, std::abs(search_.below));
    return bound_ >= search_.below - slack || cost_ >= search_.below - slack;
  }

  void need(ClassIndex c) {
    if (needed_[c]) return;
    trail_.push_back({c, kNone, bound_, cost_});
    needed_[c] = true;
    open_.push_back(c);
    if (!net_.root[c]) bound_ += waste_[c];
  }

  /// Chooses a node; returns false if the class would be computed from itself.
  bool choose(ClassIndex c, NodeIndex n) {
    spend(1 + net_.out_edges[c].size());
    if (makes_circle(c, n)) return false;
    trail_.push_back({kNone, c, bound_, cost_});
    chosen_[c] = n;
    std::erase(open_, c);
    cost_ += p_.nodes[n].cost;
    bound_ += prices_.excess[n];
    for (std::uint32_t e : net_.out_edges[c]) {
      if (reads(n, e)) continue;
      const ClassIndex to = net_.edges[e].to;
      waste_[to] += prices_.paid[e];
      if (needed_[to] && !net_.root[to]) bound_ += prices_.paid[e];
    }
    for (ClassIndex child : p_.nodes[n].children) need(child);
    return true;
  }

  [[nodiscard]] bool reads(NodeIndex n, std::uint32_t edge) const {
    const std::vector<std::uint32_t>& own = net_.node_edges[n];
    return std::find(own.begin(), own.end(), edge) != own.end();
  }

  bool makes_circle(ClassIndex c, NodeIndex n) {
    ++visit_;
    walk_.clear();
    const auto push = [&](const Node& node) {
      for (ClassIndex child : node.children)
        if (net_.component[child] == net_.component[c] && visited_[child] != visit_) {
          visited_[child] = visit_;
          walk_.push_back(child);
        }
    };
    push(p_.nodes[n]);
    while (!walk_.empty()) {
      const ClassIndex at = walk_.back();
      walk_.pop_back();
      spend(1);
      if (at == c) return true;
      if (chosen_[at] != kNone) push(p_.nodes[chosen_[at]]);
    }
    return false;
  }

  void undo(std::size_t mark) {
    while (trail_.size() > mark) {
      const Mark last = trail_.back();
      trail_.pop_back();
      bound_ = last.bound;
      cost_ = last.cost;
      if (last.needed != kNone) {
        needed_[last.needed] = false;
        std::erase(open_, last.needed);
        continue;
      }
      const ClassIndex c = last.chosen;
      for (std::uint32_t e : net_.out_edges[c])
        if (!reads(chosen_[c], e)) waste_[net_.edges[e].to] -= prices_.paid[e];
      chosen_[c] = kNone;
      open_.push_back(c);
    }
  }

  /// Makes forced choices, and opens a level at the first real choice. Returns false if no
  /// improvement is possible, or everything is chosen.
  bool open_level() {
    while (!hopeless()) {
      ClassIndex next = kNone;
      std::size_t ways = 0;
      spend(1 + open_.size() / 8);
      for (ClassIndex c : open_) {
        const std::size_t own = allowed(c).size();
        const bool sooner = next == kNone || own < ways ||
                            (own == ways && net_.derivation.place[c] > net_.derivation.place[next]);
        if (sooner) next = c, ways = own;
        if (own == 1) break;
      }
      if (next == kNone) {
        keep();
        return false;
      }
      if (ways != 1) {
        levels_.push_back({next, sorted_ways(next), trail_.size()});
        return true;
      }
      if (!choose(next, allowed(next).front())) return false;
    }
    return false;
  }

  std::vector<NodeIndex> sorted_ways(ClassIndex c) {
    std::vector<std::pair<double, NodeIndex>> ways;
    for (NodeIndex n : allowed(c)) {
      double value = prices_.excess[n];
      for (std::uint32_t e : net_.node_edges[n])
        if (needed_[net_.edges[e].to]) value -= prices_.paid[e];
      const bool first = !search_.first.empty() && search_.first[c] == n;
      ways.emplace_back(first ? -1e300 : value, n);
    }
    std::sort(ways.begin(), ways.end());
    std::vector<NodeIndex> out;
    for (const auto& [value, n] : ways) out.push_back(n);
    return out;
  }

  bool try_next() {
    Level& level = levels_.back();
    while (true) {
      undo(level.mark);
      if (level.next == level.ways.size() || search_.steps == 0) return false;
      if (choose(level.at, level.ways[level.next++])) return true;
    }
  }

  void keep() {
    search_.below = cost_;
    found_.cost = cost_;
    found_.choice = chosen_;
  }

  const Network& net_;
  const Problem& p_;
  const Prices& prices_;
  Search& search_;
  Choice chosen_;
  std::vector<bool> needed_;
  std::vector<double> waste_;
  std::vector<std::uint32_t> visited_;
  std::uint32_t visit_ = 0;
  std::vector<ClassIndex> open_, walk_;
  std::vector<Level> levels_;
  std::vector<Mark> trail_;
  double bound_ = 0, cost_ = 0;
  Found found_;
};

}  // namespace

Found branch_and_bound(const Network& network, const Prices& prices, Search& search) {
  return Branching(network, prices, search).run();
}

}  // namespace pw::extract
