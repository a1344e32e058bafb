// Exports the generated before ≡ after check of rules.
#include "verify/rule_check.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "backends/collectives.hpp"
#include "backends/eager/eager.hpp"
#include "backends/program.hpp"
#include "dsl/walk.hpp"
#include "graph/text.hpp"
#include "graph/writes.hpp"
#include "rewriter/rewriter.hpp"
#include "verify/boundaries.hpp"
#include "verify/contents.hpp"
#include "verify/numeric.hpp"
#include "verify/rank_layout.hpp"
#include "verify/sample.hpp"

namespace pw {
namespace {

std::string first_message(const Diagnostics& diagnostics) {
  return diagnostics.empty() ? "no reason given" : diagnostics.front().message;
}

/// The dtypes of the floating inputs, or of the outputs where no input is.
std::string dtypes_of(const Graph& graph) {
  const Context& context = graph.context();
  const auto names_of = [&](const std::vector<ValueId>& values, bool floats) {
    std::set<std::string> names;
    for (ValueId value : values) {
      if (graph.type(value) == Types::unknown()) continue;
      const DType dtype = context.types[graph.type(value)].dtype;
      if (!floats || is_float(dtype)) names.emplace(name(dtype));
    }
    return names;
  };
  std::set<std::string> names = names_of(graph.inputs(), true);
  if (names.empty()) names = names_of(graph.outputs(), false);
  return fmt::format("{}", fmt::join(names, ", "));
}

/// What one graph gives for one sample, on every rank.
struct Ran {
  RankOutputs typed, exact;
};

/// What the rule makes of an instance, in one layout of ranks.
class InstanceCheck {
 public:
  InstanceCheck(const RuleSet& rules, const Instance& instance, const RuleCheckOptions& options,
                const RankLayout& layout, RuleCheck& report)
      : rules_(rules),
        instance_(instance),
        options_(options),
        layout_(layout),
        report_(report),
        after_(instance.graph.compact()) {}

  void run() {
    const std::vector<Match> matches =
        find_matches(after_, rules_, instance_.match.rule, instance_.params);
    if (matches.empty()) return refute("a copy of the graph is not matched");
    if (auto applied = apply_match(after_, rules_, matches.front()); !applied)
      return refute("the match cannot be applied: " + first_message(applied.error()));
    if (const std::string why = wrong_write(); !why.empty()) return refute(why);
    Graph before = instance_.graph.compact(), after = after_.compact();
    if (!inline_bodies(before) || !inline_bodies(after))
      return refute("the bodies of its ops cannot be put in their place");
    groups_ = groups_of(layout_, before, after);
    if (layout_.unstated != layout_.world && groups_.empty()) return;  // all are all ranks: done
    sums_ = has_sums(before) || has_sums(after);
    const Graph* graphs[] = {&before, &after};
    for (std::size_t i = 0; i < options_.tokens.size(); ++i) {
      const auto tokens =
          fitting_tokens(graphs, matches.front().conditions, options_.tokens[i] * layout_.ranks);
      if (!tokens) return refute("no number of tokens meets its conditions");
      compare(*tokens, i + 1 == options_.tokens.size());
    }
    report_.by_dtype[dtypes_of(instance_.graph)].merge(found_);
    report_.judgement.merge(found_);
  }

 private:
  [[nodiscard]] bool going() const { return found_.verdict < RuleVerdict::refuted; }

  /// A write that the rule adds, or does a second time: no value of the graph shows it.
  [[nodiscard]] std::string wrong_write() const {
    const ImpliedWrites implied = implied_writes(after_);
    if (!implied.problems.empty()) return implied.problems.front().message;
    if (!implied.writes.empty())
      return fmt::format("it writes `{}`, which nothing wrote before",
                         after_.value_name(implied.writes.front().first));
    const NodeId again = second_writer(after_);
    if (!again.valid() || second_writer(instance_.graph).valid()) return "";
    return fmt::format("`{}` writes what another op writes too, and before only one did",
                       after_.op_of(again).name);
  }

  [[nodiscard]] std::string where() const { return print(layout_, groups_); }

  void refute(const std::string& message) {
    const std::string place = where();
    Judgement refuted;
    refuted.refute(fmt::format("{}{}{}\n{}", place, place.empty() ? "" : ": ", message,
                               print_pwg(instance_.graph)),
                   true);
    report_.by_dtype[dtypes_of(instance_.graph)].merge(refuted);
    report_.judgement.merge(refuted);
  }

  /// The reference runs where all is finite: it says what there is to say of infinity and NaN no
  /// better than the dtypes do.
  Result<Ran> run_graph(const Graph& graph, std::span<Weights> weights, const Step& step,
                        const Symbols& symbols, bool exact) const {
    auto typed = run_whole(graph, *backend_, weights, step, symbols);
    if (!typed) return forward(typed);
    Ran ran{std::move(*typed), {}};
    if (!exact) return ran;
    auto reference = run_reference(graph, weights, step, symbols);
    if (!reference) return forward(reference);
    ran.exact = std::move(*reference);
    return ran;
  }

  /// With one number of tokens: ordinary contents, or those of all kinds.
  void compare(std::int64_t tokens, bool all) {
    const Graph& before = instance_.graph;
    const Symbols symbols = sample_symbols(before, tokens);
    Step step = sample_step(before, symbols);
    if (!groups_.empty()) step.groups = &groups_;
    const SampleInputs inputs(before, symbols, groups_);
    const std::span<const Contents> kinds =
        options_.contents.empty() ? std::span<const Contents>(kContents) : options_.contents;
    for (Contents contents : kinds) {
      if ((!all && contents != Contents::ordinary) || !going()) continue;
      std::vector<Weights> weights = weights_of_ranks(before, 1, layout_.ranks);
      if (inputs.give(weights, contents, static_cast<std::uint64_t>(tokens)))
        compare(weights, symbols, step, contents);
    }
  }

  /// A sample that the graph itself does not run on says nothing.
  void compare(std::vector<Weights>& weights, const Symbols& symbols, const Step& step,
               Contents contents) {
    const bool exact = contents != Contents::infinite && contents != Contents::nan;
    auto a = run_graph(instance_.graph, weights, step, symbols, exact);
    if (!a) return;
    auto b = run_graph(after_, weights, step, symbols, exact);
    if (!b) return refute_run(b.error());
    ++report_.runs;
    for (std::size_t r = 0; r < a->typed.size() && going(); ++r) {
      auto inputs = shown_inputs(weights[r], symbols, step);
      SampleRuns runs{
          contents, std::move(inputs), std::move(a->typed[r]), std::move(b->typed[r]), {}, {}};
      if (exact) runs.exact_before = std::move(a->exact[r]);
      if (exact) runs.exact_after = std::move(b->exact[r]);
      judge_rank(runs, r);
    }
  }

  void refute_run(const Diagnostics& why) {
    if (why.front().code != kNoKernel) return refute("it does not run: " + first_message(why));
    report_.judgement.verdict = RuleVerdict::cannot_run;
    report_.judgement.reason = first_message(why);
  }

  void judge_rank(const SampleRuns& runs, std::size_t rank) {
    Judgement seen = judge(instance_.graph, runs, sums_, options_.judge);
    if (seen.verdict != RuleVerdict::refuted && runs.contents == Contents::ordinary) {
      const NumericReport numeric =
          check_outputs(instance_.graph, runs.exact_before, runs.before, runs.after);
      for (const OutputCheck& output : numeric.outputs)
        if (!output.passed) seen.refute(fmt::format("{}: {}", output.name, output.reason));
    }
    if (!seen.holds()) {
      const std::string place = layout_.ranks > 1 ? fmt::format("rank {} {}: ", rank, where()) : "";
      seen.reason = fmt::format("{}{}\n{}", place, seen.reason, print_pwg(instance_.graph));
    }
    found_.merge(seen);
  }

  std::vector<std::pair<std::string, Tensor>> shown_inputs(Weights& weights, const Symbols& symbols,
                                                           const Step& step) const {
    std::vector<std::pair<std::string, Tensor>> out;
    for (ValueId input : instance_.graph.inputs()) {
      const std::string_view name = instance_.graph.value_name(input);
      if (auto tensor = weights.tensor(name, symbols, step))
        out.emplace_back(name, std::move(*tensor));
    }
    return out;
  }

  const RuleSet& rules_;
  const Instance& instance_;
  const RuleCheckOptions& options_;
  const RankLayout& layout_;
  RuleCheck& report_;
  Graph after_;
  std::unique_ptr<Backend> backend_ = make_eager();
  RankGroups groups_;
  bool sums_ = false;
  Judgement found_;
};

bool op_uses_collectives(const Context& context, OpId id, std::set<OpId>& seen);

bool calls_collectives(const Context& context, const std::vector<Statement>& statements,
                       std::set<OpId>& seen) {
  bool found = false;
  for (const Statement& statement : statements) {
    visit_calls(statement, [&](const Expr& call) {
      const OpId op = context.ops.find(call.text);
      found = found || (op.valid() && op_uses_collectives(context, op, seen));
    });
  }
  return found;
}

bool op_uses_collectives(const Context& context, OpId id, std::set<OpId>& seen) {
  const Op& op = context.ops[id];
  if (op.traits.collective || find_collective(op.name) != nullptr) return true;
  return seen.insert(id).second && calls_collectives(context, op.body, seen);
}

/// On either side, or in the body of an op there.
bool uses_collectives(const RuleSet& rules, const Rule& rule) {
  std::set<OpId> seen;
  for (const PatternNode& node : rule.nodes)
    if (op_uses_collectives(*rules.context, node.op, seen)) return true;
  return calls_collectives(*rules.context, rule.replacement, seen);
}

/// A check is to take moments.
bool small(const Graph& graph, const Symbols& symbols) {
  constexpr std::int64_t kMost = 1 << 20;
  const auto fits = [&](ValueId value) {
    if (graph.type(value) == Types::unknown()) return true;
    const auto extents = extents_of(graph, value, symbols);
    return extents && element_count(*extents) <= kMost;
  };
  for (ValueId input : graph.inputs())
    if (!fits(input)) return false;
  for (NodeId node = graph.first(); node.valid(); node = graph.next(node))
    for (std::size_t r = 0; r < graph.result_count(node); ++r)
      if (!fits(graph.result(node, r))) return false;
  return true;
}

class Check {
 public:
  Check(const RuleSet& rules, RuleId id, const Env& params, const RuleCheckOptions& options,
        const RankLayout& layout, RuleCheck& report)
      : rules_(rules),
        id_(id),
        params_(params),
        options_(options),
        layout_(layout),
        report_(report) {}

  /// Why there was no graph to check on, if so.
  std::optional<Judgement> run() {
    const Instances instances = make_instances(rules_, id_, params_, instance_options());
    if (instances.found.empty()) return none(instances);
    for (const Instance& instance : instances.found) check(instance);
    if (report_.runs == 0 && going()) return never_ran();
    if (!whole()) return std::nullopt;
    for (const GuardBoundary& boundary : boundaries_of(rules_, rules_.rules[id_], known()))
      if (going()) at(boundary);
    return std::nullopt;
  }

 private:
  [[nodiscard]] bool going() const {
    return report_.judgement.verdict < RuleVerdict::refuted;
  }
  /// Whether all groups are all ranks: there the whole check is made, elsewhere a short one.
  [[nodiscard]] bool whole() const {
    return layout_.world == layout_.ranks && layout_.unstated == layout_.ranks;
  }

  /// What no sample ran on is nothing that was seen to hold.
  [[nodiscard]] static Judgement never_ran() {
    Judgement judgement;
    judgement.verdict = RuleVerdict::cannot_run;
    judgement.reason = "none of its graphs runs on the eager engine";
    return judgement;
  }

  [[nodiscard]] Judgement none(const Instances& instances) const {
    Judgement judgement;
    judgement.verdict = lacking_.empty() ? RuleVerdict::no_instance : RuleVerdict::cannot_run;
    judgement.reason = lacking_;
    const std::string where = print(layout_, {});
    if (lacking_.empty())
      judgement.reason = fmt::format(
          "no graph could be made that it matches{}{}, in {} attempts of which {} were "
          "well typed; {}",
          where.empty() ? "" : " ", where, instances.attempts, instances.built, instances.why);
    return judgement;
  }

  /// Types do not say all that an op asks of its operands, so a graph that does not run as it is
  /// says nothing about the rule.
  InstanceOptions instance_options() {
    InstanceOptions options = options_.instances;
    options.world = layout_.world;
    if (!whole()) {
      options.wanted = std::min<std::size_t>(options.wanted, 3);
      options.attempts = std::min<std::size_t>(options.attempts, 2000);
    }
    options.refuses = [this](const Instance& instance) -> std::optional<std::string> {
      const Graph* graphs[] = {&instance.graph};
      const std::int64_t least = options_.tokens.front() * layout_.ranks;
      const auto tokens = fitting_tokens(graphs, instance.match.conditions, least);
      if (!tokens) return "no number of tokens meets its conditions";
      const Symbols symbols = sample_symbols(instance.graph, *tokens);
      if (!small(instance.graph, symbols)) return "its values are too large";
      std::vector<Weights> weights = weights_of_ranks(instance.graph, 1, layout_.ranks);
      if (!give_contents(weights, instance.graph, symbols, Contents::ordinary, 1))
        return "a symbol of it has no value";
      auto ran = run_reference(instance.graph, std::span<Weights>(weights),
                               sample_step(instance.graph, symbols), symbols);
      if (ran) return std::nullopt;
      if (ran.error().front().code == kNoKernel) lacking_ = first_message(ran.error());
      return "the reference cannot run it: " + first_message(ran.error());
    };
    return options;
  }

  void check(const Instance& instance) {
    if (!going()) return;
    ++report_.instances;
    InstanceCheck(rules_, instance, options_, layout_, report_).run();
  }

  [[nodiscard]] Env known() const {
    Env env = params_;
    for (const auto& [name, binding] : rules_.rules[id_].constants)
      env.insert_or_assign(name, binding);
    return env;
  }

  std::optional<Instance> instance_at(const RuleSet& rules, const GuardBoundary& boundary) {
    constexpr std::size_t kAttempts = 2000;
    InstanceOptions options = instance_options();
    options.wanted = 1;
    options.attempts = kAttempts;
    options.fixed = {boundary.variable, boundary.value};
    Instances instances = make_instances(rules, id_, params_, options);
    if (instances.found.empty()) return std::nullopt;
    return std::move(instances.found.front());
  }

  void at(const GuardBoundary& boundary) {
    const std::optional<Instance> instance =
        instance_at(boundary.allowed ? rules_ : unguarded(), boundary);
    const std::string text = fmt::format("{} = {}", boundary.variable, boundary.value);
    if (!instance) {
      report_.unreached.push_back(text);
    } else if (boundary.allowed) {
      ++report_.held;
      check(*instance);
    } else {
      ++report_.refused;
      if (!find_matches(instance->graph, rules_, id_, instance->params).empty())
        report_.judgement.refute(fmt::format("it matches at {}, where its guards do not hold\n{}",
                                             text, print_pwg(instance->graph)));
    }
  }

  /// The rules, this one without its guards: what it matches beyond them.
  const RuleSet& unguarded() {
    if (!unguarded_) {
      unguarded_ = rules_;
      unguarded_->rules[id_].where.clear();
      unguarded_->rules[id_].assume.clear();
    }
    return *unguarded_;
  }

  const RuleSet& rules_;
  RuleId id_;
  const Env& params_;
  const RuleCheckOptions& options_;
  const RankLayout& layout_;
  RuleCheck& report_;
  std::optional<RuleSet> unguarded_;
  std::string lacking_;  // why a graph did not run that has an op without a kernel and a body
};

/// In all layouts of so many ranks. A guard may leave out some of them, but not all.
void check_on(std::int64_t ranks, const RuleSet& rules, RuleId rule, const Env& params,
              const RuleCheckOptions& options, RuleCheck& report) {
  std::optional<Judgement> none;
  bool checked = false;
  for (const RankLayout& layout : layouts_of(ranks)) {
    if (report.judgement.verdict >= RuleVerdict::refuted) return;
    auto why = Check(rules, rule, params, options, layout, report).run();
    checked = checked || !why;
    if (!none) none = std::move(why);
  }
  if (!checked && none) report.judgement = std::move(*none);
}

}  // namespace

RuleCheck check_rule(const RuleSet& rules, RuleId rule, const Env& params,
                     const RuleCheckOptions& options) {
  RuleCheck report;
  report.rule = rules.rules[rule].name;
  report.ranks = {1};
  if (uses_collectives(rules, rules.rules[rule])) report.ranks = options.ranks;
  for (std::int64_t ranks : report.ranks) check_on(ranks, rules, rule, params, options, report);
  return report;
}

std::vector<RuleCheck> check_rules(const RuleSet& rules, const Env& params,
                                   const RuleCheckOptions& options) {
  std::vector<RuleCheck> reports;
  for (std::size_t i = 0; i < rules.rules.size(); ++i) {
    if (rules.rules[RuleId(i)].frontier) continue;  // never applied
    reports.push_back(check_rule(rules, RuleId(i), params, options));
  }
  return reports;
}

}  // namespace pw
