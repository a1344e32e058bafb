// Runs the steps of one planned graph and checks each. The unrewritten graph runs on the same
// inputs, once on the backend and once on the reference, each with its own attention state, which
// persists across steps. Outputs are compared by rank. A step fails if a file that it read has
// changed.
#include "pipeline/run/run_steps.hpp"

#include <map>
#include <set>

#include <fmt/format.h>

#include "backends/collectives.hpp"
#include "base/counted.hpp"
#include "base/io/file.hpp"
#include "base/try.hpp"
#include "codegen/cache/digest.hpp"
#include "dsl/embedded_rules.hpp"
#include "pipeline/check/expected_outputs.hpp"
#include "pipeline/run/generation.hpp"
#include "pipeline/symbol_values.hpp"
#include "tensor/kv_cache.hpp"
#include "tensor/safetensors.hpp"
#include "verify/ties.hpp"

namespace pw {
namespace {

/// The steps of one planned graph. Sequences continue from step to step: each engine stores the
/// attention state.
class StepLoop {
 public:
  StepLoop(const RunRequest& request, const Graph& original, StepEngine& engine, RunSteps& all,
           RunRecord& record, const Log& log)
      : request_(request),
        original_(original),
        engine_(engine),
        all_(all),
        record_(record),
        log_(log) {}

  Status run(const Graph& graph, const std::vector<PlannedStep>& steps) {
    stated_ = PW_TRY(stated_groups(original_));
    if (request_.others)
      weights_.emplace_back(original_, request_.engine.seed, first_rank(), request_.replication);
    else
      weights_ =
          weights_of_ranks(original_, request_.engine.seed, request_.ranks, request_.replication);
    for (std::size_t i = 0; i < weights_.size(); ++i)
      PW_TRY(give_contents_of(request_, original_, weights_[i], log_, rank_of(i)));
    PW_TRY(compute_at_load(engine_, record_, weights_, request_.others.get(), log_));
    if (!request_.expect.empty()) expected_ = PW_TRY(Safetensors::open(request_.expect));
    const auto executable =
        PW_TRY(build_executable(engine_, graph, record_, weights_.front(), log_));
    if (const CompileCache* cache = request_.engine.cache.get(); cache && cache->missing() > 0)
      return fail(error_in(
          request_.graph.path, "PW1219",
          fmt::format("{} of its kernels cannot run here: the file lacks them, or has them for "
                      "another machine",
                      cache->missing()),
          "recompile it with this program on this machine"));
    for (const PlannedStep& planned : steps) PW_TRY(run_one(*executable, planned));
    if (request_.generate > 0) PW_TRY(generate_after(*executable, steps));
    finish_record(*executable, record_, log_);
    return {};
  }

 private:
  /// Returns the rank of this process's first weights.
  [[nodiscard]] std::int64_t first_rank() const {
    return request_.others ? request_.others->rank() : 0;
  }
  [[nodiscard]] std::int64_t rank_of(std::size_t i) const {
    return first_rank() + static_cast<std::int64_t>(i);
  }

  Status run_one(StepExecutable& executable, const PlannedStep& planned) {
    Step step = planned.step;
    const RankGroups groups = groups_in(step, stated_);
    step.groups = &groups;
    step.ranks = request_.others.get();
    const bool goes_on = !request_.steps.empty();
    step.cache = goes_on ? &seen_ : nullptr;
    log_.progress({"running", planned.number, all_.count, "steps"});
    RunOptions options;
    options.pad = request_.pad;
    options.poison = request_.check;
    options.hook = request_.hook;
    RankStepResult result = PW_TRY(executable.run(step, weights_, options));
    for (std::size_t rank = 0; rank < weights_.size(); ++rank)
      for (Tensor& output : result.outputs[rank]) output = weights_[rank].kept(output);
    StepRun run{result.report, {}, {}, {}};
    const Symbols symbols = planned_symbols(record_.plan);
    std::optional<Yardstick> yardstick;
    if (request_.check || (expected_ && !request_.tolerance.named())) {
      log_.progress({fmt::format("checking {} against the double-precision interpreter",
                                 counted(step.tokens(), "token"))});
      yardstick = PW_TRY(run_yardstick(original_, engine_.whole(), weights_, step, symbols,
                                       goes_on ? &others_ : nullptr));
    }
    if (expected_)
      run.expected = PW_TRY(compared(result.outputs.front(), planned.number, yardstick));
    if (request_.check)
      run.numbers = PW_TRY(
          check_but_for_ties({original_, weights_, step, symbols, goes_on ? &others_ : nullptr},
                             *yardstick, result.outputs));
    PW_TRY(check_files());
    for (std::size_t rank = 0; rank < weights_.size(); ++rank)
      weights_[rank].write_back(original_, result.outputs[rank], planned.step);
    for (const std::int64_t id : planned.ended)
      for (KvCache* of : {&seen_, &others_.before, &others_.reference}) of->end(id);
    if (!request_.save.empty()) save(planned.number, result.outputs);
    if (request_.keep) run.outputs = std::move(result.outputs.front());
    record_.steps.push_back(std::move(run));
    return {};
  }

  Status generate_after(StepExecutable& executable, const std::vector<PlannedStep>& steps) {
    Step first = continuation(steps);
    first.ranks = request_.others.get();
    first.cache = &seen_;
    RunOptions options;
    options.pad = request_.pad;
    GeneratedTokens out;
    for (const auto& s : first.sequences) out.sequences.push_back(s.id);
    std::size_t done = 0;
    const RunSome run_some = [&](const Step& next,
                                 const GenerationLimits& left) -> Result<ChosenTokens> {
      log_.progress({"generating", done, static_cast<std::size_t>(request_.generate), "steps"});
      Step step = next;
      const RankGroups groups = groups_in(step, stated_);
      step.groups = &groups;
      auto chosen = PW_TRY(executable.run_some(step, weights_, left, options));
      done += static_cast<std::size_t>(chosen.steps);
      return chosen;
    };
    static_cast<Generation&>(out) =
        PW_TRY(generate(original_, first, {request_.generate, request_.ends}, run_some));
    PW_TRY(check_files());
    log_.say(generation_summary(out));
    record_.generated = std::move(out);
    return {};
  }

  /// Fails if a file that the step has read has changed, which invalidates its numbers.
  [[nodiscard]] Status check_files() const {
    for (const Weights& weights : weights_) PW_TRY(weights.check_files());
    if (expected_) PW_TRY(expected_->file().check_unchanged());
    return {};
  }

  void save(std::size_t number, const RankOutputs& outputs) {
    for (std::size_t rank = 0; rank < outputs.size(); ++rank) {
      auto& file = all_.saved[of_rank(request_.save, rank_of(rank))];
      for (std::size_t i = 0; i < outputs[rank].size(); ++i)
        file.insert_or_assign(stored_output(output_name(original_, i), number, all_.count),
                              outputs[rank][i]);
    }
  }

  /// Compares the outputs with another system's: by the named tolerance, otherwise by the yardstick
  /// of rank 0.
  Result<std::vector<ExpectedCheck>> compared(std::span<const Tensor> outputs, std::size_t at,
                                              const std::optional<Yardstick>& yardstick) const {
    const std::size_t count = all_.count;
    const ExpectedTensors found = PW_TRY(find_expected(original_, *expected_, at, count));
    if (found.by_place && at == 0)
      log_.say(
          fmt::format("note: {} has none of the outputs' names, so tensors are matched in order, "
                      "starting with {} as {}",
                      request_.expect, found.of_output.front()->name, output_name(original_, 0)));
    std::vector<ExpectedCheck> out;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const std::string name = stored_output(output_name(original_, i), at, count);
      const Tensor tensor = PW_TRY(expected_->tensor(*found.of_output[i]));
      const TensorView got = outputs[i].view(), other = tensor.view();
      if (request_.tolerance.named())
        out.push_back(check_expected(name, got, other, request_.tolerance));
      else
        out.push_back(check_expected(name, got, other,
                                     OutputYardstick{yardstick->reference.front()[i].view(),
                                                     yardstick->before.front()[i].view()}));
    }
    return out;
  }

  const RunRequest& request_;
  const Graph& original_;
  StepEngine& engine_;
  RankGroups stated_;  ///< from the graph before rewriting, which may remove the ops
  RunSteps& all_;
  RunRecord& record_;
  const Log& log_;
  std::vector<Weights> weights_;
  std::optional<Safetensors> expected_;
  KvCache seen_;
  CheckCaches others_;
};

Result<std::string> digest_of(const std::string& path) {
  const MappedFile file = PW_TRY(MappedFile::open(path));
  const auto bytes = file.bytes();
  std::string digest = sha256({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  PW_TRY(file.check_unchanged());
  return digest;
}

/// Lists the named rules, and all built-in ones as one file.
void add_rules(std::vector<RunRecord::File>& out, const RuleSet& rules, const SourceMap& sources) {
  KeyParts library;
  for (const ast::File& file : rules.files) {
    const std::string& name = sources.name(file.source);
    if (!is_of_library(name)) out.push_back({name, "rules", sha256(sources.text(file.source))});
  }
  for (std::size_t i = 0; i < sources.size(); ++i)
    if (is_of_library(sources.name(SourceId(i))))
      library.add(sources.name(SourceId(i)), sources.text(SourceId(i)));
  out.push_back({"built-in library", "ops and rules", library.digest()});
}

}  // namespace

Status run_steps(const RunRequest& request, const Graph& original, const Graph& graph,
                 StepEngine& engine, const std::vector<PlannedStep>& steps, RunSteps& all,
                 RunRecord& record, const Log& log) {
  return StepLoop(request, original, engine, all, record, log).run(graph, steps);
}

Status write_saved(const SavedOutputs& saved) {
  for (const auto& [path, tensors] : saved) {
    std::vector<std::pair<std::string, TensorView>> views;
    for (const auto& [name, tensor] : tensors) views.emplace_back(name, tensor.view());
    PW_TRY(write_file(path, safetensors_text(std::move(views))));
  }
  return {};
}

Result<std::vector<RunRecord::File>> read_files(const RunRequest& request, const LoadedRules& rules,
                                                const Context& context) {
  std::vector<RunRecord::File> out;
  if (!request.hash_files) return out;
  for (const auto& [path, what] : {std::pair(&request.graph.path, "graph"),
                                   {&request.steps, "steps"},
                                   {&request.planned, "plan"},
                                   {&request.map, "map of weights"}})
    if (!path->empty() && *path != "-")
      out.push_back({*path, what, sha256(PW_TRY(read_file(*path)))});
  for (const auto& [path, what] :
       {std::pair(&request.weights, "weights"), {&request.expect, "expected"}}) {
    std::set<std::string> files;
    for (std::int64_t rank = 0; rank < request.ranks; ++rank) files.insert(of_rank(*path, rank));
    for (const std::string& file : files)
      if (!file.empty()) out.push_back({file, what, PW_TRY(digest_of(file))});
  }
  add_rules(out, rules.set, context.sources);
  return out;
}

}  // namespace pw
