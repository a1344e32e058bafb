#include "pipeline/judge/prove_windows.hpp"

#include <algorithm>
#include <map>
#include <span>

#include <fmt/format.h>

#include "base/try.hpp"
#include "rewriter/engine/legality.hpp"
#include "rewriter/engine/run_state.hpp"
#include "rewriter/strategies/driver.hpp"

namespace pw {
namespace {

/// Copies nodes of a graph into another, with inputs for their other operands.
class Copying {
 public:
  explicit Copying(const Graph& from) : from_(from), to_(from.context_ptr(), "window") {}

  void add(NodeId node) {
    if (is_barrier(from_.op_of(node)))
      problem_ = fmt::format("%{} ({}) writes, or has an effect", from_.node_name(node),
                             from_.op_of(node).name);
    NodeSpec spec;
    spec.op = from_.op(node);
    spec.attributes = from_.attributes(node);
    key_ += fmt::format("{} {}(", spec.op.index, spec.attributes.index);
    for (ValueId operand : from_.operands(node)) {
      spec.operands.push_back(operand.valid() ? value(operand) : ValueId());
      key_ += operand.valid() ? fmt::format("{} ", spec.operands.back().index) : "none ";
    }
    key_ += ")";
    for (std::size_t i = 0; i < from_.result_count(node); ++i) {
      const ValueId result = from_.result(node, i);
      spec.results.push_back({from_.type(result), to_.fresh_name(from_.value_name(result))});
      key_ += fmt::format(" {}", spec.results.back().type.index);
    }
    key_ += "\n";
    const NodeId made = to_.add_node(spec);
    for (std::size_t i = 0; i < from_.result_count(node); ++i)
      here_[from_.result(node, i)] = to_.result(made, i);
  }
  /// Returns the input for a value that no added node computes.
  ValueId value(ValueId of) {
    const auto known = here_.find(of);
    if (known != here_.end()) return known->second;
    key_ += fmt::format("in {} ", from_.type(of).index);
    return here_[of] = to_.add_input(to_.fresh_name(from_.value_name(of)), from_.type(of),
                                     InputKind::input);
  }
  void add_output(ValueId of) {
    to_.add_output(value(of));
    key_ += fmt::format("out {} ", to_.outputs().back().index);
  }
  [[nodiscard]] const std::string& problem() const { return problem_; }

  /// The graph and its key, with the current facts about symbols.
  void finish(RewriteWindow& out) {
    to_.facts = from_.facts;
    for (const auto& [symbol, fact] : to_.facts.symbols)
      key_ += fmt::format("{} {} {} {}, ", symbol, fact.min, fact.max, fact.multiple);
    out.key = key_;
    out.problem = problem_;
    if (problem_.empty()) out.graph = std::move(to_);
  }

 private:
  const Graph& from_;
  Graph to_;
  std::map<ValueId, ValueId> here_;
  std::string key_, problem_;
};

/// A value of the match, and its readers, including nodes of the match, which may remain.
struct Read {
  ValueId value;
  std::vector<std::pair<NodeId, std::size_t>> users;
  std::vector<std::size_t> outputs;
};

class WindowWatch final : public RunWatch {
 public:
  explicit WindowWatch(const std::set<RuleId>& wanted) : wanted_(wanted) {}

  void begin_pass(const Strategy& pass, RunState& run) override {
    pass_ = pass.label;
    seen_ = run.report.journal.mark();
  }
  void reach(const Strategy&, bool, RunState&) override {}
  void rewriting(RuleId rule, std::span<const NodeId> nodes, RunState& run) override {
    pending_.reset();
    if (!wanted_.contains(rule)) return;
    pending_.emplace(run.graph);
    reads_.clear();
    std::vector<NodeId> matched;
    for (NodeId node : nodes)
      if (node.valid()) matched.push_back(node);
    const auto earlier = [&](NodeId a, NodeId b) {
      return run.graph.label(a) < run.graph.label(b);
    };
    std::sort(matched.begin(), matched.end(), earlier);
    matched.erase(std::unique(matched.begin(), matched.end()), matched.end());
    for (NodeId node : matched) pending_->add(node);
    for (NodeId node : matched) note_reads(run.graph, node);
    window_ = {rule, pass_, std::string(run.graph.node_name(matched.back())), {}, {}, {}};
  }
  void rewrote(const Strategy&, RunState& run) override {
    if (pending_) finish(run);
    pending_.reset();
    seen_ = run.report.journal.mark();
  }
  void end(const Strategy&, StopReason, RunState& run) override {
    seen_ = run.report.journal.mark();
  }
  void save(RunState& run) override {
    saved_.emplace_back(windows_.size(), run.report.journal.mark());
  }
  void try_alternative(std::size_t) override {}
  void broken(const Strategy&, const Expr&, const Ensured&, RunState&) override {}
  void restore() override {
    windows_.erase(windows_.begin() + static_cast<std::ptrdiff_t>(saved_.back().first),
                   windows_.end());
    seen_ = saved_.back().second;
  }
  void chose(const Strategy&, const pw::Choice&) override {}
  void release() override { saved_.pop_back(); }

  std::vector<RewriteWindow> take() { return std::move(windows_); }

 private:
  void note_reads(const Graph& graph, NodeId node) {
    for (std::size_t i = 0; i < graph.result_count(node); ++i) {
      Read read{graph.result(node, i), {}, {}};
      for (UseId u = graph.first_use(read.value); u.valid(); u = graph.next_use(u))
        read.users.emplace_back(graph.user(u), graph.use_operand(u));
      for (std::size_t k = 0; k < graph.outputs().size(); ++k)
        if (graph.outputs()[k] == read.value) read.outputs.push_back(k);
      if (!read.users.empty() || !read.outputs.empty()) reads_.push_back(std::move(read));
    }
  }

  /// Returns the value that its readers now read; invalid if no reader remains.
  static ValueId read_now(const Graph& graph, const Read& read) {
    if (!read.outputs.empty()) return graph.outputs()[read.outputs.front()];
    for (const auto& [user, operand] : read.users)
      if (graph.alive(user)) return graph.operand(user, operand);
    return {};
  }

  void finish(RunState& run) {
    const Graph& graph = run.graph;
    std::vector<NodeId> created;
    const Journal& journal = run.report.journal;
    for (Journal::Iterator event(&journal, seen_); event != journal.end(); ++event)
      if (const JournalEvent what = *event; const auto* match = std::get_if<MatchEvent>(&what))
        created = match->created;
    const auto earlier = [&](NodeId a, NodeId b) { return graph.label(a) < graph.label(b); };
    std::sort(created.begin(), created.end(), earlier);
    for (NodeId node : created) pending_->add(node);
    std::vector<ValueId> after;
    for (const Read& read : reads_) {
      const ValueId now = read_now(graph, read);
      if (!now.valid() || now == read.value) continue;
      pending_->add_output(read.value);
      after.push_back(now);
    }
    for (ValueId now : after) pending_->add_output(now);
    pending_->finish(window_);
    windows_.push_back(std::move(window_));
  }

  const std::set<RuleId>& wanted_;
  std::string pass_;
  Journal::Mark seen_ = 0;
  std::optional<Copying> pending_;
  RewriteWindow window_;
  std::vector<Read> reads_;
  std::vector<RewriteWindow> windows_;
  std::vector<std::pair<std::size_t, Journal::Mark>> saved_;
};

}  // namespace

Result<std::vector<RewriteWindow>> windows_of(const Graph& graph, const RuleSet& rules,
                                              const std::string& pipeline, const Env& params,
                                              const RewriteOptions& options,
                                              const std::set<RuleId>& wanted) {
  const Strategy* strategy = PW_TRY(find_strategy(rules, pipeline));
  Graph copy = graph;
  WindowWatch watch(wanted);
  RunRules run(rules);
  PW_TRY(run_strategy(copy, run, *strategy, params, options, &watch));
  return watch.take();
}

WindowVerdict prove_window(RewriteWindow& window, WindowProver* prover) {
  if (!window.graph) return {RuleVerdict::unknown, window.problem};
  if (prover == nullptr) return {RuleVerdict::unknown, kNoProofLab};
  return prover->prove(*window.graph);
}

}  // namespace pw
