// Walks from a product to its stored weight. The expected form, from the product on, is a view of
// `w[k / g, g, m / h, h] * s[k / g, 1, m / h, 1]`, where w is a view of a cast of a transposed
// matrix. Views keep the order of elements, so the four extents determine the blocks.
#include "cuda/kernels/matmul/scaled_weight.hpp"

#include "codegen/rowprogram/cxx.hpp"
#include "graph/passes/view.hpp"

namespace pw::cuda {
namespace {

constexpr std::int64_t kGroup = 8;  // elements that a thread reads at a time

using Extents = std::vector<std::int64_t>;

class WeightReader {
 public:
  explicit WeightReader(const Graph& graph) : graph_(graph) {}

  std::optional<ScaledWeight> run(ValueId b) {
    const auto outer = extents(b);
    const auto mul = producer(through_views(b), Primitive::mul);
    if (!mul || !outer || outer->size() != 2 || graph_.operand_count(*mul) != 2)
      return std::nullopt;
    const auto blocks = extents(graph_.result(*mul));
    if (!blocks || blocks->size() != 4 || (*blocks)[0] * (*blocks)[1] != (*outer)[0] ||
        (*blocks)[2] * (*blocks)[3] != (*outer)[1] || (*blocks)[1] % kGroup != 0)
      return std::nullopt;
    const Extents scales{(*blocks)[0], 1, (*blocks)[2], 1};
    for (const std::size_t i : {0, 1}) {
      const ValueId data = graph_.operand(*mul, i), scale = graph_.operand(*mul, 1 - i);
      if (extents(data) != blocks || extents(scale) != scales || dtype(scale) != DType::f32)
        continue;
      out_.blocks = {DType::f32, 0, (*blocks)[1], (*blocks)[3], (*blocks)[2], 1};
      if (!read_data(data, *outer)) return std::nullopt;
      read_scale(scale, {(*blocks)[0], (*blocks)[2]});
      return out_;
    }
    return std::nullopt;
  }

 private:
  [[nodiscard]] std::optional<Extents> extents(ValueId v) const {
    if (!v.valid() || graph_.type(v) == Types::unknown()) return std::nullopt;
    Extents out;
    for (const DimId dim : graph_.context().types[graph_.type(v)].shape) {
      const auto extent = graph_.context().dims.value(dim);
      if (!extent) return std::nullopt;
      out.push_back(*extent);
    }
    return out;
  }
  [[nodiscard]] DType dtype(ValueId v) const {
    return graph_.context().types[graph_.type(v)].dtype;
  }
  /// Returns true if the value is computed for one reader.
  [[nodiscard]] bool alone(ValueId v) const {
    return v.valid() && !graph_.is_input(v) && !graph_.is_output(v) && graph_.users(v).size() == 1;
  }
  /// Returns the node that makes a value for one reader, and keeps it, if it has the primitive.
  std::optional<NodeId> producer(ValueId v, Primitive primitive) {
    if (!alone(v) || graph_.op_of(graph_.producer(v)).primitive != primitive) return std::nullopt;
    out_.nodes.push_back(graph_.producer(v));
    return out_.nodes.back();
  }
  ValueId through_views(ValueId v) {
    while (alone(v) && keeps_bytes(graph_, graph_.producer(v))) {
      out_.nodes.push_back(graph_.producer(v));
      v = graph_.operand(out_.nodes.back(), 0);
    }
    return v;
  }
  /// Returns the operand of the transposition of a matrix with these extents.
  std::optional<ValueId> turned(ValueId v, const Extents& expected) {
    if (!alone(v) || extents(v) != expected) return std::nullopt;
    const NodeId n = graph_.producer(v);
    const auto axis = [&](std::string_view name) {
      const Attribute* attribute = graph_.attribute(n, name);
      const auto* value = attribute ? std::get_if<std::int64_t>(attribute) : nullptr;
      return value == nullptr ? -1 : (*value + 2) % 2;
    };
    if (graph_.op_of(n).primitive != Primitive::transpose || axis("dim0") + axis("dim1") != 1)
      return std::nullopt;
    out_.nodes.push_back(n);
    return graph_.operand(n, 0);
  }
  bool read_data(ValueId data, const Extents& outer) {
    const auto cast = producer(through_views(data), Primitive::cast);
    if (!cast || dtype(graph_.result(*cast)) != DType::f32) return false;
    const auto stored = turned(through_views(graph_.operand(*cast, 0)), outer);
    if (!stored || !rows::cxx::is_narrow(dtype(*stored))) return false;
    out_.weight = *stored;
    out_.blocks.weight = dtype(*stored);
    return true;
  }
  void read_scale(ValueId scale, const Extents& blocks) {
    out_.scale = through_views(scale);
    if (const auto stored = turned(out_.scale, blocks)) {
      out_.scale = *stored;
      out_.blocks.deep_step = 1;
      out_.blocks.across_step = blocks[0];
    }
  }

  const Graph& graph_;
  ScaledWeight out_;
};

}  // namespace

std::optional<ScaledWeight> scaled_weight(const Graph& graph, NodeId product, std::size_t operand) {
  return WeightReader(graph).run(graph.operand(product, operand));
}

TensorProduct with_scaled_weight(TensorProduct product, const ScaledWeight& weight,
                                 const Graph& graph) {
  product.b_transposed = true;
  product.operands[product.b] = graph.type(weight.weight);
  product.scales = weight.blocks;
  product.scales->operand = product.operands.size();
  product.operands.push_back(graph.type(weight.scale));
  return product;
}

}  // namespace pw::cuda
