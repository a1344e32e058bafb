// Exports runs of a graph in one piece: the unsplit, unpadded counterpart of a runner, and the
// reference.
#include "backends/interpreter.hpp"
#include "backends/program.hpp"
#include "backends/runner.hpp"

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

}  // namespace

Step one_sequence(std::int64_t tokens) { return {{{0, tokens, 0}}}; }

Result<std::vector<Tensor>> input_tensors(const Graph& graph, Weights& weights,
                                          const Symbols& symbols, const Step& step) {
  std::vector<Tensor> tensors;
  for (ValueId input : graph.inputs()) {
    auto tensor = weights.tensor(graph.value_name(input), symbols, step);
    if (!tensor) return forward(tensor);
    tensors.push_back(std::move(*tensor));
  }
  return tensors;
}

Result<std::vector<Tensor>> run_whole(const Graph& graph, Backend& backend, Weights& weights,
                                      const Step& step, const Symbols& symbols) {
  const RunContext context{symbols_for(graph, step, symbols), &step, step.tokens()};
  auto inputs = input_tensors(graph, weights, context.symbols, step);
  if (!inputs) return forward(inputs);
  auto executable = backend.compile(graph);
  if (!executable) return forward(executable);
  std::vector<Tensor> outputs;
  for (ValueId output : graph.outputs()) {
    auto extents = extents_of(graph, output, context.symbols);
    if (!extents) return forward(extents);
    outputs.emplace_back(graph.context().types[graph.type(output)].dtype, std::move(*extents));
  }
  if (auto done = (*executable)->run(views_of(*inputs), views_of(outputs), context); !done)
    return forward(done);
  return outputs;
}

Result<std::vector<Tensor>> run_reference(const Graph& graph, Weights& weights, const Step& step,
                                          const Symbols& symbols) {
  const RunContext context{symbols_for(graph, step, symbols), &step, step.tokens()};
  auto inputs = input_tensors(graph, weights, context.symbols, step);
  if (!inputs) return forward(inputs);
  return interpret(graph, views_of(*inputs), context);
}

}  // namespace pw
