// Runs the whole graph without splitting or padding, as a reference for the runner.
#include "backends/interpreter/interpreter.hpp"
#include "backends/program.hpp"
#include "base/try.hpp"
#include "exec/observed_run.hpp"
#include "exec/runner.hpp"

namespace pw {
namespace {

Symbols symbols_for(const Graph& graph, const Step& step, Symbols symbols) {
  const std::string tokens = graph.facts.tokens();
  if (!tokens.empty()) symbols[tokens] = step.tokens();
  return symbols;
}

std::vector<TensorView> views_of(const std::vector<Tensor>& tensors) {
  std::vector<TensorView> views;
  for (const Tensor& tensor : tensors) views.push_back(tensor.view());
  return views;
}

Result<std::vector<std::vector<Tensor>>> inputs_of_ranks(const Graph& graph,
                                                         std::span<Weights> ranks,
                                                         const Symbols& symbols, const Step& step) {
  std::vector<std::vector<Tensor>> inputs;
  for (Weights& weights : ranks) {
    auto tensors = PW_TRY(input_tensors(graph, weights, symbols, step));
    inputs.push_back(std::move(tensors));
  }
  return inputs;
}

Result<std::vector<Tensor>> only_rank(Result<RankOutputs> outputs) {
  if (!outputs) return forward(outputs);
  return std::move(outputs->front());
}

}  // namespace

Step one_sequence(std::int64_t tokens) { return {{{0, tokens, 0}}}; }

Result<std::vector<Tensor>> input_tensors(const Graph& graph, Weights& weights,
                                          const Symbols& symbols, const Step& step) {
  std::vector<Tensor> tensors;
  for (ValueId input : graph.inputs()) {
    if (graph.unused(input) || has_no_tensor(graph, input)) {
      tensors.emplace_back();
      continue;
    }
    auto tensor = weights.tensor(graph.value_name(input), symbols, step);
    if (!tensor) return forward(tensor);
    tensors.push_back(std::move(*tensor));
  }
  return tensors;
}

Result<RankOutputs> run_whole(const Graph& graph, Backend& backend, std::span<Weights> ranks,
                              const Step& step, const Symbols& symbols) {
  const RunContext context{symbols_for(graph, step, symbols), &step, step.tokens()};
  auto inputs = PW_TRY(inputs_of_ranks(graph, ranks, context.symbols, step));
  auto executable = PW_TRY(backend.compile(graph));
  RankOutputs outputs(ranks.size());
  std::vector<RankTensors> tensors;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    for (ValueId output : graph.outputs()) {
      auto extents = PW_TRY(extents_of(graph, output, context.symbols));
      const DType dtype = graph.context().types[graph.type(output)].dtype;
      outputs[rank].emplace_back(dtype, std::move(extents));
    }
    tensors.push_back({views_of(inputs[rank]), views_of(outputs[rank])});
  }
  PW_TRY(executable->run_ranks(tensors, context));
  return outputs;
}

Result<RankOutputs> run_reference(const Graph& graph, std::span<Weights> ranks, const Step& step,
                                  const Symbols& symbols, Precision precision) {
  const RunContext context{symbols_for(graph, step, symbols), &step, step.tokens()};
  auto inputs = PW_TRY(inputs_of_ranks(graph, ranks, context.symbols, step));
  std::vector<std::vector<TensorView>> views;
  for (const std::vector<Tensor>& tensors : inputs) views.push_back(views_of(tensors));
  return interpret_ranks(graph, views, context, precision);
}

Result<RankOutputs> run_observed(const Graph& graph, const Engine& engine, std::span<Weights> ranks,
                                 const Step& step, const Symbols& symbols) {
  const RunContext context{symbols_for(graph, step, symbols), &step, step.tokens()};
  const auto inputs = PW_TRY(inputs_of_ranks(graph, ranks, context.symbols, step));
  const OpProgram program = PW_TRY(OpProgram::make(graph, engine));
  RankOutputs outputs(ranks.size());
  std::vector<RankTensors> tensors;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    for (ValueId output : graph.outputs())
      outputs[rank].emplace_back(DType::f64, PW_TRY(extents_of(graph, output, context.symbols)));
    tensors.push_back({views_of(inputs[rank]), views_of(outputs[rank])});
  }
  PW_TRY(program.run_ranks(tensors, context));
  return outputs;
}

Result<std::vector<Tensor>> run_whole(const Graph& graph, Backend& backend, Weights& weights,
                                      const Step& step, const Symbols& symbols) {
  return only_rank(run_whole(graph, backend, std::span(&weights, 1), step, symbols));
}

Result<std::vector<Tensor>> run_reference(const Graph& graph, Weights& weights, const Step& step,
                                          const Symbols& symbols, Precision precision) {
  return only_rank(run_reference(graph, std::span(&weights, 1), step, symbols, precision));
}

}  // namespace pw
