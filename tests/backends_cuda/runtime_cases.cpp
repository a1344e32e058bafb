#include "tests/backends_cuda/runtime_cases.hpp"

#include "backends/cpu/cpu.hpp"
#include "dsl/dsl.hpp"
#include "models/families.hpp"
#include "models/generate.hpp"
#include "rewriter/rewriter.hpp"
#include "tests/backends_cuda/kernel_run.hpp"

namespace pw::test {
namespace {

Graph generated_streamed(const ModelCase& model, const ContextPtr& context) {
  FamilyOptions options;
  options.family = "llama3";
  options.layers = model.layers;
  options.hidden = 512;
  options.heads = 4;
  options.kv_heads = 2;
  options.head = 16;
  options.ffn = 96;
  options.vocab = 64;
  options.positions = 128;
  options.max_tokens = 24;
  options.quant = model.quant;
  options.lm_head = model.lm_head;
  return need(generate_family(context, options), *context);
}

Graph generated(const ModelCase& model, const ContextPtr& context) {
  if (model.streamed) return generated_streamed(model, context);
  LlamaOptions options;
  options.layers = model.layers;
  options.hidden = 64;
  options.heads = 4;
  options.kv_heads = 2;
  options.ffn = 96;
  options.vocab = 64;
  options.positions = 128;
  options.max_tokens = 24;
  options.quant = model.quant;
  options.lm_head = model.lm_head;
  options.experts = model.experts;
  return need(generate_llama(context, options), *context);
}

StitchedGraph rewritten_and_cut(Graph& graph, const ModelCase& model, const ContextPtr& context) {
  RuleSet rules = need(load_rules(context, {"llm"}), *context);
  const Env params = need(bind_params(rules, {}), *context);
  if (!model.pipeline.empty()) need(run_pipeline(graph, rules, model.pipeline, params), *context);
  SplitOptions options;
  options.fold = model.fold;
  return need(
      split(graph, need(splitting_ops(context, &rules, params, options), *context), options),
      *context);
}

Plan plan_of(const StitchedGraph& pieces, const Graph& graph, const ModelCase& model,
             const ContextPtr& context) {
  PlanOptions options;
  options.max_tokens = 24;
  options.capture_sizes = model.sizes;
  options.mode = model.mode;
  options.max_requests = model.max_requests;
  return need(make_plan(pieces, graph, options), *context);
}

}  // namespace

ModelCase whole(ModelCase model, const std::string& mode) {
  model.mode = mode;
  return model;
}

PlannedModel::PlannedModel(const ModelCase& model)
    : context(library()),
      graph(generated(model, context)),
      pieces(rewritten_and_cut(graph, model, context)),
      plan(plan_of(pieces, graph, model, context)) {}

cuda::RuntimeOptions strict_options(std::int64_t cached_tokens) {
  cuda::RuntimeOptions options;
  options.strict = true;
  options.cached_tokens = cached_tokens;
  return options;
}

ReadyRuntime::ReadyRuntime(const ModelCase& model, const cuda::HostDriverOptions& how,
                           const cuda::RuntimeOptions& options)
    : planned(model),
      driver(cached(how)),
      weights(planned.graph, 7),
      runtime(
          need(cuda::Runtime::make(planned.pieces, planned.graph, planned.plan, driver, options),
               *planned.context)) {
  need(runtime->load(weights), *planned.context);
  need(runtime->capture(), *planned.context);
}

Result<StepResult> ReadyRuntime::run(Step step, bool pad) {
  step.cache = pad ? &replayed : &launched;
  RunOptions options;
  options.pad = pad;
  options.poison = true;
  return runtime->run(step, weights, options);
}

std::vector<Tensor> ReadyRuntime::whole(Step step) {
  step.cache = &unsplit;
  BackendOptions options;
  options.strict = true;
  CpuBackend backend(options);
  return need(run_whole(planned.graph, backend, weights, step), *planned.context);
}

}  // namespace pw::test
