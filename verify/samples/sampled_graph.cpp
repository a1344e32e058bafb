#include "verify/samples/sampled_graph.hpp"

#include "backends/eager/eager.hpp"
#include "backends/interpreter/interpreter.hpp"
#include "backends/program.hpp"
#include "base/try.hpp"

namespace pw {
namespace {

std::vector<TensorView> views_of(const std::vector<Tensor>& tensors) {
  std::vector<TensorView> views;
  for (const Tensor& tensor : tensors) views.push_back(tensor.view());
  return views;
}

/// The inputs of each rank and their owners.
struct Inputs {
  std::vector<std::vector<Tensor>> tensors;
  std::vector<std::vector<TensorView>> views;
};

Result<Inputs> inputs_of(const Graph& graph, const DrawnSample& sample) {
  Inputs inputs;
  for (Weights& weights : sample.ranks) {
    inputs.tensors.push_back(PW_TRY(input_tensors(graph, weights, sample.symbols, sample.step)));
    inputs.views.push_back(views_of(inputs.tensors.back()));
  }
  return inputs;
}

RunContext context_of(const Graph& graph, const DrawnSample& sample) {
  RunContext context{sample.symbols, &sample.step, sample.step.tokens()};
  const std::string tokens = graph.facts.tokens();
  if (!tokens.empty()) context.symbols[tokens] = sample.step.tokens();
  return context;
}

}  // namespace

SampledGraph::SampledGraph(const Graph& graph)
    : graph_(graph), eager_(make_eager()), interpreter_(make_interpreter()) {}

Result<RankOutputs> SampledGraph::run_on(std::unique_ptr<Executable>& compiled, bool exact,
                                         const DrawnSample& sample) {
  if (compiled == nullptr) compiled = PW_TRY((exact ? interpreter_ : eager_)->compile(graph_));
  const Inputs inputs = PW_TRY(inputs_of(graph_, sample));
  const RunContext context = context_of(graph_, sample);
  RankOutputs outputs(inputs.views.size());
  std::vector<RankTensors> ranks;
  for (std::size_t rank = 0; rank < inputs.views.size(); ++rank) {
    for (ValueId output : graph_.outputs()) {
      const DType dtype = graph_.context().types[graph_.type(output)].dtype;
      outputs[rank].emplace_back(exact ? DType::f64 : dtype,
                                 PW_TRY(extents_of(graph_, output, context.symbols)));
    }
    ranks.push_back({inputs.views[rank], views_of(outputs[rank])});
  }
  PW_TRY(compiled->run_ranks(ranks, context));
  return outputs;
}

Result<RankOutputs> SampledGraph::run(const DrawnSample& sample) {
  return run_on(typed_, false, sample);
}
Result<RankOutputs> SampledGraph::run_exact(const DrawnSample& sample) {
  return run_on(exact_, true, sample);
}

const Result<BoundedProgram>& SampledGraph::bounded() {
  if (!bounded_) bounded_ = BoundedProgram::make(graph_);
  return *bounded_;
}

Result<std::vector<BoundedOutputs>> SampledGraph::bounds(const DrawnSample& sample,
                                                         const BoundOptions& options) {
  const Result<BoundedProgram>& program = bounded();
  if (!program) return tl::unexpected(program.error());
  const Inputs inputs = PW_TRY(inputs_of(graph_, sample));
  return program->run(inputs.views, context_of(graph_, sample), options);
}

double SampledGraph::coarsest_step() {
  const Result<BoundedProgram>& program = bounded();
  return program ? program->coarsest_step() : 1;
}

}  // namespace pw
