// Exports explore_orders.
#include "rewriter/analysis/orders.hpp"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "rewriter/analysis/order_numbers.hpp"

namespace pw {
namespace {

using Mask = std::uint32_t;

tl::unexpected<Diagnostics> too_much(const std::string& why, const std::string& help) {
  return fail(error_in("explore", "PW1114", why, help));
}

/// How some orders came to a graph with the same passes behind them.
struct Reached {
  std::uint64_t orders = 0;
  std::vector<std::size_t> example;
};

class OrderSearch {
 public:
  OrderSearch(const RuleSet& rules, const Env& params, const OrderSpace& space)
      : rules_(rules), params_(params), space_(space), after_(space.passes.size()) {
    for (const auto& [first, second] : space.before) after_[second] |= bit(first);
  }

  Result<OrderResults> run(const Graph& graph) {
    const std::size_t count = space_.passes.size();
    if (count == 0 || count > kMostOrderedPasses)
      return too_much(fmt::format("{} passes are to be put in order", count),
                      fmt::format("name 1 to {} with --passes", kMostOrderedPasses));
    std::vector<Strategy> passes = space_.passes;
    passes.push_back(space_.last);
    states_ =
        std::make_shared<PassStates>(graph, rules_, params_, std::move(passes), space_.most_runs);
    // By the set of passes that have run, then by the graph.
    std::map<Mask, std::map<std::size_t, Reached>> layer{{0, {{0, {1, {}}}}}};
    std::map<std::size_t, Reached> ends;  // by graph, with what runs behind each order
    for (std::size_t done = 0; done <= count; ++done) {
      std::map<Mask, std::map<std::size_t, Reached>> next;
      for (const auto& [mask, graphs] : layer)
        for (const auto& [at, reached] : graphs) {
          if (done == count || space_.subsets) {
            Result<std::size_t> end = step(at, count);
            if (!end) return forward(end);
            add(ends[*end], reached);
          }
          if (auto grown = grow(mask, at, reached, next); !grown) return forward(grown);
        }
      layer = std::move(next);
    }
    if (auto paired = compare_pairs(); !paired) return forward(paired);
    return finish(ends);
  }

 private:
  static Mask bit(std::size_t pass) { return Mask{1} << pass; }
  [[nodiscard]] bool may_run(std::size_t pass, Mask mask) const {
    return (mask & bit(pass)) == 0 && (after_[pass] & ~mask) == 0;
  }

  static void add(Reached& to, const Reached& more) {
    if (to.orders == 0 || more.example < to.example) to.example = more.example;
    to.orders += more.orders;
  }

  Result<std::monostate> grow(Mask mask, std::size_t at, const Reached& reached,
                              std::map<Mask, std::map<std::size_t, Reached>>& next) {
    both_[at].push_back(mask);
    for (std::size_t pass = 0; pass < space_.passes.size(); ++pass) {
      if (!may_run(pass, mask)) continue;
      Result<std::size_t> to = step(at, pass);
      if (!to) return forward(to);
      Reached more = reached;
      more.example.push_back(pass);
      add(next[mask | bit(pass)][*to], more);
    }
    return std::monostate();
  }

  /// The graph that a pass makes of one. The pass behind the last is what runs behind each order.
  Result<std::size_t> step(std::size_t at, std::size_t pass) {
    if (pass == space_.passes.size() && space_.last.parts.empty()) return at;
    return states_->step(at, pass);
  }

  /// In every state that is reached and lets both passes run in either order.
  Result<std::monostate> compare_pairs() {
    for (std::size_t a = 0; a < space_.passes.size(); ++a)
      for (std::size_t b = a + 1; b < space_.passes.size(); ++b) {
        OrderPair pair{a, b, 0, 0};
        for (const auto& [at, masks] : both_) {
          const bool any = std::any_of(masks.begin(), masks.end(), [&](Mask mask) {
            return may_run(a, mask) && may_run(b, mask);
          });
          if (!any) continue;
          Result<std::size_t> ab = two(at, a, b), ba = two(at, b, a);
          if (!ab) return forward(ab);
          if (!ba) return forward(ba);
          ++pair.states;
          pair.different += *ab == *ba ? 0 : 1;
        }
        out_.pairs.push_back(pair);
      }
    return std::monostate();
  }
  Result<std::size_t> two(std::size_t at, std::size_t first, std::size_t second) {
    Result<std::size_t> middle = step(at, first);
    return middle ? step(*middle, second) : middle;
  }

  Result<OrderResults> finish(const std::map<std::size_t, Reached>& ends) {
    std::size_t written = 0;
    for (std::size_t pass = 0; pass <= space_.passes.size(); ++pass) {
      Result<std::size_t> to = step(written, pass);
      if (!to) return forward(to);
      written = *to;
    }
    for (const auto& [graph, reached] : ends) {
      if (graph == written) out_.written = out_.ends.size();
      out_.ends.push_back({graph, reached.orders, reached.example});
      out_.orders += reached.orders;
    }
    if (out_.ends.empty())
      return too_much("no order keeps what --before asks for", "leave out one of a circle");
    if (out_.ends[out_.written].graph != written)
      return too_much("the written order does not keep what --before asks for",
                      "name the passes in an order that does");
    out_.graphs = states_->seen();
    out_.runs = states_->runs();
    out_.states = states_;
    return std::move(out_);
  }

  const RuleSet& rules_;
  const Env& params_;
  const OrderSpace& space_;
  std::vector<Mask> after_;  ///< by pass: those that stand before it
  OrderResults out_;
  std::shared_ptr<PassStates> states_;
  std::map<std::size_t, std::vector<Mask>> both_;  ///< by graph: what had run there
};

}  // namespace

Result<OrderResults> explore_orders(const Graph& graph, const RuleSet& rules, const Env& params,
                                    const OrderSpace& space) {
  return OrderSearch(rules, params, space).run(graph);
}

}  // namespace pw
