// Exports the generated before ≡ after check of rules.
#include "verify/rule_check.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "backends/eager/eager.hpp"
#include "backends/numerics.hpp"
#include "graph/text.hpp"
#include "rewriter/rewriter.hpp"
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

class InstanceCheck {
 public:
  InstanceCheck(const RuleSet& rules, const Instance& instance, const RuleCheckOptions& options,
                RuleCheck& report)
      : rules_(rules),
        instance_(instance),
        options_(options),
        report_(report),
        after_(instance.graph.compact()) {}

  void run() {
    const std::vector<Match> matches =
        find_matches(after_, rules_, instance_.match.rule, instance_.params);
    if (matches.empty()) return fail("a copy of the graph is not matched");
    if (auto applied = apply_match(after_, rules_, matches.front()); !applied)
      return fail("the match cannot be applied: " + first_message(applied.error()));
    for (std::int64_t tokens : options_.tokens) {
      for (std::uint64_t seed : {std::uint64_t{1}, std::uint64_t{2}}) compare(tokens, seed);
    }
  }

 private:
  void fail(const std::string& message) {
    report_.failures.push_back(fmt::format("{}\n{}", message, print_pwg(instance_.graph)));
  }

  void compare(std::int64_t tokens, std::uint64_t seed) {
    if (!report_.passed()) return;
    const Graph& before = instance_.graph;
    const Symbols symbols = sample_symbols(before, tokens);
    const Step step = sample_step(before, symbols);
    Weights weights(before, seed);
    auto a = run_reference(before, weights, step, symbols),
         b = run_reference(after_, weights, step, symbols);
    if (!a || !b)
      return fail("the reference cannot run it: " + first_message(a ? b.error() : a.error()));
    const auto backend = make_eager();
    auto x = run_whole(before, *backend, weights, step, symbols),
         y = run_whole(after_, *backend, weights, step, symbols);
    if (!x || !y) return fail("eager cannot run it: " + first_message(x ? y.error() : x.error()));
    ++report_.runs;
    for (std::size_t i = 0; i < a->size(); ++i) compare_reference(i, (*a)[i], (*b)[i]);
    const NumericReport numeric = check_outputs(before, *a, *x, *y);
    for (const OutputCheck& output : numeric.outputs) {
      if (!output.passed)
        fail(fmt::format("output {} of the run in its dtype: {}", output.name, output.reason));
    }
  }

  /// In the reference only fp8 rounds, so that a differing order of operations may move few
  /// elements across a boundary.
  void compare_reference(std::size_t i, const Tensor& a, const Tensor& b) {
    const ValueId output = instance_.graph.outputs()[i];
    if (a.extents() != b.extents())
      return fail(fmt::format("output {} changes its shape", instance_.graph.value_name(output)));
    const DType dtype = instance_.graph.context().types[instance_.graph.type(output)].dtype;
    const Difference difference = difference_of(a, b);
    const bool fp8 = dtype == DType::f8e4m3 || dtype == DType::f8e5m2;
    const bool few = fp8 && difference.count * 100 <= difference.total &&
                     difference.largest <= ulp(dtype, difference.magnitude);
    if (difference.largest <= options_.exact * difference.magnitude || few) return;
    fail(fmt::format("output {} differs in the reference by {:.4g} at magnitude {:.4g}",
                     instance_.graph.value_name(output), difference.largest, difference.magnitude));
  }

  const RuleSet& rules_;
  const Instance& instance_;
  const RuleCheckOptions& options_;
  RuleCheck& report_;
  Graph after_;
};

}  // namespace

RuleCheck check_rule(const RuleSet& rules, RuleId rule, const Env& params,
                     const RuleCheckOptions& options) {
  RuleCheck report;
  report.rule = rules.rules[rule].name;
  const Instances instances = make_instances(rules, rule, params, options.instances);
  if (instances.found.empty()) {
    report.failures.push_back(fmt::format(
        "no graph could be made that it matches, in {} attempts of which {} were well typed; {}",
        instances.attempts, instances.built, instances.why));
  }
  for (const Instance& instance : instances.found) {
    ++report.instances;
    InstanceCheck(rules, instance, options, report).run();
    if (!report.passed()) break;
  }
  return report;
}

std::vector<RuleCheck> check_rules(const RuleSet& rules, const Env& params,
                                   const RuleCheckOptions& options) {
  std::vector<RuleCheck> reports;
  for (std::size_t i = 0; i < rules.rules.size(); ++i)
    reports.push_back(check_rule(rules, RuleId(i), params, options));
  return reports;
}

}  // namespace pw
