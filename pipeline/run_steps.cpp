// Exports run_steps and read_files.
#include "pipeline/run_steps.hpp"

#include <map>

#include <fmt/format.h>

#include "backends/cache/digest.hpp"
#include "backends/kv_cache.hpp"
#include "backends/safetensors.hpp"
#include "base/file.hpp"
#include "base/try.hpp"
#include "dsl/embedded_rules.hpp"
#include "pipeline/expecting.hpp"

namespace pw {
namespace {

Result<std::monostate> check_replicated(const RunRequest& request, const Graph& graph) {
  std::set<std::string, std::less<>> inputs;
  for (ValueId input : graph.inputs()) inputs.emplace(graph.value_name(input));
  for (const std::string& name : request.replication.names)
    if (!inputs.contains(name))
      return fail(error_in("replicated", "PW1409", "the graph has no input `" + name + "`",
                           "--replicated takes input names, or all"));
  return std::monostate{};
}

/// The steps of one planned graph. Sequences go on from step to step: each engine remembers what
/// attention has seen.
class StepLoop {
 public:
  StepLoop(const RunRequest& request, const Graph& original, StepEngine& engine, RunRecord& record,
           const Log& log)
      : request_(request), original_(original), engine_(engine), record_(record), log_(log) {}

  Result<std::monostate> run(const Graph& graph, const std::vector<PlannedStep>& steps) {
    PW_TRY(check_replicated(request_, original_));
    weights_ =
        weights_of_ranks(original_, request_.engine.seed, request_.ranks, request_.replication);
    PW_TRY(give_contents_of(request_, original_, weights_.front(), log_));
    if (!request_.expect.empty()) expected_ = PW_TRY(Safetensors::open(request_.expect));
    const auto executable =
        PW_TRY(build_executable(engine_, graph, record_, weights_.front(), log_));
    if (const CompileCache* cache = request_.engine.cache.get(); cache && cache->missing() > 0)
      return fail(error_in(
          request_.graph.path, "PW1219",
          fmt::format("{} kernels of it cannot run here: they are not in it, or not for this "
                      "machine",
                      cache->missing()),
          "compile it again, with this program on this machine"));
    for (const PlannedStep& planned : steps) PW_TRY(run_one(*executable, planned, steps.size()));
    finish_record(*executable, record_, log_);
    return std::monostate{};
  }

 private:
  Result<std::monostate> run_one(StepExecutable& executable, const PlannedStep& planned,
                                 std::size_t count) {
    Step step = planned.step;
    const bool goes_on = !request_.steps.empty();
    step.cache = goes_on ? &seen_ : nullptr;
    log_.progress({"running", record_.steps.size(), count, "steps"});
    RunOptions options;
    options.pad = request_.pad;
    options.poison = request_.check;
    options.hook = request_.hook;
    RankStepResult result = PW_TRY(executable.run(step, weights_, options));
    StepRun run{result.report, {}, {}, {}};
    std::optional<Yardstick> yardstick;
    if (request_.check || (expected_ && !request_.tolerance.named())) {
      log_.progress({fmt::format("checking {} tokens against the double-precision interpreter",
                                 step.tokens())});
      yardstick = PW_TRY(run_yardstick(original_, engine_.whole(), weights_, step, {},
                                       goes_on ? &others_ : nullptr));
    }
    if (expected_) run.expected = PW_TRY(compared(result.outputs.front(), count, yardstick));
    if (request_.check) run.numbers = check_outputs(original_, *yardstick, result.outputs);
    for (std::size_t rank = 0; rank < weights_.size(); ++rank)
      weights_[rank].write_back(original_, result.outputs[rank]);
    for (const std::int64_t id : planned.ended)
      for (KvCache* of : {&seen_, &others_.before, &others_.reference}) of->end(id);
    if (request_.keep || !request_.save.empty()) run.outputs = std::move(result.outputs.front());
    record_.steps.push_back(std::move(run));
    return std::monostate{};
  }

  /// What another system says the outputs are, against what they are: by the tolerance that is
  /// named, else by the yardstick of rank 0.
  Result<std::vector<ExpectedCheck>> compared(std::span<const Tensor> outputs, std::size_t count,
                                              const std::optional<Yardstick>& yardstick) const {
    const std::size_t at = record_.steps.size();
    const ExpectedTensors found = PW_TRY(find_expected(original_, *expected_, at, count));
    if (found.by_place && at == 0)
      log_.say(
          fmt::format("note: {} has other names than the outputs: they are taken in their order, "
                      "{} as {} first",
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
  RunRecord& record_;
  const Log& log_;
  std::vector<Weights> weights_;
  std::optional<Safetensors> expected_;
  KvCache seen_;
  CheckCaches others_;
};

Result<std::monostate> save_outputs(const RunRequest& request, const Graph& original,
                                    const RunRecord& record) {
  std::map<std::string, TensorView> views;
  for (std::size_t at = 0; at < record.steps.size(); ++at)
    for (std::size_t i = 0; i < record.steps[at].outputs.size(); ++i)
      views[stored_output(output_name(original, i), at, record.steps.size())] =
          record.steps[at].outputs[i].view();
  return write_file(request.save, safetensors_text({views.begin(), views.end()}));
}

std::string digest_of(const MappedFile& file) {
  const auto bytes = file.bytes();
  return sha256({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

/// The rules that were named, and all that is built in as one.
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

Result<std::monostate> run_steps(const RunRequest& request, const Graph& original,
                                 const Graph& graph, StepEngine& engine,
                                 const std::vector<PlannedStep>& steps, RunRecord& record,
                                 const Log& log) {
  PW_TRY(StepLoop(request, original, engine, record, log).run(graph, steps));
  if (!request.save.empty()) PW_TRY(save_outputs(request, original, record));
  return std::monostate{};
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
       {std::pair(&request.weights, "weights"), {&request.expect, "expected"}})
    if (!path->empty()) out.push_back({*path, what, digest_of(PW_TRY(MappedFile::open(*path)))});
  add_rules(out, rules.set, context.sources);
  return out;
}

}  // namespace pw
