// What gets into a source, and what a row program looks like as text.
#include <fmt/format.h>

#include "dsl/dsl.hpp"
#include "tests/backends_cuda/kernel_run.hpp"
#include "tests/catch.hpp"

using namespace pw;
using namespace pw::test;

namespace {

std::string reason(const ContextPtr& context, const std::string& text) {
  const Subject s = subject(context, "subject", text);
  return s.program ? "" : s.program.error().reason;
}

/// An op of our own, declared without the parser, so that its name can be anything.
OpId declare_silu_like(Context& context, const std::string& name) {
  Op op = context.ops[context.ops.find("silu")];
  op.name = name;
  auto declared = context.ops.declare(op);
  REQUIRE(declared);
  return *declared;
}

}  // namespace

TEST_CASE("row program: a norm has one reduction, outside of the loop over columns",
          "[rowprogram]") {
  const Subject s = subject(library(), "g",
                            "graph { in x: bf16[n, 64], w: bf16[64]  y = rms_norm(x, w)  out y }");
  REQUIRE(s.program);
  CHECK(rows::print(*s.program) ==
        "row program rms_norm\n"
        "  rows n\n"
        "  in p0: bf16[n, 64]\n"
        "  in p1: bf16[64]\n"
        "  out p2: bf16[n, 64]\n"
        "  v5: f32 = mean for i2 in 0..64 in f32 {\n"
        "    v2: bf16 = p0[row * 64 + i2]\n"
        "    v3: f32 = cast(v2) in f32\n"
        "    v4: f32 = mul(v3, v3) in f32\n"
        "    v4\n"
        "  }\n"
        "  v6: f64 = 1e-06\n"
        "  v7: f32 = add(v5, v6) in f32\n"
        "  v8: f32 = rsqrt(v7) in f32\n"
        "  for i1 in 0..64 {\n"
        "    v0: bf16 = p0[row * 64 + i1]\n"
        "    v1: f32 = cast(v0) in f32\n"
        "    v9: f32 = mul(v1, v8) in f32\n"
        "    v10: bf16 = cast(v9) in f32\n"
        "    v11: bf16 = p1[i1]\n"
        "    v12: bf16 = mul(v10, v11) in f32\n"
        "    p2[row * 64 + i1] = v12\n"
        "  }\n");
}

TEST_CASE("row program: layout is index arithmetic", "[rowprogram]") {
  const auto context = library();
  const Subject split =
      subject(context, "g",
              "graph { in x: bf16[n, 6]  a, b = split(x){dim = 1, sizes = [2, 4]}  out a, b }");
  REQUIRE(split.program);
  CHECK(rows::print(*split.program).find("p0[row * 6 + i2 + 2]\n") != std::string::npos);
  const Subject joined = subject(
      context, "g", "graph { in x: bf16[n, 3, 8]  y = reshape(x){shape = [n, 24]}  out y }");
  REQUIRE(joined.program);
  CHECK(rows::print(*joined.program).find("% ") == std::string::npos);  // the same place
  const Subject turned =
      subject(context, "g",
              "graph { in x: bf16[n, 3, 8]  t = transpose(x){dim0 = 1, dim1 = 2}  y = reshape(t)"
              "{shape = [n, 24]}  out y }");
  REQUIRE(turned.program);
  CHECK(rows::print(*turned.program).find("% ") != std::string::npos);
}

TEST_CASE("row program: several leading dims are one row index", "[rowprogram]") {
  const Subject s = subject(library(), "g", "graph { in x: bf16[n, 3, 8]  y = silu(x)  out y }");
  REQUIRE(s.program);
  CHECK(s.program->domain.size() == 2);
  CHECK(s.kernel.source.find("p0 + (row * 8 + ") != std::string::npos);
}

TEST_CASE("row program: unsupported ops have a reason", "[rowprogram]") {
  const auto context = library();
  CHECK(reason(context, "graph { in a: bf16[n, 8], b: bf16[8, 4]  y = mm(a, b)  out y }") ==
        "op mm has no body and is not a row primitive");
  CHECK(reason(context,
               "graph { in x: bf16[n, 8], w: bf16[8]  y, h = fused_all_reduce_rms_norm(x, w){group "
               "= \"tp\"}  out y, h }") == "op all_reduce has no body and is not a row primitive");
}

TEST_CASE("row program: bodies that would explode are refused, not emitted", "[rowprogram]") {
  const auto context = library();
  // Each round joins what the one before has taken apart, so that an address doubles.
  std::string twisted = "op twisted(x: T[n, 30, 42]) -> y: T[n, 30, 42] { a0 = x ";
  for (int i = 0; i < 12; ++i) {
    twisted += fmt::format(
        "b{0} = transpose(reshape(a{0}){{shape = [size(x, 0), 42, 30]}}){{dim0 = 1, dim1 = 2}} ",
        i);
    twisted += fmt::format(
        "a{0} = transpose(reshape(b{1}){{shape = [size(x, 0), 42, 30]}}){{dim0 = 1, dim1 = 2}} ",
        i + 1, i);
  }
  std::string doubled = "op doubled(x: T[n, 2]) -> y: T[n, 2] { a0 = x ";
  for (int i = 0; i < 40; ++i)
    doubled += fmt::format(
        "a{0} = slice(cat(neg(a{1}), exp(a{1}), a{1}){{dim = 1}}){{dim = 1, start = 1, end = 3}} ",
        i + 1, i);
  need(load_rule_texts(context, {{"extra.pwr", twisted + "y = a12 }\n" + doubled + "y = a40 }"}}),
       *context);
  CHECK(reason(context, "graph { in x: f32[n, 30, 42]  y = twisted(x)  out y }") ==
        "its layout needs addresses that are too long");
  CHECK(reason(context, "graph { in x: f32[n, 2]  y = doubled(x)  out y }") ==
        "its row program has more than 20000 statements");
}

TEST_CASE("row program: a reduction that would be repeated is refused", "[rowprogram]") {
  const auto context = library();
  need(load_rule_texts(
           context,
           {{"extra.pwr",
             "op centred(x: T[n, d]) -> y: T[n, d] { y = x - mean(x){dim = 0, keepdim = true} }\n"
             "op strided(x: T[n, 2*d]) -> y: T[n, 2*d] {\n"
             "  g = reshape(x){shape = [size(x, 0), 2, d]}\n"
             "  y = reshape(g - mean(g){dim = 1, keepdim = true}){shape = [size(x, 0), 2*d]}\n}"}}),
       *context);
  CHECK(reason(context, "graph { in x: f32[n, 6]  y = centred(x)  out y }") ==
        "mean would be recomputed in a loop");
  CHECK(reason(context, "graph { in x: f32[n, 6]  y = strided(x)  out y }") ==
        "mean over groups of columns would be recomputed for each column");
}

TEST_CASE("emitter: truths and short integers become floats without doubles", "[cuda]") {
  // ptxas 13.0 leaves out conversions to f32 of doubles that a truth chooses.
  for (const char* text : {"graph { in x: f32[n, 40]  y = e2m1_code(x)  out y }",
                           "graph { in x: b8[n, 9]  y = bf16(x)  out y }",
                           "graph { in x: u8[n, 9]  y = f16(x)  out y }",
                           "graph { in x: i8[n, 9]  y = f32(x)  out y }",
                           "graph { in x: i32[n, 9]  y = f32(x)  out y }"}) {
    INFO(text);
    const Subject s = subject(library(), "g", text);
    REQUIRE(s.program);
    const std::size_t body = s.kernel.source.rfind("__global__");
    CHECK(s.kernel.source.find("(double)", body) == std::string::npos);
  }
  // An i64 has more digits than an f32; an i32 more than a bf16, which is rounded once.
  for (const char* text : {"graph { in x: i64[n, 9]  y = f32(x)  out y }",
                           "graph { in x: i32[n, 9]  y = bf16(x)  out y }"}) {
    INFO(text);
    const Subject s = subject(library(), "g", text);
    REQUIRE(s.program);
    const std::size_t body = s.kernel.source.rfind("__global__");
    CHECK(s.kernel.source.find("(double)", body) != std::string::npos);
  }
}

TEST_CASE("emitter: equal programs have equal names, others do not", "[cuda]") {
  const auto context = library();
  const auto kernel = [&](const char* text) { return subject(context, "g", text).kernel.name; };
  const std::string a = kernel("graph { in x: bf16[n, 64]  y = silu(x)  out y }");
  CHECK(a == kernel("graph { in other: bf16[n, 64]  z = silu(other)  out z }"));
  CHECK(a != kernel("graph { in x: f16[n, 64]  y = silu(x)  out y }"));
  CHECK(a != kernel("graph { in x: bf16[n, 65]  y = silu(x)  out y }"));
  CHECK(kernel("graph { in x: bf16[n, 64], w: bf16[64]  y = rms_norm(x, w){eps = 1e-5}  out y }") !=
        kernel("graph { in x: bf16[n, 64], w: bf16[64]  y = rms_norm(x, w){eps = 1e-6}  out y }"));
}

TEST_CASE("emitter: nothing of an op's name gets into the source as it is", "[cuda]") {
  const auto context = library();
  const std::string evil = "silu\n#error \"*/ }\\";
  const OpId op = declare_silu_like(*context, evil);
  Graph graph(context, "g\n\"");
  const TypeId type =
      context->types.get(DType::bf16, {context->dims.symbol("n"), context->dims.constant(8)});
  const ValueId x = graph.add_input("x\n\"};", type, InputKind::input);
  NodeSpec spec;
  spec.op = op;
  spec.operands = {x};
  spec.results = {{type, "y*/"}};
  const NodeId node = graph.add_node(spec);
  const auto program = rows::lower_node(graph, node);
  REQUIRE(program);
  const cuda::Kernel kernel = cuda::emit(*program);
  CHECK(kernel.source.find("#error") == std::string::npos);
  CHECK(kernel.source.rfind("// silu__error", 0) == 0);
  for (char c : kernel.source) {
    if (c == '"' || c == '\\' || c == '#')
      CHECK(kernel.source.substr(kernel.source.find('"'), 3) == "\"C\"");
  }
  CHECK(kernel.name ==
        subject(context, "g", "graph { in x: bf16[n, 8]  y = silu(x)  out y }").kernel.name);
}

TEST_CASE("emitter: only letters, digits and _ stay of a name", "[cuda]") {
  CHECK(cuda::sanitised("rms_norm\n#include") == "rms_norm__include");
  CHECK(cuda::sanitised(std::string(100, 'a')).size() == 64);
  CHECK(cuda::sanitised("é") == "__");
}
