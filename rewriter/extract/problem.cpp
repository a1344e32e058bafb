// components_of is Tarjan's algorithm (1972) without recursion. derive is Knuth's generalisation
// (1977) of Dijkstra's algorithm to and-or graphs.
#include "rewriter/extract/problem.hpp"

#include <algorithm>
#include <functional>
#include <queue>
#include <tuple>
#include <utility>

namespace pw::extract {

ClassIndex Problem::add_class() {
  classes.emplace_back();
  return static_cast<ClassIndex>(classes.size() - 1);
}

NodeIndex Problem::add_node(ClassIndex owner, double cost, std::vector<ClassIndex> children) {
  std::sort(children.begin(), children.end());
  children.erase(std::unique(children.begin(), children.end()), children.end());
  const auto index = static_cast<NodeIndex>(nodes.size());
  nodes.push_back({owner, cost, std::move(children)});
  classes[owner].push_back(index);
  return index;
}

std::optional<std::vector<ClassIndex>> needed_classes(const Problem& problem,
                                                      const Choice& choice) {
  enum class Mark : std::uint8_t { fresh, open, done };
  std::vector<Mark> marks(problem.classes.size(), Mark::fresh);
  std::vector<ClassIndex> out, stack(problem.roots.begin(), problem.roots.end());
  while (!stack.empty()) {
    const ClassIndex c = stack.back();
    if (marks[c] != Mark::fresh) {
      stack.pop_back();
      if (marks[c] == Mark::open) out.push_back(c);
      marks[c] = Mark::done;
      continue;
    }
    if (choice[c] == kNone) return std::nullopt;
    marks[c] = Mark::open;
    for (ClassIndex child : problem.nodes[choice[c]].children) {
      if (marks[child] == Mark::open) return std::nullopt;
      if (marks[child] == Mark::fresh) stack.push_back(child);
    }
  }
  return out;
}

double cost_of(const Problem& problem, std::span<const ClassIndex> needed, const Choice& choice) {
  double cost = 0;
  for (ClassIndex c : needed) cost += problem.nodes[choice[c]].cost;
  return cost;
}

namespace {

/// Position of the walk in a class: the next child of a node.
struct Frame {
  ClassIndex at;
  std::size_t node = 0, child = 0;
};

class Components {
 public:
  explicit Components(const Problem& problem)
      : problem_(problem),
        number_(problem.classes.size(), kNone),
        low_(problem.classes.size()),
        out_(problem.classes.size(), kNone) {}

  std::vector<std::uint32_t> run() {
    for (ClassIndex c = 0; c < problem_.classes.size(); ++c)
      if (number_[c] == kNone) walk(c);
    return std::move(out_);
  }

 private:
  void enter(ClassIndex c) {
    number_[c] = low_[c] = next_++;
    open_.push_back(c);
    frames_.push_back({c});
  }

  [[nodiscard]] ClassIndex next_child(Frame& frame) const {
    const std::vector<NodeIndex>& nodes = problem_.classes[frame.at];
    for (; frame.node < nodes.size(); ++frame.node, frame.child = 0) {
      const std::vector<ClassIndex>& children = problem_.nodes[nodes[frame.node]].children;
      if (frame.child < children.size()) return children[frame.child++];
    }
    return kNone;
  }

  void walk(ClassIndex first) {
    enter(first);
    while (!frames_.empty()) {
      const ClassIndex at = frames_.back().at;
      const ClassIndex child = next_child(frames_.back());
      if (child == kNone) {
        leave(at);
      } else if (number_[child] == kNone) {
        enter(child);
      } else if (out_[child] == kNone) {
        low_[at] = std::min(low_[at], number_[child]);
      }
    }
  }

  void leave(ClassIndex at) {
    frames_.pop_back();
    if (!frames_.empty()) {
      std::uint32_t& above = low_[frames_.back().at];
      above = std::min(above, low_[at]);
    }
    if (low_[at] != number_[at]) return;
    for (ClassIndex c = kNone; c != at;) {
      c = open_.back();
      open_.pop_back();
      out_[c] = components_;
    }
    ++components_;
  }

  const Problem& problem_;
  std::vector<std::uint32_t> number_, low_, out_;
  std::vector<ClassIndex> open_;
  std::vector<Frame> frames_;
  std::uint32_t next_ = 0, components_ = 0;
};

class Deriving {
 public:
  explicit Deriving(const Problem& problem)
      : problem_(problem),
        component_(components_of(problem)),
        missing_(problem.nodes.size()),
        users_(problem.classes.size()),
        share_(problem.classes.size(), 0),
        value_(problem.classes.size(), 0) {
    out_.place.assign(problem.classes.size(), kNone);
    out_.choice.assign(problem.classes.size(), kNone);
    std::vector<ClassIndex> last(problem.classes.size(), kNone);
    for (const std::vector<NodeIndex>& nodes : problem.classes)
      for (NodeIndex n : nodes) count(n, last);
  }

  Derivation run() {
    for (const std::vector<NodeIndex>& nodes : problem_.classes)
      for (NodeIndex n : nodes)
        if (missing_[n] == 0) offer(n);
    while (!ready_.empty()) {
      const NodeIndex n = std::get<2>(ready_.top());
      ready_.pop();
      const ClassIndex c = problem_.nodes[n].owner;
      if (out_.choice[c] == kNone) settle(c, n);
    }
    sort_by_component();
    return std::move(out_);
  }

 private:
  void count(NodeIndex n, std::vector<ClassIndex>& last) {
    const Node& node = problem_.nodes[n];
    missing_[n] = static_cast<std::uint32_t>(node.children.size());
    for (ClassIndex child : node.children) {
      users_[child].push_back(n);
      if (std::exchange(last[child], node.owner) != node.owner) ++share_[child];
    }
  }

  /// Offers a node for derivation. A shared class charges each of its users a part, which keeps
  /// sums from growing with the number of paths.
  void offer(NodeIndex n) {
    double value = problem_.nodes[n].cost;
    for (ClassIndex child : problem_.nodes[n].children) value += value_[child] / share_[child];
    ready_.push({component_[problem_.nodes[n].owner], value, n});
  }

  void settle(ClassIndex c, NodeIndex n) {
    value_[c] = problem_.nodes[n].cost;
    for (ClassIndex child : problem_.nodes[n].children) value_[c] += value_[child] / share_[child];
    out_.choice[c] = n;
    out_.order.push_back(c);
    for (NodeIndex user : users_[c])
      if (--missing_[user] == 0) offer(user);
  }

  void sort_by_component() {
    std::stable_sort(out_.order.begin(), out_.order.end(),
                     [&](ClassIndex a, ClassIndex b) { return component_[a] < component_[b]; });
    for (std::size_t i = 0; i < out_.order.size(); ++i)
      out_.place[out_.order[i]] = static_cast<std::uint32_t>(i);
  }

  using Entry = std::tuple<std::uint32_t, double, NodeIndex>;  // the lowest component first
  const Problem& problem_;
  std::vector<std::uint32_t> component_, missing_;
  std::vector<std::vector<NodeIndex>> users_;
  std::vector<double> share_, value_;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready_;
  Derivation out_;
};

}  // namespace

std::vector<std::uint32_t> components_of(const Problem& problem) {
  return Components(problem).run();
}

Derivation derive(const Problem& problem) { return Deriving(problem).run(); }

}  // namespace pw::extract
