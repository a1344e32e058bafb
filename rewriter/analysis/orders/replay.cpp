#include "rewriter/analysis/orders/replay.hpp"

#include "base/try.hpp"
#include "rewriter/analysis/passes.hpp"
#include "rewriter/engine/run_state.hpp"
#include "rewriter/strategies/driver.hpp"

namespace pw {
namespace {

using Kind = ast::Strategy::Kind;

/// Watcher that counts changes. Changes after an undo reuse numbers; the last attempt to reach a
/// number is the one that stays.
class ChangeWatch final : public RunWatch {
 public:
  ChangeWatch(Replay& out, std::size_t at) : out_(out), at_(at) {}

  void begin_pass(const Strategy& pass, RunState& run) override {
    pass_ = pass.label;
    seen_ = run.report.journal.mark();
  }
  void reach(const Strategy&, bool, RunState&) override {}
  void rewrote(const Strategy& strategy, RunState& run) override {
    const RuleId rule = run.rules.loaded(run.report.journal.rules_since(seen_).back());
    add({pass_, written_name(run.rules.set().rules[rule]), rule, strategy.kind}, run);
  }
  void end(const Strategy& strategy, StopReason, RunState& run) override {
    if (strategy.kind == Kind::saturate)
      add({pass_, strategy.label, {}, strategy.kind}, run);
    else if (!strategy.builtin.empty())
      add({pass_, strategy.builtin, {}, strategy.kind}, run);
  }
  void save(RunState& run) override { saved_.push_back({out_.changes.size(), mark_of(run)}); }
  void try_alternative(std::size_t) override {}
  void broken(const Strategy&, const Expr&, const Ensured&, RunState&) override {}
  void restore() override {
    out_.changes.resize(saved_.back().first);
    seen_ = saved_.back().second;
  }
  void chose(const Strategy&, const pw::Choice&) override {}
  void release() override { saved_.pop_back(); }

 private:
  static Journal::Mark mark_of(RunState& run) { return run.report.journal.mark(); }

  void add(Change change, RunState& run) {
    out_.changes.push_back(std::move(change));
    if (out_.changes.size() == at_) keep(run);
    seen_ = mark_of(run);
  }
  void keep(RunState& run) {
    out_.graph = run.graph;
    out_.graph.stop_undo();
    out_.match.reset();
    const Journal& journal = run.report.journal;
    for (Journal::Iterator event(&journal, seen_); event != journal.end(); ++event)
      if (JournalEvent what = *event; auto* match = std::get_if<MatchEvent>(&what))
        out_.match = std::move(*match);
    if (!out_.changes.back().rule.valid()) out_.match.reset();
  }

  Replay& out_;
  std::size_t at_;
  std::string pass_;
  Journal::Mark seen_ = 0;  ///< of the journal, after the last change
  std::vector<std::pair<std::size_t, Journal::Mark>> saved_;
};

}  // namespace

Result<Replay> replay(const Graph& graph, const RuleSet& rules, const Strategy& strategy,
                      const Env& params, std::size_t at, const RewriteOptions& options) {
  Replay out{{}, graph, std::nullopt, {}};
  Graph rewritten = graph;
  ChangeWatch watch(out, at);
  RunRules run_rules(rules);
  RewriteReport report =
      PW_TRY(run_strategy(rewritten, run_rules, strategy, params, options, &watch));
  if (at > out.changes.size()) out.graph = std::move(rewritten);
  out.report = std::move(report);
  return out;
}

}  // namespace pw
