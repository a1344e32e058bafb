#include "tests/fuzz/spread.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/hash.hpp"
#include "base/try.hpp"
#include "graph/build.hpp"
#include "tensor/numerics.hpp"
#include "verify/samples/sample.hpp"

namespace pw::test {
namespace {

/// Relative, with some to spare for functions that are only nearly rounded.
double rounding(DType dtype) {
  if (dtype == DType::bf16) return 0x1p-8;
  if (dtype == DType::f16) return 0x1p-11;
  if (dtype == DType::f64) return 0x1p-51;
  return dtype == DType::f32 ? 0x1p-21 : 0;
}

/// Of the smallest numbers, which are rounded to a multiple of it or to zero.
double least_step(DType dtype) {
  if (dtype == DType::f16) return 0x1p-23;
  if (dtype == DType::f64) return std::numeric_limits<double>::min();
  return dtype == DType::f32 || dtype == DType::bf16 ? std::numeric_limits<float>::min() : 0;
}

const char* const kNoise = "noise_";

/// The graph with bodies inlined and each floating-point value multiplied by a factor near 1.
class Noisy {
 public:
  explicit Noisy(const Graph& graph) : graph_(graph.compact()) {}

  Result<Graph> make() {
    PW_TRY(inline_bodies(graph_));
    const std::vector<NodeId> order = graph_.order();
    const NodeId first = graph_.first();
    for (ValueId input : std::vector<ValueId>(graph_.inputs()))
      if (first.valid()) move(input, first);
    for (NodeId node : order) {
      if (graph_.op_of(node).traits.view || graph_.operand_count(node) == 0) continue;
      for (std::size_t i = 0; i < graph_.result_count(node); ++i)
        move(graph_.result(node, i), graph_.next(node));
    }
    return std::move(graph_);
  }

 private:
  void move(ValueId value, NodeId before) {
    if (graph_.type(value) == Types::unknown()) return;
    Context& context = graph_.context();
    const Type type = context.types[graph_.type(value)];  // a copy: the table grows
    if (rounding(type.dtype) == 0) return;
    std::vector<std::pair<NodeId, std::size_t>> uses;
    for (UseId u = graph_.first_use(value); u.valid(); u = graph_.next_use(u))
      uses.emplace_back(graph_.user(u), graph_.use_operand(u));
    const ValueId noise = graph_.add_input(
        graph_.fresh_name(kNoise), context.types.get(DType::f64, type.shape), InputKind::input);
    graph_.insert_before(before);
    const ValueId back = node("cast", {node("mul", {value, noise})}, type.dtype);
    for (const auto& [user, slot] : uses) graph_.set_operand(user, slot, back);
    for (std::size_t i = 0; i < graph_.outputs().size(); ++i)
      if (graph_.outputs()[i] == value && !graph_.is_input(value)) graph_.set_output(i, back);
  }
  ValueId node(const char* op, std::vector<ValueId> operands,
               std::optional<DType> dtype = std::nullopt) {
    NodeRequest request;
    request.op = graph_.context().ops.find(op);
    request.operands = std::move(operands);
    if (dtype) request.attributes.emplace_back(graph_.context().strings.intern("dtype"), *dtype);
    request.result_names = {""};
    return graph_.result(build_node(graph_, request).value());
  }

  Graph graph_;
};

/// Within the rounding of what it is multiplied with.
Tensor noise_of(const Graph& graph, ValueId input, const Symbols& symbols, Random& random) {
  const Type& type = graph.context().types[graph.type(input)];
  Extents extents;
  for (DimId d : type.shape) extents.push_back(*graph.context().dims.evaluate(d, symbols));
  // mul(value, noise), whose first operand has the dtype.
  const NodeId reader = graph.user(graph.first_use(input));
  const DType dtype = graph.context().types[graph.type(graph.operand(reader, 0))].dtype;
  Tensor tensor(DType::f64, extents);
  for (std::int64_t i = 0; i < tensor.view().count(); ++i)
    store(DType::f64, tensor.data(), i, 1 + (2 * random.uniform() - 1) * rounding(dtype));
  return tensor;
}

void add(std::vector<Spreads>& all, const RankOutputs& outputs) {
  for (std::size_t rank = 0; rank < outputs.size(); ++rank) {
    all[rank].resize(outputs[rank].size());
    for (std::size_t o = 0; o < outputs[rank].size(); ++o) {
      const Tensor& tensor = outputs[rank][o];
      all[rank][o].resize(static_cast<std::size_t>(tensor.view().count()));
      for (std::size_t i = 0; i < all[rank][o].size(); ++i)
        all[rank][o][i].add(load(tensor.dtype(), tensor.data(), static_cast<std::int64_t>(i)));
    }
  }
}

}  // namespace

void Spread::add(double value) {
  if (!std::isfinite(value)) {
    special = true;
    return;
  }
  least = finite ? std::min(least, value) : value;
  most = finite ? std::max(most, value) : value;
  finite = true;
}

void Spread::add(const Spread& other) {
  special = special || other.special;
  if (!other.finite) return;
  add(other.least);
  add(other.most);
}

Result<std::vector<Spreads>> spread_of(const Graph& graph, std::int64_t ranks, const Step& step,
                                       const ContentsOf& contents, int runs, int first) {
  auto noisy = PW_TRY(Noisy(graph).make());
  const Symbols symbols = sample_symbols(graph, step.tokens());
  std::vector<Weights> weights = weights_of_ranks(noisy, 1, ranks);
  PW_TRY(give_contents(weights, noisy, symbols, contents.contents, contents.seed));
  Random random(combine(contents.seed, static_cast<std::uint64_t>(first)));
  std::vector<Spreads> all(weights.size());
  for (int run = 0; run < runs; ++run) {
    for (ValueId input : noisy.inputs()) {
      if (noisy.value_name(input).rfind(kNoise, 0) != 0) continue;
      for (Weights& w : weights)
        w.give(noisy.value_name(input), noise_of(noisy, input, symbols, random));
    }
    auto outputs = PW_TRY(run_reference(noisy, weights, step, symbols));
    add(all, outputs);
  }
  return all;
}

bool within(const Spread& spread, double value, DType dtype) {
  if (std::isnan(value) || std::isinf(value)) return spread.special;
  if (!spread.finite) return spread.special;
  const double width = spread.most - spread.least;
  const double own = 4 * rounding(dtype) * std::abs(value) + least_step(dtype);
  return value >= spread.least - width - own && value <= spread.most + width + own;
}

}  // namespace pw::test
