// Products on tensor cores, run on the host: the instructions against the layouts of fragments that
// the PTX ISA documents, kernels against the interpreter's bits, the machine code where NVRTC and a
// disassembler are there.
#include <cmath>
#include <cstring>
#include <thread>

#include <fmt/format.h>

#include "backends/eager/eager.hpp"
#include "backends/interpreter/interpreter.hpp"
#include "backends/program.hpp"
#include "base/hash.hpp"
#include "codegen/toolchain.hpp"
#include "cuda/device/host_driver.hpp"
#include "cuda/kernels/matmul/product.hpp"
#include "cuda/piece_program.hpp"
#include "cuda/runtime.hpp"
#include "dsl/dsl.hpp"
#include "splitter/plan.hpp"
#include "tensor/numerics.hpp"
#include "tests/backends_cuda/kernel_run.hpp"
#include "tests/backends_cuda/tensor_cases.hpp"
#include "tests/catch.hpp"

using namespace pw;
using namespace pw::test;

TEST_CASE("tensor cores: mma has the documented fragments and adds k ascending", "[cuda][tensor]") {
  if (no_host_compiler()) return;
  const std::vector<Instruction> all = instructions();
  std::vector<cuda::Kernel> kernels;
  for (const Instruction& instruction : all) kernels.push_back(instruction.kernel);
  const auto host = cached_kernels(kernels);
  REQUIRE(host);
  Random random(7);
  for (const Instruction& instruction : all) {
    const DType dtype = instruction.dtype;
    const int depth = instruction.depth;
    for (int round = 0; round < 20; ++round) {
      const std::vector<Tensor> operands = operands_of(instruction, random);
      std::vector<void*> pointers;
      for (const Tensor& t : operands) pointers.push_back(t.data());
      REQUIRE(
          host->run(instruction.kernel.name, pointers, std::vector<std::int64_t>{1}, 1 + round));
      int wrong = 0;
      for (int row = 0; row < 16; ++row) {
        for (int column = 0; column < 8; ++column) {
          auto sum = static_cast<float>(load(DType::f32, operands[2].data(), row * 8 + column));
          for (int k = 0; k < depth; ++k)
            sum =
                std::fma(static_cast<float>(load(dtype, operands[0].data(), row * depth + k)),
                         static_cast<float>(load(dtype, operands[1].data(), k * 8 + column)), sum);
          wrong += load(DType::f32, operands[3].data(), row * 8 + column) == sum ? 0 : 1;
        }
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("tensor cores: wgmma takes matrices as documented, and adds k ascending",
          "[cuda][tensor]") {
  if (no_host_compiler()) return;
  const std::vector<GroupInstruction> all = group_instructions();
  std::vector<cuda::Kernel> kernels;
  for (const GroupInstruction& instruction : all) kernels.push_back(instruction.kernel);
  const auto host = cached_kernels(kernels);
  if (!host) FAIL(host.error().front().message);
  Random random(9);
  for (const GroupInstruction& instruction : all) {
    INFO(instruction.kernel.op << (instruction.down ? ", down" : ", along")
                               << (instruction.registers ? ", a in registers" : "")
                               << (instruction.adds ? "" : ", anew"));
    const std::vector<Tensor> operands = operands_of(instruction, random);
    std::vector<void*> pointers;
    for (const Tensor& t : operands) pointers.push_back(t.data());
    const auto done = host->run(instruction.kernel.name, pointers, std::vector<std::int64_t>{1});
    if (!done) FAIL(done.error().front().message);
    const auto at = [&](std::size_t t, std::int64_t i) {
      return static_cast<float>(load(operands[t].dtype(), operands[t].data(), i));
    };
    int wrong = 0;
    const std::int64_t columns = instruction.columns;
    for (std::int64_t row = 0; row < 64; ++row)
      for (std::int64_t column = 0; column < columns; ++column) {
        float sum = instruction.adds ? at(2, row * columns + column) : 0;
        for (std::int64_t k = 0; k < 16; ++k)
          sum = std::fma(at(0, row * 16 + k),
                         at(1, instruction.down ? k * columns + column : column * 16 + k), sum);
        wrong += at(3, row * columns + column) == sum ? 0 : 1;
      }
    CHECK(wrong == 0);
  }
}

TEST_CASE("tensor cores: ldmatrix gives each lane the documented part of four matrices",
          "[cuda][tensor]") {
  if (no_host_compiler()) return;
  const std::vector<cuda::Kernel> kernels{matrix_loads()};
  const auto host = cached_kernels(kernels);
  REQUIRE(host);
  alignas(16) std::uint16_t in[256];
  for (int i = 0; i < 256; ++i) in[i] = static_cast<std::uint16_t>(i * 257);
  std::uint32_t out[256] = {};
  REQUIRE(host->run(kernels[0].name, std::vector<void*>{in, out}, std::vector<std::int64_t>{1}));
  CHECK(std::vector<std::uint32_t>(out, out + 256) == loaded_matrices(in));
}

namespace {

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

struct RaggedProduct {
  ProductCase shape;
  Graph graph;
  cuda::TensorKernels kernels;
};

/// Returns random products, of which every form has its share.
std::vector<RaggedProduct> ragged_products(const ContextPtr& context, std::size_t count,
                                           Random& random) {
  std::vector<RaggedProduct> out;
  std::size_t in_pieces = 0, across = 0, partly = 0, grouped = 0;
  while (out.size() < count) {
    ProductCase c = random_product(random);
    Graph graph = product_graph(context, c.text);
    const auto made = kernels_of(graph, {"sm_90", c.rows, c.tile}, c.transposed);
    REQUIRE(made);
    CHECK(made->sums.has_value() == !c.in_pieces.empty());
    in_pieces += made->sums ? 1 : 0;
    grouped += c.tile.grouped ? 1 : 0;
    across += c.in_pieces.find("cat(") != std::string::npos ? 1 : 0;
    const cuda::ProductShape shape = product_of(graph, c.transposed).shape(c.rows);
    partly += made->sums && cuda::divided(shape, c.tile).whole > 0 ? 1 : 0;
    out.push_back({std::move(c), std::move(graph), *made});
  }
  CHECK(in_pieces >= count / 4);
  CHECK(grouped >= count / 4);
  CHECK(across >= count / 10);
  CHECK(partly >= count / 20);
  return out;
}

/// Runs a product on the emulator: its bits are the interpreter's, and its accesses the foretold.
void check_product(const RaggedProduct& product, const cuda::HostKernels& host, std::uint64_t seed,
                   std::uint64_t order) {
  const auto& [c, graph, kernels] = product;
  const Context& context = graph.context();
  INFO(c.text << ", " << c.rows << " rows, a block of " << c.tile.rows << " x " << c.tile.columns
              << ", " << c.tile.shares << " shares");
  const Symbols symbols{{"n", c.rows}};
  const std::vector<Tensor> inputs = inputs_of(graph, symbols, seed);
  std::vector<void*> operands;
  std::vector<TensorView> views;
  for (const Tensor& t : inputs) {
    operands.push_back(t.data());
    views.push_back(t.view());
  }
  const ValueId y = graph.outputs()[0];
  const Tensor out(context.types[graph.type(y)].dtype,
                   need(extents_of(graph, y, symbols), context));
  // addmm's operands are c, x, w; the graph's inputs are x, w, c.
  if (c.text.find("addmm") != std::string::npos)
    std::rotate(operands.begin(), operands.end() - 1, operands.end());
  PieceMemory memory(context, kernels, symbols);
  const std::vector<void*> pointers = memory.pointers(operands, out.data());
  const std::vector<std::int64_t> params{c.rows};
  cuda::AccessCounts counted;
  const auto done = host.run(kernels.product.name, pointers, params, order, &counted);
  if (!done) FAIL(done.error().front().message);
  CHECK(memory.as_before());
  const auto foretold = cuda::count_accesses(*kernels.product.accesses, pointers.size(), params);
  REQUIRE(foretold);
  CHECK(shown(foretold->total) == shown(counted));
  RunContext run;
  run.symbols = symbols;
  const Graph oracle = kernels.sums ? product_graph(graph.context_ptr(), c.in_pieces) : graph;
  const auto wanted = need(interpret(oracle, views, run, Precision::single), context);
  CHECK(difference({values_of(out.view())}, {values_of(wanted[0].view())}) == "");
}

void check_ragged_products(std::size_t count, std::uint64_t seed) {
  INFO("seed " << seed);
  Random random(seed);
  const std::vector<RaggedProduct> products = ragged_products(library(), count, random);
  std::vector<cuda::Kernel> kernels;
  for (const RaggedProduct& p : products) kernels.push_back(p.kernels.product);
  const auto host = cached_kernels(kernels);
  if (!host) FAIL(host.error().front().message);
  for (std::size_t i = 0; i < products.size(); ++i)
    check_product(products[i], *host, seed + i, random.below(1000));
}

}  // namespace

TEST_CASE(
    "tensor cores: products of ragged shapes have the interpreter's bits, and accesses foretold",
    "[cuda][tensor][diff]") {
  if (!host_compiler().empty()) check_ragged_products(60, 20261129);
}

TEST_CASE("tensor cores: 200 more products of ragged shapes", "[.][slow][cuda][tensor][diff]") {
  if (!host_compiler().empty()) check_ragged_products(200, 20261130);
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
    const cuda::HostDriver driver(cached(how));
    cuda::ProgramOptions options;
    options.tensor_cores = allowed;
    const auto program = need(cuda::make_program(graph, *eager, driver, options), *context);
    std::pair<int, std::size_t> out{0, program.launches.size()};
    for (const cuda::Kernel& k : program.kernels)
      out.first += k.source.find("pw_product<pw_bf16") != std::string::npos ? 1 : 0;
    return out;
  };
  using Counts = std::pair<int, std::size_t>;
  // The transposition is read as it is stored, without a launch; f32 has no tensor cores.
  CHECK(on_tensor_cores("sm_90", false, true) == Counts{2, 4});
  CHECK(on_tensor_cores("sm_75", false, true) == Counts{0, 5});
  CHECK(on_tensor_cores("sm_90", false, false) == Counts{0, 5});
  CHECK(on_tensor_cores("sm_90", true, true).first == 0);
}

TEST_CASE("tensor cores: an extra or missing access differs from the prediction",
          "[cuda][tensor][accesses]") {
  if (no_host_compiler()) return;
  const ContextPtr context = library();
  const Graph graph =
      product_graph(context, "  in x: bf16[n, 264], w: bf16[264, 72]  y = mm(x, w)  out y");
  cuda::ProductTile tile{32, 64, 1, 4, 3};
  tile.shares = 5;  // of 2 tiles of 5 steps each
  const auto made = kernels_of(graph, {"sm_90", 40, tile}, false);
  REQUIRE(made);
  REQUIRE(made->sums);
  const Tensor x(DType::bf16, {40, 264}), w(DType::bf16, {264, 72}), y(DType::bf16, {40, 72});
  const auto as_foretold = [&](const cuda::Kernel& kernel) {
    const auto host = cached_kernels({&kernel, 1});
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
           {"(own ? 1u : 0u)) continue;", "(own ? 1u : 0u) || (i == 1 && j == 1)) continue;"},
           {"number < piece.all)", "number < piece.all && rows > 9)"},
           {"if (row < rows) finish", "if (row < rows && rows > 9) finish"},
           {"threadIdx.x == 0 && gone", "threadIdx.x == 1 && gone"}}) {
    INFO(to);
    CHECK_FALSE(as_foretold(changed(made->product, from, to)));
  }
}

TEST_CASE("tensor cores: blocks that run at the same time wait for each other, and add alike",
          "[cuda][tensor]") {
  if (no_host_compiler()) return;
  const ContextPtr context = library();
  const Graph graph =
      product_graph(context, "  in x: bf16[n, 1000], w: bf16[1000, 200]  y = mm(x, w)  out y");
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
                             "usleep(100), stays = all_came(pw_see(met));");
    at_once.source = changed(at_once.source, "enum : int { pw_looks = 0 };",
                             "enum : int { pw_looks = 200 };\n"
                             "extern \"C\" int usleep(unsigned);\n"
                             "static thread_local int pw_turn;\nstatic int pw_found;\n"
                             "extern \"C\" void pw_take_turn(int turn) { pw_turn = turn; }\n"
                             "extern \"C\" int pw_times_found() { return pw_found; }\n");
    const auto host = cached_kernels({&made->product, 1});
    const auto many = cached_kernels({&at_once, 1});
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
    // A busy machine may let one thread end before another begins: then once more.
    for (std::uint64_t seed = 1; seed <= 4 || (times_found() == 0 && seed <= 100); ++seed) {
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
  if (no_host_compiler()) return;
  const ContextPtr context = library();
  const Graph graph =
      need(parse_graph(
               context,
               "graph g {\n  symbol n in 1..64 tokens\n  in x: bf16[n, 520], w: bf16[520, 64]\n  "
               "y = mm(x, w)  out y\n}\n",
               "test"),
           *context);
  const Symbols symbols{{"n", 40}};
  const std::vector<Tensor> inputs = inputs_of(graph, symbols, 3);
  const auto result = [&](const cuda::Kernel& k) -> std::string {
    const auto host = cached_kernels({&k, 1});
    REQUIRE(host);
    const Tensor out(DType::bf16, {40, 64});
    const auto done =
        host->run(k.name, std::vector<void*>{inputs[0].data(), inputs[1].data(), out.data()},
                  std::vector<std::int64_t>{40});
    if (!done) return done.error().front().code;
    return std::string(reinterpret_cast<const char*>(out.data()), out.view().bytes());
  };
  const cuda::ProductTile warps{32, 64, 1, 4, 3}, groups{64, 64, 4, 1, 4, 0, true};
  std::vector<std::pair<cuda::ProductTile, const char*>> lines;
  for (const cuda::ProductTile& tile : {warps, groups})
    for (const char* line : {"      __syncthreads();\n", "      pw_wait<ahead - 1>();\n"})
      lines.emplace_back(tile, line);
  for (const char* line :
       {"if constexpr (GROUPED) pw_show_to_products();\n", "        pw_wait_for_products<1>();\n",
        "      pw_wait_for_products<0>();\n"})
    lines.emplace_back(groups, line);
  for (const auto& [tile, line] : lines) {
    INFO(described(tile) << ": " << line);
    const auto made = kernels_of(graph, {"sm_90", 40, tile}, false);
    REQUIRE(made);
    const std::string right = result(made->product);
    CHECK(right.size() == 40 * 64 * 2);
    cuda::Kernel broken = made->product;
    const std::size_t at = broken.source.find(line);
    REQUIRE(at != std::string::npos);
    broken.source.erase(at, std::string(line).size());
    CHECK((result(broken) != right));
  }
}
