// Products on tensor cores, run on the host: the instructions against the layouts of fragments that
// the PTX ISA documents, kernels against the interpreter's bits, the machine code where NVRTC and a
// disassembler are there.
#include <cmath>
#include <cstring>
#include <thread>

#include <fmt/format.h>

#include "backends/cuda/host_driver.hpp"
#include "backends/cuda/piece_program.hpp"
#include "backends/cuda/product.hpp"
#include "backends/cuda/runtime.hpp"
#include "backends/eager/eager.hpp"
#include "backends/interpreter.hpp"
#include "backends/numerics.hpp"
#include "backends/program.hpp"
#include "backends/toolchain.hpp"
#include "base/hash.hpp"
#include "dsl/dsl.hpp"
#include "splitter/plan.hpp"
#include "tests/backends_cuda/kernel_run.hpp"
#include "tests/catch.hpp"

using namespace pw;
using namespace pw::test;

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

struct Instruction {
  cuda::Kernel kernel;
  DType dtype;
  int depth;
};

cuda::Kernel one_warp(const std::string& op, const std::string& signature, const std::string& body,
                      std::vector<TypeId> arguments, std::int64_t shared_bytes) {
  cuda::WrittenKernel text;
  text.op = op;
  text.arguments = std::move(arguments);
  text.threads = 32;
  text.signature = signature + ", long long rows";
  text.body = body;
  return cuda::tensor_kernel(text, shared_bytes);
}

const std::pair<const char*, DType> kTypes[] = {{"pw_bf16", DType::bf16},
                                                {"pw_f16", DType::f16},
                                                {"pw_f8e4m3", DType::f8e4m3},
                                                {"pw_f8e5m2", DType::f8e5m2}};

std::vector<Tensor> fragments(DType dtype, int depth, Random& random) {
  std::vector<Tensor> out;
  out.emplace_back(dtype, Extents{16, depth});
  out.emplace_back(dtype, Extents{depth, 8});
  out.emplace_back(DType::f32, Extents{16, 8});
  out.emplace_back(DType::f32, Extents{16, 8});
  for (std::size_t t = 0; t < 3; ++t)
    for (std::int64_t i = 0; i < out[t].view().count(); ++i)
      store(out[t].dtype(), out[t].data(), i, random.normal());
  return out;
}

}  // namespace

TEST_CASE("tensor cores: mma has the documented fragments and adds k ascending", "[cuda][tensor]") {
  if (host_compiler().empty()) return;
  std::vector<cuda::Kernel> kernels;
  for (const auto& [type, dtype] : kTypes) {
    const std::string stored = size_of(dtype) == 1 ? "unsigned char" : "unsigned short";
    kernels.push_back(one_warp(
        type, fmt::format("const {0}* p0, const {0}* p1, const float* p2, float* p3", stored),
        instruction_body(type, size_of(dtype) == 1 ? 32 : 16),
        std::vector<TypeId>(4, Types::unknown()), 0));
  }
  const auto host = cuda::HostKernels::build(kernels);
  REQUIRE(host);
  Random random(7);
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const DType dtype = kTypes[i].second;
    const int depth = size_of(dtype) == 1 ? 32 : 16;
    for (int round = 0; round < 20; ++round) {
      const std::vector<Tensor> all = fragments(dtype, depth, random);
      std::vector<void*> pointers;
      for (const Tensor& t : all) pointers.push_back(t.data());
      REQUIRE(host->run(kernels[i].name, pointers, std::vector<std::int64_t>{1}, 1 + round));
      int wrong = 0;
      for (int row = 0; row < 16; ++row) {
        for (int column = 0; column < 8; ++column) {
          auto sum = static_cast<float>(load(DType::f32, all[2].data(), row * 8 + column));
          for (int k = 0; k < depth; ++k)
            sum = std::fma(static_cast<float>(load(dtype, all[0].data(), row * depth + k)),
                           static_cast<float>(load(dtype, all[1].data(), k * 8 + column)), sum);
          wrong += load(DType::f32, all[3].data(), row * 8 + column) == sum ? 0 : 1;
        }
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("tensor cores: ldmatrix gives each lane the documented part of four matrices",
          "[cuda][tensor]") {
  if (host_compiler().empty()) return;
  // Word i of shared memory has elements 8 i to 8 i + 7 of p0; lanes name words in another order.
  const std::string body = R"(  PW_KEPT(kept);
  const int lane = threadIdx.x, own = lane ^ 5;
  pw_put(kept, lane, ((const uint4*)p0)[lane]);
  __syncthreads();
  const pw_fragment straight = pw_rows(kept, own), turned = pw_columns(kept, own);
  for (int m = 0; m < 4; ++m) {
    p1[lane * 8 + m] = straight.r[m];
    p1[lane * 8 + 4 + m] = turned.r[m];
  }
)";
  const std::vector<cuda::Kernel> kernels{
      one_warp("ldmatrix", "const unsigned short* p0, unsigned* p1", body,
               std::vector<TypeId>(2, Types::unknown()), 32 * 16)};
  const auto host = cuda::HostKernels::build(kernels);
  REQUIRE(host);
  alignas(16) std::uint16_t in[256];
  for (int i = 0; i < 256; ++i) in[i] = static_cast<std::uint16_t>(i * 257);
  std::uint32_t out[256] = {};
  REQUIRE(host->run(kernels[0].name, std::vector<void*>{in, out}, std::vector<std::int64_t>{1}));
  // PTX ISA, ldmatrix: row r of matrix m is at the address of lane 8 m + r; lane l receives
  // elements 2 (l % 4) and 2 (l % 4) + 1 of row l / 4, of the transposed matrix with .trans.
  const auto element = [&](int m, int row, int column) -> std::uint32_t {
    return in[((8 * m + row) ^ 5) * 8 + column];
  };
  for (int lane = 0; lane < 32; ++lane) {
    const int r = lane / 4, c = lane % 4 * 2;
    for (int m = 0; m < 4; ++m) {
      CHECK(out[lane * 8 + m] == (element(m, r, c) | element(m, r, c + 1) << 16));
      CHECK(out[lane * 8 + 4 + m] == (element(m, c, r) | element(m, c + 1, r) << 16));
    }
  }
}

namespace {

struct Case {
  std::string text;
  std::string in_pieces;  ///< the graph that adds pieces of k in the order of the kernels
  std::int64_t rows;
  cuda::ProductTile tile;
  bool transposed;
};

/// y = finish(sums), those of a tile's columns the sum of its pieces: each a product in f32, added
/// in f32, ascending.
std::string text_in_pieces(const Case& c, const std::string& operands, const std::string& turn,
                           const cuda::ProductShape& shape, const std::string& finish) {
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

/// A product of a random form, and of extents of which most are no multiples of a tile.
Case random_case(Random& random) {
  const std::vector<cuda::ProductTile>& tiles = cuda::product_tiles();
  const auto extent = [&](std::int64_t most) {
    const auto n = static_cast<std::int64_t>(1 + random.below(static_cast<std::uint64_t>(most)));
    return random.below(3) == 0 ? (n + 15) / 16 * 16 : n;
  };
  static constexpr const char* kIn[] = {"bf16", "f16", "f8e4m3", "f8e5m2"};
  static constexpr const char* kOut[] = {"bf16", "f16", "f32"};
  Case out;
  const std::string in = kIn[random.below(4)];
  std::int64_t depth = extent(200), columns = extent(250);
  out.rows = extent(80);
  out.tile = tiles[random.below(tiles.size())];
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

/// The kernels of the product at the end of a graph.
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

/// Memory for what pieces of tiles leave: their sums, which are anything before, and numbers.
struct PieceMemory {
  std::vector<float> sums;
  std::vector<std::int64_t> met;
  PieceMemory(const Context& context, const cuda::TensorKernels& kernels, const Symbols& symbols) {
    const auto count = [&](const std::optional<TypeId>& type) {
      std::int64_t out = type ? 1 : 0;
      if (type)
        for (DimId d : context.types[*type].shape) out *= context.dims.evaluate(d, symbols).value();
      return static_cast<std::size_t>(out);
    };
    sums.assign(count(kernels.sums), std::nanf(""));
    met.assign(count(kernels.met), 0);
  }
  /// Operands, these and the result.
  [[nodiscard]] std::vector<void*> pointers(std::vector<void*> operands, void* result) {
    if (!sums.empty()) operands.insert(operands.end(), {sums.data(), met.data()});
    operands.push_back(result);
    return operands;
  }
  [[nodiscard]] bool as_before() const {
    return std::all_of(met.begin(), met.end(), [](std::int64_t n) { return n == 0; });
  }
};

Graph graph_of(const ContextPtr& context, const std::string& text) {
  return need(
      parse_graph(context, "graph g {\n  symbol n in 1..4096 tokens\n" + text + "\n}\n", "test"),
      *context);
}

}  // namespace

TEST_CASE(
    "tensor cores: 200 products of ragged shapes have the interpreter's bits, and accesses "
    "foretold",
    "[cuda][tensor][diff]") {
  if (host_compiler().empty()) return;
  constexpr std::uint64_t kSeed = 20261124;
  INFO("seed " << kSeed);
  Random random(kSeed);
  const ContextPtr context = library();
  std::vector<Case> cases;
  std::vector<Graph> graphs;
  std::vector<cuda::TensorKernels> products;
  std::vector<cuda::Kernel> kernels;
  std::size_t in_pieces = 0, across = 0, partly = 0;
  while (cases.size() < 200) {
    Case c = random_case(random);
    graphs.push_back(graph_of(context, c.text));
    const auto made = kernels_of(graphs.back(), {"sm_90", c.rows, c.tile}, c.transposed);
    REQUIRE(made);
    CHECK(made->sums.has_value() == !c.in_pieces.empty());
    in_pieces += made->sums ? 1 : 0;
    across += c.in_pieces.find("cat(") != std::string::npos ? 1 : 0;
    const cuda::ProductShape shape = product_of(graphs.back(), c.transposed).shape(c.rows);
    partly += made->sums && cuda::divided(shape, c.tile).whole > 0 ? 1 : 0;
    kernels.push_back(made->product);
    products.push_back(*made);
    cases.push_back(std::move(c));
  }
  CHECK(in_pieces >= 60);
  CHECK(across >= 20);
  CHECK(partly >= 10);
  const auto host = cuda::HostKernels::build(kernels);
  if (!host) FAIL(host.error().front().message);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    INFO(cases[i].text << ", " << cases[i].rows << " rows, a block of " << cases[i].tile.rows
                       << " x " << cases[i].tile.columns << ", " << cases[i].tile.shares
                       << " shares");
    const Symbols symbols{{"n", cases[i].rows}};
    const std::vector<Tensor> inputs = inputs_of(graphs[i], symbols, kSeed + i);
    std::vector<void*> operands;
    for (const Tensor& t : inputs) operands.push_back(t.data());
    const ValueId y = graphs[i].outputs()[0];
    const Extents extents = need(extents_of(graphs[i], y, symbols), *context);
    const Tensor out(context->types[graphs[i].type(y)].dtype, extents);
    const cuda::TensorKernels& p = products[i];
    // addmm's operands are c, x, w; the graph's inputs are x, w, c.
    if (cases[i].text.find("addmm") != std::string::npos)
      std::rotate(operands.begin(), operands.end() - 1, operands.end());
    PieceMemory memory(*context, p, symbols);
    const std::vector<void*> pointers = memory.pointers(operands, out.data());
    const std::vector<std::int64_t> params{cases[i].rows};
    cuda::AccessCounts counted;
    const auto done = host->run(p.product.name, pointers, params, random.below(1000), &counted);
    if (!done) FAIL(done.error().front().message);
    CHECK(memory.as_before());
    const auto foretold = cuda::count_accesses(*p.product.accesses, pointers.size(), params);
    REQUIRE(foretold);
    CHECK(shown(foretold->total) == shown(counted));
    std::vector<TensorView> views;
    for (const Tensor& t : inputs) views.push_back(t.view());
    RunContext run;
    run.symbols = symbols;
    const Graph oracle = p.sums ? graph_of(context, cases[i].in_pieces) : graphs[i];
    const auto wanted = need(interpret(oracle, views, run, Precision::single), *context);
    CHECK(difference({values_of(out.view())}, {values_of(wanted[0].view())}) == "");
  }
}

TEST_CASE("tensor cores: a plan takes them where no library is, but not in strict runs",
          "[cuda][tensor]") {
  const ContextPtr context = library();
  const Graph graph =
      need(parse_graph(
               context,
               "graph g {\n  symbol n in 1..64 tokens\n  in x: bf16[n, 40], w: bf16[24, 40], v: "
               "bf16[24, 7], u: f32[7, 3]\n  m = transpose(w){dim0 = 0, dim1 = 1}  a = mm(x, m)  b "
               "= mm(a, v)  c = mm(f32(b), u)  out c\n}\n",
               "test"),
           *context);
  const auto eager = make_eager();
  const auto on_tensor_cores = [&](const std::string& arch, bool libraries, bool allowed) {
    cuda::HostDriverOptions how;
    how.arch = arch;
    how.libraries = libraries;
    const cuda::HostDriver driver(how);
    cuda::ProgramOptions options;
    options.tensor_cores = allowed;
    const auto program = need(cuda::make_program(graph, *eager, driver, options), *context);
    std::pair<int, std::size_t> out{0, program.launches.size()};
    for (const cuda::Kernel& k : program.kernels)
      out.first += k.source.find("pw_product<pw_bf16") != std::string::npos ? 1 : 0;
    return out;
  };
  using Counts = std::pair<int, std::size_t>;
  // The transposition is read as it is stored, and is no launch; f32 has no tensor cores.
  CHECK(on_tensor_cores("sm_90", false, true) == Counts{2, 4});
  CHECK(on_tensor_cores("sm_75", false, true) == Counts{0, 5});
  CHECK(on_tensor_cores("sm_90", false, false) == Counts{0, 5});
  CHECK(on_tensor_cores("sm_90", true, true).first == 0);
}

TEST_CASE("tensor cores: an access too many or too few is none that was foretold",
          "[cuda][tensor][accesses]") {
  if (host_compiler().empty()) return;
  const ContextPtr context = library();
  const Graph graph =
      graph_of(context, "  in x: bf16[n, 264], w: bf16[264, 72]  y = mm(x, w)  out y");
  cuda::ProductTile tile{32, 64, 1, 4, 3};
  tile.shares = 5;  // of 2 tiles of 5 steps each
  const auto made = kernels_of(graph, {"sm_90", 40, tile}, false);
  REQUIRE(made);
  REQUIRE(made->sums);
  const Tensor x(DType::bf16, {40, 264}), w(DType::bf16, {264, 72}), y(DType::bf16, {40, 72});
  const auto as_foretold = [&](const cuda::Kernel& kernel) {
    const auto host = cuda::HostKernels::build({&kernel, 1});
    REQUIRE(host);
    PieceMemory memory(*context, *made, {{"n", 40}});
    const std::vector<void*> pointers = memory.pointers({x.data(), w.data()}, y.data());
    cuda::AccessCounts counted;
    const std::vector<std::int64_t> params{40};
    REQUIRE(host->run(kernel.name, pointers, params, 1, &counted));
    return cuda::count_accesses(*kernel.accesses, pointers.size(), params)->total == counted;
  };
  const auto changed = [](cuda::Kernel kernel, const std::string& from, const std::string& to) {
    const std::size_t at = kernel.source.rfind(from);
    REQUIRE(at != std::string::npos);
    kernel.source.replace(at, from.size(), to);
    return kernel;
  };
  REQUIRE(as_foretold(made->product));
  const std::string first = "    if (own == 0 && blockIdx.x + blockIdx.y == 0) ";
  const std::string sums_of = "  float sums[tm / 16]";
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {sums_of, first + "pw_load((const uint4*)a, 0);\n" + sums_of},
           {"constexpr int last =", first + "pw_at(shared, at);\n      constexpr int last ="},
           {"row < there);", "row < there - (blockIdx.x == 1 ? 1 : 0));"},
           {"rows && j * 8 < columns)", "rows && j * 8 < columns - 2)"},
           {"number < piece.all && there(pair)", "number < piece.all && there(pair) && rows > 9"},
           {"if (there(pair))", "if (there(pair) && rows > 9)"},
           {"threadIdx.x == 0 && gone", "threadIdx.x == 1 && gone"}}) {
    INFO(to);
    CHECK_FALSE(as_foretold(changed(made->product, from, to)));
  }
}

TEST_CASE("tensor cores: blocks that run at the same time wait for each other, and add alike",
          "[cuda][tensor]") {
  if (host_compiler().empty()) return;
  const ContextPtr context = library();
  const Graph graph =
      graph_of(context, "  in x: bf16[n, 1000], w: bf16[1000, 200]  y = mm(x, w)  out y");
  cuda::ProductTile tile{32, 64, 1, 4, 3};
  const auto changed = [](std::string text, const std::string& from, const std::string& to) {
    const std::size_t at = text.rfind(from);
    REQUIRE(at != std::string::npos);
    return text.replace(at, from.size(), to);
  };
  const std::vector<Tensor> inputs = inputs_of(graph, {{"n", 70}}, 5);
  for (const int shares : {12, 11}) {  // three pieces of each tile; up to four
    tile.shares = shares;
    const auto made = kernels_of(graph, {"sm_90", 70, tile}, false);
    REQUIRE(made);
    REQUIRE(made->sums);
    // Of a row of tiles a thread of the host runs each third block.
    cuda::Kernel at_once = made->product;
    at_once.name += "_at_once";
    at_once.source = changed(at_once.source, made->product.name, at_once.name);
    at_once.source = changed(at_once.source, "  PW_KEPT(kept);",
                             "  if ((int)blockIdx.y % 3 != pw_turn) return;\n  PW_KEPT(kept);");
    at_once.source = changed(at_once.source, "      if (!stays) before = ",
                             "      if (stays) __atomic_fetch_add(&pw_found, 1, 0);\n"
                             "      if (!stays) before = ");
    at_once.source = changed(at_once.source, "stays = all_came(pw_see(met));",
                             "sched_yield(), stays = all_came(pw_see(met));");
    at_once.source = changed(at_once.source, "enum : int { pw_looks = 0 };",
                             "enum : int { pw_looks = 2000 };\n"
                             "extern \"C\" int sched_yield(void);\n"
                             "static thread_local int pw_turn;\nstatic int pw_found;\n"
                             "extern \"C\" void pw_take_turn(int turn) { pw_turn = turn; }\n"
                             "extern \"C\" int pw_times_found() { return pw_found; }\n");
    const auto host = cuda::HostKernels::build({&made->product, 1});
    const auto many = cuda::HostKernels::build({&at_once, 1});
    REQUIRE(host);
    if (!many) FAIL(many.error().front().message);
    const auto take_turn = reinterpret_cast<void (*)(int)>(many->symbol("pw_take_turn"));
    const auto times_found = reinterpret_cast<int (*)()>(many->symbol("pw_times_found"));
    const std::vector<std::int64_t> params{70};
    PieceMemory memory(*context, *made, {{"n", 70}});
    const Tensor wanted(DType::bf16, {70, 200}), y(DType::bf16, {70, 200});
    const std::vector<void*> operands{inputs[0].data(), inputs[1].data()};
    REQUIRE(host->run(made->product.name, memory.pointers(operands, wanted.data()), params));
    const std::vector<void*> pointers = memory.pointers(operands, y.data());
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      std::memset(y.data(), 0xff, 70 * 200 * 2);
      bool ran[3] = {};
      std::vector<std::thread> threads;
      for (int turn = 0; turn < 3; ++turn)
        threads.emplace_back([&, turn] {
          take_turn(turn);
          ran[turn] = many->run(at_once.name, pointers, params, seed).has_value();
        });
      for (std::thread& thread : threads) thread.join();
      CHECK((ran[0] && ran[1] && ran[2]));
      CHECK(difference({values_of(y.view())}, {values_of(wanted.view())}) == "");
      CHECK(memory.as_before());
    }
    CHECK(times_found() > 0);  // a block looked, and the others had come
  }
}

TEST_CASE("tensor cores: without a barrier or a wait a product is refused or wrong",
          "[cuda][tensor]") {
  if (host_compiler().empty()) return;
  const ContextPtr context = library();
  const Graph graph =
      need(parse_graph(
               context,
               "graph g {\n  symbol n in 1..64 tokens\n  in x: bf16[n, 520], w: bf16[520, 64]\n  "
               "y = mm(x, w)  out y\n}\n",
               "test"),
           *context);
  const auto made = kernels_of(graph, {"sm_90", 40, cuda::ProductTile{32, 64, 1, 4, 3}}, false);
  REQUIRE(made);
  const cuda::Kernel* kernel = &made->product;
  const Symbols symbols{{"n", 40}};
  const std::vector<Tensor> inputs = inputs_of(graph, symbols, 3);
  const auto result = [&](const cuda::Kernel& k) -> std::string {
    const auto host = cuda::HostKernels::build({&k, 1});
    REQUIRE(host);
    const Tensor out(DType::bf16, {40, 64});
    const auto done =
        host->run(k.name, std::vector<void*>{inputs[0].data(), inputs[1].data(), out.data()},
                  std::vector<std::int64_t>{40});
    if (!done) return done.error().front().code;
    return std::string(reinterpret_cast<const char*>(out.data()), out.view().bytes());
  };
  const std::string right = result(*kernel);
  CHECK(right.size() == 40 * 64 * 2);
  for (const char* line : {"    __syncthreads();\n", "    pw_wait<STAGES - 2>();\n"}) {
    INFO(line);
    cuda::Kernel broken = *kernel;
    const std::size_t at = broken.source.find(line);
    REQUIRE(at != std::string::npos);
    broken.source.erase(at, std::string(line).size());
    CHECK((result(broken) != right));
  }
}
