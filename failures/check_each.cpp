#include "failures/check_each.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "backends/collectives.hpp"
#include "base/counted.hpp"
#include "base/try.hpp"
#include "failures/failure.hpp"
#include "pipeline/symbol_values.hpp"
#include "verify/ties.hpp"

namespace pw {
namespace {

/// The state of one graph between steps, on all ranks.
struct PassState {
  const Version* version = nullptr;
  std::size_t number = 0;
  KvCache cache;
};

PassCheck judged(const PassState& pass, std::int64_t tokens,
                 const std::vector<NumericReport>& ranks) {
  PassCheck out{pass.version->pass, pass.number, tokens, 0, 0, true, ""};
  double worst = -1;
  for (const NumericReport& report : ranks) {
    if (const auto failure = number_failure(report); failure && out.passed) {
      out.passed = false;
      out.reason = *failure;
    }
    if (!report.ties.empty() && out.passed && out.reason.empty())
      out.reason = "tie: " + print(report.ties.front());
    for (const OutputCheck& output : report.outputs) {
      const double share = output.bound > 0 ? output.after_error / output.bound : 0;
      if (!(share > worst)) continue;
      worst = share;
      out.error = output.after_error;
      out.bound = output.bound;
    }
  }
  return out;
}

bool was_run(const RunRecord& record, const PlannedStep& planned) {
  return std::any_of(record.steps.begin(), record.steps.end(), [&](const StepRun& run) {
    return run.report.tokens == planned.step.tokens();
  });
}

}  // namespace

Result<std::vector<PassCheck>> check_each_pass(const RunRequest& request, const RunRecord& record,
                                               const Log& log) {
  std::vector<PassCheck> out;
  if (record.versions.size() < 2) return out;
  const Graph& original = record.versions.front().graph;
  const RankGroups stated = PW_TRY(stated_groups(original));
  const auto engine = PW_TRY(open_engine(request.engines, request.backend, request.engine));
  std::vector<Weights> weights =
      weights_of_ranks(original, request.engine.seed, request.ranks, request.replication);
  PW_TRY(give_contents_of(request, original, weights.front(), Log()));
  std::vector<PassState> passes;
  for (std::size_t i = 1; i < record.versions.size(); ++i)
    passes.push_back({&record.versions[i], i, KvCache()});
  CheckCaches caches;
  const Symbols symbols = planned_symbols(record.plan);
  const bool goes_on = !request.steps.empty();
  for (const PlannedStep& planned : PW_TRY(wanted_steps(request, original))) {
    if (!was_run(record, planned)) continue;
    const std::int64_t tokens = planned.step.tokens();
    const Yardstick yardstick = PW_TRY(run_yardstick(
        original, engine->whole(), weights, planned.step, symbols, goes_on ? &caches : nullptr));
    for (PassState& pass : passes) {
      log.progress(
          {fmt::format("checking {} after {}", counted(tokens, "token"), pass.version->pass)});
      Step step = planned.step;
      step.cache = goes_on ? &pass.cache : nullptr;
      const RankGroups groups = groups_in(step, stated);
      step.groups = &groups;
      const RankOutputs outputs = PW_TRY(run_whole(pass.version->graph, engine->whole(),
                                                   std::span<Weights>(weights), step, symbols));
      const auto reports = PW_TRY(check_but_for_ties(
          {original, weights, step, symbols, goes_on ? &caches : nullptr}, yardstick, outputs));
      out.push_back(judged(pass, tokens, reports));
      for (const std::int64_t id : planned.ended) pass.cache.end(id);
    }
    for (std::size_t rank = 0; rank < weights.size(); ++rank)
      weights[rank].write_back(original, yardstick.before[rank], planned.step);
    for (const std::int64_t id : planned.ended)
      for (KvCache* of : {&caches.before, &caches.reference}) of->end(id);
  }
  PW_TRY(weights.front().check_files());
  return out;
}

Table pass_check_table(const std::vector<PassCheck>& checks) {
  Table table({"pass", "tokens", "rms error", "bound", "passed", "reason"});
  for (const PassCheck& check : checks)
    table.add({check.pass, check.tokens, real_cell(check.error, fmt::format("{:.3g}", check.error)),
               real_cell(check.bound, fmt::format("{:.3g}", check.bound)),
               yes_cell(check.passed, "no"), check.reason});
  return table;
}

const PassCheck* first_failing(const std::vector<PassCheck>& checks) {
  const PassCheck* out = nullptr;
  for (const PassCheck& check : checks)
    if (!check.passed && (out == nullptr || check.number < out->number)) out = &check;
  return out;
}

}  // namespace pw
