#include "rewriter/analysis/orders/fuzz_order.hpp"

#include <fmt/format.h>

#include "base/hash.hpp"
#include "base/try.hpp"
#include "rewriter/analysis/orders/reduce.hpp"
#include "rewriter/analysis/orders/shuffle.hpp"
#include "rewriter/strategies/driver.hpp"

namespace pw {
namespace {

using RunKind = OrderRun::Kind;

RunKind kind_of(std::size_t order, const Graph& graph, const FuzzOptions& options) {
  if (order == 0) return RunKind::declared;
  if (order % 3 == 1) return RunKind::nodes;
  if (order % 3 == 2 || graph.node_count() > options.random_nodes) return RunKind::ranks;
  return RunKind::random;
}

Result<OrderRun> run_order(RunKind kind, std::uint64_t seed, const Graph& graph, RuleSet& rules,
                           const Strategy& strategy, const Env& params,
                           const FuzzOptions& options) {
  Graph input = kind == RunKind::declared ? graph.compact() : reordered(graph, seed);
  OrderRun out{kind, seed, input, std::move(input), 0, {}};
  if (kind == RunKind::ranks) shuffle_ranks(rules, seed);
  std::vector<RuleId> fired;
  if (kind == RunKind::random) {
    auto done =
        PW_TRY(run_at_random(out.graph, rules, strategy, params, seed, options.most_rewrites));
    fired = std::move(done);
  } else {
    RewriteOptions rewrite;
    rewrite.limits.rewrites = options.most_rewrites;
    auto report = PW_TRY(run_strategy(out.graph, rules, strategy, params, rewrite));
    fired = report.journal.fired(rules);
  }
  for (RuleId id : fired) ++out.counts[written_name(rules.rules[id])];
  out.hash = hash_of_terms(out.graph);
  return out;
}

bool same(const OrderRun& a, const OrderRun& b) { return a.hash == b.hash && a.counts == b.counts; }

}  // namespace

std::string_view name(RunKind kind) {
  switch (kind) {
    case RunKind::declared: return "as declared";
    case RunKind::nodes: return "nodes in another order";
    case RunKind::ranks: return "nodes and rules in another order";
    case RunKind::random: return "matches taken at random";
  }
  return "?";
}

Result<FuzzReport> fuzz_order(const Graph& graph, const RuleSet& rules, const Strategy& strategy,
                              const Env& params, const FuzzOptions& options) {
  FuzzReport report;
  RuleSet shuffled = rules;  // ranks are put into this one
  for (std::size_t order = 0; order <= options.orders; ++order) {
    const RunKind kind = kind_of(order, graph, options);
    const std::uint64_t seed = order == 0 ? 0 : combine(options.seed, order);
    for (std::size_t i = 0; i < rules.rules.size(); ++i)
      shuffled.rules[RuleId(i)].rank = rules.rules[RuleId(i)].rank;
    auto run = PW_TRY(run_order(kind, seed, graph, shuffled, strategy, params, options));
    report.runs.push_back(std::move(run));
    if (!same(report.runs.front(), report.runs.back())) report.different.push_back(order);
  }
  return report;
}

Graph reduce_order_dependence(const Graph& graph, const RuleSet& rules, const Strategy& strategy,
                              const Env& params, const FuzzOptions& options) {
  const StillShows differs = [&](const Graph& smaller) {
    const auto report = fuzz_order(smaller, rules, strategy, params, options);
    return report && !report->different.empty();
  };
  return reduce_graph(graph, differs, options.tries);
}

std::pair<std::string, std::string> differing_counts(const OrderRun& a, const OrderRun& b) {
  std::map<std::string, std::pair<std::size_t, std::size_t>> both;
  for (const auto& [name, count] : a.counts) both[name].first = count;
  for (const auto& [name, count] : b.counts) both[name].second = count;
  std::pair<std::string, std::string> out;
  for (const auto& [name, counts] : both) {
    if (counts.first == counts.second) continue;
    const char* comma = out.first.empty() ? "" : ", ";
    out.first += fmt::format("{}{} == {}", comma, name, counts.first);
    out.second += fmt::format("{}{} == {}", comma, name, counts.second);
  }
  return out;
}

std::string fuzz_tests(const std::string& strategy, const RuleSet& rules, const Env& params,
                       const OrderRun& usual, const OrderRun& other) {
  auto [here, there] = differing_counts(usual, other);
  if (here.empty()) {  // the same rules, at other places: all are reported
    for (const auto& [name, count] : usual.counts)
      here += fmt::format("{}{} == {}", here.empty() ? "" : ", ", name, count);
    there = here;
  }
  const Application applied{{}, "", strategy};
  std::string out = fmt::format("// {}, seed {}: {}\n", name(other.kind), other.seed, there);
  out += test_text("order_as_it_is", usual.input, applied, rules, params, {here});
  if (other.kind == RunKind::nodes)
    out += "\n" + test_text("order_of_nodes_changed", other.input, applied, rules, params, {there});
  return out;
}

}  // namespace pw
