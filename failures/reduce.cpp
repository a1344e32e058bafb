#include "failures/reduce.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/counted.hpp"
#include "base/io/file.hpp"
#include "base/try.hpp"
#include "codegen/toolchain.hpp"
#include "dsl/dsl.hpp"
#include "failures/bisect.hpp"
#include "failures/shrink.hpp"
#include "failures/strategy_parts.hpp"
#include "graph/text/text.hpp"
#include "graph/verify.hpp"
#include "pipeline/check/check.hpp"
#include "pipeline/check/test.hpp"
#include "pipeline/variants.hpp"
#include "rewriter/analysis/orders/outcome.hpp"
#include "rewriter/analysis/orders/reduce.hpp"
#include "rewriter/strategies/driver.hpp"

namespace pw {
namespace {

constexpr const char* kTestName = "reduced_failure";
/// Tolerances for `expect numeric`; selects the largest that the failure exceeds.
constexpr double kTolerances[] = {0.05, 0.02, 0.01, 0.003, 0.001, 1e-4, 1e-5, 1e-6, 1e-7};

/// A failure to shrink: a graph and its strategy.
class Reduction {
 public:
  Reduction(const LoadedRules& rules, FailureCheck& check, const ReduceRequest& request,
            const Log& log)
      : rules_(rules), check_(check), request_(request), log_(log) {}

  Result<ReduceOutcome> run(const Graph& graph, const Strategy& strategy) {
    ReduceOutcome out;
    out.kind = check_.kind();
    out.nodes_before = graph.node_count();
    units_ = units_of(rules_.set, strategy);
    whole_ = strategy;
    best_ = graph.compact();
    const FailureVerdict verdict = PW_TRY(check_.of_run(best_, strategy));
    out.runs = check_.runs();
    if (verdict == FailureVerdict::unclear)
      return fail(error_in("reduce", "PW1417", "the run cannot be classified as good or bad",
                           "use ops that can run and inputs that give finite numbers; a command "
                           "must not exit with 125 or time out"));
    if (verdict == FailureVerdict::good) return out;
    out.fails = true;
    if (!shows(best_, strategy_of(units_))) units_.clear();  // a condition matters, or fuel
    PW_TRY(start_at_culprit());
    drop_units();
    best_ = reduce_graph(
        best_, [&](const Graph& smaller) { return shows(smaller, strategy_now()); }, left());
    drop_units();
    best_ = shrink_dims(
        best_, [&](const Graph& smaller) { return left() > 0 && shows(smaller, strategy_now()); });
    PW_TRY(Status(state_));
    shows(best_, strategy_now());  // for the reason
    out.reason = check_.reason();
    out.nodes = best_.node_count();
    out.runs = check_.runs();
    out.graph = print_pwg(best_);
    for (const StrategyUnit& unit : units_) out.rules.push_back(unit.name);
    if (units_.empty()) out.rules.push_back(request_.pipeline);
    out.test = PW_TRY(written(out));
    return out;
  }

 private:
  [[nodiscard]] Strategy strategy_now() const {
    return units_.empty() ? whole_ : strategy_of(units_);
  }
  [[nodiscard]] std::size_t left() const {
    return check_.runs() < request_.most_runs ? request_.most_runs - check_.runs() : 0;
  }

  /// Keeps the first error; no graph shows the failure from then on.
  bool shows(const Graph& graph, const Strategy& strategy) {
    if (!state_ || has_errors(verify(graph))) return false;
    log_.progress({fmt::format("reducing: {}", counted(graph.node_count(), "node")), check_.runs(),
                   request_.most_runs, "runs"});
    const Result<FailureVerdict> verdict = check_.of_run(graph, strategy);
    if (!verdict) state_ = tl::unexpected(verdict.error());
    return verdict && *verdict == FailureVerdict::bad;
  }

  /// Applies the culprit change's rule alone to the nodes it matched, which shows most failures.
  /// Otherwise adds their neighbours, or uses the whole graph at that time.
  Status start_at_culprit() {
    if (check_.kind() != FailureKind::numeric && check_.kind() != FailureKind::command) return {};
    const auto found = bisect(best_, rules_, {request_.pipeline, check_.request()}, log_);
    if (!found || !found->culprit) return {};  // the search continues without it
    const Culprit& culprit = *found->culprit;
    const std::vector<StrategyUnit> units = units_for(culprit.change);
    if (units.empty()) return {};
    std::vector<NodeId> nodes = culprit.matched;
    std::vector<Graph> starts;
    for (int radius = 0; radius < 3 && !nodes.empty(); ++radius) {
      starts.push_back(graph_around(culprit.before, nodes));
      nodes = with_neighbours(culprit.before, nodes);
    }
    starts.push_back(culprit.before.compact());
    for (Graph& start : starts) {
      if (start.outputs().empty() || start.node_count() > best_.node_count()) continue;
      if (!shows(start, strategy_of(units))) continue;
      best_ = start.compact();
      units_ = units;
      break;
    }
    return state_;
  }

  [[nodiscard]] std::vector<StrategyUnit> units_for(const Change& change) const {
    std::vector<StrategyUnit> out;
    for (const StrategyUnit& unit : units_)
      if (unit.name == change.what && unit.strategy.kind == change.kind) {
        out.push_back(unit);
        break;
      }
    return out;
  }

  static std::vector<NodeId> with_neighbours(const Graph& graph, const std::vector<NodeId>& nodes) {
    std::set<NodeId> out(nodes.begin(), nodes.end());
    for (NodeId n : nodes) {
      for (ValueId v : graph.operands(n))
        if (v.valid() && !graph.is_input(v)) out.insert(graph.producer(v));
      for (std::size_t i = 0; i < graph.result_count(n); ++i)
        for (NodeId user : graph.users(graph.result(n, i))) out.insert(user);
    }
    return {out.begin(), out.end()};
  }

  /// Removes rules and passes in ever smaller blocks.
  void drop_units() {
    for (std::size_t block = units_.size() / 2; block > 0 && units_.size() > 1;) {
      bool smaller = false;
      for (std::size_t i = 0; i < units_.size() && units_.size() > 1 && left() > 0;) {
        std::vector<StrategyUnit> fewer = units_;
        fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i),
                    fewer.begin() + static_cast<std::ptrdiff_t>(std::min(i + block, fewer.size())));
        if (!fewer.empty() && shows(best_, strategy_of(fewer))) {
          units_ = std::move(fewer);
          smaller = true;
        } else {
          i += block;
        }
      }
      if (left() == 0 || (block == 1 && !smaller)) return;
      block = smaller ? std::min(block, units_.size() / 2) : block / 2;
      block = std::max<std::size_t>(block, 1);
    }
  }

  /// For a command: expects fewer of an op that became more frequent, otherwise that the rule does
  /// nothing.
  [[nodiscard]] std::string expected_of_command() const {
    Graph after = best_;
    const Strategy strategy = strategy_now();
    if (run_strategy(after, rules_.set, strategy, rules_.params, {})) {
      const auto before = op_counts(best_);
      for (const auto& [op, count] : op_counts(after)) {
        const auto old = before.find(op);
        const std::size_t there = old == before.end() ? 0 : old->second;
        if (count > there) return fmt::format("count({}) == {}", print_path(op), there);
      }
    }
    return units_.empty() ? "none" : units_.front().name + " == 0";
  }

  [[nodiscard]] std::vector<std::string> expectations() const {
    switch (check_.kind()) {
      case FailureKind::numeric: {
        std::vector<std::string> out;
        for (const double t : kTolerances) out.push_back(fmt::format("numeric within {}", t));
        return out;
      }
      case FailureKind::command: return {expected_of_command()};
      case FailureKind::diagnostic:
        return {fmt::format("diagnostics({}) == 0", check_.request().code)};
      case FailureKind::order:
        return {fmt::format("orders({}) == 1", check_.request().orders.orders)};
    }
    return {};
  }

  /// The first expectation that does not hold now.
  Result<std::string> written(const ReduceOutcome& out) const {
    Application applied{strategy_now(), strategy_text(rules_.set, units_, "failing_pass"),
                        "failing_pass"};
    if (applied.text.empty() || units_.empty()) applied = {whole_, "", request_.pipeline};
    std::string head;
    for (const std::string& file : request_.files) head += use_line(file);
    head += fmt::format("\n// {}: {}\n", name(out.kind), what_fails(out));
    std::string why;
    for (const std::string& expectation : expectations()) {
      const std::string text =
          head + test_text(kTestName, best_, applied, rules_.set, rules_.params, {expectation});
      const TestOutcome tested = PW_TRY(run_text(text));
      if (!tested.unloaded.empty()) why = text;
      if (tested.unloaded.empty() && tested.report.failed() > 0) return text;
    }
    return fail(error_in(
        "reduce", "PW1417",
        why.empty() ? "no test shows the failure: every expectation holds on the smallest graph"
                    : "the smallest graph cannot be read back as a test",
        "the graph is:\n" + out.graph));
  }

  [[nodiscard]] std::string what_fails(const ReduceOutcome& out) const {
    std::string text;
    switch (out.kind) {
      case FailureKind::numeric: text = out.reason; break;
      case FailureKind::command: text = check_.request().command; break;
      case FailureKind::diagnostic: text = check_.request().code; break;
      case FailureKind::order: text = "the result depends on the order of rewrites"; break;
    }
    std::replace_if(text.begin(), text.end(), [](unsigned char c) { return c < ' '; }, ' ');
    return text;
  }

  static Result<TestOutcome> run_text(const std::string& text) {
    const PrivateFolder folder;
    const std::string path = folder.path() + "/reduced.pwr";
    PW_TRY(write_file(path, text));
    TestRequest request;
    request.paths = {path};
    return run_test_files(request, Log());
  }

  const LoadedRules& rules_;
  FailureCheck& check_;
  const ReduceRequest& request_;
  const Log& log_;
  Status state_;
  std::vector<StrategyUnit> units_;  ///< none: `whole_` is run
  Strategy whole_;
  Graph best_{std::make_shared<Context>()};
};

}  // namespace

Result<ReduceOutcome> reduce(const Graph& graph, const LoadedRules& rules,
                             const ReduceRequest& request, const Log& log) {
  const Strategy* strategy = PW_TRY(one_graph_strategy(rules, request.pipeline));
  FailureCheck check = PW_TRY(FailureCheck::make(rules, request.failure));
  return Reduction(rules, check, request, log).run(graph, *strategy);
}

Answer reduce_answer(const ReduceOutcome& outcome) {
  Table table({"failure", "rules", "nodes before", "nodes", "runs"});
  if (outcome.fails)
    table.add({name(outcome.kind), list_cell(outcome.rules), outcome.nodes_before, outcome.nodes,
               outcome.runs});
  Answer out;
  out.add("reduction", std::move(table));
  out.add("reason", Cell(outcome.reason));
  out.add("test", Cell(outcome.test));
  return out;
}

}  // namespace pw
