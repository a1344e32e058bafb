// Dynamic programming over sets of executed units and graphs reached. A state is a set and a graph;
// orders that reach the same state share everything that follows, and their number is added.
// Invariant: a pass is a function of the graph, so one run for each (graph, pass) suffices.
// Exponential in the units, which are at most 16, and in the distinct graphs; runs are bounded.
#include "rewriter/analysis/orders/orders.hpp"

#include <algorithm>
#include <numeric>
#include <optional>

#include <fmt/format.h>

#include "base/try.hpp"
#include "rewriter/analysis/orders/order_numbers.hpp"

namespace pw {
namespace {

using Mask = std::uint32_t;

tl::unexpected<Diagnostics> too_much(const std::string& why, const std::string& help) {
  return fail(error_in("explore", "PW1114", why, help));
}

/// Number of orders that reach a graph after the same passes.
struct Reached {
  std::uint64_t orders = 0;
  std::vector<std::size_t> example;
};

/// Returns, by pass, all passes that must precede it.
std::vector<std::vector<bool>> all_before(const OrderSpace& space) {
  const std::size_t count = space.passes.size();
  std::vector<std::vector<bool>> out(count, std::vector<bool>(count));
  for (const auto& [first, second] : space.before) out[second][first] = true;
  for (std::size_t via = 0; via < count; ++via)
    for (std::size_t pass = 0; pass < count; ++pass)
      for (std::size_t first = 0; out[pass][via] && first < count; ++first)
        if (out[via][first]) out[pass][first] = true;
  return out;
}

/// Passes that run consecutively, in the written order; mostly one.
using Unit = std::vector<std::size_t>;

class OrderSearch {
 public:
  OrderSearch(const Graph& graph, const RuleSet& rules, const Env& params, const OrderSpace& space)
      : graph_(graph), rules_(rules), params_(params), space_(space), before_(all_before(space)) {}

  Result<OrderResults> run() {
    const std::size_t count = space_.passes.size();
    if (count == 0)
      return too_much("no passes would be reordered",
                      fmt::format("name 1 to {} with --passes", kMostOrderedPasses));
    if (count > kMostOrderedPasses) return run_acting();
    std::vector<std::size_t> all(count);
    std::iota(all.begin(), all.end(), std::size_t{0});
    begin(space_.most_runs);
    PW_TRY(search(all, count));
    return std::move(out_);
  }

 private:
  static Mask bit(std::size_t unit) { return Mask{1} << unit; }
  [[nodiscard]] bool may_run(std::size_t unit, Mask mask) const {
    return (mask & bit(unit)) == 0 && (after_[unit] & ~mask) == 0;
  }

  void begin(std::size_t most_runs) {
    std::vector<Strategy> passes = space_.passes;
    passes.push_back(space_.last);
    states_ = std::make_shared<PassStates>(graph_, rules_, params_, std::move(passes), most_runs);
  }

  // ---- more passes than can be explored

  /// Explores with 16 units and a part of the runs first, since units that commute reach a graph
  /// for each of their sets; then with fewer units and all runs.
  Result<OrderResults> run_acting() {
    constexpr std::size_t kFewUnits = 10, kPart = 10;
    for (std::size_t pass = 0; pass < before_.size(); ++pass)
      if (before_[pass][pass]) return no_order();
    begin(space_.most_runs / kPart);
    auto settled = settle(kMostOrderedPasses);
    if (!settled && states_->runs() > space_.most_runs / kPart) {
      begin(space_.most_runs);
      settled = settle(kFewUnits);
    }
    if (!settled) return forward(settled);
    return std::move(out_);
  }

  /// Starts with the passes that change something in the written order. An idle pass is omitted
  /// after it has run on each graph that the others reach and changed none: it then does nothing in
  /// any place.
  Status settle(std::size_t most_units) {
    std::vector<bool> acts(space_.passes.size());
    for (std::size_t pass = 0, at = 0; pass < acts.size(); ++pass) {
      std::size_t to = PW_TRY(step(at, pass));
      acts[pass] = to != at;
      at = to;
    }
    while (true) {
      std::vector<std::size_t> acting, idle;
      for (std::size_t pass = 0; pass < acts.size(); ++pass)
        (acts[pass] ? acting : idle).push_back(pass);
      if (auto found = search(acting, most_units); !found) return found;
      bool proved = true;
      for (const auto& [at, masks] : both_)
        for (const std::size_t pass : idle) {
          std::size_t to = PW_TRY(step(at, pass));
          if (to != at) acts[pass] = true, proved = false;
        }
      if (!proved) continue;
      out_.idle = std::move(idle);
      out_.runs = states_->runs();
      return {};
    }
  }

  /// Joins neighbours that commute in the written order, until few enough are left.
  Status join_units(std::size_t most) {
    while (units_.size() > most) {
      std::optional<std::size_t> best;  // the pair with the fewest passes
      std::size_t at = 0;
      for (std::size_t i = 0; i + 1 < units_.size(); ++i) {
        const std::size_t size = units_[i].size() + units_[i + 1].size();
        Result<std::size_t> ab = two(at, i, i + 1), ba = two(at, i + 1, i), next = run_unit(at, i);
        for (auto* each : {&ab, &ba, &next})
          if (!*each) return forward(*each);
        const bool smaller = !best || size < units_[*best].size() + units_[*best + 1].size();
        if (*ab == *ba && smaller && !related(units_[i], units_[i + 1])) best = i;
        at = *next;
      }
      if (!best)
        return too_much(
            fmt::format("{} passes that change the graph would be reordered", units_.size()),
            fmt::format("name 1 to {} with --passes", most));
      Unit& first = units_[*best];
      first.insert(first.end(), units_[*best + 1].begin(), units_[*best + 1].end());
      units_.erase(units_.begin() + static_cast<std::ptrdiff_t>(*best) + 1);
    }
    return {};
  }

  /// Returns true if a pass of one must precede a pass of the other.
  [[nodiscard]] bool related(const Unit& a, const Unit& b) const {
    for (const std::size_t x : a)
      for (const std::size_t y : b)
        if (before_[x][y] || before_[y][x]) return true;
    return false;
  }

  // ---- all orders of some passes

  Status search(const std::vector<std::size_t>& passes, std::size_t most_units) {
    units_.clear();
    both_.clear();
    out_ = {};
    for (const std::size_t pass : passes) units_.push_back({pass});
    if (auto joined = join_units(most_units); !joined) return joined;
    take_constraints();
    const std::size_t count = units_.size();
    // Keyed by the set of executed units, then by the graph.
    std::map<Mask, std::map<std::size_t, Reached>> layer{{0, {{0, {1, {}}}}}};
    std::map<std::size_t, Reached> ends;  // by graph, including what runs after each order
    for (std::size_t done = 0; done <= count; ++done) {
      std::map<Mask, std::map<std::size_t, Reached>> next;
      for (const auto& [mask, graphs] : layer)
        for (const auto& [at, reached] : graphs) {
          if (done == count || space_.subsets) {
            std::size_t end = PW_TRY(run_last(at));
            add(ends[end], reached);
          }
          PW_TRY(grow(mask, at, reached, next));
        }
      layer = std::move(next);
    }
    PW_TRY(compare_pairs());
    return finish(ends);
  }

  void take_constraints() {
    after_.assign(units_.size(), 0);
    for (std::size_t a = 0; a < units_.size(); ++a)
      for (std::size_t b = 0; b < units_.size(); ++b)
        for (const std::size_t first : units_[a])
          for (const std::size_t second : units_[b])
            if (before_[second][first]) after_[b] |= bit(a);
  }

  static void add(Reached& to, const Reached& more) {
    if (to.orders == 0 || more.example < to.example) to.example = more.example;
    to.orders += more.orders;
  }

  Status grow(Mask mask, std::size_t at, const Reached& reached,
              std::map<Mask, std::map<std::size_t, Reached>>& next) {
    both_[at].push_back(mask);
    for (std::size_t unit = 0; unit < units_.size(); ++unit) {
      if (!may_run(unit, mask)) continue;
      std::size_t to = PW_TRY(run_unit(at, unit));
      Reached more = reached;
      more.example.insert(more.example.end(), units_[unit].begin(), units_[unit].end());
      add(next[mask | bit(unit)][to], more);
    }
    return {};
  }

  /// Returns the graph that a pass makes of another.
  Result<std::size_t> step(std::size_t at, std::size_t pass) { return states_->step(at, pass); }
  Result<std::size_t> run_unit(std::size_t at, std::size_t unit) {
    for (const std::size_t pass : units_[unit]) {
      Result<std::size_t> to = step(at, pass);
      if (!to) return to;
      at = *to;
    }
    return at;
  }
  Result<std::size_t> run_last(std::size_t at) {
    return space_.last.parts.empty() ? at : step(at, space_.passes.size());
  }

  /// Compares each pair in every reached state that lets both units run in either order.
  Status compare_pairs() {
    for (std::size_t a = 0; a < units_.size(); ++a)
      for (std::size_t b = a + 1; b < units_.size(); ++b) {
        OrderPair pair{units_[a].front(), units_[b].front(), 0, 0};
        for (const auto& [at, masks] : both_) {
          const bool any = std::any_of(masks.begin(), masks.end(), [&](Mask mask) {
            return may_run(a, mask) && may_run(b, mask);
          });
          if (!any) continue;
          std::size_t ab = PW_TRY(two(at, a, b));
          std::size_t ba = PW_TRY(two(at, b, a));
          ++pair.states;
          pair.different += ab == ba ? 0 : 1;
        }
        out_.pairs.push_back(pair);
      }
    return {};
  }
  Result<std::size_t> two(std::size_t at, std::size_t first, std::size_t second) {
    Result<std::size_t> middle = run_unit(at, first);
    return middle ? run_unit(*middle, second) : middle;
  }

  static tl::unexpected<Diagnostics> no_order() {
    return too_much("no order satisfies --before", "remove one constraint of a cycle");
  }

  Status finish(const std::map<std::size_t, Reached>& ends) {
    std::size_t at = 0;
    for (std::size_t unit = 0; unit < units_.size(); ++unit) {
      std::size_t to = PW_TRY(run_unit(at, unit));
      at = to;
    }
    Result<std::size_t> written = run_last(at);
    if (!written) return forward(written);
    for (const auto& [graph, reached] : ends) {
      if (graph == *written) out_.written = out_.ends.size();
      out_.ends.push_back({graph, reached.orders, reached.example});
      out_.orders += reached.orders;
    }
    if (out_.ends.empty()) return no_order();
    if (out_.ends[out_.written].graph != *written)
      return too_much("the written order does not satisfy --before",
                      "name the passes in an order that does");
    out_.graphs = states_->seen();
    out_.runs = states_->runs();
    out_.states = states_;
    for (const Unit& unit : units_)
      if (unit.size() > 1) out_.together.push_back(unit);
    return {};
  }

  const Graph& graph_;
  const RuleSet& rules_;
  const Env& params_;
  const OrderSpace& space_;
  std::vector<std::vector<bool>> before_;  ///< by pass: those that precede it
  std::vector<Unit> units_;                ///< that are put in order
  std::vector<Mask> after_;                ///< by unit: those that precede it
  OrderResults out_;
  std::shared_ptr<PassStates> states_;
  std::map<std::size_t, std::vector<Mask>> both_;  ///< by graph: what had run there
};

}  // namespace

Result<OrderResults> explore_orders(const Graph& graph, const RuleSet& rules, const Env& params,
                                    const OrderSpace& space) {
  return OrderSearch(graph, rules, params, space).run();
}

std::vector<std::size_t> with_idle(const std::vector<std::size_t>& order, const OrderSpace& space,
                                   const OrderResults& results) {
  const auto before = all_before(space);
  std::vector<std::size_t> out = order;
  for (const std::size_t idle : results.idle) {
    std::size_t least = 0, most = out.size(), place = 0;
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (before[idle][out[i]]) least = i + 1;
      if (before[out[i]][idle]) most = std::min(most, i);
      if (out[i] + 1 == idle) place = i + 1;
    }
    out.insert(out.begin() + static_cast<std::ptrdiff_t>(std::clamp(place, least, most)), idle);
  }
  return out;
}

}  // namespace pw
