// How rows are shared out: by their width.
#include <fmt/format.h>

#include "cuda/compile.hpp"
#include "dsl/dsl.hpp"
#include "rewriter/rewriter.hpp"
#include "tests/backends_cuda/kernel_run.hpp"
#include "tests/catch.hpp"

using namespace pw;
using namespace pw::test;

namespace {

Subject norm(const ContextPtr& context, int columns) {
  return subject(
      context, fmt::format("norm of {}", columns),
      fmt::format("graph {{ in x: bf16[n, {0}], z: bf16[n, {0}], w: bf16[{0}]  q, t, r = "
                  "fused_add_rms_norm_dynamic_per_token_quant(x, z, w)  out q, t, r }}",
                  columns));
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

}  // namespace

TEST_CASE("schedule: parts of a warp, a warp, a block", "[cuda]") {
  const auto context = library();
  const auto shape = [&](int columns) {
    const cuda::Kernel k = norm(context, columns).kernel;
    return fmt::format("{} x {}", k.team, k.rows_per_block);
  };
  CHECK(shape(8) == "1 x 256");
  CHECK(shape(24) == "4 x 64");
  CHECK(shape(131) == "32 x 8");
  CHECK(shape(256) == "32 x 8");
  CHECK(shape(512) == "64 x 1");
  CHECK(shape(4096) == "256 x 1");
  CHECK(shape(4104) == "512 x 1");  // two passes of 256 threads are not enough
  CHECK(shape(8192) == "512 x 1");
  CHECK(shape(8200) == "1024 x 1");
  CHECK(shape(65536) == "1024 x 1");
  CHECK(shape(65537) == "256 x 1");  // its columns are read one by one
}

TEST_CASE(
    "schedule: what is read again is kept in registers, then in shared memory, then read again",
    "[cuda]") {
  const auto context = library();
  const auto reads = [&](int columns) {  // of x and z
    const std::string source = norm(context, columns).kernel.source;
    return std::pair(count(source, "pw_read<4>(p0"), count(source, "pw_read<4>(p1"));
  };
  const auto once = std::pair<std::size_t, std::size_t>(1, 1);
  const cuda::Kernel registers = norm(context, 8192).kernel;
  CHECK(reads(8192) == once);
  CHECK(registers.kept_words == 16);  // of the sum, then of what is rounded: 2 passes of 4 words
  CHECK(registers.shared_bytes == 0);
  const cuda::Kernel shared = norm(context, 40960).kernel;  // 5 passes; the weight
  CHECK(reads(40960) == once);
  CHECK((shared.shared_bytes > 0 && shared.shared_bytes <= 98304));
  const cuda::Kernel again = norm(context, 65536).kernel;
  CHECK(reads(65536) == std::pair<std::size_t, std::size_t>(3, 3));
  CHECK((again.shared_bytes == 0 && again.kept_words == 0));
}

TEST_CASE("schedule: each gives the interpreter's bits", "[cuda][diff]") {
  if (no_host_compiler()) return;
  const auto context = library();
  std::vector<Subject> all;
  std::vector<cuda::Kernel> kernels;
  for (int columns :
       {1, 8, 24, 131, 256, 264, 512, 4096, 8192, 14336, 16384, 24576, 32768, 65536}) {
    all.push_back(norm(context, columns));
    kernels.push_back(all.back().kernel);
  }
  for (const char* text :
       {"in x: bf16[n, 28672]  y = silu_and_mul(x)  out y",
        "in x: bf16[n, 2056]  y = neg(x)  out y",
        "in x: bf16[n, 14336]  q, s = per_token_group_fp8_quant(x){group = 128}  out q, s",
        "in x: f32[n, 6400], z: f32[n, 1]  y = x * z  out y",
        "in x: bf16[n, 8192]  q, s = silu_and_mul_dynamic_quant(x)  out q, s",
        "in x: bf16[n, 24576]  q, s = silu_and_mul_dynamic_quant(x)  out q, s",
        "in x: f16[n, 20480], w: f16[20480]  q, s = rms_norm_dynamic_per_token_quant(x, w)  out q, "
        "s",
        "in x: f32[n, 9216], w: f32[9216], b: f32[9216]  y = layer_norm(x, w, b)  out y",
        "in x: bf16[n, 1024], qw: bf16[128], kw: bf16[128], c: bf16[64, 128], p: i64[n]  y = "
        "fused_qk_norm_rope(x, qw, kw, c, p){heads_q = 4, heads_k = 2, head = 128}  out y",
        "in x: bf16[n, 1152], qw: bf16[128], kw: bf16[128], c: bf16[64, 128], p: i64[n]  y = "
        "fused_qk_norm_rope(x, qw, kw, c, p){heads_q = 7, heads_k = 1, head = 128}  out y",
        "in x: bf16[n, 5120], qw: bf16[128], kw: bf16[128], c: bf16[64, 128], p: i64[n]  y = "
        "fused_qk_norm_rope(x, qw, kw, c, p){heads_q = 20, heads_k = 10, head = 128}  out y"}) {
    all.push_back(subject(context, text, fmt::format("graph {{ {} }}", text)));
    kernels.push_back(all.back().kernel);
  }
  const auto host = cached_kernels(kernels);
  if (!host) FAIL(host.error().front().message);
  std::uint64_t seed = 1;
  for (const Subject& s : all) {
    const Symbols symbols{{"n", 3}};
    INFO(s.name);
    const auto inputs = inputs_of(s.graph, symbols, seed++);
    CHECK(difference(run_kernel(*host, s, inputs, symbols),
                     run_interpreter(s, inputs, symbols, false)) == "");
  }
}

TEST_CASE("schedule: many reductions take turns in shared memory", "[cuda][diff]") {
  const auto context = library();
  std::string text = "op thirty(x: T[n, d]) -> y: f32[n, d] { h0 = f32(x) ";
  for (int i = 0; i < 30; ++i)
    text += fmt::format("h{} = h{} - 0.25 * {}(h{}){{keepdim = true}} ", i + 1, i,
                        i % 3 == 0   ? "mean"
                        : i % 3 == 1 ? "amax"
                                     : "amin",
                        i);
  const auto loaded = load_rule_texts(context, {{"extra.pwr", text + "y = h30 }"}});
  if (!loaded) FAIL(render(loaded.error(), context->sources));
  const Subject s =
      subject(context, "thirty", "graph { in x: bf16[n, 1024]  y = thirty(x)  out y }");
  REQUIRE(s.program);
  CHECK(s.kernel.barriers == 30);
  CHECK(count(s.kernel.source, "PW_SHARED(") == 8);
  if (no_host_compiler()) return;
  const auto host = cached_kernels(std::span(&s.kernel, 1));
  if (!host) FAIL(host.error().front().message);
  const Symbols symbols{{"n", 2}};
  const auto inputs = inputs_of(s.graph, symbols, 11);
  CHECK(difference(run_kernel(*host, s, inputs, symbols),
                   run_interpreter(s, inputs, symbols, false)) == "");
  const cuda::Nvrtc nvrtc = cuda::Nvrtc::open();
  if (!nvrtc.present()) return;
  CHECK(nvrtc.compile(cuda::source_file(s.kernel), s.kernel.name));
}

TEST_CASE("schedule: accesses element by element have a reason", "[cuda]") {
  const auto context = library();
  const auto why = [&](const char* text) {
    const Subject s = subject(context, "g", fmt::format("graph {{ {} }}", text));
    REQUIRE(s.program);
    std::string out;
    for (const auto& e : s.kernel.elements)
      out += fmt::format("p{} {}: {}\n", e.argument, e.store ? "write" : "read", e.why);
    return out;
  };
  CHECK(why("in x: bf16[n, 64]  y = neg(x)  out y") == "");
  CHECK(why("in x: bf16[n, 131]  y = neg(x)  out y") ==
        "p0 read: 131 columns are not a multiple of 8\n"
        "p1 write: 131 columns are not a multiple of 8\n");
  CHECK(why("in x: bf16[n, m]  y = neg(x)  out y") ==
        "p0 read: the number of columns is unknown at compile time, or 0\n"
        "p1 write: the number of columns is unknown at compile time, or 0\n");
  CHECK(why("in x: bf16[n, 65]  y = slice(x){dim = 1, start = 1, end = 65}  out y") ==
        "p0 read: its number of elements is not known to be a multiple of 8\n");
  CHECK(why("in x: bf16[n, 512]  y = slice(x){dim = 1, start = 0, end = 512, step = 32}  out y") ==
        "p0 read: neighbouring columns are far apart in memory\n");
  CHECK(why("in x: bf16[n, 8, 16]  y = transpose(x){dim0 = 1, dim1 = 2}  out y") ==
        "p0 read: its rows are not aligned to whole groups\n");
  CHECK(why("in x: f32[n, 64]  y = sum(x)  out y") == "p1 write: one element per row or group\n");
}

TEST_CASE("schedule: a rule of one's own with `fuse` gets one kernel, and nothing else is written",
          "[cuda][diff]") {
  const auto context = library();
  const std::string path = "examples/own_kernel.pwr";
  auto rules = load_rules(context, {path});
  if (!rules) FAIL(render(rules.error(), context->sources));
  auto graph =
      parse_graph(context,
                  "graph { in x: bf16[n, 4096], y: bf16[n, 4096]  g = silu(x)  m = g * y  q, "
                  "s = dynamic_per_token_fp8_quant(m)  out q, s }",
                  "g");
  REQUIRE(graph);
  REQUIRE(run_pipeline(*graph, *rules, "fuse", {}));
  REQUIRE(graph->node_count() == 1);
  CHECK(graph->op_of(graph->first()).name == "gated_quant");
  const NodeId node = graph->first();
  const Subject s = subject("own", std::move(*graph), std::span(&node, 1));
  REQUIRE(s.program);
  CHECK(s.kernel.group_reads == 2);  // x and y, once each
  CHECK(s.kernel.kept_words == 8);   // of m, not of what it is computed from; two passes
  if (no_host_compiler()) return;
  const auto host = cached_kernels(std::span(&s.kernel, 1));
  if (!host) FAIL(host.error().front().message);
  const Symbols symbols{{"n", 5}};
  const auto inputs = inputs_of(s.graph, symbols, 3);
  CHECK(difference(run_kernel(*host, s, inputs, symbols),
                   run_interpreter(s, inputs, symbols, false)) == "");
}
