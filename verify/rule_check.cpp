// Exports the generated before ≡ after check of rules.
#include "verify/rule_check.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "backends/collectives.hpp"
#include "backends/eager/eager.hpp"
#include "backends/numerics.hpp"
#include "backends/program.hpp"
#include "dsl/walk.hpp"
#include "graph/text.hpp"
#include "rewriter/rewriter.hpp"
#include "verify/boundaries.hpp"
#include "verify/sample.hpp"

namespace pw {
namespace {

std::string first_message(const Diagnostics& diagnostics) {
  return diagnostics.empty() ? "no reason given" : diagnostics.front().message;
}

/// The share of elements of two f64 tensors that differ, and how far.
struct Difference {
  double largest = 0, magnitude = 0;
  std::int64_t count = 0, total = 0;
};
Difference difference_of(const Tensor& a, const Tensor& b) {
  Difference difference;
  difference.total = a.view().count();
  for (std::int64_t i = 0; i < difference.total; ++i) {
    const double x = load(DType::f64, a.data(), i), y = load(DType::f64, b.data(), i);
    if (std::isfinite(x)) difference.magnitude = std::max(difference.magnitude, std::fabs(x));
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    const double apart = std::fabs(x - y);
    difference.largest = std::max(difference.largest, std::isnan(apart) ? INFINITY : apart);
    ++difference.count;
  }
  return difference;
}

/// What the rule makes of an instance, on `ranks` ranks.
class InstanceCheck {
 public:
  InstanceCheck(const RuleSet& rules, const Instance& instance, const RuleCheckOptions& options,
                std::int64_t ranks, RuleCheck& report)
      : rules_(rules),
        instance_(instance),
        options_(options),
        ranks_(ranks),
        report_(report),
        after_(instance.graph.compact()) {}

  void run() {
    const std::vector<Match> matches =
        find_matches(after_, rules_, instance_.match.rule, instance_.params);
    if (matches.empty()) return fail("a copy of the graph is not matched");
    if (auto applied = apply_match(after_, rules_, matches.front()); !applied)
      return fail("the match cannot be applied: " + first_message(applied.error()));
    Graph before = instance_.graph.compact(), after = after_.compact();
    if (!inline_bodies(before) || !inline_bodies(after))
      return fail("the bodies of its ops cannot be put in their place");
    const Graph* graphs[] = {&before, &after};
    for (std::int64_t least : options_.tokens) {
      const auto tokens = fitting_tokens(graphs, matches.front().conditions, least * ranks_);
      if (!tokens) return fail("no number of tokens meets its conditions");
      for (std::uint64_t seed : {std::uint64_t{1}, std::uint64_t{2}}) compare(*tokens, seed);
    }
  }

 private:
  void fail(const std::string& message) {
    const std::string where = ranks_ > 1 ? fmt::format("on {} ranks: ", ranks_) : "";
    report_.failures.push_back(fmt::format("{}{}\n{}", where, message, print_pwg(instance_.graph)));
  }

  void compare(std::int64_t tokens, std::uint64_t seed) {
    if (!report_.passed()) return;
    const Graph& before = instance_.graph;
    const Symbols symbols = sample_symbols(before, tokens);
    const Step step = sample_step(before, symbols);
    std::vector<Weights> weights = weights_of_ranks(before, seed, ranks_);
    const std::span<Weights> ranks(weights);
    auto a = run_reference(before, ranks, step, symbols),
         b = run_reference(after_, ranks, step, symbols);
    if (!a || !b)
      return fail("the reference cannot run it: " + first_message(a ? b.error() : a.error()));
    const auto backend = make_eager();
    auto x = run_whole(before, *backend, ranks, step, symbols),
         y = run_whole(after_, *backend, ranks, step, symbols);
    if (!x || !y) return fail("eager cannot run it: " + first_message(x ? y.error() : x.error()));
    ++report_.runs;
    for (std::size_t r = 0; r < a->size() && report_.passed(); ++r) {
      for (std::size_t i = 0; i < (*a)[r].size(); ++i)
        compare_reference(r, i, (*a)[r][i], (*b)[r][i]);
      const NumericReport numeric = check_outputs(before, (*a)[r], (*x)[r], (*y)[r]);
      for (const OutputCheck& output : numeric.outputs) {
        if (!output.passed)
          fail(fmt::format("{} of the run in its dtype: {}", place(r, output.name), output.reason));
      }
    }
  }

  [[nodiscard]] std::string place(std::size_t rank, std::string_view output) const {
    return ranks_ == 1 ? fmt::format("output {}", output)
                       : fmt::format("output {} of rank {}", output, rank);
  }

  /// In the reference only fp8 rounds, so that a differing order of operations may move few
  /// elements across a boundary.
  void compare_reference(std::size_t rank, std::size_t i, const Tensor& a, const Tensor& b) {
    const ValueId output = instance_.graph.outputs()[i];
    const std::string at = place(rank, instance_.graph.value_name(output));
    if (a.extents() != b.extents()) return fail(at + " changes its shape");
    const DType dtype = instance_.graph.context().types[instance_.graph.type(output)].dtype;
    const Difference difference = difference_of(a, b);
    const bool fp8 = dtype == DType::f8e4m3 || dtype == DType::f8e5m2;
    const bool few = fp8 && difference.count * 100 <= difference.total &&
                     difference.largest <= ulp(dtype, difference.magnitude);
    if (difference.largest <= options_.exact * difference.magnitude || few) return;
    fail(fmt::format("{} differs in the reference by {:.4g} at magnitude {:.4g}", at,
                     difference.largest, difference.magnitude));
  }

  const RuleSet& rules_;
  const Instance& instance_;
  const RuleCheckOptions& options_;
  std::int64_t ranks_;
  RuleCheck& report_;
  Graph after_;
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

class Check {
 public:
  Check(const RuleSet& rules, RuleId id, const Env& params, const RuleCheckOptions& options,
        std::int64_t ranks, RuleCheck& report)
      : rules_(rules),
        id_(id),
        params_(params),
        options_(options),
        ranks_(ranks),
        report_(report) {}

  void run() {
    const InstanceOptions options = instance_options();
    const Instances instances = make_instances(rules_, id_, params_, options);
    if (instances.found.empty() && !lacking_.empty()) {
      report_.cannot_run = lacking_;
      return;
    }
    if (instances.found.empty()) {
      report_.failures.push_back(
          fmt::format("no graph could be made that it matches{}, in {} attempts of which {} were "
                      "well typed; {}",
                      ranks_ > 1 ? fmt::format(" on {} ranks", ranks_) : "", instances.attempts,
                      instances.built, instances.why));
    }
    for (const Instance& instance : instances.found) check(instance);
    for (const GuardBoundary& boundary : boundaries_of(rules_, rules_.rules[id_], known()))
      if (report_.passed()) at(boundary);
  }

 private:
  /// Types do not say all that an op asks of its operands, so a graph that does not run as it is
  /// says nothing about the rule.
  InstanceOptions instance_options() {
    InstanceOptions options = options_.instances;
    options.ranks = ranks_;
    options.refuses = [this](const Instance& instance) -> std::optional<std::string> {
      const Graph* graphs[] = {&instance.graph};
      const std::int64_t least = options_.tokens.front() * ranks_;
      const auto tokens = fitting_tokens(graphs, instance.match.conditions, least);
      if (!tokens) return "no number of tokens meets its conditions";
      const Symbols symbols = sample_symbols(instance.graph, *tokens);
      std::vector<Weights> weights = weights_of_ranks(instance.graph, 1, ranks_);
      auto ran = run_reference(instance.graph, std::span<Weights>(weights),
                               sample_step(instance.graph, symbols), symbols);
      if (ran) return std::nullopt;
      if (ran.error().front().code == kNoKernel) lacking_ = first_message(ran.error());
      return "the reference cannot run it: " + first_message(ran.error());
    };
    return options;
  }

  void check(const Instance& instance) {
    if (!report_.passed()) return;
    ++report_.instances;
    InstanceCheck(rules_, instance, options_, ranks_, report_).run();
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
        report_.failures.push_back(fmt::format("it matches at {}, where its guards do not hold\n{}",
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
  std::int64_t ranks_;
  RuleCheck& report_;
  std::optional<RuleSet> unguarded_;
  std::string lacking_;  // why a graph did not run that has an op without a kernel and a body
};

}  // namespace

RuleCheck check_rule(const RuleSet& rules, RuleId rule, const Env& params,
                     const RuleCheckOptions& options) {
  RuleCheck report;
  report.rule = rules.rules[rule].name;
  report.ranks = {1};
  if (uses_collectives(rules, rules.rules[rule])) report.ranks = options.ranks;
  for (std::int64_t ranks : report.ranks)
    if (report.passed()) Check(rules, rule, params, options, ranks, report).run();
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
