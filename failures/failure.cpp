#include "failures/failure.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "backends/eager/eager.hpp"
#include "base/counted.hpp"
#include "base/hash.hpp"
#include "base/try.hpp"
#include "graph/text/text.hpp"
#include "graph/verify.hpp"
#include "rewriter/strategies/driver.hpp"
#include "verify/samples/sample.hpp"
#include "verify/ties.hpp"

namespace pw {
namespace {

constexpr std::int64_t kUsualSizes[] = {1, 5};

bool has_code(const Diagnostics& diagnostics, const std::string& code) {
  return std::any_of(diagnostics.begin(), diagnostics.end(),
                     [&](const Diagnostic& d) { return d.code == code; });
}

bool all_pass(const std::vector<NumericReport>& ranks) {
  return std::all_of(ranks.begin(), ranks.end(),
                     [](const NumericReport& report) { return report.passed(); });
}

FailureVerdict bad_if(bool bad) { return bad ? FailureVerdict::bad : FailureVerdict::good; }

}  // namespace

std::string_view name(FailureKind kind) {
  switch (kind) {
    case FailureKind::numeric: return "numeric";
    case FailureKind::command: return "command";
    case FailureKind::diagnostic: return "diagnostic";
    case FailureKind::order: return "order";
  }
  return "?";
}

FailureKind FailureRequest::kind() const {
  if (!command.empty()) return FailureKind::command;
  if (!code.empty()) return FailureKind::diagnostic;
  return order ? FailureKind::order : FailureKind::numeric;
}

std::optional<std::string> number_failure(const NumericReport& report) {
  for (const OutputCheck& output : report.outputs)
    if (!output.passed) return fmt::format("output {}: {}", output.name, output.reason);
  return std::nullopt;
}

Result<FailureCheck> FailureCheck::make(const LoadedRules& rules, const FailureRequest& request) {
  UserCommand command{{}, request.seconds};
  if (request.kind() == FailureKind::command) command.words = PW_TRY(split_words(request.command));
  FailureRequest completed = request;
  if (completed.tokens.empty())
    completed.tokens.assign(std::begin(kUsualSizes), std::end(kUsualSizes));
  return FailureCheck(rules, completed, std::move(command));
}

Result<FailureVerdict> FailureCheck::of_graphs(const Graph& before, const Graph& after) {
  ++runs_;
  switch (kind()) {
    case FailureKind::numeric: return numbers(before, after);
    case FailureKind::command:
      return run_command(command_, {{"before", print_pwg(before)}, {"after", print_pwg(after)}});
    case FailureKind::diagnostic: return bad_if(has_code(verify(after), request_.code));
    case FailureKind::order: return FailureVerdict::unclear;
  }
  return FailureVerdict::unclear;
}

Result<FailureVerdict> FailureCheck::of_run(const Graph& graph, const Strategy& strategy) {
  if (kind() == FailureKind::diagnostic) return diagnostics(graph, strategy);
  if (kind() == FailureKind::order) return orders(graph, strategy);
  Graph after = graph;
  if (!run_strategy(after, rules_->set, strategy, rules_->params, {}))
    return FailureVerdict::unclear;
  return of_graphs(graph, after);
}

Result<FailureVerdict> FailureCheck::diagnostics(const Graph& graph, const Strategy& strategy) {
  ++runs_;
  Graph after = graph;
  const auto report = run_strategy(after, rules_->set, strategy, rules_->params, {});
  if (!report) return bad_if(has_code(report.error(), request_.code));
  return bad_if(has_code(report->warnings, request_.code) ||
                has_code(verify(after), request_.code));
}

Result<FailureVerdict> FailureCheck::orders(const Graph& graph, const Strategy& strategy) {
  ++runs_;
  const auto report = fuzz_order(graph, rules_->set, strategy, rules_->params, request_.orders);
  return report ? bad_if(!report->different.empty()) : FailureVerdict::unclear;
}

/// The first step with different numbers decides. Skips steps that cannot run and steps in which
/// the original graph fails because no element is finite.
FailureVerdict FailureCheck::numbers(const Graph& before, const Graph& after) {
  const auto backend = make_eager();
  Graph whole_before = before.compact(), whole_after = after.compact();
  if (!inline_bodies(whole_before) || !inline_bodies(whole_after)) return FailureVerdict::unclear;
  const std::int64_t ranks = std::lcm(ranks_needed(whole_before), ranks_needed(whole_after));
  if (const std::uint64_t hash = hash_text(print_pwg(before)); hash != measured_) {
    yardsticks_.clear();
    measured_ = hash;
  }
  FailureVerdict out = FailureVerdict::unclear;
  for (const std::int64_t tokens : request_.tokens) {
    const Symbols symbols = sample_symbols(before, tokens);
    if (!divides_evenly(whole_before, symbols) || !divides_evenly(whole_after, symbols)) continue;
    const Step step = sample_step(before, symbols);
    std::vector<Weights> weights = weights_of_ranks(before, request_.seed, ranks);
    auto measured = yardsticks_.find({tokens, ranks});
    if (measured == yardsticks_.end()) {
      auto yardstick = run_yardstick(before, *backend, weights, step, symbols);
      if (!yardstick || !all_pass(check_outputs(before, *yardstick, yardstick->before))) continue;
      measured = yardsticks_.emplace(std::pair(tokens, ranks), std::move(*yardstick)).first;
    }
    const auto outputs = run_whole(after, *backend, std::span<Weights>(weights), step, symbols);
    if (!outputs) continue;
    const auto reports =
        check_but_for_ties({before, weights, step, symbols}, measured->second, *outputs);
    if (!reports) continue;
    out = FailureVerdict::good;
    for (const NumericReport& report : *reports)
      if (const auto failure = number_failure(report)) {
        reason_ = fmt::format("{}, {}", counted(tokens, "token"), *failure);
        return FailureVerdict::bad;
      }
  }
  return out;
}

}  // namespace pw
