// Large neighbourhood search (Shaw 1998). A round removes the nodes of some adjacent needed
// classes, and derives all classes again, the cheapest first (Knuth 1977, as Dijkstra's algorithm
// on trees). Needed classes that do not depend on removed ones cost nothing; other classes keep
// their node. A class is settled only after everything it reads, so nothing is computed from
// itself. Costs of trees count shared classes twice, so classes that are not needed yet are made
// cheaper at random. A round may worsen the removed part slightly at the beginning, and less later,
// as in simulated annealing.
#include "rewriter/extract/repair.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <queue>
#include <random>

namespace pw::extract {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr std::size_t kSmallest = 2, kSizes = 7;  // forgotten classes: 2 to 2 << 6
constexpr std::size_t kTries = 3;                 // of a round
// Depths to which a round searches classes that are not needed yet.
constexpr std::array<std::size_t, 8> kDepths{0, 0, 0, 1, 1, 2, 4, 1000};
constexpr double kPaid = 0.05;  // cost of a class that the last attempt needs
constexpr double kWarm = 0.1;  // how much worse a round may make the removed part, at the beginning

class Repairing {
 public:
  Repairing(const Network& network, const std::vector<std::vector<NodeIndex>>& open,
            const Choice& start)
      : net_(network),
        p_(network.problem),
        open_(open),
        now_(start),
        best_(start),
        users_(p_.classes.size()),
        waits_(p_.nodes.size(), 0),
        asked_(p_.nodes.size(), 0),
        value_(p_.nodes.size(), 0),
        discount_(p_.classes.size(), 1) {
    for (ClassIndex c = 0; c < p_.classes.size(); ++c)
      for (NodeIndex n : open_[c])
        for (ClassIndex child : p_.nodes[n].children) users_[child].push_back(n);
    now_cost_ = best_cost_ = accept(now_);
  }

  Choice run(std::uint64_t& steps) {
    const auto most = static_cast<double>(steps);
    while (steps > 0) {
      spent_ = 1 + p_.classes.size() / 4;
      if (!forget()) break;
      round(kWarm * at_stake_ * static_cast<double>(steps) / most);
      steps -= std::min(steps, spent_);
    }
    return best_;
  }

 private:
  struct Standing {
    std::vector<bool> needed;
    std::vector<ClassIndex> order;
    double cost = 0;
  };

  /// Accepts a choice: records its needs, and returns its cost, or infinity if it is invalid.
  double accept(const Choice& choice) {
    const auto needed = needed_classes(p_, choice);
    if (!needed) return kNever;
    order_ = *needed;
    needed_.assign(p_.classes.size(), false);
    for (ClassIndex c : order_) needed_[c] = true;
    return cost_of(p_, order_, choice);
  }

  /// Selects needed classes with several nodes, from one of them to its needed neighbours.
  bool forget() {
    std::vector<ClassIndex> centres;
    for (ClassIndex c : order_)
      if (open_[c].size() > 1) centres.push_back(c);
    if (centres.empty()) return false;
    const std::size_t most = kSmallest << below(kSizes);
    forgotten_.assign(p_.classes.size(), false);
    seen_.assign(p_.classes.size(), false);
    std::vector<ClassIndex> ring{centres[below(centres.size())]};
    seen_[ring.front()] = true;
    std::size_t count = 0;
    at_stake_ = 0;
    for (std::size_t i = 0; i < ring.size() && count < most; ++i) {
      const ClassIndex c = ring[i];
      if (open_[c].size() > 1) {
        forgotten_[c] = true;
        at_stake_ += p_.nodes[now_[c]].cost;
        ++count;
      }
      const auto visit = [&](ClassIndex next) {
        if (!needed_[next] || seen_[next] || below(4) == 0) return;
        seen_[next] = true;
        ring.push_back(next);
      };
      for (std::uint32_t e : net_.in_edges[c]) visit(net_.edges[e].from);
      for (ClassIndex child : p_.nodes[now_[c]].children) visit(child);
      spent_ += 1 + net_.in_edges[c].size();
    }
    return true;
  }

  /// Runs one round. Classes that the last attempt needs are cheap in the next, so that classes
  /// worth sharing are found together.
  void round(double heat) {
    const Standing before{needed_, order_, now_cost_};
    const double least = 0.2 + 0.8 * real();
    for (double& discount : discount_) discount = least + (1 - least) * real();
    look_around(kDepths[below(kDepths.size())]);
    Choice best;
    Standing after;
    after.cost = kNever;
    for (std::size_t tries = 1 + below(kTries); tries > 0; --tries) {
      derive_anew(before);
      const double cost = accept(chosen_);
      spent_ += order_.size();
      if (cost == kNever) break;
      for (ClassIndex c : order_) discount_[c] *= kPaid;
      if (cost >= after.cost) continue;
      best = chosen_;
      after = {needed_, order_, cost};
    }
    if (after.cost < best_cost_ * (1 - 1e-9)) best_cost_ = after.cost, best_ = best;
    const bool taken = after.cost <= before.cost + heat * real();
    if (taken) now_ = std::move(best);
    const Standing& next = taken ? after : before;
    needed_ = next.needed;
    order_ = next.order;
    now_cost_ = next.cost;
  }

  void derive_anew(const Standing& before) {
    chosen_.assign(p_.classes.size(), kNone);
    ++derivation_;
    for (ClassIndex c : before.order) keep_if_settled(c);
    for (ClassIndex c : active_)
      for (NodeIndex n : open_[c]) start(c, n, before.needed[c] && !forgotten_[c]);
    while (!queue_.empty()) {
      const auto [price, n] = queue_.top();
      queue_.pop();
      const ClassIndex c = p_.nodes[n].owner;
      if (chosen_[c] == kNone) settle(c, n, price);
    }
  }

  /// Collects the classes that may get a node: those needed now, and those that the nodes of a
  /// removed class reach within so many steps.
  void look_around(std::size_t depth) {
    active_.clear();
    seen_.assign(p_.classes.size(), false);
    const auto add = [&](ClassIndex c) {
      if (!seen_[c]) active_.push_back(c);
      seen_[c] = true;
    };
    for (ClassIndex c : order_)
      if (forgotten_[c]) add(c);
    for (std::size_t begin = 0, step = 0; step < depth && begin < active_.size(); ++step) {
      const std::size_t end = active_.size();
      for (; begin < end; ++begin)
        for (NodeIndex n : open_[active_[begin]]) {
          spent_ += 1;
          for (ClassIndex child : p_.nodes[n].children)
            if (!needed_[child]) add(child);
        }
    }
    for (ClassIndex c : order_) add(c);
  }

  /// Keeps a needed class that depends on no removed class; children come first in `order_`.
  void keep_if_settled(ClassIndex c) {
    if (forgotten_[c]) return;
    const std::vector<ClassIndex>& children = p_.nodes[now_[c]].children;
    if (std::all_of(children.begin(), children.end(),
                    [&](ClassIndex child) { return chosen_[child] != kNone; }))
      chosen_[c] = now_[c];
  }

  void start(ClassIndex c, NodeIndex n, bool fixed) {
    if (chosen_[c] != kNone || (fixed && n != now_[c])) return;
    std::uint32_t waits = 0;
    for (ClassIndex child : p_.nodes[n].children) waits += chosen_[child] == kNone ? 1 : 0;
    spent_ += 1;
    waits_[n] = waits;
    asked_[n] = derivation_;
    value_[n] = p_.nodes[n].cost;
    if (waits == 0) queue_.push({value_[n] * discount_[c], n});
  }

  void settle(ClassIndex c, NodeIndex n, double price) {
    chosen_[c] = n;
    spent_ += 1 + users_[c].size() / 2;
    for (NodeIndex user : users_[c]) {
      if (asked_[user] != derivation_ || chosen_[p_.nodes[user].owner] != kNone) continue;
      value_[user] += price;
      if (--waits_[user] == 0) queue_.push({value_[user] * discount_[p_.nodes[user].owner], user});
    }
  }

  std::size_t below(std::size_t n) { return random_() % n; }
  double real() { return static_cast<double>(random_() >> 11) * 0x1p-53; }

  struct Later {
    bool operator()(const std::pair<double, NodeIndex>& a,
                    const std::pair<double, NodeIndex>& b) const {
      return a > b;
    }
  };

  const Network& net_;
  const Problem& p_;
  const std::vector<std::vector<NodeIndex>>& open_;
  Choice now_, best_, chosen_;
  double now_cost_ = 0, best_cost_ = 0, at_stake_ = 0;
  std::vector<std::vector<NodeIndex>> users_;  // by class: the nodes that read it
  std::vector<std::uint32_t> waits_;           // by node: children that are not settled yet
  std::vector<std::uint32_t> asked_;           // by node: the last derivation that considered it
  std::uint32_t derivation_ = 0;
  std::vector<double> value_, discount_;
  std::vector<bool> needed_, forgotten_, seen_;
  std::vector<ClassIndex> active_;
  std::vector<ClassIndex> order_;  // the needed classes, children first
  std::priority_queue<std::pair<double, NodeIndex>, std::vector<std::pair<double, NodeIndex>>,
                      Later>
      queue_;
  std::mt19937_64 random_{1};
  std::uint64_t spent_ = 0;
};

}  // namespace

Choice repair(const Network& network, const std::vector<std::vector<NodeIndex>>& open,
              const Choice& start, std::uint64_t& steps) {
  return Repairing(network, open, start).run(steps);
}

}  // namespace pw::extract
