// The machine code of tensor-core kernels: NVRTC's cubins for each architecture, disassembled.
#include <algorithm>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "cuda/kernels/attention/attention.hpp"
#include "cuda/kernels/emitter.hpp"
#include "cuda/kernels/matmul/product.hpp"
#include "cuda/kernels/matmul/tensor_machine.hpp"
#include "dsl/dsl.hpp"
#include "tests/backends_cuda/kernel_run.hpp"
#include "tests/backends_cuda/machine_code.hpp"
#include "tests/catch.hpp"

using namespace pw;
using namespace pw::test;

namespace {

constexpr const char* kArchs[] = {"sm_80", "sm_90", "sm_100", "sm_120"};

/// How often an instruction whose name begins so stands in the text.
int count_instructions(const std::string& sass, const std::string& name) {
  int out = 0;
  for (std::size_t at = sass.find(name); at != std::string::npos; at = sass.find(name, at + 1))
    out += at > 0 && (sass[at - 1] == ' ' || sass[at - 1] == '\t') ? 1 : 0;
  return out;
}

/// Registers, spills and instructions of a kernel on one architecture, as one line.
std::string check_machine_code(const MachineCodeTools& tools, const cuda::Kernel& kernel,
                               const std::string& arch) {
  const auto cubin = tools.nvrtc.compile(cuda::source_file(kernel), kernel.name, {arch, false});
  if (!cubin) FAIL(cubin.error().front().message);
  CHECK_FALSE(cubin->usage.spills());
  CHECK(cubin->usage.stack == 0);
  const auto sass = tools.nvdisasm.disassemble(cubin->bytes);
  REQUIRE(sass);
  const int halves = count_instructions(*sass, "HMMA."), bytes = count_instructions(*sass, "QMMA.");
  const int groups = count_instructions(*sass, "HGMMA.");
  CHECK(halves + bytes + groups > 0);
  CHECK((groups > 0 || count_instructions(*sass, "LDSM.") > 0));
  // The compiler would say that it lets one product wait for another.
  CHECK(cubin->log.find("wgmma.mma_async instructions are serialized") == std::string::npos);
  CHECK(count_instructions(*sass, "LDL") == 0);
  CHECK(count_instructions(*sass, "STL") == 0);
  return fmt::format(
      "{} {}: {} threads, {} registers, {} HMMA, {} QMMA, {} HGMMA, {} ldmatrix, {} "
      "cp.async",
      kernel.op, arch, kernel.threads, cubin->usage.registers, halves, bytes, groups,
      count_instructions(*sass, "LDSM."), count_instructions(*sass, "LDGSTS."));
}

}  // namespace

TEST_CASE("tensor cores: machine code of products has tensor-core instructions and no local memory",
          "[.][cuda][machine_code]") {
  const MachineCodeTools tools;
  const ContextPtr context = library();
  // Aligned, and with rows of no multiple of 16 bytes; b as it lies and transposed.
  const std::pair<const char*, bool> texts[] = {
      {"in x: bf16[n, 4096], w: bf16[4096, 4096]  y = mm(x, w)", false},
      {"in x: f16[n, 4096], w: f16[4096, 4096]  m = transpose(w){dim0 = 0, dim1 = 1}  y = mm(x, m)",
       true},
      {"in x: bf16[n, 1001], w: bf16[1001, 999]  y = mm(x, w)", false},
      {"in x: f8e4m3[n, 4096], w: f8e4m3[4096, 4096], s: f32[n, 1], t: f32[4096]  y = "
       "scaled_mm(x, w, s, t){out = bf16}",
       false},
      {"in x: f8e5m2[n, 4096], w: f8e5m2[4100, 4096], s: f32[1], t: f32[1]  m = transpose(w){dim0 "
       "= "
       "0, dim1 = 1}  y = scaled_mm(x, m, s, t){out = f16}",
       true}};
  for (const auto& [text, transposed] : texts) {
    const Graph graph =
        need(parse_graph(
                 context,
                 fmt::format("graph g {{\n  symbol n in 1..8192 tokens\n  {}  out y\n}}\n", text),
                 "test"),
             *context);
    NodeId last;
    for (NodeId n : graph.order()) last = n;
    for (const std::string arch : kArchs) {
      for (std::int64_t rows : {16, 4096}) {
        const auto made = cuda::tensor_product_kernels(graph, last, transposed, {arch, rows, {}});
        if (arch == "sm_80" && std::string_view(text).find("f8") != std::string_view::npos) {
          CHECK_FALSE(made);  // it has no instructions for fp8
          continue;
        }
        REQUIRE(made);
        INFO(text << ", " << arch << ", " << rows << " rows");
        const std::string line = check_machine_code(tools, made->product, arch);
        if (std::getenv("PW_SHOW_SASS") != nullptr) WARN(line);
      }
    }
  }
}

namespace {

/// How a product's operands lie, and whether tiles are cut.
struct ProductForm {
  const char* text;
  bool transposed, bytes;
  int shares;
};
// Of 4096 columns there are at most 64 tiles of those that are cut.
constexpr ProductForm kForms[] = {
    {"in x: bf16[n, 4096], w: bf16[4096, 4096]  y = mm(x, w)", false, false, 100},
    {"in x: f8e4m3[n, 4096], w: f8e4m3[4096, 4096], s: f32[n, 1], t: f32[4096]  m = "
     "transpose(w){dim0 = 0, dim1 = 1}  y = scaled_mm(x, m, s, t){out = bf16}",
     true, true, 100},
    {"in x: bf16[n, 4096], w: bf16[4096, 4096]  y = mm(x, w)", false, false, 0},
    {"in x: bf16[n, 4096], w: bf16[4096, 4096]  y = mm(x, w)", false, false, 44},
    {"in x: f16[n, 4096], w: f16[4096, 4096]  m = transpose(w){dim0 = 0, dim1 = 1}  y = mm(x, m)",
     true, false, 100},
    {"in x: bf16[n, 1001], w: bf16[1001, 999]  y = mm(x, w)", false, false, 0},
};
constexpr std::size_t kCommonForms = 2;  // that architectures without a machine are compiled for

std::vector<std::string> tensor_archs(const cuda::Nvrtc& nvrtc) {
  std::vector<std::string> out;
  for (const std::string& arch : nvrtc.architectures())
    if (cuda::has_tensor_cores(arch, DType::bf16)) out.push_back(arch);
  return out;
}

/// The compiled registers leave room for as many blocks as the model counts on, and spill nothing.
void check_tile(const MachineCodeTools& tools, const ContextPtr& context, const ProductForm& form,
                cuda::ProductTile tile, const std::string& arch) {
  const cuda::TensorMachine machine = cuda::tensor_machine_or_nearest(arch);
  const std::int64_t blocks = cuda::resident(machine, tile, form.bytes ? 1 : 2);
  if (blocks == 0) return;
  tile.shares = form.shares;
  INFO(arch << ", " << described(tile) << ": " << form.text);
  const Graph graph = need(
      parse_graph(
          context,
          fmt::format("graph g {{\n  symbol n in 1..8192 tokens\n  {}  out y\n}}\n", form.text),
          "test"),
      *context);
  NodeId last;
  for (NodeId n : graph.order()) last = n;
  const auto made = cuda::tensor_product_kernels(graph, last, form.transposed, {arch, 256, tile});
  REQUIRE(made.has_value() == (!form.bytes || cuda::has_tensor_cores(arch, DType::f8e4m3)));
  if (!made) return;
  const cuda::Kernel& kernel = made->product;
  const auto cubin = tools.nvrtc.compile(cuda::source_file(kernel), kernel.name, {arch, false});
  if (!cubin) FAIL(cubin.error().front().message);
  CHECK_FALSE(cubin->usage.spills());
  CHECK(cubin->usage.stack == 0);
  const int registers = cubin->usage.registers;
  CHECK(machine.resident(tile.threads(), registers, kernel.shared_bytes) >= blocks);
  if (std::getenv("PW_SHOW_SASS") != nullptr)
    WARN(arch << ", " << described(tile) << ": " << registers << " registers, the model has "
              << tile.registers() << ", " << blocks << " blocks");
  CHECK(made->sums.has_value() == (form.shares != 0));
}

}  // namespace

TEST_CASE("tensor cores: every tile compiles without local memory, with the model's occupancy",
          "[.][slow][cuda][machine_code]") {
  const MachineCodeTools tools;
  const ContextPtr context = library();
  const std::vector<std::string> archs = tensor_archs(tools.nvrtc);
  CHECK(archs.size() >= std::size(kArchs));
  for (const std::string& arch : archs)
    for (const cuda::ProductTile& tile : cuda::product_tiles())
      for (std::size_t form = 0; form < std::size(kForms); ++form)
        if (form < kCommonForms || cuda::tensor_machine(arch) != nullptr)
          check_tile(tools, context, kForms[form], tile, arch);
}

TEST_CASE("tensor cores: machine code of attention has no local memory, in the model's registers",
          "[.][cuda][machine_code]") {
  const MachineCodeTools tools;
  const ContextPtr context = library();
  for (const auto& [types, groups, width] :
       {std::tuple{"q: bf16[n, 32, 128], k: bf16[n, 8, 128], v: bf16[n, 8, 128]", 8, 128},
        std::tuple{"q: f16[n, 16, 64], k: f16[n, 16, 64], v: f16[n, 16, 64]", 16, 64}}) {
    const Graph graph = need(
        parse_graph(context,
                    fmt::format("graph g {{\n  symbol n in 1..8192 tokens\n  in {}\n  y = "
                                "unified_attention(q, k, v, none){{layer = \"a\"}}  out y\n}}\n",
                                types),
                    "test"),
        *context);
    for (const std::string arch : kArchs) {
      const cuda::TensorMachine& machine = *cuda::tensor_machine(arch);
      cuda::AttentionTiles tiles;
      // With some parts, and none; with a token of a sequence, a few, and many.
      const std::int64_t heads = width == 128 ? 32 : 16;
      for (const auto& [sequences, rows] : {std::pair{4, 1}, std::pair{2, 8}, std::pair{1, 512}})
        for (const cuda::AttentionTile& tile :
             cuda::attention_candidates(machine, {sequences, rows, 1000, heads, groups, width}))
          if (tile.order.parts <= 2 && tile.shared_bytes(128) <= machine.block_bytes &&
              std::find(tiles.all.begin(), tiles.all.end(), tile) == tiles.all.end())
            tiles.all.push_back(tile);
      const auto kernels = cuda::attention_kernels(graph, 16, arch, &tiles);
      REQUIRE(kernels);
      REQUIRE(kernels->forms);
      for (const cuda::AttentionForm& form : kernels->forms->all) {
        INFO(types << ", " << arch << ", " << described(form.tile));
        const std::string line =
            described(form.tile) + ": " + check_machine_code(tools, form.kernel, arch);
        if (std::getenv("PW_SHOW_SASS") != nullptr) WARN(line);
        const auto cubin =
            tools.nvrtc.compile(cuda::source_file(form.kernel), form.kernel.name, {arch, false});
        // What decides is how many blocks a multiprocessor holds.
        const std::int64_t shared = form.tile.shared_bytes(width);
        CHECK(machine.resident(form.tile.threads(), cubin->usage.registers, shared) >=
              machine.resident(form.tile.threads(), form.tile.registers(width), shared));
      }
    }
  }
}
