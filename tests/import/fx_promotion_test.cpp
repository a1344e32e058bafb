// The types that PyTorch assigns, where the dump states none. Expected: PyTorch's own.
#include "base/io/file.hpp"
#include "graph/text/text.hpp"
#include "graph/verify.hpp"
#include "import/fx/fx.hpp"
#include "tests/graph/library.hpp"

using namespace pw;
using namespace pw::test;

namespace {

// The type of `y` after one statement.
std::string type_after(const std::string& call, const std::string& parameters) {
  ContextPtr context = library();
  const std::string text = "class <lambda>(torch.nn.Module):\n    def forward(self, " + parameters +
                           "):\n        y = torch.ops." + call + "\n        return (y,)\n";
  FxOptions options;
  options.file = "dump.fx.txt";
  Result<FxImport> imported = import_fx(context, text, options);
  if (!imported) FAIL(messages(imported.error(), *context));
  CHECK(messages(verify(imported->graph), *context) == "");
  CHECK(imported->report.opaque.empty());
  return context->types.print(imported->graph.type(imported->graph.outputs().front()));
}

struct Case {
  std::string call, parameters, type;
};

void check(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    CAPTURE(c.call, c.parameters);
    CHECK(type_after(c.call, c.parameters) == c.type);
  }
}

// The types that operands are cast to before the call of `y`.
std::string casts_before(const std::string& call, const std::string& parameters) {
  ContextPtr context = library();
  const std::string text = "class <lambda>(torch.nn.Module):\n    def forward(self, " + parameters +
                           "):\n        y = torch.ops." + call + "\n        return (y,)\n";
  Result<FxImport> imported = import_fx(context, text, {});
  if (!imported) FAIL(messages(imported.error(), *context));
  std::string out;
  for (NodeId node : imported->graph.order())
    if (imported->graph.op_of(node).name == "cast")
      out += context->types.print(imported->graph.type(imported->graph.result(node))) + " ";
  return out;
}

}  // namespace

TEST_CASE("import: operands are cast where PyTorch computes in their common type",
          "[fx][promotion]") {
  const std::string narrow = "x: \"i8[4]\", y: \"i32[]\"", half = "x: \"bf16[4]\", y: \"f32[]\"";
  const std::string whole = "x: \"f32[4]\", y: \"i64[4]\"", wide = "x: \"i32[4]\", y: \"i8[4]\"";
  for (const std::string call :
       {"lt.Tensor(x, y)", "maximum.default(x, y)", "remainder.Tensor(x, y)", "max.other(x, y)",
        "pow.Tensor_Tensor(x, y)", "fmod.Tensor(x, y)"}) {
    CAPTURE(call);
    CHECK(casts_before("aten." + call, narrow) == "i8[] ");
    CHECK(casts_before("aten." + call, half) == "bf16[] ");
    CHECK(casts_before("aten." + call, whole) == "f32[4] ");
    CHECK(casts_before("aten." + call, wide).empty());
  }
  CHECK(casts_before("aten.floor_divide.default(x, y)", narrow) == "i8[] ");
  CHECK(casts_before("aten.__rshift__.Tensor(x, y)", narrow) == "i8[] ");
  // Sums and products read a number of rank 0 in its own type, and wrap around in any.
  CHECK(casts_before("aten.mul.Tensor(x, y)", narrow).empty());
  CHECK(casts_before("aten.add.Tensor(x, y)", half).empty());
  // The product with alpha does not wrap around in the narrower type.
  CHECK(casts_before("aten.add.Tensor(x, y, alpha = 3)", wide) == "i32[4] ");
  CHECK(casts_before("aten.sub.Tensor(x, y, alpha = 3)", whole) == "f32[4] ");
  CHECK(casts_before("aten.add.Tensor(x, y, alpha = 1)", wide).empty());
  // A rank-0 tensor in f64 promotes integers to f64; a number does not.
  for (const std::string call : {"mul.Tensor(x, y)", "add.Tensor(x, y)", "div.Tensor(x, y)",
                                 "maximum.default(x, y)", "remainder.Tensor(x, y)"})
    CHECK(type_after("aten." + call, "x: \"i64[4]\", y: \"f64[]\"") == "f64[4]");
  CHECK(type_after("aten.mul.Tensor(x, 0.5)", "x: \"i64[4]\"") == "f32[4]");
  for (const std::string call : {"where.self(m, x, y)", "where.self(m, y, x)", "clamp.Tensor(x, y)",
                                 "clamp.Tensor(x, None, y)", "clamp.Tensor(x, x, y)"}) {
    CAPTURE(call);
    const std::string mask = ", m: \"b8[4]\"";
    CHECK(casts_before("aten." + call, narrow + mask) == "i8[] ");
    CHECK(type_after("aten." + call, "x: \"i64[4]\", y: \"f64[]\"" + mask) == "f64[4]");
  }
  // A number that the type lacks wraps around.
  CHECK(casts_before("aten.lt.Scalar(x, 3000000000)", "x: \"i32[4]\"") == "i32[] ");
  CHECK(casts_before("aten.lt.Scalar(x, 2147483647)", "x: \"i32[4]\"").empty());
}

TEST_CASE("import: ops of floats bring whole numbers to f32", "[fx][promotion]") {
  check({{"aten.div.Tensor(x, y)", "x: \"i64[4, 6]\", y: \"i64[4, 6]\"", "f32[4, 6]"},
         {"aten.div.Tensor(x, 3)", "x: \"i64[4, 6]\"", "f32[4, 6]"},
         {"aten.div.Tensor(x, y)", "x: \"i64[4, 6]\", y: \"bf16[4, 6]\"", "bf16[4, 6]"},
         {"aten.exp.default(x)", "x: \"i32[4]\"", "f32[4]"},
         {"aten.sqrt.default(x)", "x: \"b8[4]\"", "f32[4]"},
         {"aten.sigmoid.default(x)", "x: \"i64[4]\"", "f32[4]"},
         {"aten.sigmoid.default(x)", "x: \"bf16[4]\"", "bf16[4]"},
         {"aten.reciprocal.default(x)", "x: \"i64[4]\"", "f32[4]"}});
}

TEST_CASE("import: sums of whole numbers and booleans are i64", "[fx][promotion]") {
  check({{"aten.sum.dim_IntList(x, [-1])", "x: \"b8[4, 6]\"", "i64[4]"},
         {"aten.sum.default(x)", "x: \"i32[4, 6]\"", "i64[]"},
         {"aten.sum.dim_IntList(x, [0], True, dtype = torch.float32)", "x: \"i64[4, 6]\"",
          "f32[1, 6]"},
         {"aten.sum.dim_IntList(x, [0])", "x: \"bf16[4, 6]\"", "bf16[6]"},
         {"aten.amax.default(x, [0])", "x: \"i32[4, 6]\"", "i32[6]"}});
}

TEST_CASE("import: calls whose numbers the library lacks stay calls", "[fx][promotion]") {
  for (const std::string call :
       {"add.Tensor(x, y)", "bitwise_or.Tensor(y, x)", "cat.default([x, y])",
        "full_like.default(x, 256)", "full_like.default(y, -129)", "masked_fill.Scalar(y, m, 128)",
        "scalar_tensor.default(300, dtype = torch.uint8)",
        "scalar_tensor.default(9007199254740993, dtype = torch.int64)",
        "constant_pad_nd.default(x, [1, 1], -256)"}) {
    CAPTURE(call);
    const std::string text =
        "class <lambda>(torch.nn.Module):\n"
        "    def forward(self, x: \"u8[4]\", y: \"i8[4]\", m: \"b8[4]\"):\n"
        "        z = torch.ops.aten." +
        call + "\n        return (z,)\n";
    const Result<FxImport> imported = import_fx(library(), text, {});
    REQUIRE(imported);
    CHECK(imported->report.opaque.size() == 1);
  }
  check({{"aten.add.Tensor(x, y)", "x: \"u8[4]\", y: \"i8[]\"", "u8[4]"},
         {"aten.clamp.default(x, -2, 3)", "x: \"b8[4]\"", "i64[4]"},
         {"aten.where.ScalarOther(m, x, 2)", "m: \"b8[4]\", x: \"i8[]\"", "i8[4]"},
         {"aten.add.Tensor(x, y, alpha = -1)", "x: \"b8[4]\", y: \"b8[4]\"", "b8[4]"},
         {"aten.square.default(x)", "x: \"b8[4]\"", "i64[4]"},
         {"aten.diff.default(x)", "x: \"b8[4]\"", "b8[3]"}});
}

TEST_CASE("import: an omitted argument has the default of the first item", "[fx][promotion]") {
  const std::string two = "x: \"f32[4, 6]\", y: \"f32[4, 6]\"";
  check({{"aten.mse_loss.default(x, y)", two, "f32[]"},
         {"aten.mse_loss.default(x, y, reduction = 0)", two, "f32[4, 6]"},
         {"aten.logsumexp.default(x, [1])", two, "f32[4]"},
         {"aten.logsumexp.default(x, [1], True)", two, "f32[4, 1]"}});
  const std::string heads = "q: \"f32[2, 4, 12, 16]\", k: \"f32[2, 4, 12, 16]\"";
  const std::string mask = heads + ", m: \"b8[2, 1, 12, 12]\"";
  check({{"aten.scaled_dot_product_attention.default(q, k, k)", heads, "f32[2, 4, 12, 16]"},
         {"aten.scaled_dot_product_attention.default(q, k, k, m)", mask, "f32[2, 4, 12, 16]"},
         {"aten.scaled_dot_product_attention.default(q, k, k, m, scale = 0.25)", mask,
          "f32[2, 4, 12, 16]"},
         {"aten.scaled_dot_product_attention.default(q, k, k, m)",
          "q: \"f32[2, 4, 12, 16]\", k: \"f32[2, 1, 12, 16]\", m: \"b8[12, 12]\"",
          "f32[2, 4, 12, 16]"}});
}

TEST_CASE("import: a pool's window may be larger than its input", "[fx][promotion]") {
  const std::string x = "x: \"f32[2, 3, 1, 5]\"";
  check({{"aten.avg_pool2d.default(x, [9, 9], [9, 9], [0, 0], True)", x, "f32[2, 3, 1, 1]"},
         {"aten.avg_pool2d.default(x, [3, 6], [3, 3], [0, 0], True)", x, "f32[2, 3, 1, 1]"}});
}

TEST_CASE("import: a number never makes a wider type", "[fx][promotion]") {
  check({{"aten.mul.Tensor(x, 3.0)", "x: \"f32[]\"", "f32[]"},
         {"aten.mul.Tensor(x, 0.1)", "x: \"bf16[]\"", "bf16[]"},
         {"aten.mul.Tensor(x, 2)", "x: \"f16[]\"", "f16[]"},
         {"aten.mul.Tensor(x, 0.5)", "x: \"i64[]\"", "f32[]"},
         {"aten.add.Tensor(x, 1)", "x: \"i32[]\"", "i32[]"},
         {"aten.add.Tensor(x, 1)", "x: \"b8[]\"", "i64[]"},
         {"aten.mul.Tensor(x, 3.0)", "x: \"f64[]\"", "f64[]"},
         {"aten.mul.Tensor(x, 0.5)", "x: \"i64[4]\"", "f32[4]"},
         {"aten.add.Tensor(x, y)", "x: \"i64[4]\", y: \"bf16[]\"", "bf16[4]"},
         {"aten.add.Tensor(x, y)", "x: \"bf16[4]\", y: \"f32[]\"", "bf16[4]"},
         {"aten.gt.Scalar(x, 0.5)", "x: \"bf16[]\"", "b8[]"}});
}

TEST_CASE("import: clamp with either bound", "[fx][promotion]") {
  check({{"aten.clamp.default(x, None, 0.5)", "x: \"f32[4]\"", "f32[4]"},
         {"aten.clamp.default(x, 0)", "x: \"bf16[4]\"", "bf16[4]"},
         {"aten.clamp.default(x, max = 7)", "x: \"i64[4]\"", "i64[4]"},
         {"aten.clamp.default(x, 0.5, 2.5)", "x: \"i64[4]\"", "f32[4]"},
         {"aten.clamp.Tensor(x, None, m)", "x: \"f32[4]\", m: \"f32[]\"", "f32[4]"},
         {"aten.clamp_min.default(x, 1e-12)", "x: \"f32[]\"", "f32[]"}});
}

TEST_CASE("import: lists of several types, products with factors", "[fx][promotion]") {
  check({{"aten.cat.default([x, y], -1)", "x: \"bf16[4, 6]\", y: \"f32[4, 2]\"", "f32[4, 8]"},
         {"aten.stack.default([x, y], -1)", "x: \"f32[4]\", y: \"i64[4]\"", "f32[4, 2]"},
         {"aten.addmm.default(c, x, y)", "c: \"bf16[4, 5]\", x: \"bf16[4, 6]\", y: \"bf16[6, 5]\"",
          "bf16[4, 5]"},
         {"aten.addmm.default(c, x, y, beta = 0.5, alpha = 2)",
          "c: \"f32[5]\", x: \"f32[4, 6]\", y: \"f32[6, 5]\"", "f32[4, 5]"},
         {"aten.linear.default(x, w, c)", "x: \"f32[2, 4, 6]\", w: \"f32[5, 6]\", c: \"f32[5]\"",
          "f32[2, 4, 5]"},
         {"aten.linear.default(x, w)", "x: \"f32[6]\", w: \"f32[5, 6]\"", "f32[5]"}});
}

TEST_CASE("import: a filling states its type where nothing else does", "[fx][promotion]") {
  check({{"aten.full.default([2], 3)", "x: \"f32[]\"", "i64[2]"},
         {"aten.full.default([2], True)", "x: \"f32[]\"", "b8[2]"},
         {"aten.full.default([2], 0.5)", "x: \"f32[]\"", "f32[2]"},
         {"aten.zeros.default([2])", "x: \"f32[]\"", "f32[2]"},
         {"aten.logical_not.default(x)", "x: \"f32[3]\"", "b8[3]"}});
}

TEST_CASE("import: a whole number keeps the digits that a double lacks", "[fx][promotion]") {
  const auto imported_text = [](const std::string& number) {
    ContextPtr context = library();
    FxOptions options;
    options.file = "dump.fx.txt";
    Result<FxImport> imported =
        import_fx(context,
                  "class <lambda>(torch.nn.Module):\n    def forward(self, x: \"i64[4]\"):\n"
                  "        y = torch.ops.aten.add.Tensor(x, " +
                      number + ")\n        return (y,)\n",
                  options);
    if (!imported) FAIL(messages(imported.error(), *context));
    return print_pwg(imported->graph);
  };
  CHECK(imported_text("9007199254740993").find("value = 9007199254740993") != std::string::npos);
  CHECK(imported_text("-9007199254740993").find("value = -9007199254740993") != std::string::npos);
  CHECK(imported_text("9007199254740992").find("constant") != std::string::npos);
}
