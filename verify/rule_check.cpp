#include "verify/rule_check.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <set>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "backends/collectives.hpp"
#include "backends/program.hpp"
#include "dsl/syntax/walk.hpp"
#include "graph/passes/writes.hpp"
#include "graph/text/text.hpp"
#include "rewriter/explain/no_change.hpp"
#include "rewriter/rewriter.hpp"
#include "verify/samples/boundaries.hpp"
#include "verify/samples/contents.hpp"
#include "verify/samples/rank_layout.hpp"
#include "verify/samples/sample.hpp"
#include "verify/samples/sampled_graph.hpp"

namespace pw {
namespace {

std::string first_message(const Diagnostics& diagnostics) {
  return diagnostics.empty() ? "no reason given" : diagnostics.front().message;
}

/// The dtypes of the floating inputs, or of the outputs if no input is floating.
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

/// Returns true if an op computes an extreme of no elements, which has no value: PyTorch
/// raises an error there.
bool has_empty_extreme(const Graph& graph, const Symbols& symbols) {
  for (NodeId node = graph.first(); node.valid(); node = graph.next(node)) {
    if (!among(graph.op_of(node).primitive,
               {Primitive::amax, Primitive::amin, Primitive::argmax, Primitive::argmin}))
      continue;
    const auto of = extents_of(graph, graph.operand(node, 0), symbols),
               result = extents_of(graph, graph.result(node), symbols);
    if (of && result && element_count(*of) == 0 && element_count(*result) > 0) return true;
  }
  return false;
}

/// The samples of one graph.
struct Plan {
  std::vector<std::int64_t> tokens;  ///< the last of them with all kinds of contents
  std::vector<Contents> contents;
};

/// Checks one instance of the rule in one layout of ranks.
class InstanceCheck {
 public:
  InstanceCheck(const RuleSet& rules, const Instance& instance, Plan plan, const RankLayout& layout,
                SampleSpace& space, RuleCheck& report)
      : rules_(rules),
        instance_(instance),
        plan_(std::move(plan)),
        layout_(layout),
        space_(space),
        report_(report),
        after_(instance.graph.compact()) {}

  void run() {
    const std::vector<Match> matches =
        find_matches(after_, rules_, instance_.match.rule, instance_.params);
    if (matches.empty()) return refute("a copy of the graph is not matched");
    if (auto applied = apply_match(after_, rules_, matches.front()); !applied) {
      if (applied.error().front().code == kNoChange) return unchanged();
      if (is_degenerate()) return;
      return refute("the match cannot be applied: " + first_message(applied.error()));
    }
    if (const std::string why = wrong_write(); !why.empty()) return refute(why);
    Graph before = instance_.graph.compact(), after = after_.compact();
    if (!inline_bodies(before) || !inline_bodies(after))
      return refute("the bodies of its ops cannot be put in their place");
    groups_ = groups_of(layout_, before, after);
    if (layout_.unstated != layout_.world && groups_.empty()) return;  // all are all ranks: done
    const Graph* graphs[] = {&before, &after};
    for (std::size_t i = 0; i < plan_.tokens.size(); ++i) {
      const auto tokens =
          fitting_tokens(graphs, matches.front().conditions, plan_.tokens[i] * layout_.ranks);
      if (!tokens) return refute("no number of tokens meets its conditions");
      const Symbols symbols = sample_symbols(before, *tokens);
      if (has_empty_extreme(before, symbols) || has_empty_extreme(after, symbols)) continue;
      compare(*tokens, i + 1 == plan_.tokens.size());
    }
    conclude();
  }

 private:
  [[nodiscard]] bool going() const { return found_.verdict < RuleVerdict::refuted; }

  /// Returns true if an input or a result has rank 0 or no elements. Such operands take the dtype
  /// of literals, and not every op has a type for them. Applying the rule rejects a right side
  /// without a type.
  [[nodiscard]] bool is_degenerate() const {
    const Graph& graph = instance_.graph;
    std::vector<ValueId> values = graph.inputs();
    for (NodeId node = graph.first(); node.valid(); node = graph.next(node))
      for (std::size_t r = 0; r < graph.result_count(node); ++r)
        if (graph.op_of(node).primitive != Primitive::constant)
          values.push_back(graph.result(node, r));
    return std::any_of(values.begin(), values.end(), [&](ValueId value) {
      if (graph.type(value) == Types::unknown()) return false;
      const Shape& shape = graph.context().types[graph.type(value)].shape;
      const Dims& dims = graph.context().dims;
      return shape.empty() || std::any_of(shape.begin(), shape.end(),
                                          [&](DimId dim) { return dims.value(dim) == 0; });
    });
  }

  void conclude() {
    report_.by_dtype[dtypes_of(instance_.graph)].merge(found_);
    report_.judgement.merge(found_);
  }

  /// The rewrite changes nothing, so all inputs give the same bits.
  void unchanged() {
    ++report_.runs;
    conclude();
  }

  /// A write that the rule adds or repeats, which no value of the graph reveals.
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
    found_.refute(fmt::format("{}{}{}\n{}", place, place.empty() ? "" : ": ", message,
                              print_pwg(instance_.graph)),
                  true);
    conclude();
  }

  /// Runs one token count with ordinary contents or with all kinds.
  void compare(std::int64_t tokens, bool all) {
    const Graph& before = instance_.graph;
    const Symbols symbols = sample_symbols(before, tokens);
    Step step = sample_step(before, symbols);
    if (!groups_.empty()) step.groups = &groups_;
    const SampleInputs inputs(before, symbols, groups_, literals());
    space_.add(before, symbols);
    std::vector<Weights> weights = weights_of_ranks(before, 1, layout_.ranks);
    for (Contents contents : plan_.contents) {
      if (!all && contents != Contents::ordinary) continue;
      const std::uint64_t rounds = all ? rounds_of(inputs, contents) : 1;
      for (std::uint64_t round = 0; round < rounds && going(); ++round) {
        if (!inputs.give(weights, contents, round)) return;
        compare({weights, symbols, step}, contents, round == 0);
      }
    }
  }

  /// Returns the numbers that either side states, since decisions depend on them.
  [[nodiscard]] std::vector<double> literals() const {
    std::vector<double> out = literals_of(instance_.graph), right = literals_of(after_);
    out.insert(out.end(), right.begin(), right.end());
    return out;
  }

  /// The number of rounds that give every input all special values, unless earlier samples did.
  [[nodiscard]] std::uint64_t rounds_of(const SampleInputs& inputs, Contents contents) const {
    const Graph& graph = instance_.graph;
    for (std::size_t i = 0; i < graph.inputs().size(); ++i) {
      const ValueId input = graph.inputs()[i];
      if (graph.type(input) == Types::unknown()) continue;
      const DType dtype = graph.context().types[graph.type(input)].dtype;
      if (!space_.complete(i, dtype, contents)) return inputs.rounds(contents);
    }
    return 1;
  }

  void note(const DrawnSample& sample, Contents contents) {
    const Graph& graph = instance_.graph;
    for (std::size_t i = 0; i < graph.inputs().size(); ++i)
      if (const auto tensor = sample.ranks.front().tensor(graph.value_name(graph.inputs()[i]),
                                                          sample.symbols, sample.step))
        space_.add(i, *tensor, contents);
  }

  /// Skips samples on which the original graph itself fails. The reference runs on finite samples
  /// only: for infinity and NaN it adds nothing to the runs in the dtypes.
  void compare(const DrawnSample& sample, Contents contents, bool first) {
    auto before = before_.run(sample);
    if (!before) return;
    auto after = changed_.run(sample);
    if (!after) return refute_run(after.error());
    ++report_.runs;
    note(sample, contents);
    const bool same = same_bits(*before, *after);
    if (same && !first) return;
    RankOutputs exact_before, exact_after;
    if (contents != Contents::infinite && contents != Contents::nan) {
      auto a = before_.run_exact(sample), b = changed_.run_exact(sample);
      if (!a || !b) return refute_run(a ? b.error() : a.error());
      exact_before = std::move(*a);
      exact_after = std::move(*b);
    } else if (same) {
      return;
    }
    Bounds bounds(before_, changed_, sample);
    for (std::size_t r = 0; r < before->size() && going(); ++r) {
      SampleRuns runs;
      runs.contents = contents;
      runs.before = std::move((*before)[r]);
      runs.after = std::move((*after)[r]);
      if (!exact_before.empty()) {
        runs.exact_before = std::move(exact_before[r]);
        runs.exact_after = std::move(exact_after[r]);
      }
      runs.inputs = shown_inputs(sample, r);
      runs.bounds = [&](bool exact) { return bounds.get(exact, r); };
      judge_rank(runs, r);
    }
  }

  static bool same_bits(const RankOutputs& before, const RankOutputs& after) {
    for (std::size_t r = 0; r < before.size(); ++r)
      for (std::size_t i = 0; i < before[r].size(); ++i) {
        const Tensor &a = before[r][i], &b = after[r][i];
        if (a.dtype() != b.dtype() || a.extents() != b.extents() ||
            std::memcmp(a.data(), b.data(), a.view().bytes()) != 0)
          return false;
      }
    return true;
  }

  /// Computes the bounds of both sides on one sample on demand.
  class Bounds {
   public:
    Bounds(SampledGraph& before, SampledGraph& after, const DrawnSample& sample)
        : before_(before), after_(after), sample_(sample) {}
    const SampleBounds* get(bool exact, std::size_t rank) {
      std::optional<std::vector<SampleBounds>>& made = made_.at(exact ? 1 : 0);
      if (!made) made = make(exact);
      return rank < made->size() ? &(*made)[rank] : nullptr;
    }

   private:
    [[nodiscard]] std::vector<SampleBounds> make(bool exact) {
      BoundOptions options{.exact = exact, .coarsest = 1};
      auto before = before_.bounds(sample_, options);
      // A dtype coarser than those of the left side's computations does not excuse a difference.
      options.coarsest = before_.coarsest_step();
      auto after = after_.bounds(sample_, options);
      std::vector<SampleBounds> out;
      if (!before || !after) return out;
      for (std::size_t r = 0; r < before->size(); ++r)
        out.push_back({std::move((*before)[r]), std::move((*after)[r])});
      return out;
    }

    SampledGraph &before_, &after_;
    const DrawnSample& sample_;
    std::array<std::optional<std::vector<SampleBounds>>, 2> made_;
  };

  void refute_run(const Diagnostics& why) {
    if (why.front().code != kNoKernel) return refute("it does not run: " + first_message(why));
    report_.judgement.verdict = RuleVerdict::cannot_run;
    report_.judgement.reason = first_message(why);
  }

  void judge_rank(const SampleRuns& runs, std::size_t rank) {
    Judgement seen = judge(instance_.graph, runs);
    if (!seen.holds()) {
      const std::string place = layout_.ranks > 1 ? fmt::format("rank {} {}: ", rank, where()) : "";
      seen.reason = fmt::format("{}{}\n{}", place, seen.reason, print_pwg(instance_.graph));
    }
    found_.merge(seen);
  }

  std::vector<std::pair<std::string, Tensor>> shown_inputs(const DrawnSample& sample,
                                                           std::size_t rank) const {
    std::vector<std::pair<std::string, Tensor>> out;
    for (ValueId input : instance_.graph.inputs()) {
      const std::string_view name = instance_.graph.value_name(input);
      if (auto tensor = sample.ranks[rank].tensor(name, sample.symbols, sample.step))
        out.emplace_back(name, std::move(*tensor));
    }
    return out;
  }

  const RuleSet& rules_;
  const Instance& instance_;
  Plan plan_;
  const RankLayout& layout_;
  SampleSpace& space_;
  RuleCheck& report_;
  Graph after_;
  SampledGraph before_{instance_.graph}, changed_{after_};
  RankGroups groups_;
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
  if (op.traits.collective || find_collective(op.primitive) != nullptr) return true;
  return seen.insert(id).second && calls_collectives(context, op.body, seen);
}

}  // namespace

bool uses_collectives(const RuleSet& rules, const Rule& rule) {
  std::set<OpId> seen;
  for (const PatternNode& node : rule.nodes)
    if (op_uses_collectives(*rules.context, node.op, seen)) return true;
  return calls_collectives(*rules.context, rule.replacement, seen);
}

namespace {

constexpr double kMostNodes = 20000;

/// Number of nodes after inlining all bodies; an op that calls itself counts once.
class Unfolded {
 public:
  explicit Unfolded(const Context& context) : context_(context) {}

  double of(OpId op) {
    if (!op.valid()) return 1;
    const auto [known, first] = sizes_.emplace(op, 1);
    if (first && context_.ops[op].has_body()) sizes_[op] = std::max(1.0, of(context_.ops[op].body));
    return sizes_[op];
  }
  double of(const std::vector<Statement>& statements) {
    double size = 0;
    for (const Statement& statement : statements)
      visit_calls(statement, [&](const Expr& call) { size += of(context_.ops.find(call.text)); });
    return size;
  }

 private:
  const Context& context_;
  std::map<OpId, double> sizes_;
};

double unfolded_size(const RuleSet& rules, const Rule& rule) {
  Unfolded unfolded(*rules.context);
  double before = 0;
  for (const PatternNode& node : rule.nodes) before += unfolded.of(node.op);
  return std::max(before, unfolded.of(rule.replacement));
}

/// Limit that keeps a check fast.
bool small(const Graph& graph, const Symbols& symbols) {
  constexpr std::int64_t kMost = 1 << 16;
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

/// Returns true if a graph is long after inlining the bodies of its ops.
bool is_large(const Graph& graph) {
  constexpr std::size_t kMost = 24;
  Graph inlined = graph.compact();
  if (!inline_bodies(inlined)) return false;
  return inlined.order().size() > kMost;
}

class Check {
 public:
  Check(const RuleSet& rules, RuleId id, const Env& params, const RuleCheckOptions& options,
        const RankLayout& layout, SampleSpace& space, RuleCheck& report)
      : rules_(rules),
        id_(id),
        params_(params),
        options_(options),
        layout_(layout),
        space_(space),
        report_(report) {}

  /// Runs the check; returns a verdict if there was no graph to check.
  std::optional<Judgement> run() {
    const Instances instances = make_instances(rules_, id_, params_, instance_options());
    if (instances.found.empty()) return none(instances);
    large_ = is_large(instances.found.front().graph);
    for (const Instance& instance : instances.found) check(instance);
    if (whole() && options_.cover) cover();
    if (report_.runs == 0 && going()) return never_ran();
    if (!whole()) return std::nullopt;
    for (const GuardBoundary& boundary : boundaries_of(rules_, rules_.rules[id_], known()))
      if (going()) at(boundary);
    return std::nullopt;
  }

 private:
  [[nodiscard]] bool going() const { return report_.judgement.verdict < RuleVerdict::refuted; }
  /// Returns true if every group contains all ranks. Other layouts get a short check only.
  [[nodiscard]] bool whole() const {
    return layout_.world == layout_.ranks && layout_.unstated == layout_.ranks;
  }

  /// Without any run nothing was checked.
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

  /// Types do not express all requirements of an op, so an original graph that fails to run is not
  /// evidence against the rule.
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
      if (has_empty_extreme(instance.graph, symbols)) return "it takes an extreme of no elements";
      std::vector<Weights> weights = weights_of_ranks(instance.graph, 1, layout_.ranks);
      if (!give_contents(weights, instance.graph, symbols, Contents::ordinary, 0))
        return "a symbol of it has no value";
      auto ran = run_reference(instance.graph, std::span<Weights>(weights),
                               sample_step(instance.graph, symbols), symbols);
      if (ran) return std::nullopt;
      if (ran.error().front().code == kNoKernel) lacking_ = first_message(ran.error());
      return "the reference cannot run it: " + first_message(ran.error());
    };
    return options;
  }

  void check(const Instance& instance) { check(instance, options_.tokens); }
  void check(const Instance& instance, const std::vector<std::int64_t>& tokens) {
    if (!going()) return;
    ++report_.instances;
    Plan plan{tokens, options_.contents};
    if (plan.contents.empty()) plan.contents.assign(std::begin(kContents), std::end(kContents));
    InstanceCheck(rules_, instance, std::move(plan), layout_, space_, report_).run();
  }

  /// Generates graphs for the rows of a covering design and skips those that cover nothing new.
  /// Makes fewer attempts for a dtype once none was found for it.
  void cover() {
    constexpr std::size_t kAttempts = 24, kFewAttempts = 6;
    constexpr std::int64_t kTokens = 3;
    std::set<DType> lacking;
    std::size_t row = 0;
    for (const Profile& profile : covering_profiles(!large_)) {
      if (!going()) return;
      InstanceOptions options = instance_options();
      options.profile = profile;
      options.seed = combine(options.seed, ++row);
      options.wanted = 1;
      options.refusals = 2;
      options.attempts = lacking.contains(profile.dtype) ? kFewAttempts : kAttempts;
      const Instances instances = make_instances(rules_, id_, params_, options);
      if (instances.found.empty()) {
        lacking.insert(profile.dtype);
        space_.refuse(profile.dtype);
        continue;
      }
      const Instance& instance = instances.found.front();
      const Symbols symbols = sample_symbols(instance.graph, kTokens);
      if (space_.add(instance.graph, symbols)) check(instance, {kTokens});
    }
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

  /// The rules with this one's guards removed, to find what it would match without them.
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
  SampleSpace& space_;
  RuleCheck& report_;
  std::optional<RuleSet> unguarded_;
  bool large_ = false;   // its graphs have many nodes, so fewer are generated
  std::string lacking_;  // reason if a graph has an op with neither a kernel nor a body
};

/// Checks all layouts of this number of ranks. A guard may exclude some of them, but not all.
void check_on(std::int64_t ranks, const RuleSet& rules, RuleId rule, const Env& params,
              const RuleCheckOptions& options, SampleSpace& space, RuleCheck& report) {
  std::optional<Judgement> none;
  bool checked = false;
  for (const RankLayout& layout : layouts_of(ranks)) {
    if (report.judgement.verdict >= RuleVerdict::refuted) return;
    auto why = Check(rules, rule, params, options, layout, space, report).run();
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
  if (const double size = unfolded_size(rules, rules.rules[rule]); size > kMostNodes) {
    report.judgement.verdict = RuleVerdict::cannot_run;
    report.judgement.reason =
        fmt::format("limit: its ops unfold to {:.3g} nodes, more than {}", size, kMostNodes);
    return report;
  }
  report.ranks = {1};
  if (uses_collectives(rules, rules.rules[rule])) report.ranks = options.ranks;
  SampleSpace space;
  for (std::int64_t ranks : report.ranks)
    check_on(ranks, rules, rule, params, options, space, report);
  report.drawn = space.drawn();
  return report;
}

}  // namespace pw
