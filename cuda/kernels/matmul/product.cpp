// Matmuls of a graph: recognises them and their operands, and emits the portable kernel. The kernel
// is the classical tiled product: a block copies square tiles of a and b to shared memory, and each
// thread accumulates several results of one column in registers.
//
// Invariant: an element is one chain of fused multiply-adds in f32, k ascending, which has the
// interpreter's bits on every device. Cost: each element of a is read once for each tile of
// columns, and each element of b once for each tile of rows.
#include "cuda/kernels/matmul/product.hpp"

#include <fmt/format.h>

#include "codegen/rowprogram/cxx.hpp"

namespace pw::cuda {
namespace {

constexpr int kTile = 32, kThreads = 256;

/// A block has a square tile of the result, and a thread `each` elements of one of its columns. A
/// and B are loaded as floats; `finish` makes the stored element from `sum`, at `row` and `column`.
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

/// A float operand of the node, or none: its dtype, and its extents where they are fixed.
struct Operand {
  TypeId id;
  DType dtype = DType::f32;
  std::optional<std::int64_t> count;
};

std::string element(const Operand& operand, std::size_t pointer, std::string_view at) {
  return rows::cxx::loaded(operand.dtype, fmt::format("pw_load(p{}, {})", pointer, at));
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

/// Reads a product node and writes its kernel. `read` must succeed before any other member is used.
class ProductKernel {
 public:
  ProductKernel(const Graph& graph, NodeId node, const ProductCall& call)
      : graph_(graph), node_(node), call_(call) {}

  std::optional<Kernel> run() {
    const auto value = read();
    return value ? std::optional(kernel(*value)) : std::nullopt;
  }

  std::optional<TensorProduct> tensor_product(bool b_transposed) {
    const auto value = read();
    const Operand &a = operands_[call_.a], &b = operands_[call_.b];
    if (!value || a.dtype != b.dtype) return std::nullopt;
    TensorProduct out;
    out.op = graph_.op_of(node_).name;
    out.in = a.dtype;
    out.out = result_.dtype;
    out.a = call_.a;
    out.b = call_.b;
    out.b_transposed = b_transposed;
    for (const Operand& operand : operands_) out.operands.push_back(operand.id);
    if (b_transposed)
      out.operands[call_.b] =
          graph_.type(graph_.operand(graph_.producer(graph_.operand(node_, call_.b)), 0));
    out.result = result_.id;
    out.value = *value;
    out.rows = rows_;
    out.depth = depth_;
    out.columns = columns_;
    return out;
  }

 private:
  /// Reads the operands. Returns the stored expression of `sum`, or nothing.
  std::optional<std::string> read() {
    for (ValueId v : graph_.operands(node_)) {
      auto operand = operand_of(graph_, v);
      if (!operand) return std::nullopt;
      operands_.push_back(*operand);
    }
    const auto result = operand_of(graph_, graph_.result(node_));
    if (!result || !read_shapes()) return std::nullopt;
    result_ = *result;
    std::string value = "sum";
    if (call_.bias) {
      const auto c = factor(*call_.bias, true);
      if (!c) return std::nullopt;
      value = fmt::format("pw_add(sum, {})", *c);
    } else if (call_.a_scale && call_.b_scale) {
      const auto a = factor(*call_.a_scale, false), b = factor(*call_.b_scale, true);
      if (!a || !b) return std::nullopt;
      value = fmt::format("pw_mul(sum, pw_mul({}, {}))", *a, *b);
    }
    return value;
  }

  [[nodiscard]] const Shape& shape(const Operand& operand) const {
    return graph_.context().types[operand.id].shape;
  }

  bool read_shapes() {
    const Shape &a = shape(operands_[call_.a]), &b = shape(operands_[call_.b]);
    const Dims& dims = graph_.context().dims;
    const auto depth = dims.value(a[1]), columns = dims.value(b[1]);
    if (!depth || !columns) return false;
    rows_ = a[0];
    depth_ = *depth;
    columns_ = *columns;
    return true;
  }

  /// Returns an operand's element for `row` and `column`.
  [[nodiscard]] std::optional<std::string> factor(std::size_t i, bool columns) const {
    const auto at = broadcast(operands_[i], columns);
    return at ? std::optional(element(operands_[i], i, *at)) : std::nullopt;
  }

  /// Returns the index for `row` and `column` in an operand with one element, or one for each row
  /// or column.
  [[nodiscard]] std::optional<std::string> broadcast(const Operand& operand, bool columns) const {
    if (operand.count == 1) return "0";
    if (columns && operand.count == columns_) return "column";
    const auto& dims = shape(operand);
    const bool by_row =
        !columns && !dims.empty() && dims[0] == rows_ &&
        (dims.size() == 1 || (dims.size() == 2 && graph_.context().dims.value(dims[1]) == 1));
    return by_row ? std::optional<std::string>("row") : std::nullopt;
  }

  [[nodiscard]] std::vector<TypeId> arguments() const {
    std::vector<TypeId> out;
    for (const Operand& operand : operands_) out.push_back(operand.id);
    out.push_back(result_.id);
    return out;
  }
  [[nodiscard]] std::string signature() const {
    std::string out;
    for (std::size_t i = 0; i < operands_.size(); ++i)
      out += fmt::format("const {}* __restrict__ p{}, ", rows::cxx::storage(operands_[i].dtype), i);
    return out + fmt::format("{}* __restrict__ p{}, long long rows",
                             rows::cxx::storage(result_.dtype), operands_.size());
  }

  [[nodiscard]] Kernel kernel(const std::string& value) const {
    WrittenKernel out;
    out.op = graph_.op_of(node_).name;
    out.arguments = arguments();
    out.signature = signature();
    out.rows = rows_;
    out.threads = kThreads;
    out.rows_per_block = kTile;
    out.column_blocks = static_cast<int>((columns_ + kTile - 1) / kTile);
    out.why = "tiles are loaded element by element";
    const bool narrow = rows::cxx::is_narrow(result_.dtype);
    const std::string stored =
        narrow ? fmt::format("pw_to_{}({})", name(result_.dtype), value) : value;
    out.body = fmt::format(kBody, fmt::arg("tile", kTile), fmt::arg("threads", kThreads),
                           fmt::arg("each", kTile * kTile / kThreads), fmt::arg("depth", depth_),
                           fmt::arg("columns", columns_),
                           fmt::arg("load_a", element(operands_[call_.a], call_.a, "at")),
                           fmt::arg("load_b", element(operands_[call_.b], call_.b, "at")),
                           fmt::arg("finish", fmt::format("pw_store(p{}, row * {}LL + column, {});",
                                                          operands_.size(), columns_, stored)));
    add_accesses(out);
    return written(out);
  }

  /// Adds the accesses of kBody: a's tiles are read once for each tile of columns, b's for each
  /// tile of rows.
  void add_accesses(WrittenKernel& text) const {
    const std::int64_t blocks = text.column_blocks, tiles = (depth_ + kTile - 1) / kTile;
    const auto read = [&](std::size_t i) {
      return AccessNode::of_global(i, false, size_of(operands_[i].dtype));
    };
    text.add_by_row(read(call_.a), depth_ * blocks);
    text.add_by_block(read(call_.b), depth_ * columns_);
    text.add_by_block(AccessNode::of_shared(true, 4), blocks * tiles * 2 * kTile * kTile);
    text.add_by_block(AccessNode::of_shared(false, 4),
                      blocks * depth_ * (kThreads + kTile * kTile));
    for (const auto& factor : {call_.bias, call_.a_scale, call_.b_scale})
      if (factor) text.add_by_row(read(*factor), columns_);
    text.add_by_row(AccessNode::of_global(operands_.size(), true, size_of(result_.dtype)),
                    columns_);
  }

  const Graph& graph_;
  NodeId node_;
  ProductCall call_;
  std::vector<Operand> operands_;
  Operand result_;
  DimId rows_;
  std::int64_t depth_ = 0, columns_ = 0;
};

/// Returns the type of a known two-dimensional operand, or null.
const Type* matrix(const Graph& graph, ValueId v) {
  if (!v.valid() || graph.type(v) == Types::unknown()) return nullptr;
  const Type& type = graph.context().types[graph.type(v)];
  return type.shape.size() == 2 ? &type : nullptr;
}

/// Maps the operands that rules/ops/matmul.pwr declares.
std::optional<ProductCall> call_of(Primitive op) {
  ProductCall out;
  if (op == Primitive::mm) return out;
  if (op == Primitive::addmm) {
    out.bias = 0;
    out.a = 1;
    out.b = 2;
    return out;
  }
  if (op != Primitive::scaled_mm) return std::nullopt;
  out.a_scale = 2;
  out.b_scale = 3;
  return out;
}

}  // namespace

std::optional<ProductCall> product_call(const Graph& graph, NodeId node) {
  const Op& op = graph.op_of(node);
  auto out = op.has_body() ? std::nullopt : call_of(op.primitive);
  const std::size_t count = out && out->a_scale ? 4 : out && out->bias ? 3 : 2;
  if (!out || graph.operand_count(node) != count) return std::nullopt;
  const Type *a = matrix(graph, graph.operand(node, out->a)),
             *b = matrix(graph, graph.operand(node, out->b));
  if (a == nullptr || b == nullptr || a->shape[1] != b->shape[0]) return std::nullopt;
  return out;
}

std::optional<Kernel> product_kernel(const Graph& graph, NodeId node) {
  const auto call = product_call(graph, node);
  return call ? ProductKernel(graph, node, *call).run() : std::nullopt;
}

std::optional<TensorProduct> tensor_product_of(const Graph& graph, NodeId node, bool b_transposed) {
  const auto call = product_call(graph, node);
  return call ? ProductKernel(graph, node, *call).tensor_product(b_transposed) : std::nullopt;
}

std::vector<FoundProduct> tensor_products_of(const Graph& graph) {
  std::vector<FoundProduct> out;
  for (NodeId n : graph.order()) {
    const auto call = product_call(graph, n);
    if (!call) continue;
    const ValueId b = graph.operand(n, call->b);
    const bool turned = !graph.is_input(b) &&
                        graph.op_of(graph.producer(b)).primitive == Primitive::transpose &&
                        !graph.is_output(b) && graph.users(b).size() == 1;
    auto product = tensor_product_of(graph, n, turned);
    if (!product) continue;
    FoundProduct found{{n}, std::move(*product)};
    if (turned) found.nodes.insert(found.nodes.begin(), graph.producer(b));
    out.push_back(std::move(found));
  }
  return out;
}

std::optional<TensorKernels> tensor_product_kernels(const Graph& graph, NodeId node,
                                                    bool b_transposed, const TensorChoice& choice) {
  const auto product = tensor_product_of(graph, node, b_transposed);
  return product ? tensor_product(*product, choice, graph.context()) : std::nullopt;
}

}  // namespace pw::cuda
