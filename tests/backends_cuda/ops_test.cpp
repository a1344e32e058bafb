// Every op with a body, and the row primitives: the kernel's source, run on the host, gives the
// bits of the interpreter in single precision, and NVRTC compiles it without spills.
#include <cmath>
#include <functional>
#include <set>

#include <fmt/format.h>

#include "backends/program.hpp"
#include "base/hash.hpp"
#include "cuda/device/nvrtc.hpp"
#include "cuda/kernels/matmul/product.hpp"
#include "cuda/kernels/topk.hpp"
#include "tensor/numerics.hpp"
#include "tests/backends/primitive_forms.hpp"
#include "tests/backends_cuda/forms.hpp"
#include "tests/backends_cuda/kernel_run.hpp"
#include "tests/catch.hpp"

using namespace pw;
using namespace pw::test;

namespace {

std::vector<Subject> subjects(const ContextPtr& context) {
  std::vector<Subject> all;
  const auto add = [&](const Form& form, const char* dtype, int d) {
    const std::string text = fmt::format(fmt::runtime(form.text), dtype, d, 2 * d);
    all.push_back(subject(context, fmt::format("{} {} {}: {}", form.op, dtype, d, text),
                          "graph { " + text + " }"));
  };
  for (const Form& form : kForms) {
    for (int d : {1, 131, 128, 4096}) add(form, "bf16", d);
    for (const char* dtype : {"f16", "f32"}) {
      for (int d : {8, 131}) add(form, dtype, d);
    }
  }
  for (const Form& form : kSpecial) {
    for (const char* dtype : {"bf16", "f16", "f32"}) add(form, dtype, 0);
  }
  for (int operands : {1, 2})
    for (const std::string& call : primitive_forms(operands)) {
      const std::string text = fmt::format("in x: f32[n, 72], z: f32[n, 72]  y = {}  out y", call);
      all.push_back(subject(context, text, "graph { " + text + " }"));
    }
  return all;
}

/// Run on the host at each number of rows, the kernels give the interpreter's bits.
void check_bits(const std::vector<Subject>& all, std::initializer_list<std::int64_t> rows,
                const std::function<void(std::vector<Tensor>&, std::uint64_t seed)>& change) {
  if (no_host_compiler()) return;
  std::vector<cuda::Kernel> kernels;
  for (const Subject& s : all) kernels.push_back(s.kernel);
  const auto host = cached_kernels(kernels);
  if (!host) FAIL(host.error().front().message);
  std::uint64_t seed = 1;
  for (const Subject& s : all) {
    for (std::int64_t n : rows) {
      INFO(s.name << "  n = " << n << "  seed = " << seed);
      auto inputs = inputs_of(s.graph, {{"n", n}}, seed);
      change(inputs, seed++);
      CHECK(difference(run_kernel(*host, s, inputs, {{"n", n}}),
                       run_interpreter(s, inputs, {{"n", n}}, false)) == "");
    }
  }
}

}  // namespace

TEST_CASE("kernels: run on the host, each op gives the interpreter's bits", "[cuda][diff]") {
  const ContextPtr context = library();
  const std::vector<Subject> all = subjects(context);
  std::vector<cuda::Kernel> kernels;
  for (const Subject& s : all) {
    INFO(s.name);
    if (!s.program) FAIL(s.program.error().reason);
    kernels.push_back(s.kernel);
  }
  if (no_host_compiler()) return;
  const auto host = cached_kernels(kernels);
  if (!host) FAIL(host.error().front().message);
  std::uint64_t seed = 1;
  for (const Subject& s : all) {
    for (std::int64_t n : {1, 3, 131}) {
      const Symbols symbols{{"n", n}, {"m", 37}};
      INFO(s.name << "  n = " << n << "  seed = " << seed);
      const auto inputs = inputs_of(s.graph, symbols, seed++);
      CHECK(difference(run_kernel(*host, s, inputs, symbols),
                       run_interpreter(s, inputs, symbols, false)) == "");
    }
  }
}

TEST_CASE("kernels: reductions of a graph of one row have the interpreter's bits", "[cuda][diff]") {
  const ContextPtr context = library();
  std::vector<Subject> all;
  for (const std::string input :
       {"in x: bf16[1, 1, 200]", "symbol n in 1..1  in x: bf16[n, 200]", "in x: bf16[1, 8, 25]"})
    for (const char* body : {"e = exp(x)  y = e / sum(e){keepdim = true}",
                             "h = f32(x)  y = h - mean(h){keepdim = true}",
                             "a = amax(x){keepdim = true}  y = x - a"}) {
      all.push_back(subject(context, body, fmt::format("graph {{ {}  {}  out y }}", input, body)));
      INFO(input << "  " << body);
      if (!all.back().program) FAIL(all.back().program.error().reason);
    }
  check_bits(all, {1}, [](std::vector<Tensor>&, std::uint64_t) {});
}

TEST_CASE("kernels: what has no elements is not written", "[cuda]") {
  const ContextPtr context = library();
  const char* const texts[] = {
      "in x: f8e4m3[8, 24]  a, b, c = split(x){dim = 0, sizes = [0, 5, 3]}  out a, b, c",
      "in x: f32[8, 24]  a, b, c = split(x){dim = 0, sizes = [5, 0, 3]}  out a, b, c",
      "in x: f32[4, 24]  a, b = split(x){dim = 1, sizes = [24, 0]}  out a, b",
      "in x: f32[4, 6, 8]  a, b = split(x){dim = 1, sizes = [0, 6]}  out a, b",
      "in x: f32[4, 0, 8]  y = relu(x)  out y"};
  if (no_host_compiler()) return;
  for (const char* text : texts) {
    INFO(text);
    const Subject s = subject(context, text, fmt::format("graph {{ {} }}", text));
    REQUIRE(s.program);
    const auto host = cached_kernels(std::span(&s.kernel, 1));
    REQUIRE(host);
    auto inputs = inputs_of(s.graph, {}, 5);
    std::vector<Tensor> results;
    std::vector<std::vector<std::byte>> untouched;
    std::vector<void*> pointers{inputs[0].data()};
    for (ValueId v : s.graph.outputs()) {
      const auto extents = extents_of(s.graph, v, {}).value();
      results.emplace_back(context->types[s.graph.type(v)].dtype, extents);
      untouched.emplace_back(4096, std::byte{0xa5});
      pointers.push_back(element_count(extents) == 0 ? untouched.back().data()
                                                     : results.back().data());
    }
    std::vector<std::int64_t> params;
    for (DimId d : s.kernel.params) params.push_back(context->dims.evaluate(d, {}).value());
    if (params[0] > 0) REQUIRE(host->run(s.kernel.name, pointers, params, 1));
    for (const auto& memory : untouched)
      CHECK(std::all_of(memory.begin(), memory.end(),
                        [](std::byte b) { return b == std::byte{0xa5}; }));
    std::vector<std::vector<double>> got;
    for (const Tensor& t : results) got.push_back(values_of(t.view()));
    CHECK(difference(got, run_interpreter(s, inputs, {}, false)) == "");
  }
}

TEST_CASE("kernels: powers of integers have the interpreter's bits", "[cuda][diff]") {
  const ContextPtr context = library();
  std::vector<Subject> all;
  for (const char* dtype : {"i64", "i32", "i8", "u8"})
    all.push_back(subject(
        context, dtype,
        fmt::format("graph {{ in x: {0}[n, 9], z: {0}[n, 9]  y = pow(x, z)  out y }}", dtype)));
  check_bits(all, {7}, [](std::vector<Tensor>& inputs, std::uint64_t seed) {
    Random random(seed);
    for (std::int64_t i = 0; i < inputs[0].view().count(); ++i) {
      const double x = static_cast<double>(random.below(1000)) - 500;
      store(inputs[0].dtype(), inputs[0].data(), i, x);
      store(inputs[1].dtype(), inputs[1].data(), i, static_cast<double>(random.below(40)) - 3);
    }
  });
}

TEST_CASE("kernels: integers divided down have the interpreter's bits", "[cuda][diff]") {
  const ContextPtr context = library();
  std::vector<Subject> all;
  for (const char* dtype : {"i64", "i32", "i8", "u8"})
    all.push_back(subject(
        context, dtype,
        fmt::format("graph {{ in x: {0}[n, 9], z: {0}[n, 9]  y = integer_div_floor(x, z)  out y }}",
                    dtype)));
  check_bits(all, {7}, [](std::vector<Tensor>& inputs, std::uint64_t seed) {
    Random random(seed);
    for (std::int64_t i = 0; i < inputs[0].view().count(); ++i) {
      store(inputs[0].dtype(), inputs[0].data(), i, static_cast<double>(random.below(256)) - 128);
      store(inputs[1].dtype(), inputs[1].data(), i, static_cast<double>(random.below(9)) - 4);
    }
  });
}

TEST_CASE("kernels: checked integers have the interpreter's bits", "[cuda][diff]") {
  const ContextPtr context = library();
  std::vector<Subject> all;
  for (const char* dtype : {"i64", "i32"})
    for (const char* call : {"divisor(x)", "below(x){n = 300}"})
      all.push_back(subject(context, fmt::format("{} {}", call, dtype),
                            fmt::format("graph {{ in x: {}[n, 9]  y = {}  out y }}", dtype, call)));
  check_bits(all, {7}, [](std::vector<Tensor>& inputs, std::uint64_t seed) {
    Random random(seed);
    for (std::int64_t i = 0; i < inputs[0].view().count(); ++i)
      store(inputs[0].dtype(), inputs[0].data(), i, static_cast<double>(1 + random.below(299)));
  });
}

TEST_CASE("kernels: a square is one product, rounded once", "[cuda][diff]") {
  const ContextPtr context = library();
  const Subject s = subject(context, "pow", "graph { in x: f32[n, 9]  y = pow(x, 2)  out y }");
  REQUIRE(s.program);
  if (no_host_compiler()) return;
  const auto host = cached_kernels(std::span(&s.kernel, 1));
  if (!host) FAIL(host.error().front().message);
  const Symbols symbols{{"n", 300}};
  const auto inputs = inputs_of(s.graph, symbols, 7);
  const auto got = run_kernel(*host, s, inputs, symbols);
  for (std::int64_t i = 0; i < inputs[0].view().count(); ++i) {
    const double x = load(DType::f32, inputs[0].data(), i);
    CHECK(got[0][static_cast<std::size_t>(i)] == static_cast<double>(static_cast<float>(x * x)));
  }
}

TEST_CASE("kernels: keep_topk has a kernel of its own, with the interpreter's bits",
          "[cuda][diff]") {
  const ContextPtr context = library();
  std::vector<Subject> all;
  for (const char* dtype : {"f32", "f64", "bf16", "f16"}) {
    for (const char* form :
         {"[n, 8]  w = keep_topk(p) {{k = 2}}", "[n, 1]  w = keep_topk(p) {{k = 1}}",
          "[n, 3, 13]  w = keep_topk(p) {{k = 5}}", "[n, 5]  w = keep_topk(p) {{k = 9}}",
          "[n, 5]  w = keep_topk(p) {{k = 0}}"}) {
      const std::string text =
          fmt::format("graph {{ in p: {}{}  out w }}", dtype, fmt::format(fmt::runtime(form)));
      all.push_back(subject(context, text, text));
      CHECK_FALSE(all.back().program);
      const auto kernel = cuda::topk_kernel(all.back().graph, all.back().graph.first());
      REQUIRE(kernel);
      all.back().kernel = *kernel;
      all.back().operands = all.back().graph.inputs();
    }
  }
  const auto no_kernel = [&](const std::string& text) {
    const Subject s = subject(context, text, text);
    return !cuda::topk_kernel(s.graph, s.graph.first());
  };
  CHECK(no_kernel("graph { in p: f32[8, n]  w = keep_topk(p) {k = 2}  out w }"));
  CHECK(no_kernel("graph { in p: f32[n, 8]  w = exp(p)  out w }"));
  // Few different numbers, so that there are equal ones; and NaN and infinity.
  check_bits(all, {1, 131}, [](std::vector<Tensor>& inputs, std::uint64_t seed) {
    Random random(seed);
    const TensorView p = inputs[0].view();
    for (std::int64_t i = 0; i < p.count(); ++i) {
      const auto drawn = random.below(40);
      const double x = drawn == 0   ? std::nan("")
                       : drawn == 1 ? HUGE_VAL
                                    : static_cast<double>(drawn % 7) * 0.3 - 0.4;
      store(p.dtype, p.data, i, x);
    }
  });
}

TEST_CASE("kernels: a matrix product has a kernel, with the bits of the interpreter in f32",
          "[cuda][diff]") {
  const ContextPtr context = library();
  std::vector<Subject> all;
  for (const char* text : {"in a: f32[n, 40], b: f32[40, 33]  y = mm(a, b)",
                           "in a: bf16[n, 33], b: bf16[33, 70]  y = mm(a, b)",
                           "in a: f16[n, 1], b: f16[1, 5]  y = mm(a, b)",
                           "in c: bf16[31], a: bf16[n, 64], b: bf16[64, 31]  y = addmm(c, a, b)",
                           "in c: f32[32], a: f32[n, 32], b: f32[32, 32]  y = addmm(c, a, b)",
                           "in a: f8e4m3[n, 48], b: f8e4m3[48, 17], s: f32[1], t: f32[1]"
                           "  y = scaled_mm(a, b, s, t){out = bf16}",
                           "in a: f8e4m3[n, 48], b: f8e4m3[48, 17], s: f32[n, 1], t: f32[17]"
                           "  y = scaled_mm(a, b, s, t){out = f16}"}) {
    all.push_back(subject(context, text, std::string("graph { ") + text + "  out y }"));
    const auto kernel = cuda::product_kernel(all.back().graph, all.back().graph.first());
    INFO(text);
    REQUIRE(kernel);
    all.back().kernel = *kernel;
    all.back().operands = all.back().graph.inputs();
  }
  const auto no_kernel = [&](const std::string& text) {
    const Subject s = subject(context, text, text);
    return !cuda::product_kernel(s.graph, s.graph.first());
  };
  CHECK(no_kernel("graph { in a: f64[n, 4], b: f64[4, 4]  y = mm(a, b)  out y }"));
  CHECK(no_kernel("graph { in a: f32[4, n], b: f32[n, 4]  y = mm(a, b)  out y }"));
  CHECK(no_kernel("graph { in a: f32[4, 4]  y = exp(a)  out y }"));
  check_bits(all, {1, 32, 67}, [](std::vector<Tensor>&, std::uint64_t) {});
}

TEST_CASE("kernels: every op with a body is in the table, or holds a library call", "[cuda]") {
  const ContextPtr context = library();
  // Products by scales of blocks, a scale over all tokens, and a table by positions: several
  // kernels each. A rank's part of padded rows: a kernel that pads, and what the rank is. A product
  // or a convolution with what follows it, which are frozen on the processor alone. What
  // places by computed indices, and a product over any axes: gathers, and a library's product.
  const std::set<std::string> decomposed = {"block_scaled_mm",
                                            "scaled_fp4_mm",
                                            "dynamic_scaled_fp8_quant",
                                            "mrotary_embedding",
                                            "shard_padded",
                                            "addmm_gelu",
                                            "convolution_relu",
                                            "convolution_gelu",
                                            "convolution_add_relu",
                                            "dot",
                                            "pad",
                                            "pad_last",
                                            "reverse",
                                            "dynamic_slice",
                                            "dynamic_update_slice",
                                            "sample_token"};
  std::set<std::string> known;
  for (const Form& form : kForms) known.insert(form.op);
  for (const Form& form : kSpecial) known.insert(form.op);
  known.insert({"integer_div_floor", "divisor", "below"});  // in tests of their own, on integers
  for (const std::string& name : context->ops.names()) {
    const Op& op = context->ops[context->ops.find(name)];
    if (!op.has_body() || op.traits.collective || decomposed.count(name)) continue;
    CHECK((name + (known.count(name) ? "" : " is not tested")) == name);
  }
}

TEST_CASE("kernels: NVRTC compiles each op without spills", "[cuda]") {
  const cuda::Nvrtc nvrtc = cuda::Nvrtc::open();
  if (no_compiler(nvrtc)) return;
  const ContextPtr context = library();
  const auto check = [&](const Form& form, const char* dtype, int d) {
    const std::string text = fmt::format(fmt::runtime(form.text), dtype, d, 2 * d);
    INFO(text);
    const Subject s = subject(context, form.op, "graph { " + text + " }");
    REQUIRE(s.program);
    const auto cubin = nvrtc.compile(cuda::source_file(s.kernel), s.kernel.name);
    if (!cubin) FAIL(cubin.error().front().message);
    CHECK_FALSE(cubin->usage.spills());
    CHECK(cubin->usage.stack == 0);
    CHECK(cubin->usage.registers > 0);
    CHECK(cubin->usage.registers <= 128);
  };
  for (const Form& form : kForms) check(form, "bf16", 4096);
  for (const Form& form : kSpecial) check(form, "f16", 0);
  const Subject routing =
      subject(context, "routing", "graph { in p: bf16[n, 256]  w = keep_topk(p) {k = 8}  out w }");
  const auto kernel = cuda::topk_kernel(routing.graph, routing.graph.first());
  REQUIRE(kernel);
  const auto cubin = nvrtc.compile(cuda::source_file(*kernel), kernel->name);
  if (!cubin) FAIL(cubin.error().front().message);
  CHECK_FALSE(cubin->usage.spills());
}
