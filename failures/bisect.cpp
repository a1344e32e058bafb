#include "failures/bisect.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/counted.hpp"
#include "base/try.hpp"
#include "graph/text/text.hpp"
#include "pipeline/variants.hpp"

namespace pw {
namespace {

tl::unexpected<Diagnostics> not_found(const std::string& why, const std::string& help) {
  return fail(error_in("bisect", "PW1417", why, help));
}

/// The search between a graph that is good and one that is bad.
class Bisection {
 public:
  Bisection(const Graph& graph, const LoadedRules& rules, const Strategy& strategy,
            FailureCheck& check, const BisectRequest& request, const Log& log)
      : graph_(graph),
        rules_(rules),
        strategy_(strategy),
        check_(check),
        request_(request),
        log_(log) {}

  Result<BisectOutcome> run() {
    const Replay whole = PW_TRY(replayed(SIZE_MAX));
    BisectOutcome out;
    out.changes = total_ = whole.changes.size();
    const FailureVerdict end = PW_TRY(judge(total_, whole.graph));
    out.reason = check_.reason();
    if (end == FailureVerdict::unclear)
      return not_found("the rewritten graph cannot be classified as good or bad",
                       "use ops that can run; a command must not exit with 125");
    if (end == FailureVerdict::bad) {
      if (PW_TRY(judge(0, graph_)) != FailureVerdict::good)
        return not_found(
            "the graph is bad, or cannot be classified, before any rewrite",
            "the rules do not cause the failure; use `pwr reduce` to shrink the graph");
      out.culprit = PW_TRY(search());
    }
    out.runs = check_.runs();
    return out;
  }

 private:
  Result<Replay> replayed(std::size_t at) {
    return replay(graph_, rules_.set, strategy_, rules_.params, at);
  }
  Result<FailureVerdict> judge(std::size_t number, const Graph& after) {
    log_.progress({fmt::format("bisecting: change {}", number), check_.runs(), 0, "runs"});
    return check_.of_graphs(graph_, after);
  }

  /// Invariant: `good` is good and `bad` is bad. Skips a graph that cannot be classified and tests
  /// its neighbour.
  Result<Culprit> search() {
    std::size_t good = 0, bad = total_;
    std::vector<char> unclear(total_ + 1);
    while (check_.runs() < request_.most_runs) {
      std::vector<std::size_t> open;
      for (std::size_t i = good + 1; i < bad; ++i)
        if (unclear[i] == 0) open.push_back(i);
      if (open.empty()) break;
      const std::size_t middle = open[open.size() / 2];
      const Replay there = PW_TRY(replayed(middle));
      switch (PW_TRY(judge(middle, there.graph))) {
        case FailureVerdict::good: good = middle; break;
        case FailureVerdict::bad: bad = middle; break;
        case FailureVerdict::unclear: unclear[middle] = 1; break;
      }
    }
    return culprit(good, bad);
  }

  Result<Culprit> culprit(std::size_t good, std::size_t bad) {
    Replay after = PW_TRY(replayed(bad));
    Replay before = PW_TRY(replayed(bad - 1));
    Culprit out{
        bad, good + 1, after.changes[bad - 1], {}, std::move(before.graph), std::move(after.graph),
        {},  {}};
    if (out.change.rule.valid())
      out.place = graph_.context().sources.describe(rules_.set.rules[out.change.rule].span);
    if (!after.match) return out;
    const auto live = [](const Graph& in, const std::vector<NodeId>& nodes) {
      std::vector<NodeId> kept;
      std::copy_if(nodes.begin(), nodes.end(), std::back_inserter(kept),
                   [&](NodeId n) { return n.valid() && n.index < in.node_bound() && in.alive(n); });
      return kept;
    };
    out.matched = live(out.before, after.match->matched);
    out.created = live(out.after, after.match->created);
    return out;
  }

  const Graph& graph_;
  const LoadedRules& rules_;
  const Strategy& strategy_;
  FailureCheck& check_;
  const BisectRequest& request_;
  const Log& log_;
  std::size_t total_ = 0;
};

std::vector<std::string> texts(const Graph& graph, const std::vector<NodeId>& nodes) {
  std::vector<std::string> out;
  for (NodeId n : nodes) out.push_back(print_node(graph, n));
  return out;
}

Table culprit_table(const BisectOutcome& outcome) {
  Table table({"change", "of", "pass", "rule", "place", "before", "after"});
  if (!outcome.culprit) return table;
  const Culprit& found = *outcome.culprit;
  table.add({found.number, outcome.changes, found.change.pass, found.change.what, found.place,
             list_cell(texts(found.before, found.matched), "; "),
             list_cell(texts(found.after, found.created), "; ")});
  return table;
}

}  // namespace

Result<BisectOutcome> bisect(const Graph& graph, const LoadedRules& rules,
                             const BisectRequest& request, const Log& log) {
  const Strategy* strategy = PW_TRY(one_graph_strategy(rules, request.pipeline));
  if (request.failure.kind() == FailureKind::order)
    return not_found("an order of rewrites is not a single change",
                     "use `pwr reduce --order` to find the rules that depend on it");
  FailureCheck check = PW_TRY(FailureCheck::make(rules, request.failure));
  return Bisection(graph, rules, *strategy, check, request, log).run();
}

std::string bisect_text(const BisectOutcome& outcome) {
  if (!outcome.culprit)
    return fmt::format("the run of {} does not fail\n", counted(outcome.changes, "change"));
  const Culprit& found = *outcome.culprit;
  std::string out =
      fmt::format("rewrite {} of {}: {} `{}` in pass `{}`{}\n", found.number, outcome.changes,
                  found.change.rule.valid() ? "rule" : "step", found.change.what, found.change.pass,
                  found.place.empty() ? "" : ", " + found.place);
  const auto add = [&](std::string_view when, const std::vector<std::string>& nodes) {
    if (!nodes.empty()) out += fmt::format("  {}\n    {}\n", when, fmt::join(nodes, "\n    "));
  };
  add("before", texts(found.before, found.matched));
  add("after", texts(found.after, found.created));
  return out;
}

Answer bisect_answer(const BisectOutcome& outcome) {
  Answer out;
  out.add("culprit", culprit_table(outcome));
  out.add("reason", Cell(outcome.reason));
  out.add("changes", Cell(outcome.changes));
  out.add("runs", Cell(outcome.runs));
  return out;
}

}  // namespace pw
