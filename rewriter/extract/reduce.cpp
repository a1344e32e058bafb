// Optimum-preserving reductions, repeated until none applies. Why each is sound:
//
//  * A node that needs its own class is never chosen.
//  * Of two nodes of a class, one that costs no more and needs no more dominates the other.
//  * A class with a free node that needs nothing is computed by that node.
//  * A class that every node of a needed class needs, directly or through common needs of its
//    children, is needed (a dominator). Its cost is paid anyway, so other nodes have it for
//    nothing, and their edges to it are removed. Edges inside a strongly connected component stay,
//    so that cycles remain visible.
#include "rewriter/extract/reduce.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "algebra/union_find.hpp"

namespace pw::extract {
namespace {

constexpr std::size_t kMostRounds = 12;
constexpr std::size_t kMostImplied = 48;
constexpr std::size_t kMostCompared = 256;  // nodes of a class, up to which all pairs are compared

class Reduction {
 public:
  explicit Reduction(const Problem& problem) {
    out_.problem = problem;
    out_.forced.assign(problem.classes.size(), false);
    out_.free.assign(problem.classes.size(), kNone);
  }

  std::optional<Reduced> run() {
    drop_underivable();
    for (ClassIndex root : p().roots)
      if (p().classes[root].empty()) return std::nullopt;
    take_free();
    for (std::size_t round = 0; round < kMostRounds; ++round) {
      changed_ = false;
      find_needs();
      force();
      cut_forced();
      take_free();
      find_needs();
      drop_dominated();
      drop_unreachable();
      if (!changed_) break;
    }
    p().roots.clear();
    for (ClassIndex c = 0; c < p().classes.size(); ++c)
      if (out_.forced[c] && out_.free[c] == kNone) p().roots.push_back(c);
    return std::move(out_);
  }

 private:
  Problem& p() { return out_.problem; }

  void drop_underivable() {
    const Derivation derived = derive(p());
    for (std::vector<NodeIndex>& nodes : p().classes)
      std::erase_if(nodes, [&](NodeIndex n) {
        const Node& node = p().nodes[n];
        return std::any_of(node.children.begin(), node.children.end(), [&](ClassIndex child) {
          return child == node.owner || derived.place[child] == kNone;
        });
      });
  }

  void take_free() {
    std::vector<std::vector<NodeIndex>> users(p().classes.size());
    std::vector<NodeIndex> found;
    for (const std::vector<NodeIndex>& nodes : p().classes)
      for (NodeIndex n : nodes) {
        for (ClassIndex child : p().nodes[n].children) users[child].push_back(n);
        if (is_free(n)) found.push_back(n);
      }
    while (!found.empty()) {
      const NodeIndex n = found.back();
      found.pop_back();
      const ClassIndex c = p().nodes[n].owner;
      if (out_.free[c] != kNone) continue;
      out_.free[c] = n;
      p().classes[c].clear();
      changed_ = true;
      for (NodeIndex user : users[c]) {
        std::erase(p().nodes[user].children, c);
        if (is_free(user)) found.push_back(user);
      }
    }
  }
  bool is_free(NodeIndex n) { return p().nodes[n].cost <= 0 && p().nodes[n].children.empty(); }

  void force() {
    std::vector<ClassIndex> open;
    for (ClassIndex root : p().roots) open.push_back(root);
    for (ClassIndex c = 0; c < p().classes.size(); ++c)
      if (out_.forced[c]) open.push_back(c);
    std::vector<bool> seen(p().classes.size(), false);
    while (!open.empty()) {
      const ClassIndex c = open.back();
      open.pop_back();
      if (seen[c]) continue;
      seen[c] = true;
      if (!out_.forced[c]) changed_ = true;
      out_.forced[c] = true;
      const std::vector<ClassIndex> all = needed_by_all(c);
      open.insert(open.end(), all.begin(), all.end());
    }
  }

  /// Finds what is needed wherever a class is: the class itself, and what all its nodes need.
  /// Children precede users in a derivation, so one sweep covers any depth; on a cycle a class
  /// implies only itself. Only the nearest of a set are kept, which is sound, since it
  /// underestimates needs.
  void find_needs() {
    const Derivation derived = derive(p());
    place_ = derived.place;
    needs_.assign(p().classes.size(), {});
    for (ClassIndex c = 0; c < p().classes.size(); ++c) needs_[c] = {c};
    for (ClassIndex c : derived.order) {
      std::vector<ClassIndex> all = needed_by_all(c);
      if (!std::binary_search(all.begin(), all.end(), c, nearer_))
        all.insert(std::upper_bound(all.begin(), all.end(), c, nearer_), c);
      if (all.size() > kMostImplied) all.resize(kMostImplied);
      needs_[c] = std::move(all);
    }
  }

  std::vector<ClassIndex> needed_by_all(ClassIndex c) {
    std::vector<ClassIndex> all;
    bool first = true;
    for (NodeIndex n : p().classes[c]) {
      std::vector<ClassIndex> own = implied_by(n);
      if (std::exchange(first, false)) {
        all = std::move(own);
      } else {
        std::vector<ClassIndex> both;
        std::set_intersection(all.begin(), all.end(), own.begin(), own.end(),
                              std::back_inserter(both), nearer_);
        all = std::move(both);
      }
      if (all.empty()) break;
    }
    return all;
  }

  /// Returns the classes needed if the node is chosen, the nearest first.
  std::vector<ClassIndex> implied_by(NodeIndex n) {
    std::vector<ClassIndex> out;
    for (ClassIndex child : p().nodes[n].children) {
      std::vector<ClassIndex> both;
      std::set_union(out.begin(), out.end(), needs_[child].begin(), needs_[child].end(),
                     std::back_inserter(both), nearer_);
      out = std::move(both);
    }
    return out;
  }

  void cut_forced() {
    const std::vector<std::uint32_t> component = components_of(p());
    for (const std::vector<NodeIndex>& nodes : p().classes)
      for (NodeIndex n : nodes) {
        Node& node = p().nodes[n];
        const auto cut = std::erase_if(node.children, [&](ClassIndex child) {
          return out_.forced[child] && component[child] != component[node.owner];
        });
        changed_ = changed_ || cut > 0;
      }
  }

  void drop_dominated() {
    for (std::vector<NodeIndex>& nodes : p().classes) {
      if (nodes.size() < 2 || nodes.size() > kMostCompared) continue;
      std::vector<std::vector<ClassIndex>> implied;
      for (NodeIndex n : nodes) implied.push_back(implied_by(n));
      std::vector<bool> gone(nodes.size(), false);
      for (std::size_t a = 0; a < nodes.size(); ++a)
        for (std::size_t b = 0; b < nodes.size() && !gone[a]; ++b)
          if (a != b && !gone[b] && dominates(nodes[a], nodes[b], implied[b])) gone[b] = true;
      std::size_t at = 0;
      const auto erased = std::erase_if(nodes, [&](NodeIndex) { return bool(gone[at++]); });
      changed_ = changed_ || erased > 0;
    }
  }

  bool dominates(NodeIndex a, NodeIndex b, const std::vector<ClassIndex>& implied_by_b) {
    const Node &x = p().nodes[a], &y = p().nodes[b];
    return x.cost <= y.cost &&
           std::all_of(x.children.begin(), x.children.end(), [&](ClassIndex child) {
             return std::binary_search(implied_by_b.begin(), implied_by_b.end(), child, nearer_);
           });
  }

  void drop_unreachable() {
    std::vector<bool> seen(p().classes.size(), false);
    std::vector<ClassIndex> open;
    for (ClassIndex c = 0; c < p().classes.size(); ++c)
      if (out_.forced[c]) open.push_back(c);
    while (!open.empty()) {
      const ClassIndex c = open.back();
      open.pop_back();
      if (seen[c]) continue;
      seen[c] = true;
      for (NodeIndex n : p().classes[c])
        open.insert(open.end(), p().nodes[n].children.begin(), p().nodes[n].children.end());
    }
    for (ClassIndex c = 0; c < p().classes.size(); ++c)
      if (!seen[c]) p().classes[c].clear();
  }

  /// Order by place in the derivation, the last first.
  struct Nearer {
    const std::vector<std::uint32_t>& place;
    bool operator()(ClassIndex a, ClassIndex b) const {
      return std::pair(place[a], a) > std::pair(place[b], b);
    }
  };

  Reduced out_;
  bool changed_ = false;
  std::vector<std::uint32_t> place_;
  const Nearer nearer_{place_};
  std::vector<std::vector<ClassIndex>> needs_;  ///< by class, in the order of nearer_
};

class Splitting {
 public:
  explicit Splitting(const Reduced& reduced)
      : p_(reduced.problem), parts_(p_.classes.size()), local_(p_.classes.size(), kNone) {
    for (const std::vector<NodeIndex>& nodes : p_.classes)
      for (NodeIndex n : nodes)
        for (ClassIndex child : p_.nodes[n].children) parts_.join(p_.nodes[n].owner, child);
  }

  std::vector<Part> run() {
    std::vector<std::uint32_t> part_of(p_.classes.size(), kNone);
    std::vector<Part> parts;
    for (ClassIndex c = 0; c < p_.classes.size(); ++c) {
      if (p_.classes[c].empty()) continue;
      std::uint32_t& at = part_of[parts_.root(c)];
      if (at == kNone) {
        at = static_cast<std::uint32_t>(parts.size());
        parts.emplace_back();
      }
      local_[c] = parts[at].problem.add_class();
      parts[at].classes.push_back(c);
    }
    for (ClassIndex root : p_.roots)
      parts[part_of[parts_.root(root)]].problem.roots.push_back(local_[root]);
    for (Part& part : parts) fill(part);
    return parts;
  }

 private:
  void fill(Part& part) {
    for (ClassIndex c : part.classes)
      for (NodeIndex n : p_.classes[c]) {
        std::vector<ClassIndex> children;
        for (ClassIndex child : p_.nodes[n].children) children.push_back(local_[child]);
        part.problem.add_node(local_[c], p_.nodes[n].cost, std::move(children));
        part.nodes.push_back(n);
      }
  }

  const Problem& p_;
  UnionFind<ClassIndex> parts_;
  std::vector<ClassIndex> local_;
};

}  // namespace

std::optional<Reduced> reduce(const Problem& problem) { return Reduction(problem).run(); }

std::vector<Part> parts_of(const Reduced& reduced) { return Splitting(reduced).run(); }

}  // namespace pw::extract
