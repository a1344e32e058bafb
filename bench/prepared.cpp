#include "bench/prepared.hpp"

#include "backends/program.hpp"
#include "bench/measure.hpp"
#include "exec/runner.hpp"

namespace pw::bench {

std::size_t Prepared::bytes() const {
  std::size_t n = 0;
  for (const TensorView& t : in) n += t.bytes();
  for (const TensorView& t : out) n += t.bytes();
  return n;
}

void Prepared::run() {
  if (!executable->run(in, out, context)) die("a graph does not run");
}

std::unique_ptr<Prepared> prepare(Backend& backend, const Graph& graph, std::int64_t tokens) {
  auto p = std::make_unique<Prepared>();
  p->step = one_sequence(tokens);
  p->context = {{}, &p->step, tokens};
  if (!graph.facts.tokens().empty()) p->context.symbols[graph.facts.tokens()] = tokens;
  Weights weights(graph, 1);
  p->inputs = need(graph.context_ptr(), input_tensors(graph, weights, p->context.symbols, p->step));
  for (ValueId v : graph.outputs())
    p->outputs.emplace_back(graph.context().types[graph.type(v)].dtype,
                            need(graph.context_ptr(), extents_of(graph, v, p->context.symbols)));
  for (const Tensor& t : p->inputs) p->in.push_back(t.view());
  for (const Tensor& t : p->outputs) p->out.push_back(t.view());
  p->executable = need(graph.context_ptr(), backend.compile(graph));
  p->run();
  return p;
}

}  // namespace pw::bench
