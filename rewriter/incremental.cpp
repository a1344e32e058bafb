// Exports IncrementalRun: the passes of a strategy as stages, each with what it keeps.
#include "rewriter/incremental.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <optional>
#include <vector>

#include "base/assert.hpp"
#include "base/try.hpp"
#include "rewriter/driver.hpp"
#include "rewriter/idle.hpp"
#include "rewriter/interpreter.hpp"
#include "rewriter/kept_pass.hpp"
#include "rewriter/legality.hpp"

namespace pw {
namespace {

using Kind = ast::Strategy::Kind;

bool is_plain(const Strategy& strategy) {
  return strategy.when.empty() && strategy.ensures.empty() && !strategy.fuel;
}

}  // namespace

struct IncrementalRun::State {
  /// A greedy pass, or a built-in one.
  struct Stage {
    const Strategy* strategy = nullptr;
    std::size_t pass = 0;            ///< of the pipeline
    std::unique_ptr<KeptPass> kept;  ///< of a greedy one
    std::optional<Graph> input;      ///< of all but the first: as it was
    std::optional<Graph> output;     ///< of a built-in one
    [[nodiscard]] bool greedy() const { return strategy->kind == Kind::greedy; }
    [[nodiscard]] const Graph& graph() const { return kept ? kept->graph() : *output; }
  };

  std::shared_ptr<const Graph> input;
  std::shared_ptr<const RuleSet> rules;
  std::string pipeline;
  Env params;
  const Strategy* strategy = nullptr;
  std::vector<const Strategy*> passes;
  std::vector<Stage> stages;
  bool kept = false;  ///< the stages hold what the input becomes
  std::optional<Rewritten> scratch;
  Counters counters;
  RewriteOptions options;

  void prepare();
  bool change(std::shared_ptr<const RuleSet> other, const Strategy* pipeline_now);
  bool collect(const Strategy& pass, std::size_t number);
  /// Why not, or nothing.
  std::string build(std::size_t first);
  std::string bring_up_to_date(const Graph& before);
  Result<std::monostate> run_builtin(Graph& graph, const Stage& stage) const;
  Result<Rewritten> replay() const;
  Result<std::monostate> rewrite_all();
  void count();
};

IncrementalRun::IncrementalRun() : state_(std::make_unique<State>()) {}
IncrementalRun::~IncrementalRun() = default;
IncrementalRun::IncrementalRun(IncrementalRun&&) noexcept = default;
IncrementalRun& IncrementalRun::operator=(IncrementalRun&&) noexcept = default;
const IncrementalRun::Counters& IncrementalRun::counters() const { return state_->counters; }

/// No stages where a pass is not of a kind that can be kept.
void IncrementalRun::State::prepare() {
  passes.clear();
  std::vector<Stage> before = std::exchange(stages, {});
  if (strategy->kind != Kind::sequence || strategy->parts.empty())
    passes.push_back(strategy);
  else if (is_plain(*strategy))
    for (const Strategy& part : strategy->parts) passes.push_back(&part);
  bool all = !passes.empty();
  for (std::size_t i = 0; all && i < passes.size(); ++i) all = collect(*passes[i], i);
  if (!all) stages.clear();
  for (std::size_t i = 0; i < std::min(before.size(), stages.size()); ++i)
    if (stages[i].greedy()) stages[i].kept = std::move(before[i].kept);  // for its memory
}

/// The same stages by other rules; false: not all that is kept can be.
bool IncrementalRun::State::change(std::shared_ptr<const RuleSet> other,
                                   const Strategy* pipeline_now) {
  State now;
  now.strategy = pipeline_now;
  now.prepare();
  const auto alike = [](const Stage& a, const Stage& b) {
    return a.pass == b.pass && a.greedy() == b.greedy() && a.strategy->label == b.strategy->label &&
           a.strategy->builtin == b.strategy->builtin;
  };
  if (!std::ranges::equal(stages, now.stages, alike)) return false;
  if (!std::ranges::equal(passes, now.passes, {}, &Strategy::label, &Strategy::label)) return false;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    if (stages[i].greedy() && !stages[i].kept->change(other, *now.stages[i].strategy)) {
      counters.why = stages[i].kept->why();
      return false;
    }
    stages[i].strategy = now.stages[i].strategy;
  }
  passes = std::move(now.passes);
  strategy = pipeline_now;
  rules = std::move(other);
  return true;
}

/// The stages of one pass; false: something else is among them.
bool IncrementalRun::State::collect(const Strategy& pass, std::size_t number) {
  if (!is_plain(pass)) return false;
  if (pass.kind == Kind::greedy || (pass.kind == Kind::reference && !pass.builtin.empty())) {
    stages.emplace_back();
    stages.back().strategy = &pass;
    stages.back().pass = number;
    return true;
  }
  if (pass.kind != Kind::sequence && pass.kind != Kind::reference) return false;
  return std::all_of(pass.parts.begin(), pass.parts.end(),
                     [&](const Strategy& part) { return collect(part, number); });
}

Result<std::monostate> IncrementalRun::State::run_builtin(Graph& graph, const Stage& stage) const {
  RunRules own(*rules);
  RunState run{graph, own, params, options, {}, has_barriers(graph), 0, {}, {}, {}, {}, nullptr};
  PassStats stats;
  PW_TRY(Interpreter(run).run(*stage.strategy, stats, true));
  return std::monostate();
}

/// Rewrites the stages from this one on from scratch.
std::string IncrementalRun::State::build(std::size_t first) {
  for (std::size_t i = first; i < stages.size(); ++i) {
    Stage& stage = stages[i];
    const Graph& from = i == 0 ? *input : stages[i - 1].graph();
    if (i > 0) stage.input = from;
    if (!stage.greedy()) {
      stage.output = from;
      if (!run_builtin(*stage.output, stage)) return "a built-in pass fails";
      continue;
    }
    if (!stage.kept) stage.kept = std::make_unique<KeptPass>();
    if (!stage.kept->build(rules, *stage.strategy, params, from)) return stage.kept->why();
  }
  return "";
}

/// What one stage makes other is what the next one finds edited. Behind one that was rewritten from
/// scratch, with ids of its own, all are.
std::string IncrementalRun::State::bring_up_to_date(const Graph& before) {
  for (std::size_t i = 0; i < stages.size(); ++i) {
    Stage& stage = stages[i];
    const Graph& now = i == 0 ? *input : stages[i - 1].graph();
    if (stage.greedy()) {
      if (!stage.kept->update(i == 0 ? before : *stage.input, now)) return stage.kept->why();
    } else {
      stage.output = now;
      if (!run_builtin(*stage.output, stage)) return "a built-in pass fails";
    }
    if (i > 0) stage.input = now;
    if (stage.greedy() && stage.kept->rebuilt()) {
      counters.why = stage.kept->why();
      return build(i + 1);
    }
  }
  return "";
}

void IncrementalRun::State::count() {
  for (const Stage& stage : stages) {
    if (!stage.kept) continue;
    const KeptPass::Counters& c = stage.kept->counters();
    counters.rewrites += stage.kept->rewrites();
    counters.undone += c.undone;
    counters.redone += c.redone;
    counters.fresh += c.fresh;
    counters.asked += c.asked;
  }
}

Result<std::monostate> IncrementalRun::State::rewrite_all() {
  Graph copy = *input;
  RewriteReport report = PW_TRY(run_pipeline(copy, *rules, pipeline, params, options));
  counters.rewrites = report.journal.total();
  scratch.emplace(Rewritten{std::move(copy), std::move(report)});
  return std::monostate();
}

Result<std::monostate> IncrementalRun::update(std::shared_ptr<const Graph> input,
                                              std::shared_ptr<const RuleSet> rules,
                                              std::string_view pipeline, const Env& params) {
  State& s = *state_;
  const Strategy* strategy = PW_TRY(find_strategy(*rules, pipeline));
  const bool like = s.input && s.pipeline == pipeline && s.params == params &&
                    &s.input->context() == &input->context();
  s.counters = {};
  const bool same = like && (s.rules == rules || (s.kept && s.change(rules, strategy)));
  const std::shared_ptr<const Graph> before = std::exchange(s.input, std::move(input));
  s.scratch.reset();
  if (same && s.kept) {
    const std::string why = s.bring_up_to_date(*before);
    s.kept = why.empty();
    s.counters.kept = s.kept && s.counters.why.empty();
    if (s.kept) return s.count(), std::monostate();
    s.counters.why = why;
  }
  if (!same) {
    s.rules = std::move(rules);
    s.pipeline = pipeline;
    s.params = params;
    s.strategy = strategy;
    if (s.counters.why.empty()) s.counters.why = before ? "other rules" : "the first run";
    s.prepare();
  }
  if (s.stages.empty()) s.counters.why = "a pass is neither greedy nor built in";
  s.kept = !s.stages.empty() && strategy->ranges.empty() && s.build(0).empty();
  if (s.kept) return s.count(), std::monostate();
  for (const State::Stage& stage : s.stages)
    if (stage.kept && !stage.kept->why().empty()) s.counters.why = stage.kept->why();
  return s.rewrite_all();
}

const Graph& IncrementalRun::graph() const {
  const State& s = *state_;
  if (s.scratch) return s.scratch->graph;
  return s.stages.empty() ? *s.input : s.stages.back().graph();
}

Result<IncrementalRun::Rewritten> IncrementalRun::result() const {
  const State& s = *state_;
  if (!s.scratch) return s.replay();
  return Rewritten{s.scratch->graph, s.scratch->report};
}

/// As the driver does it, but without a matcher.
Result<IncrementalRun::Rewritten> IncrementalRun::State::replay() const {
  Graph graph = *input;
  RunRules own(*rules);
  RunState run{graph, own, params, options, {}, has_barriers(graph), 0, {}, {}, {}, {}, nullptr};
  Interpreter interpreter(run);
  std::vector<NodeId> ids(graph.node_bound());
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = NodeId(i);
  auto stage = stages.begin();
  for (std::size_t i = 0; i < passes.size(); ++i) {
    const auto start = std::chrono::steady_clock::now();
    PassStats stats;
    stats.pass = passes[i]->label;
    run.pass_spans.emplace(stats.pass, passes[i]->span);
    stats.nodes_before = graph.node_count();
    run.report.journal.add(PassBegin{stats.pass, 0, graph.node_count()});
    for (; stage != stages.end() && stage->pass == i; ++stage) {
      if (!stage->greedy()) {
        PW_TRY(interpreter.run(*stage->strategy, stats, true));
      } else if (!stage->kept->replay(run, *stage->strategy, stats, ids)) {
        throw InternalError("a kept rewrite does not match where it was made");
      }
    }
    graph.drop_dead_operands();
    stats.nodes_after = graph.node_count();
    stats.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    run.report.journal.add(PassEnd{stats.pass, 0, graph.node_count(), stats.seconds});
    run.report.passes.push_back(std::move(stats));
  }
  warn_of_idle(run);
  run.report.journal.settle();
  run.report.journal.keep(own.opened());
  return Rewritten{std::move(graph), std::move(run.report)};
}

}  // namespace pw
