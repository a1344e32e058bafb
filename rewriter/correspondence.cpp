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
      : old_(old), now_(now), value_now_(old.value_bound(), Correspondence::kNone) {
    out_.now_of.assign(old.node_bound(), Correspondence::kNone);
    out_.old_of.assign(now.node_bound(), Correspondence::kNone);
  }

  Correspondence run() {
    pair_inputs();
    pair_nodes();
    compare();
    out_.value_now_of = std::move(value_now_);
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
      const std::uint32_t a = out_.old_of[b.index];
      if (a == Correspondence::kNone || !same_operands(NodeId(std::size_t{a}), b) ||
          !same_results(NodeId(std::size_t{a}), b))
        out_.changed.push_back(b);
    }
  }

  const Graph &old_, &now_;
  std::vector<std::uint32_t> value_now_;  // by old value
  std::size_t tries_ = kMostTries;
  Correspondence out_;
};

}  // namespace

Correspondence correspond(const Graph& old, const Graph& now) { return Pairing(old, now).run(); }

}  // namespace pw
