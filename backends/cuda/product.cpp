// Exports product_kernel.
#include "backends/cuda/product.hpp"

#include <fmt/format.h>

#include "backends/rowprogram/cxx.hpp"

namespace pw::cuda {
namespace {

constexpr int kTile = 32, kThreads = 256;

/// A block has a square tile of the result, a thread `each` elements of one of its columns. A and B
/// are loaded as floats; `finish` makes the stored element of `sum`, at `row` and `column`.
constexpr std::string_view kBody =
    R"(  PW_SHARED(float, left, {tile} * {tile});
  PW_SHARED(float, right, {tile} * {tile});
  const long long row0 = (long long)blockIdx.x * {tile}, column0 = (long long)blockIdx.y * {tile};
  const int own = threadIdx.x % {tile}, band = threadIdx.x / {tile} * {each};
  float sums[{each}];
  for (int e = 0; e < {each}; ++e) sums[e] = 0.0f;
  for (long long k0 = 0; k0 < {depth}LL; k0 += {tile}) {{
    for (int i = threadIdx.x; i < {tile} * {tile}; i += {threads}) {{
      const long long far = i / {tile}, near = i % {tile};
      float a = 0.0f, b = 0.0f;
      if (row0 + far < rows && k0 + near < {depth}LL) {{
        const long long at = (row0 + far) * {depth}LL + k0 + near;
        a = {load_a};
      }}
      if (k0 + far < {depth}LL && column0 + near < {columns}LL) {{
        const long long at = (k0 + far) * {columns}LL + column0 + near;
        b = {load_b};
      }}
      pw_put(left, i, a);
      pw_put(right, i, b);
    }}
    __syncthreads();
    const int deep = {depth}LL - k0 < {tile} ? (int)({depth}LL - k0) : {tile};
    for (int k = 0; k < deep; ++k) {{
      const float b = pw_at(right, k * {tile} + own);
      for (int e = 0; e < {each}; ++e)
        sums[e] = pw_fma(pw_at(left, (band + e) * {tile} + k), b, sums[e]);
    }}
    __syncthreads();
  }}
  const long long column = column0 + own;
  for (int e = 0; e < {each}; ++e) {{
    const long long row = row0 + band + e;
    if (row >= rows || column >= {columns}LL) continue;
    const float sum = sums[e];
    {finish}
  }}
)";

/// A float operand of the node, or none: its dtype, and its elements where they are fixed.
struct Operand {
  TypeId id;
  DType dtype = DType::f32;
  std::optional<std::int64_t> count;
};

std::string element(const Operand& operand, int pointer, std::string_view at) {
  return rows::cxx::loaded(operand.dtype, fmt::format("p{}[{}]", pointer, at));
}

std::optional<Operand> operand_of(const Graph& graph, ValueId v) {
  if (!v.valid() || graph.type(v) == Types::unknown()) return std::nullopt;
  Context& context = graph.context();
  const Type& type = context.types[graph.type(v)];
  if (!rows::cxx::is_narrow(type.dtype) && type.dtype != DType::f32) return std::nullopt;
  Operand out{graph.type(v), type.dtype, 1};
  for (DimId d : type.shape) {
    const auto extent = context.dims.value(d);
    out.count = out.count && extent ? std::optional(*out.count * *extent) : std::nullopt;
  }
  return out;
}

class Product {
 public:
  Product(const Graph& graph, NodeId node)
      : graph_(graph), node_(node), name_(graph.op_of(node).name) {}

  std::optional<Kernel> run() {
    const bool plain = name_ == "mm", biased = name_ == "addmm", scaled = name_ == "scaled_mm";
    if ((!plain && !biased && !scaled) || graph_.op_of(node_).has_body()) return std::nullopt;
    for (ValueId v : graph_.operands(node_)) {
      auto operand = operand_of(graph_, v);
      if (!operand) return std::nullopt;
      operands_.push_back(*operand);
    }
    const auto result = operand_of(graph_, graph_.result(node_));
    if (!result || operands_.size() != (plain ? 2U : biased ? 3U : 4U) || !read_shapes(biased))
      return std::nullopt;
    result_ = *result;
    std::string value = "sum";
    if (biased) {
      const auto at = broadcast(operands_[0], true);
      if (!at) return std::nullopt;
      value = fmt::format("pw_add(sum, {})", element(operands_[0], 0, *at));
    } else if (scaled) {
      const auto a = broadcast(operands_[2], false), b = broadcast(operands_[3], true);
      if (!a || !b) return std::nullopt;
      value = fmt::format("pw_mul(sum, pw_mul({}, {}))", element(operands_[2], 2, *a),
                          element(operands_[3], 3, *b));
    }
    return kernel(value, biased ? 1 : 0);
  }

 private:
  [[nodiscard]] const Shape& shape(const Operand& operand) const {
    return graph_.context().types[operand.id].shape;
  }

  bool read_shapes(bool biased) {
    const Operand &a = operands_[biased ? 1 : 0], &b = operands_[biased ? 2 : 1];
    if (shape(a).size() != 2 || shape(b).size() != 2) return false;
    const Dims& dims = graph_.context().dims;
    const auto depth = dims.value(shape(a)[1]), columns = dims.value(shape(b)[1]);
    if (!depth || !columns || shape(b)[0] != shape(a)[1]) return false;
    rows_ = shape(a)[0];
    depth_ = *depth;
    columns_ = *columns;
    return true;
  }

  /// Where the element for `row` and `column` is: of one element, or one a row or column.
  [[nodiscard]] std::optional<std::string> broadcast(const Operand& operand, bool columns) const {
    if (operand.count == 1) return "0";
    if (columns && operand.count == columns_) return "column";
    const auto& dims = shape(operand);
    const bool by_row =
        !columns && !dims.empty() && dims[0] == rows_ &&
        (dims.size() == 1 || (dims.size() == 2 && graph_.context().dims.value(dims[1]) == 1));
    return by_row ? std::optional<std::string>("row") : std::nullopt;
  }

  [[nodiscard]] Kernel kernel(const std::string& value, int a) const {
    WrittenKernel out;
    out.op = name_;
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      out.arguments.push_back(operands_[i].id);
      out.signature +=
          fmt::format("const {}* __restrict__ p{}, ", rows::cxx::storage(operands_[i].dtype), i);
    }
    out.arguments.push_back(result_.id);
    out.signature += fmt::format("{}* __restrict__ p{}, long long rows",
                                 rows::cxx::storage(result_.dtype), operands_.size());
    out.rows = rows_;
    out.threads = kThreads;
    out.rows_per_block = kTile;
    out.column_blocks = static_cast<int>((columns_ + kTile - 1) / kTile);
    out.why = "a tile is loaded by elements";
    const bool narrow = rows::cxx::is_narrow(result_.dtype);
    const std::string stored =
        narrow ? fmt::format("pw_to_{}({})", name(result_.dtype), value) : value;
    out.body = fmt::format(
        kBody, fmt::arg("tile", kTile), fmt::arg("threads", kThreads),
        fmt::arg("each", kTile * kTile / kThreads), fmt::arg("depth", depth_),
        fmt::arg("columns", columns_),
        fmt::arg("load_a", element(operands_[static_cast<std::size_t>(a)], a, "at")),
        fmt::arg("load_b", element(operands_[static_cast<std::size_t>(a) + 1], a + 1, "at")),
        fmt::arg("finish", fmt::format("p{}[row * {}LL + column] = {};", operands_.size(), columns_,
                                       stored)));
    return written(out);
  }

  const Graph& graph_;
  NodeId node_;
  std::string name_;
  std::vector<Operand> operands_;
  Operand result_;
  DimId rows_;
  std::int64_t depth_ = 0, columns_ = 0;
};

}  // namespace

std::optional<Kernel> product_kernel(const Graph& graph, NodeId node) {
  return Product(graph, node).run();
}

}  // namespace pw::cuda
