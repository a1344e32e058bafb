#include "verify/expectation.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "backends/eager/eager.hpp"
#include "base/try.hpp"
#include "dsl/dsl.hpp"
#include "exec/runner.hpp"
#include "graph/text/text.hpp"
#include "rewriter/analysis/orders/fuzz_order.hpp"
#include "tensor/numerics.hpp"
#include "verify/isomorphism.hpp"
#include "verify/numeric.hpp"
#include "verify/samples/sample.hpp"

namespace pw {
namespace {

using Verdict = std::optional<TestFailure>;

/// A test's run in one range.
struct RangeRun {
  const TestRun& test;
  const TestVariant& variant;
  const RuleSet& rules = test.rules;
  const Env& params = test.params;
  const Graph& before = test.before;
  const Graph& after = variant.after;
  const std::vector<RewriteReport>& reports = variant.reports;
};

std::int64_t rewrites(const RangeRun& run, std::string_view reference) {
  std::size_t count = 0;
  for (const RewriteReport& report : run.reports)
    count += report.journal.count(run.rules, reference);
  return static_cast<std::int64_t>(count);
}

std::int64_t nodes_of(const Graph& graph, std::string_view op) {
  const std::vector<NodeId> order = graph.order();
  return std::count_if(order.begin(), order.end(),
                       [&](NodeId node) { return graph.op_of(node).name == op; });
}

/// The warnings of the passes with this code.
std::int64_t diagnostics_of(const RangeRun& run, std::string_view code) {
  std::int64_t count = 0;
  for (const RewriteReport& report : run.reports)
    count += std::count_if(report.warnings.begin(), report.warnings.end(),
                           [&](const Diagnostic& d) { return d.code == code; });
  return count;
}

/// The number of distinct results of the passes in the declared order and in other orders of rules,
/// nodes and matches; nothing if a run fails.
std::optional<std::int64_t> results_of_orders(const RangeRun& run, std::int64_t orders) {
  Strategy all;
  for (const ExplainedRun& applied : run.variant.runs) {
    const Strategy* strategy = run.rules.strategy(applied.pipeline);
    if (strategy == nullptr) return std::nullopt;
    all.parts.push_back(*strategy);
  }
  FuzzOptions options;
  options.orders = static_cast<std::size_t>(std::clamp<std::int64_t>(orders, 1, 10000));
  const auto report = fuzz_order(
      run.before, run.rules, all.parts.size() == 1 ? all.parts.front() : all, run.params, options);
  if (!report) return std::nullopt;
  std::set<std::pair<std::uint64_t, std::map<std::string, std::size_t>>> results;
  for (const OrderRun& order : report->runs) results.emplace(order.hash, order.counts);
  return static_cast<std::int64_t>(results.size());
}

/// A rule reference as written in an expression: `noop.detach`, `rms_quant_dyn[token]`.
std::string reference_of(const Expr& expr) {
  if (expr.kind == Expr::Kind::path) return expr.text;
  if (expr.kind == Expr::Kind::index && expr.args.size() == 2)
    return fmt::format("{}[{}]", reference_of(expr.args[0]), print(expr.args[1]));
  return {};
}

/// Evaluates an expression of counts; nothing if it names no rule and is not a number.
std::optional<std::int64_t> number(const RangeRun& run, const Expr& expr) {
  if (expr.kind == Expr::Kind::integer) return expr.integer;
  if (expr.kind == Expr::Kind::call && expr.args.size() == 1) {
    if (expr.text == "count") return nodes_of(run.after, expr.args[0].text);
    if (expr.text == "diagnostics") return diagnostics_of(run, expr.args[0].text);
    if (expr.text == "orders") return results_of_orders(run, expr.args[0].integer);
  }
  if (const std::string reference = reference_of(expr); !reference.empty()) {
    if (!run.rules.resolve(reference).empty()) return rewrites(run, reference);
    if (reference == "nodes" && !run.rules.params.contains(reference))
      return static_cast<std::int64_t>(run.after.node_count());
  }
  if (expr.kind == Expr::Kind::binary && expr.args.size() == 2 &&
      std::string_view("+-*").find(expr.text) != std::string_view::npos) {
    const auto a = number(run, expr.args[0]), b = number(run, expr.args[1]);
    if (!a || !b) return std::nullopt;
    return expr.text == "+" ? *a + *b : expr.text == "-" ? *a - *b : *a * *b;
  }
  auto value = evaluate(*run.rules.context, nullptr, expr, run.params);
  if (!value) return std::nullopt;
  const auto* integer = std::get_if<std::int64_t>(&*value);
  return integer == nullptr ? std::nullopt : std::optional(*integer);
}

std::optional<bool> compare(const std::string& op, std::int64_t a, std::int64_t b) {
  if (op == "==") return a == b;
  if (op == "!=") return a != b;
  if (op == "<") return a < b;
  if (op == "<=") return a <= b;
  if (op == ">") return a > b;
  if (op == ">=") return a >= b;
  return std::nullopt;
}

Verdict failed(const ast::Expectation& expectation, std::string message, std::string detail = {}) {
  return TestFailure{expectation.span, std::move(message), std::move(detail), {}};
}

/// The rules that an expectation with `because` is about.
std::set<std::string> rules_of(const RangeRun& run, const Expr& expr) {
  std::set<std::string> out;
  if (const std::string reference = reference_of(expr); !reference.empty())
    for (RuleId rule : run.rules.resolve(reference)) out.insert(run.rules.rules[rule].name);
  else
    for (const Expr& arg : expr.args) out.merge(rules_of(run, arg));
  return out;
}

void add_rules_of(const RuleSet& rules, const Strategy& strategy, std::set<std::string>& out) {
  for (RuleId rule : strategy.rules) out.insert(rules.rules[rule].name);
  for (const Strategy& part : strategy.parts) add_rules_of(rules, part, out);
}

/// The rules of `expect none`, which names none: all rules of the applied passes.
std::set<std::string> applied_rules(const RangeRun& run) {
  std::set<std::string> out;
  for (const ExplainedRun& applied : run.variant.runs)
    if (const Strategy* strategy = run.rules.strategy(applied.pipeline))
      add_rules_of(run.rules, *strategy, out);
  return out;
}

bool is_reason(const Rejection& rejection, const ast::Expectation& expectation) {
  const bool code = expectation.because_code.empty() || rejection.code == expectation.because_code;
  return code && rejection.message.find(expectation.because_text) != std::string::npos;
}

/// The reasons why matches of the rule were rejected, over all passes of the test, and the
/// rejection of the nearest miss in the rewritten graph.
Result<std::vector<Rejection>> reasons_of(const RangeRun& run, const std::string& rule) {
  ExplainOptions options;
  options.runs = run.variant.runs;
  options.most = std::numeric_limits<std::size_t>::max();
  auto found = PW_TRY(explain_rules(run.before, run.rules, rule, run.params, options));
  std::vector<Rejection> reasons;
  bool nearest = true;
  for (const NearMissGroup& group : found.groups) {
    if (!group.first.complete && !std::exchange(nearest, false)) continue;
    reasons.push_back(group.first.why);
  }
  return reasons;
}

Verdict judge_because(const RangeRun& run, const ast::Expectation& expectation) {
  if (expectation.because_code.empty() && expectation.because_text.empty()) return std::nullopt;
  std::set<std::string> rules;
  for (const Expr& guard : expectation.guard) rules.merge(rules_of(run, guard));
  if (expectation.kind == ast::Expectation::Kind::none) rules = applied_rules(run);
  std::string met;
  for (const std::string& rule : rules) {
    const auto reasons = reasons_of(run, rule);
    if (!reasons)
      return failed(expectation, fmt::format("`{}` cannot be explained", rule),
                    render(reasons.error(), run.rules.context->sources));
    for (const Rejection& reason : *reasons) {
      if (is_reason(reason, expectation)) return std::nullopt;
      met += fmt::format("{}: {} {}\n", rule, reason.code, reason.message);
    }
  }
  const std::string expected =
      expectation.because_code +
      (expectation.because_text.empty() ? "" : " \"" + expectation.because_text + "\"");
  return failed(expectation, fmt::format("the rule was not rejected because of {}", expected),
                met.empty() ? "no node of the graph comes close to matching the rule\n" : met);
}

Verdict judge_count(const RangeRun& run, const ast::Expectation& expectation, const Expr& guard) {
  if (guard.kind != Expr::Kind::binary || guard.args.size() != 2)
    return failed(expectation, fmt::format("`{}` is not a comparison of counts", print(guard)));
  const auto a = number(run, guard.args[0]), b = number(run, guard.args[1]);
  if (!a || !b)
    return failed(expectation,
                  fmt::format("`{}` is not a count: no rule, family or group has that name",
                              print(guard.args[a ? 1 : 0])));
  const auto holds = compare(guard.text, *a, *b);
  if (!holds) return failed(expectation, fmt::format("`{}` is not a comparison", print(guard)));
  if (*holds) return std::nullopt;
  const std::string got = guard.args[1].kind == Expr::Kind::integer
                              ? fmt::format("{}", *a)
                              : fmt::format("{} {} {}", *a, guard.text, *b);
  Verdict verdict = failed(expectation, fmt::format("expected {}, got {}", print(guard), got),
                           print_pwg(run.after));
  const bool reason = !expectation.because_code.empty() || !expectation.because_text.empty();
  if (guard.text == "==" && guard.args[1].kind == Expr::Kind::integer && !reason)
    verdict->fix = CountFix{guard.args[1].span, *a};
  return verdict;
}

Verdict judge_counts(const RangeRun& run, const ast::Expectation& expectation) {
  for (const Expr& guard : expectation.guard) {
    if (Verdict verdict = judge_count(run, expectation, guard)) return verdict;
  }
  return judge_because(run, expectation);
}

Verdict judge_none(const RangeRun& run, const ast::Expectation& expectation) {
  std::size_t total = 0;
  for (const RewriteReport& report : run.reports) total += report.journal.total();
  if (total == 0) return judge_because(run, expectation);
  return failed(expectation, fmt::format("expected no rewrite, got {}", total),
                print_pwg(run.after));
}

Verdict judge_graph(const RangeRun& run, const ast::Expectation& expectation) {
  auto expected = build_graph(run.rules.context, expectation.graph.front());
  if (!expected)
    return failed(expectation, "the expected graph is malformed",
                  render(expected.error(), run.rules.context->sources));
  const std::string difference = graph_difference(*expected, run.after);
  return difference.empty()
             ? std::nullopt
             : failed(expectation, "the graph differs from the expected one", difference);
}

/// Compares ‖a − b‖∞ with t · ‖a‖∞; a NaN on one side only counts as an infinite distance.
Verdict judge_values(const ast::Expectation& expectation, std::string_view name, const Tensor& a,
                     const Tensor& b) {
  if (a.dtype() != b.dtype() || a.extents() != b.extents())
    return failed(expectation, fmt::format("output {} changed its type", name));
  double difference = 0, magnitude = 0;
  for (std::int64_t i = 0; i < a.view().count(); ++i) {
    const double x = load(a.dtype(), a.data(), i), y = load(b.dtype(), b.data(), i);
    if (std::isfinite(x)) magnitude = std::max(magnitude, std::fabs(x));
    if (!std::isfinite(x) && ((std::isnan(x) && std::isnan(y)) || x == y)) continue;
    const double gap = distance(a.dtype(), a.data(), b.dtype(), b.data(), i);
    difference = std::max(difference, std::isnan(gap) ? INFINITY : gap);
  }
  if (difference <= expectation.within * magnitude) return std::nullopt;
  return failed(expectation,
                fmt::format("output {} differs by {:.4g}, more than {:.4g} times {:.4g}", name,
                            difference, expectation.within, magnitude));
}

/// Two token counts within the graphs' range that meet its conditions and split evenly where they
/// are scattered.
std::vector<std::int64_t> sample_tokens(const RangeRun& run, const Graph& before,
                                        const Graph& after) {
  constexpr std::size_t kWanted = 2;
  constexpr std::int64_t kTried = 4096;
  std::vector<std::int64_t> out;
  const auto consider = [&](std::int64_t tokens) {
    const TokenRange range = run.variant.range;
    if (out.size() >= kWanted || tokens < range.min || tokens > range.max) return;
    const Symbols symbols = sample_symbols(run.before, tokens);
    if (std::find(out.begin(), out.end(), tokens) != out.end()) return;
    if (!divides_evenly(before, symbols) || !divides_evenly(after, symbols)) return;
    if (meets(*run.rules.context, run.variant.conditions, {symbols.begin(), symbols.end()}))
      out.push_back(tokens);
  };
  consider(1);
  consider(5);
  for (std::int64_t i = 0; out.size() < kWanted && i < kTried; ++i)
    consider(run.variant.range.min + i);
  return out;
}

Verdict judge_numeric(const RangeRun& run, const ast::Expectation& expectation) {
  const auto backend = make_eager();
  Graph before = run.before.compact(), after = run.after.compact();
  if (!inline_bodies(before) || !inline_bodies(after))
    return failed(expectation, "the body of an op in the graph cannot be inlined");
  const std::vector<std::int64_t> sizes = sample_tokens(run, before, after);
  const std::int64_t ranks = std::lcm(ranks_needed(before), ranks_needed(after));
  if (sizes.empty())
    return failed(expectation, "no token count meets the conditions of this range");
  for (std::int64_t tokens : sizes) {
    const Symbols symbols = sample_symbols(run.before, tokens);
    const Step step = sample_step(run.before, symbols);
    std::vector<Weights> weights = weights_of_ranks(run.before, run.test.seed, ranks);
    auto a = run_whole(run.before, *backend, std::span<Weights>(weights), step, symbols);
    auto b = run_whole(run.after, *backend, std::span<Weights>(weights), step, symbols);
    if (!a || !b)
      return failed(expectation, "the graph cannot be run",
                    render(a ? b.error() : a.error(), run.rules.context->sources));
    for (std::size_t rank = 0; rank < a->size(); ++rank) {
      for (std::size_t i = 0; i < (*a)[rank].size(); ++i) {
        if (Verdict verdict =
                judge_values(expectation, output_name(run.before, i), (*a)[rank][i], (*b)[rank][i]))
          return verdict;
      }
    }
  }
  return std::nullopt;
}

Verdict judge_in(const RangeRun& run, const ast::Expectation& expectation) {
  using Kind = ast::Expectation::Kind;
  switch (expectation.kind) {
    case Kind::guard:
    case Kind::count: return judge_counts(run, expectation);
    case Kind::none: return judge_none(run, expectation);
    case Kind::graph: return judge_graph(run, expectation);
    case Kind::numeric: return judge_numeric(run, expectation);
    case Kind::error:
      return failed(expectation,
                    fmt::format("expected the error \"{}\", got none", expectation.error));
  }
  return std::nullopt;
}

bool names_range(const Expr& guard) {
  return guard.kind == Expr::Kind::in_range && guard.args.size() == 3 &&
         guard.args[0].kind == Expr::Kind::binary;
}

/// The variant whose range contains the named one, such as `in 1..256`.
const TestVariant* named_variant(const TestRun& run, const Expr& guard) {
  const auto bound = [&](const Expr& expr) -> std::int64_t {
    auto value = evaluate(*run.rules.context, nullptr, expr, run.params);
    const auto* number = value ? std::get_if<std::int64_t>(&*value) : nullptr;
    return number == nullptr ? -1 : *number;
  };
  const std::int64_t from = bound(guard.args[1]), to = bound(guard.args[2]);
  for (const TestVariant& variant : run.variants)
    if (variant.range.min <= from && from <= to && to <= variant.range.max) return &variant;
  return nullptr;
}

std::string range_list(const TestRun& run) {
  std::string out;
  for (const TestVariant& variant : run.variants)
    out += fmt::format("{}{}..{}", out.empty() ? "" : ", ", variant.range.min, variant.range.max);
  return out;
}

Verdict in_variant(const TestRun& run, const TestVariant& variant,
                   const ast::Expectation& expectation) {
  Verdict verdict = judge_in({run, variant}, expectation);
  if (verdict && !variant.name.empty())
    verdict->message = "tokens " + variant.name + ": " + verdict->message;
  return verdict;
}

}  // namespace

std::optional<TestFailure> judge(const TestRun& run, const ast::Expectation& expectation) {
  ast::Expectation everywhere = expectation;
  everywhere.guard.clear();
  for (const Expr& guard : expectation.guard) {
    if (!names_range(guard)) {
      everywhere.guard.push_back(guard);
      continue;
    }
    const TestVariant* variant = named_variant(run, guard);
    if (variant == nullptr)
      return failed(expectation, fmt::format("`{}` names no range of this test", print(guard)),
                    fmt::format("the ranges are {}\n", range_list(run)));
    ast::Expectation one = expectation;
    one.guard = {guard.args[0]};
    if (Verdict verdict = in_variant(run, *variant, one)) return verdict;
  }
  if (everywhere.guard.empty() && !expectation.guard.empty()) return std::nullopt;
  if (run.variants.empty())
    return failed(expectation, "the graph's facts exclude every range of the pipeline");
  for (const TestVariant& variant : run.variants) {
    Verdict verdict = in_variant(run, variant, everywhere);
    if (verdict && run.variants.size() > 1)
      verdict->fix.reset();  // other ranges may have other counts
    if (verdict) return verdict;
  }
  return std::nullopt;
}

}  // namespace pw
