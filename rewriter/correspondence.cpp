// Exports correspond.
//
// Both orders are walked at once. Where two nodes differ, the smallest shift after which some nodes
// in a row are alike again is taken; what is skipped has no counterpart. Pairs are compared
// exactly afterwards, so that a wrong pair is only a pair of nodes that differ.
#include "rewriter/correspondence.hpp"

#include <algorithm>
#include <string>
#include <unordered_map>

namespace pw {
namespace {

constexpr int kFarthest = 64;  ///< nodes that an edit adds or takes away in one place
constexpr std::size_t kInARow = 4;
constexpr std::size_t kMostTries = std::size_t{1} << 18;  ///< then the rest counts as new

class Pairing {
 public:
  Pairing(const Graph& old, const Graph& now)
      : old_(old),
        now_(now),
        value_now_(old.value_bound(), Correspondence::kNone),
        flagged_(now.node_bound(), 0) {
    out_.now_of.assign(old.node_bound(), Correspondence::kNone);
    out_.old_of.assign(now.node_bound(), Correspondence::kNone);
  }

  Correspondence run() {
    pair_inputs();
    pair_nodes();
    compare();
    std::sort(out_.changed.begin(), out_.changed.end());
    return std::move(out_);
  }

 private:
  [[nodiscard]] bool same_input(ValueId a, ValueId b) const {
    return old_.type(a) == now_.type(b) && old_.input_kind(a) == now_.input_kind(b) &&
           old_.replicated_over(a) == now_.replicated_over(b);
  }

  /// By place while the names agree, else by name.
  void pair_inputs() {
    const std::vector<ValueId>&a = old_.inputs(), &b = now_.inputs();
    std::size_t at = 0;
    for (; at < std::min(a.size(), b.size()); ++at) {
      if (old_.value_name(a[at]) != now_.value_name(b[at])) break;
      if (same_input(a[at], b[at])) value_now_[a[at].index] = b[at].index;
    }
    std::unordered_map<std::string, ValueId> named;
    for (std::size_t i = at; i < b.size(); ++i) named.emplace(now_.value_name(b[i]), b[i]);
    for (std::size_t i = at; i < a.size(); ++i)
      if (const auto it = named.find(std::string(old_.value_name(a[i])));
          it != named.end() && same_input(a[i], it->second))
        value_now_[a[i].index] = it->second.index;
  }

  [[nodiscard]] bool alike(NodeId a, NodeId b) const {
    return old_.op(a) == now_.op(b) && old_.attributes(a) == now_.attributes(b) &&
           old_.operand_count(a) == now_.operand_count(b) &&
           old_.result_count(a) == now_.result_count(b);
  }
  [[nodiscard]] bool alike_from(const std::vector<NodeId>& a, std::size_t i,
                                const std::vector<NodeId>& b, std::size_t j) const {
    for (std::size_t k = 0; k < kInARow; ++k) {
      if (i + k == a.size() || j + k == b.size()) return i + k == a.size() && j + k == b.size();
      if (!alike(a[i + k], b[j + k])) return false;
    }
    return true;
  }

  void pair_nodes() {
    const std::vector<NodeId> a = old_.order(), b = now_.order();
    std::size_t i = 0, j = 0;
    while (i < a.size() && j < b.size()) {
      if (alike(a[i], b[j])) {
        pair(a[i++], b[j++]);
        continue;
      }
      const auto [over, past] = shift(a, i, b, j);
      i += over;
      j += past;
    }
  }
  /// How many nodes are left out on either side.
  std::pair<std::size_t, std::size_t> shift(const std::vector<NodeId>& a, std::size_t i,
                                            const std::vector<NodeId>& b, std::size_t j) {
    for (int sum = 1; sum <= 2 * kFarthest; ++sum) {
      // From the middle outwards: an exchanged node is likelier than one that went and one that
      // came.
      for (int turn = 0; turn <= 2 * sum; ++turn) {
        const int over = sum / 2 + (turn % 2 == 0 ? turn / 2 : -(turn + 1) / 2), past = sum - over;
        if (over < 0 || past < 0 || over > kFarthest || past > kFarthest) continue;
        if (tries_ == 0) return {a.size(), b.size()};
        --tries_;
        const auto x = static_cast<std::size_t>(over), y = static_cast<std::size_t>(past);
        if (i + x <= a.size() && j + y <= b.size() && alike_from(a, i + x, b, j + y)) return {x, y};
      }
    }
    return {1, 1};
  }
  void pair(NodeId a, NodeId b) {
    out_.now_of[a.index] = b.index;
    out_.old_of[b.index] = a.index;
    for (std::size_t k = 0; k < old_.result_count(a); ++k)
      value_now_[old_.result(a, k).index] = now_.result(b, k).index;
  }

  void flag(NodeId n) {
    if (flagged_[n.index] != 0) return;
    flagged_[n.index] = 1;
    out_.changed.push_back(n);
  }
  void flag_producer(ValueId v) {
    if (v.valid() && !now_.is_input(v)) flag(now_.producer(v));
  }
  /// The new node, and those that have other users for it.
  void flag_with_operands(NodeId n) {
    flag(n);
    for (std::size_t k = 0; k < now_.operand_count(n); ++k) flag_producer(now_.operand(n, k));
  }
  void flag_operands_of_old(NodeId n) {
    for (std::size_t k = 0; k < old_.operand_count(n); ++k)
      if (const ValueId v = old_.operand(n, k);
          v.valid() && value_now_[v.index] != Correspondence::kNone)
        flag_producer(ValueId(std::size_t{value_now_[v.index]}));
  }

  [[nodiscard]] bool same_operands(NodeId a, NodeId b) const {
    for (std::size_t k = 0; k < old_.operand_count(a); ++k) {
      const ValueId x = old_.operand(a, k), y = now_.operand(b, k);
      if (x.valid() != y.valid()) return false;
      if (x.valid() && (value_now_[x.index] != y.index || old_.type(x) != now_.type(y)))
        return false;
    }
    return true;
  }
  [[nodiscard]] bool same_results(NodeId a, NodeId b) const {
    for (std::size_t k = 0; k < old_.result_count(a); ++k) {
      const ValueId x = old_.result(a, k), y = now_.result(b, k);
      if (old_.type(x) != now_.type(y) || old_.output_count(x) != now_.output_count(y) ||
          old_.use_count(x) != now_.use_count(y))
        return false;
    }
    return true;
  }

  void compare() {
    for (NodeId b = now_.first(); b.valid(); b = now_.next(b)) {
      if (out_.old_of[b.index] == Correspondence::kNone) {
        flag_with_operands(b);
        continue;
      }
      const NodeId a(std::size_t{out_.old_of[b.index]});
      if (!same_operands(a, b)) {
        flag_with_operands(b);
        flag_operands_of_old(a);
      }
      if (!same_results(a, b)) flag(b);
    }
    for (NodeId a = old_.first(); a.valid(); a = old_.next(a))
      if (out_.now_of[a.index] == Correspondence::kNone) flag_operands_of_old(a);
  }

  const Graph &old_, &now_;
  std::vector<std::uint32_t> value_now_;  // by old value
  std::vector<char> flagged_;             // by new node
  std::size_t tries_ = kMostTries;
  Correspondence out_;
};

}  // namespace

Correspondence correspond(const Graph& old, const Graph& now) { return Pairing(old, now).run(); }

}  // namespace pw
