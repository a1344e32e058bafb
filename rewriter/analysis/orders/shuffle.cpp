#include "rewriter/analysis/orders/shuffle.hpp"

#include <algorithm>
#include <numeric>

#include "base/hash.hpp"
#include "base/try.hpp"
#include "models/generate.hpp"
#include "rewriter/analysis/freeze.hpp"
#include "rewriter/engine/apply.hpp"
#include "rewriter/engine/legality.hpp"
#include "rewriter/strategies/driver.hpp"

namespace pw {
namespace {

class RandomRun {
 public:
  RandomRun(Graph& graph, const RuleSet& rules, const Env& params, std::uint64_t seed,
            std::size_t most)
      : graph_(graph), rules_(rules), params_(params), random_(seed), left_(most) {}

  Status run(const Strategy& strategy) {
    using What = ast::Strategy::Kind;
    const bool plain = strategy.when.empty() && strategy.ensures.empty() && !strategy.fuel;
    const bool sequence = strategy.kind == What::sequence ||
                          (strategy.kind == What::reference && strategy.builtin.empty());
    if (plain && strategy.kind == What::greedy) return greedy(strategy);
    if (!plain || !sequence) return as_always(strategy);
    for (const Strategy& part : strategy.parts)
      if (auto done = run(part); !done) return done;
    return {};
  }
  std::vector<RuleId> fired;

 private:
  struct Known {
    Match match;
    std::vector<NodeId> own;
  };

  Status as_always(const Strategy& strategy) {
    RewriteOptions options;
    options.limits.rewrites = left_;
    auto report = PW_TRY(run_strategy(graph_, rules_, strategy, params_, options));
    for (RuleId id : report.journal.fired(rules_)) fired.push_back(id);
    return {};
  }

  Status greedy(const Strategy& strategy) {
    for (; left_ > 0; --left_) {
      std::vector<Known> known = find(strategy);
      std::vector<const Known*> free;
      for (const Known& k : known)
        if (std::none_of(known.begin(), known.end(),
                         [&](const Known& other) { return goes_before(other, k); }))
          free.push_back(&k);
      if (known.empty()) return {};
      const Known& next =
          free.empty() ? known[random_.below(known.size())] : *free[random_.below(free.size())];
      PW_TRY(apply_match(graph_, rules_, next.match));
      fired.push_back(next.match.rule);
    }
    return {};
  }

  /// Returns all matches whose replacement changes something.
  std::vector<Known> find(const Strategy& strategy) {
    std::vector<Known> out;
    const bool barriers = has_barriers(graph_);
    for (RuleId id : strategy.rules) {
      if (rules_.rules[id].frontier) continue;
      const RuleLayout layout = lay_out(rules_, id);
      for (Match& match : find_matches(graph_, rules_, id, params_)) {
        Graph copy = graph_;
        copy.forget_undo();
        Result<Applied> applied = apply(copy, layout, match, barriers);
        if (!applied || !applied->changed) continue;
        std::vector<NodeId> own = own_nodes(graph_, layout, match);
        std::sort(own.begin(), own.end());
        out.push_back({std::move(match), std::move(own)});
      }
    }
    return out;
  }

  [[nodiscard]] bool goes_before(const Known& a, const Known& b) const {
    if (&a == &b) return false;
    std::vector<NodeId> shared;
    std::set_intersection(a.own.begin(), a.own.end(), b.own.begin(), b.own.end(),
                          std::back_inserter(shared));
    if (shared.empty()) return false;
    const auto over = [&](RuleId x, RuleId y) {
      const std::vector<RuleId>& below = rules_.rules[x].over;
      return std::find(below.begin(), below.end(), y) != below.end();
    };
    if (over(a.match.rule, b.match.rule)) return true;
    if (over(b.match.rule, a.match.rule)) return false;
    return shared.size() == b.own.size() && a.own.size() > b.own.size();
  }

  Graph& graph_;
  const RuleSet& rules_;
  const Env& params_;
  Random random_;
  std::size_t left_;
};

}  // namespace

Graph reordered(const Graph& graph, std::uint64_t seed) {
  return has_barriers(graph) ? graph.compact() : shuffled(graph, seed);
}

void shuffle_ranks(RuleSet& rules, std::uint64_t seed) {
  Random random(seed);
  std::vector<int> ranks(rules.rules.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  for (std::size_t i = ranks.size(); i > 1; --i) std::swap(ranks[i - 1], ranks[random.below(i)]);
  for (std::size_t i = 0; i < ranks.size(); ++i) rules.rules[RuleId(i)].rank = ranks[i];
}

Result<std::vector<RuleId>> run_at_random(Graph& graph, const RuleSet& rules,
                                          const Strategy& strategy, const Env& params,
                                          std::uint64_t seed, std::size_t most) {
  RandomRun run(graph, rules, params, seed, most);
  PW_TRY(run.run(strategy));
  return std::move(run.fired);
}

}  // namespace pw
