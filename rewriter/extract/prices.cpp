// Lower bound by cost sharing. Let u(c) be the price of class c and w(P, c) the
// part of it that P pays, with Σ_P w(P, c) <= u(c) and u(P) = min over its nodes n of cost(n) + Σ
// w(P, child). By weak duality Σ u(root) is a lower bound: each class that a solution needs passes
// on at most its price. On cycles prices rise from zero, sweep by sweep. At any point none exceeds
// what the others give it, so the bound holds wherever the iteration stops.
#include "rewriter/extract/prices.hpp"

#include <cmath>
#include <limits>
#include <unordered_map>

namespace pw::extract {

Network::Network(const Problem& p)
    : problem(p),
      derivation(derive(p)),
      component(components_of(p)),
      node_edges(p.nodes.size()),
      out_edges(p.classes.size()),
      in_edges(p.classes.size()),
      root(p.classes.size(), false) {
  for (ClassIndex r : p.roots) root[r] = true;
  for (ClassIndex c = 0; c < p.classes.size(); ++c) {
    std::unordered_map<ClassIndex, std::uint32_t> known;
    for (NodeIndex n : p.classes[c])
      for (ClassIndex child : p.nodes[n].children) {
        const auto [at, fresh] = known.try_emplace(child, static_cast<std::uint32_t>(edges.size()));
        if (fresh) {
          edges.push_back({c, child});
          out_edges[c].push_back(at->second);
          in_edges[child].push_back(at->second);
        }
        node_edges[n].push_back(at->second);
      }
  }
}

namespace {

constexpr std::size_t kMostSweeps = 25;
constexpr double kFirstStep = 1.0, kLastStep = 0.03;

class Pricing {
 public:
  Pricing(const Network& network, const std::function<void(const Choice&)>& suggest)
      : net_(network),
        p_(network.problem),
        suggest_(suggest),
        share_(network.edges.size(), 0),
        price_(p_.classes.size(), 0),
        flow_(p_.classes.size(), 0),
        best_node_(p_.classes.size(), kNone) {
    for (std::uint32_t e = 0; e < net_.edges.size(); ++e) circles_ = circles_ || !net_.forward(e);
    for (ClassIndex c = 0; c < p_.classes.size(); ++c) spread(c);
  }

  Prices run(std::size_t rounds) {
    Prices best;
    best.bound = -1;
    for (std::size_t i = 0; i < rounds; ++i) {
      const double at = rounds < 2 ? 0 : static_cast<double>(i) / static_cast<double>(rounds - 1);
      const double bound = price_all();
      if (bound > best.bound) {
        best.bound = bound;
        best.price = price_;
        best_share_ = share_;
      }
      round_up(i % 2 == 0);
      improve(kFirstStep * std::pow(kLastStep / kFirstStep, at));
    }
    finish(best);
    return best;
  }

 private:
  [[nodiscard]] bool pays(std::uint32_t edge) const { return !net_.root[net_.edges[edge].to]; }

  void spread(ClassIndex c) {
    double payers = 0;
    for (std::uint32_t e : net_.in_edges[c]) payers += pays(e) ? 1 : 0;
    for (std::uint32_t e : net_.in_edges[c]) share_[e] = pays(e) ? 1 / payers : 0;
  }

  [[nodiscard]] double value(NodeIndex n) const {
    double value = p_.nodes[n].cost;
    for (std::uint32_t e : net_.node_edges[n]) value += share_[e] * price_[net_.edges[e].to];
    return value;
  }

  double price_all() {
    std::fill(price_.begin(), price_.end(), 0);
    bool rose = true;
    for (std::size_t sweep = 0; rose && sweep < (circles_ ? kMostSweeps : 1); ++sweep) {
      rose = false;
      for (ClassIndex c : net_.derivation.order) rose = raise(c) || rose;
    }
    double bound = 0;
    for (ClassIndex root : p_.roots) bound += price_[root];
    return bound;
  }

  bool raise(ClassIndex c) {
    double best = std::numeric_limits<double>::infinity();
    for (NodeIndex n : p_.classes[c]) {
      const double v = value(n);
      if (v < best) best = v, best_node_[c] = n;
    }
    const bool rose = best > price_[c] * (1 + 1e-6) + 1e-9;
    price_[c] = std::max(price_[c], best);
    return rose;
  }

  /// Derives a choice from the roots down; classes that are needed already are free.
  void round_up(bool paid) {
    std::vector<bool> needed(p_.classes.size(), false);
    for (ClassIndex root : p_.roots) needed[root] = true;
    Choice choice(p_.classes.size(), kNone);
    for (auto c = net_.derivation.order.rbegin(); c != net_.derivation.order.rend(); ++c) {
      if (!needed[*c]) continue;
      double best = std::numeric_limits<double>::infinity();
      for (NodeIndex n : p_.classes[*c]) {
        double value = p_.nodes[n].cost;
        bool forward = true;
        for (std::uint32_t e : net_.node_edges[n]) {
          const ClassIndex child = net_.edges[e].to;
          forward = forward && net_.forward(e);
          if (!needed[child]) value += (paid ? share_[e] : 1) * price_[child];
        }
        if (forward && value < best) best = value, choice[*c] = n;
      }
      for (ClassIndex child : p_.nodes[choice[*c]].children) needed[child] = true;
    }
    suggest_(choice);
  }

  /// Improves the shares. The supergradient of an edge's share is the flow through it times the
  /// price of its target. Shares of a class are changed multiplicatively, which keeps their sum.
  void improve(double step) {
    std::fill(flow_.begin(), flow_.end(), 0);
    std::vector<double> gain(net_.edges.size(), 0);
    for (ClassIndex root : p_.roots) flow_[root] = 1;
    for (auto c = net_.derivation.order.rbegin(); c != net_.derivation.order.rend(); ++c) {
      if (flow_[*c] <= 0) continue;
      for (std::uint32_t e : net_.node_edges[best_node_[*c]]) {
        gain[e] = flow_[*c];
        flow_[net_.edges[e].to] += share_[e] * flow_[*c];
      }
    }
    for (ClassIndex c : net_.derivation.order) move_shares(c, gain, step);
  }

  void move_shares(ClassIndex c, const std::vector<double>& gain, double step) {
    double most = 0, sum = 0;
    for (std::uint32_t e : net_.in_edges[c]) most = std::max(most, pays(e) ? gain[e] : 0);
    if (most <= 0) return;
    for (std::uint32_t e : net_.in_edges[c]) {
      if (!pays(e)) continue;
      share_[e] = std::max(share_[e], 1e-6) * std::exp(step * (gain[e] / most - 1));
      sum += share_[e];
    }
    for (std::uint32_t e : net_.in_edges[c]) share_[e] = pays(e) ? share_[e] / sum : 0;
  }

  void finish(Prices& best) {
    best.paid.resize(net_.edges.size());
    for (std::uint32_t e = 0; e < net_.edges.size(); ++e)
      best.paid[e] = best_share_[e] * best.price[net_.edges[e].to];
    best.excess.assign(p_.nodes.size(), 0);
    for (const std::vector<NodeIndex>& nodes : p_.classes)
      for (NodeIndex n : nodes) {
        double value = p_.nodes[n].cost - best.price[p_.nodes[n].owner];
        for (std::uint32_t e : net_.node_edges[n]) value += best.paid[e];
        best.excess[n] = std::max(value, 0.0);
      }
  }

  const Network& net_;
  const Problem& p_;
  const std::function<void(const Choice&)>& suggest_;
  std::vector<double> share_, best_share_, price_, flow_;
  std::vector<NodeIndex> best_node_;
  bool circles_ = false;
};

}  // namespace

Prices find_prices(const Network& network, std::size_t rounds,
                   const std::function<void(const Choice&)>& suggest) {
  return Pricing(network, suggest).run(rounds);
}

}  // namespace pw::extract
