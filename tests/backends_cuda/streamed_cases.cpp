#include "tests/backends_cuda/streamed_cases.hpp"

#include <fmt/format.h>

#include "backends/interpreter/interpreter.hpp"
#include "dsl/dsl.hpp"

namespace pw::test {

std::string sum_of(const std::string& x, const std::string& w, std::int64_t depth,
                   std::int64_t columns) {
  return fmt::format(
      "sum(f32(reshape({}){{shape = [n, 1, {}]}}) * f32(reshape({}){{shape = [1, {}, {}]}}))"
      "{{dim = 2, keepdim = false}}",
      x, depth, w, columns, depth);
}

std::string product_of(bool as_sum, const std::string& x, const std::string& w, std::int64_t depth,
                       std::int64_t columns) {
  if (as_sum) return "bf16(" + sum_of(x, w, depth, columns) + ")";
  return fmt::format("mm({}, transpose({}){{dim0 = 0, dim1 = 1}})", x, w);
}

std::vector<std::vector<double>> values_of_all(const std::vector<Tensor>& tensors) {
  std::vector<std::vector<double>> out;
  for (const Tensor& t : tensors) out.push_back(values_of(t.view()));
  return out;
}

std::vector<std::vector<double>> interpreted(const Graph& graph, const std::vector<Tensor>& inputs,
                                             const Symbols& symbols) {
  std::vector<TensorView> views;
  for (const Tensor& t : inputs) views.push_back(t.view());
  RunContext run;
  run.symbols = symbols;
  return values_of_all(need(interpret(graph, views, run, Precision::single), graph.context()));
}

StreamedPiece::StreamedPiece(const std::string& text, std::unique_ptr<cuda::HostDriver> with)
    : context(library()),
      graph(need(parse_graph(context, text, "test"), *context)),
      pieces(need(split(graph, {}), *context)),
      plan(need(make_plan(pieces, graph, options()), *context)),
      weights(graph, 3),
      driver(with ? std::move(with) : std::make_unique<cuda::HostDriver>(cached())) {
  cuda::RuntimeOptions how;
  how.stream_weights = true;
  runtime = need(cuda::Runtime::make(pieces, graph, plan, *driver, how), *context);
  need(runtime->load(weights), *context);
  need(runtime->capture(), *context);
}

PlanOptions StreamedPiece::options() {
  PlanOptions out;
  out.max_tokens = 24;
  out.capture_sizes = {1, 2, 4, 8, 16};
  return out;
}

std::size_t StreamedPiece::nodes(std::int64_t tokens) const {
  return need(runtime->record(PieceId(0), tokens), *context).nodes.size();
}

std::vector<std::vector<double>> StreamedPiece::run(std::int64_t tokens, bool pad) {
  Step step;
  step.sequences = {{0, tokens, 0}};
  RunOptions run;
  run.pad = pad;
  run.poison = true;
  return values_of_all(need(runtime->run(step, weights, run), *context).outputs);
}

std::vector<Tensor> StreamedPiece::inputs(const Graph& other, std::int64_t tokens) {
  Step step;
  step.sequences = {{0, tokens, 0}};
  std::vector<Tensor> out;
  for (ValueId v : other.inputs())
    out.push_back(need(weights.tensor(other.value_name(v), {{"n", tokens}}, step), *context));
  return out;
}

std::vector<std::vector<double>> StreamedPiece::wanted(const std::string& text,
                                                       std::int64_t tokens) {
  const Graph other = need(parse_graph(context, text, "sum"), *context);
  return interpreted(other, inputs(other, tokens), {{"n", tokens}});
}

StreamedLayer StreamedLayer::random(Random& random) {
  const auto upto = [&](std::uint64_t n) { return 1 + static_cast<std::int64_t>(random.below(n)); };
  return {8 * (32 + upto(50)), upto(200), upto(4), upto(3), 2 * upto(24)};
}

std::string StreamedLayer::text(bool as_sum) const {
  const auto mm = [&](const char* x, const char* w, std::int64_t depth, std::int64_t columns) {
    return product_of(as_sum, x, w, depth, columns);
  };
  const std::int64_t q = heads * width, k = groups * width;
  return fmt::format(
      "graph g {{\n  symbol n in 1..24 tokens\n"
      "  in x: bf16[n, {0}], r: bf16[n, {0}], p: i64[n]\n"
      "  in weight ow: bf16[{0}, {0}], uw: bf16[{1}, {0}], dw: bf16[{0}, {2}],"
      " qw: bf16[{3}, {0}], g: bf16[{0}], h: bf16[{0}], cs: bf16[24, {4}]\n"
      "  o = {5}\n  s = o + r\n  a = rms_norm(s, g){{eps = 1e-5}}\n"
      "  u = {6}\n  m = silu_and_mul(u)\n"
      "  d = {7}\n  t = d + s\n  b = rms_norm(t, h){{eps = 1e-5}}\n"
      "  qkv = {8}\n  q, k, v = split(qkv){{dim = 1, sizes = [{9}, {10}, {4}]}}\n"
      "  qr, kr = rotary_embedding(p, q, k, cs){{head = {4}}}\n  out t, qr, kr, v\n}}\n",
      hidden, 2 * ffn, ffn, q + k + width, width, mm("x", "ow", hidden, hidden),
      mm("a", "uw", hidden, 2 * ffn), mm("m", "dw", ffn, hidden),
      mm("b", "qw", hidden, q + k + width), q, k);
}

}  // namespace pw::test
