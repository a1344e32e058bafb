// Cubins in the compile cache: a second compilation of the same pieces starts no compiler.
#include "cuda/device/cubin_cache.hpp"

#include "codegen/toolchain.hpp"
#include "cuda/compile.hpp"
#include "dsl/dsl.hpp"
#include "tests/backends_cuda/kernel_run.hpp"
#include "tests/catch.hpp"

using namespace pw;
using namespace pw::test;

namespace {

StitchedGraph pieces_of(const ContextPtr& context, const std::string& op) {
  const auto graph = parse_graph(
      context,
      "graph { in x: bf16[n, 64], w: bf16[64]  h = rms_norm(x, w)  y = " + op + "(h)  out y }",
      "g");
  REQUIRE(graph);
  auto pieces = split(*graph, {});
  REQUIRE(pieces);
  return std::move(*pieces);
}

cuda::Kernel any_kernel(const ContextPtr& context) {
  const auto graph = parse_graph(context, "graph { in x: bf16[n, 64]  y = relu(x)  out y }", "g");
  REQUIRE(graph);
  const auto program = rows::lower_node(*graph, graph->first());
  REQUIRE(program);
  return cuda::emit(*program);
}

}  // namespace

TEST_CASE("cubin cache: what is packed comes back, and nothing else does", "[cuda][cache]") {
  cuda::Cubin cubin;
  cubin.bytes = std::string(
      "\x7f"
      "ELF\0\n bytes",
      12);
  cubin.log = "ptxas info : Used 32 registers, 16 bytes stack frame\n8 bytes spill stores";
  cubin.traffic = {1, 2, 3, 4};
  const std::string packed = cuda::pack(cubin);
  const auto back = cuda::unpack(packed);
  REQUIRE(back);
  CHECK(back->bytes == cubin.bytes);
  CHECK(back->log == cubin.log);
  CHECK(back->usage.registers == 32);
  CHECK(back->usage.spill_stores == 8);
  CHECK(back->traffic.narrow_writes == 4);
  CHECK(!cuda::unpack(""));
  CHECK(!cuda::unpack("1 2 3 4\nx"));
  CHECK(!cuda::unpack("1 2 3 4 99\nx"));
}

TEST_CASE("cubin cache: a warm compilation of pieces makes no cubin", "[cuda][cache]") {
  const cuda::Nvrtc nvrtc = cuda::Nvrtc::open();
  if (no_compiler(nvrtc)) return;
  CHECK(nvrtc.identity().find(nvrtc.version()) == 0);
  const PrivateFolder folder;
  const ContextPtr context = library();
  const auto compile = [&](const std::string& op, CacheCounts& counts) {
    CompileCache cache({folder.path(), ""});
    cuda::CompileOptions options;
    options.archs = {"sm_80", "sm_90"};
    options.cache = &cache;
    auto report = cuda::compile_pieces(pieces_of(context, op), options, nvrtc);
    counts = cache.counts();
    return report;
  };
  CacheCounts cold, warm, other;
  const auto first = compile("silu", cold), second = compile("silu", warm);
  REQUIRE(first.kernels.size() == 1);
  CHECK(cold.made == 2);
  CHECK(warm.made == 0);
  CHECK(warm.found == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    REQUIRE(second.kernels[0].targets[i].cubin);
    CHECK(second.kernels[0].targets[i].cubin->bytes == first.kernels[0].targets[i].cubin->bytes);
    CHECK(second.kernels[0].targets[i].cubin->usage.registers ==
          first.kernels[0].targets[i].cubin->usage.registers);
    CHECK(second.kernels[0].targets[i].cubin->traffic.wide_reads ==
          first.kernels[0].targets[i].cubin->traffic.wide_reads);
  }
  (void)compile("relu", other);
  CHECK(other.made == 2);
}

TEST_CASE("cubin cache: what the driver refuses is thrown away and compiled again, once",
          "[cuda][cache]") {
  const cuda::Nvrtc nvrtc = cuda::Nvrtc::open();
  if (no_compiler(nvrtc)) return;
  const PrivateFolder folder;
  const cuda::Kernel kernel = any_kernel(library());
  std::vector<std::string> tried;
  const auto ask = [&](const std::function<bool(const cuda::Cubin&)>& loads) {
    CompileCache cache({folder.path(), ""});
    tried.clear();
    const auto cubin = cuda::cubin_of(nvrtc, &cache, kernel, {"sm_90"}, [&](const auto& one) {
      tried.push_back(one.bytes);
      return loads(one);
    });
    REQUIRE(cubin);
    CHECK(tried.back() == cubin->bytes);  // what comes back was tried last
    return cache.counts();
  };
  const auto takes = [](const cuda::Cubin&) { return true; };
  CHECK(ask(takes).made == 1);
  const CacheCounts found = ask(takes);
  CHECK(found.found == 1);
  CHECK(found.made + found.evicted == 0);
  const CacheCounts again = ask([&](const cuda::Cubin&) { return tried.size() > 1; });
  CHECK(again.evicted == 1);
  CHECK(again.made == 1);
  CHECK(tried.size() == 2);
  CHECK(ask(takes).found == 1);  // the new one was kept
  const CacheCounts never = ask([](const cuda::Cubin&) { return false; });
  CHECK(never.made == 1);        // not again and again
  CHECK(ask(takes).found == 0);  // and what nobody can load is not kept
}
