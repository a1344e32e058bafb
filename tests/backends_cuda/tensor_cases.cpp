#include "tests/backends_cuda/tensor_cases.hpp"

#include <fmt/format.h>

#include "cuda/kernels/matmul/product.hpp"
#include "dsl/dsl.hpp"
#include "tensor/numerics.hpp"
#include "tests/backends_cuda/kernel_run.hpp"

namespace pw::test {
namespace {

/// Fragments are filled element by element as "Matrix Fragments for mma.m16n8k16" and "m16n8k32" of
/// the PTX ISA say: a is [16, K], b is [K, 8], c and y are [16, 8], all row-major.
std::string instruction_body(const std::string& type, int k) {
  const bool bytes = k == 32;
  return fmt::format(
      R"(  const int lane = threadIdx.x, group = lane >> 2, in_group = lane % 4;
  pw_fragment a = {{{{0, 0, 0, 0}}}};
  unsigned b[2] = {{0, 0}};
  for (int i = 0; i < {count_a}; ++i) {{
    const int row = {row_a} ? group : group + 8;
    const int col = in_group * {run} + (i & {mask}) + (i >= {count_b} ? {half} : 0);
    a.r[i / {run}] |= (unsigned)p0[row * {k} + col] << i % {run} * {bits};
  }}
  for (int i = 0; i < {count_b}; ++i) {{
    const int row = in_group * {run} + (i & {mask}) + (i >= {run} ? {half} : 0), col = group;
    b[i / {run}] |= (unsigned)p1[row * 8 + col] << i % {run} * {bits};
  }}
  float c[4];
  for (int i = 0; i < 4; ++i)
    c[i] = p2[(i < 2 ? group : group + 8) * 8 + in_group * 2 + (i & 1)];
  pw_mma({type}(), c, a, b[0], b[1]);
  for (int i = 0; i < 4; ++i)
    p3[(i < 2 ? group : group + 8) * 8 + in_group * 2 + (i & 1)] = c[i];
)",
      fmt::arg("type", type), fmt::arg("k", k), fmt::arg("count_a", bytes ? 16 : 8),
      fmt::arg("count_b", bytes ? 8 : 4),
      fmt::arg("row_a", bytes ? "(i < 4 || (i >= 8 && i < 12))" : "(i < 2 || (i >= 4 && i < 6))"),
      fmt::arg("run", bytes ? 4 : 2), fmt::arg("mask", bytes ? 3 : 1),
      fmt::arg("half", bytes ? 16 : 8), fmt::arg("bits", bytes ? 8 : 16));
}

/// Operands are laid by bytes: the PTX ISA's 128-byte swizzle moves bits 7 to 9 of an address to 4
/// to
/// 6. Beside a and b there are rows that are in no product; d's fragments are those of "Register
/// fragment for wgmma .m64nNk16".
std::string group_body(const std::string& type, int columns, bool down, bool registers, bool adds) {
  return fmt::format(
      R"(  PW_KEPT(kept);
  const int t = threadIdx.x, lane = t % 32, warp = t / 32;
  constexpr int columns = {columns}, words_of_a = 64 * 8, panel = {down} ? 16 * 8 : 0;
  const int words = words_of_a + {down} * ((columns + 63) / 64) * panel + (1 - {down}) * columns * 8;
  // The element that lies at a byte, before it is moved: rows of 128 bytes, 16 of k from 32 on.
  const auto element = [&](int byte) -> unsigned {{
    const int in_a = 1024 * 8;
    if (byte < in_a) {{
      const int row = byte / 128, k = byte % 128 / 2 - 32;
      return k >= 0 && k < 16 ? p0[row * 16 + k] : 0x7fc0u;
    }}
    const int at = byte - in_a;
    const int of_down = at / 2048 * 64 + at % 128 / 2;
    if ({down}) return of_down < columns ? p1[at % 2048 / 128 * columns + of_down] : 0x7fc0u;
    const int column = at / 128, k = at % 128 / 2 - 32;
    return k >= 0 && k < 16 ? p1[column * 16 + k] : 0x7fc0u;
  }};
  for (int word = t; word < words; word += 128) {{
    const int byte = (word * 16) ^ ((word * 16 >> 7 & 7) << 4);
    unsigned w[4];
    for (int i = 0; i < 4; ++i)
      w[i] = element(byte + 4 * i) | element(byte + 4 * i + 2) << 16;
    pw_put(kept, word, uint4{{w[0], w[1], w[2], w[3]}});
  }}
  pw_show_to_products();
  __syncthreads();
  float d[columns / 8][4];
  for (int j = 0; j < columns / 8; ++j)
    for (int i = 0; i < 4; ++i)
      d[j][i] = p2[(warp * 16 + lane / 4 + i / 2 * 8) * columns + j * 8 + lane % 4 * 2 + i % 2];
  const pw_matrix b = pw_matrix_at(kept, words_of_a + ({down} ? 0 : 4), panel);
  pw_hold(d);
  pw_begin_products();
  if constexpr ({registers}) {{
    pw_fragment a;
    for (int i = 0; i < 4; ++i) {{
      const unsigned short* two =
          p0 + (warp * 16 + lane / 4 + i % 2 * 8) * 16 + lane % 4 * 2 + i / 2 * 8;
      a.r[i] = two[0] | (unsigned)two[1] << 16;
    }}
    pw_multiply<{down}>({type}(), kept, d, a, b, {adds});
    pw_commit_products();
    pw_wait_for_products<0>();
  }} else {{
    pw_multiply<{down}>({type}(), kept, d, pw_matrix_at(kept, 4, 0), b, {adds});
    pw_commit_products();
    pw_wait_for_products<0>();
  }}
  pw_hold(d);
  for (int j = 0; j < columns / 8; ++j)
    for (int i = 0; i < 4; ++i)
      p3[(warp * 16 + lane / 4 + i / 2 * 8) * columns + j * 8 + lane % 4 * 2 + i % 2] = d[j][i];
)",
      fmt::arg("type", type), fmt::arg("columns", columns), fmt::arg("down", down ? 1 : 0),
      fmt::arg("registers", registers ? 1 : 0), fmt::arg("adds", adds));
}

cuda::Kernel one_block(const std::string& op, const std::string& signature, const std::string& body,
                       std::vector<TypeId> arguments, int threads, std::int64_t shared_bytes) {
  cuda::WrittenKernel text;
  text.op = op;
  text.arguments = std::move(arguments);
  text.threads = threads;
  text.signature = signature + ", long long rows";
  text.body = body;
  return cuda::tensor_kernel(text, shared_bytes);
}

constexpr std::pair<const char*, DType> kTypes[] = {{"pw_bf16", DType::bf16},
                                                    {"pw_f16", DType::f16},
                                                    {"pw_f8e4m3", DType::f8e4m3},
                                                    {"pw_f8e5m2", DType::f8e5m2}};

/// Of normal numbers, and memory for another c.
std::vector<Tensor> operands(DType dtype, const Extents& a, const Extents& b, const Extents& c,
                             Random& random) {
  std::vector<Tensor> out;
  out.emplace_back(dtype, a);
  out.emplace_back(dtype, b);
  out.emplace_back(DType::f32, c);
  out.emplace_back(DType::f32, c);
  for (std::size_t t = 0; t < 3; ++t)
    for (std::int64_t i = 0; i < out[t].view().count(); ++i)
      store(out[t].dtype(), out[t].data(), i, random.normal());
  return out;
}

/// y = finish(sums), those of a tile's columns the sum of its pieces: each a product in f32, added
/// in f32, ascending.
std::string text_in_pieces(const ProductCase& c, const std::string& operands,
                           const std::string& turn, const cuda::ProductShape& shape,
                           const std::string& finish) {
  const cuda::ProductDivision division = cuda::divided(shape, c.tile);
  const std::int64_t of_step = 128 / shape.in_bytes;
  std::string out =
      fmt::format("{}  {}  a = f32(x)  b = f32({})", operands, turn, c.transposed ? "m" : "w");
  std::string tiles;
  for (std::int64_t tile = 0; tile < division.across; ++tile) {
    const std::int64_t step0 = tile * division.deep, end = step0 + division.deep;
    out += fmt::format("  b{} = slice(b){{dim = 1, start = {}, end = {}}}", tile,
                       tile * c.tile.columns, std::min((tile + 1) * c.tile.columns, shape.columns));
    std::string sum;
    for (std::int64_t share = division.share_of(step0); division.begin(share) < end; ++share) {
      const std::int64_t from = std::max(division.begin(share), step0) - step0,
                         to = std::min(division.begin(share + 1), end) - step0;
      const std::string piece = fmt::format("{}_{}", tile, share);
      out += fmt::format(
          "  a_{0} = slice(a){{dim = 1, start = {2}, end = {3}}}  b_{0} = slice(b{1}){{dim = 0, "
          "start = {2}, end = {3}}}  piece_{0} = mm(a_{0}, b_{0})",
          piece, tile, from * of_step, std::min(to * of_step, shape.depth));
      if (!sum.empty()) out += fmt::format("  sum_{0} = add({1}, piece_{0})", piece, sum);
      sum = (sum.empty() ? "piece_" : "sum_") + piece;
      if (share + 1 == division.shares) break;
    }
    tiles += (tiles.empty() ? "" : ", ") + sum;
  }
  return out + fmt::format("  sums = {}({})", division.across > 1 ? "cat" : "clone", tiles) +
         (division.across > 1 ? "{dim = 1}" : "") +
         "  y = " + fmt::format(fmt::runtime(finish), "sums") + "  out y";
}

}  // namespace

std::vector<Instruction> instructions() {
  std::vector<Instruction> out;
  for (const auto& [type, dtype] : kTypes) {
    const bool bytes = size_of(dtype) == 1;
    out.push_back({one_block(type,
                             fmt::format("const {0}* p0, const {0}* p1, const float* p2, float* p3",
                                         bytes ? "unsigned char" : "unsigned short"),
                             instruction_body(type, bytes ? 32 : 16),
                             std::vector<TypeId>(4, Types::unknown()), 32, 0),
                   dtype, bytes ? 32 : 16});
  }
  return out;
}

std::vector<Tensor> operands_of(const Instruction& instruction, Random& random) {
  return operands(instruction.dtype, {16, instruction.depth}, {instruction.depth, 8}, {16, 8},
                  random);
}

std::vector<GroupInstruction> group_instructions() {
  std::vector<GroupInstruction> out;
  for (const auto& [type, dtype] : kTypes)
    for (const int columns : {32, 48, 64, 96, 128, 192, 256})
      for (const bool down : {false, true})
        for (const bool registers : {false, true})
          for (const bool adds : {false, true}) {
            if (size_of(dtype) == 1) continue;
            out.push_back(
                {one_block(fmt::format("wgmma of {} columns", columns),
                           "const unsigned short* p0, const unsigned short* p1, const float* p2, "
                           "float* p3",
                           group_body(type, columns, down, registers, adds),
                           std::vector<TypeId>(4, Types::unknown()), 128,
                           128 * (64 + (columns + 63) / 64 * 64)),
                 dtype, columns, down, registers, adds});
          }
  return out;
}

std::vector<Tensor> operands_of(const GroupInstruction& instruction, Random& random) {
  const std::int64_t n = instruction.columns;
  return operands(instruction.dtype, {64, 16}, instruction.down ? Extents{16, n} : Extents{n, 16},
                  {64, n}, random);
}

cuda::Kernel matrix_loads() {
  // Word i of shared memory has elements 8 i to 8 i + 7 of p0; lanes name words in another order.
  const std::string body = R"(  PW_KEPT(kept);
  const int lane = threadIdx.x, own = lane ^ 5;
  pw_put(kept, lane, ((const uint4*)p0)[lane]);
  __syncthreads();
  const pw_place place = pw_place_of(kept, own);
  const pw_fragment straight = pw_rows(kept, place), turned = pw_columns(kept, place);
  for (int m = 0; m < 4; ++m) {
    p1[lane * 8 + m] = straight.r[m];
    p1[lane * 8 + 4 + m] = turned.r[m];
  }
)";
  return one_block("ldmatrix", "const unsigned short* p0, unsigned* p1", body,
                   std::vector<TypeId>(2, Types::unknown()), 32, 32 * 16);
}

std::vector<std::uint32_t> loaded_matrices(std::span<const std::uint16_t> in) {
  // PTX ISA, ldmatrix: row r of matrix m is at the address of lane 8 m + r; lane l receives
  // elements 2 (l % 4) and 2 (l % 4) + 1 of row l / 4, of the transposed matrix with .trans.
  const auto element = [&](std::size_t m, std::size_t row, std::size_t column) -> std::uint32_t {
    return in[((8 * m + row) ^ 5) * 8 + column];
  };
  std::vector<std::uint32_t> out;
  for (std::size_t lane = 0; lane < 32; ++lane) {
    const std::size_t r = lane / 4, c = lane % 4 * 2;
    for (std::size_t m = 0; m < 4; ++m)
      out.push_back(element(m, r, c) | element(m, r, c + 1) << 16);
    for (std::size_t m = 0; m < 4; ++m)
      out.push_back(element(m, c, r) | element(m, c + 1, r) << 16);
  }
  return out;
}

ProductCase random_product(Random& random) {
  const std::vector<cuda::ProductTile>& tiles = cuda::product_tiles();
  const auto extent = [&](std::int64_t most) {
    const auto n = static_cast<std::int64_t>(1 + random.below(static_cast<std::uint64_t>(most)));
    return random.below(3) == 0 ? (n + 15) / 16 * 16 : n;
  };
  static constexpr const char* kIn[] = {"bf16", "f16", "f8e4m3", "f8e5m2"};
  static constexpr const char* kOut[] = {"bf16", "f16", "f32"};
  ProductCase out;
  out.tile = tiles[random.below(tiles.size())];
  const std::string in = kIn[random.below(out.tile.grouped ? 2 : 4)];  // two of 16 bits
  std::int64_t depth = extent(200), columns = extent(250);
  out.rows = extent(80);
  const std::int64_t in_bytes = in[1] == '8' ? 1 : 2;
  if (random.below(2) == 0) {  // blocks that share out rows of tiles, evenly or not
    depth += static_cast<std::int64_t>(random.below(8)) * 128 / in_bytes;
    const bool several = random.below(3) == 0;  // tiles of a block
    if (several) columns += 2 * out.tile.columns;
    const cuda::ProductDivision whole =
        cuda::divided({out.rows, depth, columns, in_bytes}, out.tile);
    const std::int64_t most = several ? whole.across : whole.steps();
    out.tile.shares = static_cast<int>(1 + random.below(static_cast<std::uint64_t>(most)));
  }
  out.transposed = random.below(2) == 0;
  const std::string b = out.transposed ? fmt::format("[{}, {}]", columns, depth)
                                       : fmt::format("[{}, {}]", depth, columns);
  std::string operands = fmt::format("in x: {}[n, {}], w: {}{}", in, depth, in, b), product;
  std::string finish = in + "({})";
  if (in[1] == '8') {
    const bool each = random.below(2) == 0;
    operands +=
        each ? fmt::format(", s: f32[n, 1], t: f32[{}]", columns) : ", s: f32[1], t: f32[1]";
    const std::string to = kOut[random.below(3)];
    product = fmt::format("y = scaled_mm(x, m, s, t){{out = {}}}", to);
    finish = to == "f32" ? "mul({}, mul(s, t))" : to + "(mul({}, mul(s, t)))";
  } else if (random.below(2) == 0) {
    operands += fmt::format(", c: {}[{}]", in, columns);
    product = "y = addmm(c, x, m)";
    finish = in + "(add({}, f32(c)))";
  } else {
    product = "y = mm(x, m)";
  }
  const std::string turn = out.transposed ? "m = transpose(w){dim0 = 0, dim1 = 1}  " : "";
  if (!out.transposed) {
    const std::size_t at = product.find(", m");
    product.replace(at, 3, ", w");
  }
  out.text = operands + "  " + turn + product + "  out y";
  const cuda::ProductShape shape{out.rows, depth, columns, in_bytes};
  if (cuda::divided(shape, out.tile).cut())
    out.in_pieces = text_in_pieces(out, operands, turn, shape, finish);
  return out;
}

std::optional<cuda::TensorKernels> kernels_of(const Graph& graph, const cuda::TensorChoice& choice,
                                              bool transposed) {
  NodeId last;
  for (NodeId n : graph.order()) last = n;
  return cuda::tensor_product_kernels(graph, last, transposed, choice);
}

cuda::TensorProduct product_of(const Graph& graph, bool transposed) {
  NodeId last;
  for (NodeId n : graph.order()) last = n;
  return *cuda::tensor_product_of(graph, last, transposed);
}

Graph product_graph(const ContextPtr& context, const std::string& text) {
  return need(
      parse_graph(context, "graph g {\n  symbol n in 1..4096 tokens\n" + text + "\n}\n", "test"),
      *context);
}

}  // namespace pw::test
