#include "import/fx/fx.hpp"

#include "base/hash.hpp"
#include "graph/text/graph_json.hpp"
#include "graph/verify.hpp"
#include "import/fx/made_ops.hpp"
#include "import/fx/ops.hpp"
#include "tests/graph/library.hpp"
#include "tests/shared_dump.hpp"

using namespace pw;
using namespace pw::test;

namespace {

using Places = std::vector<std::pair<std::string, int>>;

FxImport import_text(const ContextPtr& context, const std::string& text, const Places& n = {}) {
  FxOptions options;
  options.file = "dump.fx.txt";
  if (!n.empty()) options.symbols = {{"n", n}};
  Result<FxImport> imported = import_fx(context, text, options);
  if (!imported) FAIL(messages(imported.error(), *context));
  CHECK(messages(verify(imported->graph), *context) == "");
  return std::move(*imported);
}

FxImport import_fixture(const ContextPtr& context, const std::string& name, const Places& n = {}) {
  return import_text(context, text_of("tests/graph/fixtures/" + name), n);
}

void check_lines(const Graph& graph, const std::vector<std::string>& lines) {
  std::vector<std::string> all = describe(graph);
  for (const std::string& line : lines) {
    CAPTURE(line);
    bool there = std::find(all.begin(), all.end(), line) != all.end();
    std::string name = line.substr(0, line.find(':'));
    if (!there) FAIL("found instead: " << line_of(graph, name));
  }
}

std::string in_function(const std::string& body,
                        const std::string& parameters = "x: \"f32[4, 8]\", k: \"i64[4]\"") {
  return "class <lambda>(torch.nn.Module):\n    def forward(self, " + parameters + "):\n        " +
         body + "\n";
}

void round_trip(const Graph& graph) {
  std::string once = graph_to_json(graph);
  ContextPtr other = library();
  Result<Graph> again = graph_from_json(other, once, "g.json", parse_op);
  if (!again) FAIL(messages(again.error(), *other));
  CHECK(graph_to_json(*again) == once);
}

}  // namespace

TEST_CASE("fx: the functionalised form becomes ops of the library", "[graph][fx]") {
  ContextPtr context = library();
  FxImport fx = import_fixture(context, "aot.fx.txt");
  check_lines(
      fx.graph,
      {
          "emb: bf16[96, 64] = embedding(table, ids)",
          "filled: bf16[96, 64] = masked_fill(emb, mask){value = -inf}",
          "normed: bf16[96, 64] = rms_norm(emb, w){eps = 1e-05}",
          "flat: bf16[96, 64] = reshape(normed){shape = [96, 64]}",
          "t: bf16[64, 128] = transpose(up){dim0 = 0, dim1 = 1}",
          "mm: bf16[96, 128] = addmm(bias, flat, t)",
          "gate: bf16[96, 64], value: bf16[96, 64] = split(mm){dim = 1, sizes = [64, 64]}",
          "scaled__2: f32[96, 64] = mul(scaled__1, c__0)",
          "scaled: bf16[96, 64] = cast(scaled__3){dtype = bf16}",
          "wide: f32[96, 64] = cast(scaled){dtype = f32}",
          "mean: f32[96, 1] = mean(sq){dim = 1, keepdim = true}",
          "strange: f32[96] = mylib.fold.default(rs){arg1 = [1, 2], arg2 = \"abc\", mode = 3}",
          "halves__0: ?, second: f32[48, 1] = mylib.halves.default(rs, wide){call = \"[%0, %1]\"}",
      });
  CHECK(line_of(fx.graph, "out") == "");  // the buffer is gone
  CHECK(fx.report.opaque ==
        std::map<std::string, int>{{"mylib.fold.default", 1}, {"mylib.halves.default", 1}});
  CHECK(fx.graph.source(fx.graph.producer(fx.graph.find_value("emb"))) == "block.py:10");
  CHECK(fx.graph.source(fx.graph.producer(fx.graph.find_value("normed"))) == "block.py:20");
  CHECK(fx.graph.source(fx.graph.producer(fx.graph.find_value("flat"))) == "");
  CHECK(kinds(fx.graph) == "ids:input table:weight w:weight up:weight bias:weight mask:input");
  CHECK(fx.graph.outputs().size() == 5);  // None is not an output
  CHECK(fx.graph.name == "dump");
  round_trip(fx.graph);
}

TEST_CASE("fx: layout, constructors and pointwise targets", "[graph][fx]") {
  ContextPtr context = library();
  FxImport fx = import_fixture(context, "layout.fx.txt");
  check_lines(fx.graph,
              {
                  "u: f32[4, 1, 6, 8] = reshape(x){shape = [4, 1, 6, 8]}",
                  "s2: f32[4, 6, 8] = reshape(u){shape = [4, 6, 8]}",
                  "fl: f32[4, 48] = reshape(x){shape = [4, 48]}",
                  "perm__0: f32[8, 6, 4] = transpose(x){dim0 = 0, dim1 = 2}",
                  "perm: f32[8, 4, 6] = transpose(perm__0){dim0 = 1, dim1 = 2}",
                  "same: f32[4, 6, 8] = detach(x)",
                  "sl: f32[4, 6, 3] = slice(x){dim = 2, end = 8, start = 5, step = 1}",
                  "sl2: f32[4, 6, 8] = slice(x){dim = 1, end = 6, start = 0, step = 1}",
                  "sc: f32[4, 6, 8] = slice_scatter(x, sl){dim = 2, end = 3, start = 0}",
                  "pick: f32[4, 8] = reshape(pick__0){shape = [4, 8]}",
                  "sws__0: f32[4, 2, 8], p1: f32[4, 4, 8] = split(x){dim = 1, sizes = [2, 4]}",
                  "ch__0: f32[4, 6, 3], ch__1: f32[4, 6, 3], c2: f32[4, 6, 2] = split(x){dim = 2, "
                  "sizes = [3, 3, 2]}",
                  "ct: f32[4, 6, 16] = cat(x, y){dim = 2}",
                  "ex: f32[4, 6, 8] = expand(pm){shape = [4, 6, 8]}",
                  "cp: f32[4, 6, 8] = expand(pm){shape = [4, 6, 8]}",
                  "lo: bf16[4, 6, 8] = cast(x){dtype = bf16}",
                  "hi: f32[4, 6, 8] = clone(x)",
                  "f7: i64[2] = full(){dtype = i64, shape = [2], value = 7.0}",
                  "tot: f32[] = sum(tot__0){dim = 0, keepdim = false}",
                  "two: f32[6] = sum(two__0){dim = 0, keepdim = false}",
                  "wh: f32[4, 6, 8] = select(v__0, x, y)",
                  "gt: f32[4, 6, 8] = gelu_tanh(x)",
                  "ge: f32[4, 6, 8] = gelu(x)",
                  "in2: f32[4, 6, 8] = mul(c__3, in1)",
              });
  CHECK(fx.report.opaque.empty());
  round_trip(fx.graph);
}

TEST_CASE("fx: auto_functionalized_v2 names written arguments by their bases", "[graph][fx]") {
  ContextPtr context = library();
  FxImport fx = import_fixture(context, "v2.fx.txt");
  check_lines(
      fx.graph,
      {
          "y: bf16[32, 64], r2: bf16[32, 64] = fused_add_rms_norm(x, r, w){eps = 1e-06, wide = "
          "false}",
          "q: f8e4m3[32, 64], sc: f32[32, 1] = dynamic_per_token_fp8_quant(y)",
          "scattered: bf16[32, 96] = slice_scatter(qkv, v__1){dim = 1, end = 64, start = 0}",
          "o: bf16[32, 4, 16] = unified_attention(q3, q3, q3, none){layer = \"a\", out = none}",
          "v__3: bf16[64, 32] = mine.op.default(x, v__2){call = \"input = %0, result = %1\", "
          "writes = [1]}",
          "new_base: bf16[32, 64] = reshape(v__3){shape = [32, 64]}",
      });
  CHECK(fx.graph.node_count() == 8);
  round_trip(fx.graph);
}

TEST_CASE("fx: a write into memory that no other name reaches becomes a value", "[graph][fx]") {
  ContextPtr context = library();
  const std::string body =
      R"(out = torch.ops.aten.empty.memory_format([4, 8], dtype = torch.float32, device = device(type='cpu'))
        view = torch.ops.aten.view.default(out, [2, 2, 8])
        shape = torch.ops.aten.view.default(x, [2, 2, 8])
        rms_norm = torch.ops._C.rms_norm.default(view, shape, w, 1e-06)
        y = torch.ops.aten.relu.default(view)
        return y)";
  const std::string parameters = "x: \"f32[4, 8]\", w: \"f32[8]\"";
  FxImport fx = import_text(context, in_function(body, parameters));
  check_lines(fx.graph, {"view__0: f32[2, 2, 8] = rms_norm(shape, w){eps = 1e-06}",
                         "y: f32[2, 2, 8] = relu(view__0)"});
  CHECK(fx.graph.node_count() == 3);
  CHECK(fx.report.opaque.empty());

  std::string base = body;
  base.replace(base.find("relu.default(view)"), 18, "relu.default(out)");
  FxImport below = import_text(context, in_function(base, parameters));
  const NodeId whole = below.graph.producer(
      below.graph.operand(below.graph.producer(below.graph.find_value("y")), 0));
  CHECK(below.graph.op_of(whole).name == "reshape");
  CHECK(below.graph.operand(whole, 0) == below.graph.find_value("view__0"));

  // `other` is another name of the same memory: it has the new contents, too.
  std::string shared = body;
  shared.insert(shared.find("rms_norm ="),
                "other = torch.ops.aten.view.default(view, [4, 8])\n        ");
  shared.replace(shared.find("relu.default(view)"), 18, "relu.default(other)");
  FxImport read = import_text(context, in_function(shared, parameters));
  CHECK(read.report.opaque.empty());
  const Graph& g = read.graph;
  const NodeId relu = g.producer(g.find_value("y"));
  const NodeId again = g.producer(g.operand(relu, 0));
  CHECK(g.op_of(again).name == "reshape");
  CHECK(g.op_of(g.producer(g.operand(again, 0))).name == "rms_norm");
}

TEST_CASE("fx: functional collectives", "[graph][fx]") {
  ContextPtr context = library();
  FxImport fx = import_fixture(context, "collectives.fx.txt");
  check_lines(
      fx.graph,
      {
          "reduced: f32[16, 64] = all_reduce(primals_1){group = \"12\"}",
          "most: f32[16, 64] = _c10d_functional.all_reduce.default(reduced){arg1 = \"max\", "
          "arg2 = \"12\"}",
          "gathered: f32[32, 64] = all_gather(most){dim = 0, group = \"12\", world = 2}",
          "scattered: f32[8, 64] = reduce_scatter(mm){dim = 0, group = \"12\", world = 4}",
          "kept: f32[8, 64], which: b8[8, 64] = aten.native_dropout.default(scattered){arg1 = "
          "0.1, arg2 = true}",
          "all_reduce_1: f32[8, 64] = all_reduce(moved){group = \"tp:0\"}",
      });
  CHECK(context->types.print(fx.graph.type(fx.graph.find_value("_tensor_constant0"))) == "f32[]");
  REQUIRE(fx.graph.written_inputs().size() == 1);
  CHECK(fx.graph.value_name(fx.graph.written_inputs()[0]) == "primals_1");
  CHECK(fx.graph.outputs().back() == fx.graph.find_value("reduced"));
  CHECK(
      kinds(fx.graph) ==
      "primals_1:weight primals_2:weight primals_3:input primals_4:input _tensor_constant0:weight");
  round_trip(fx.graph);
}

TEST_CASE("fx: the ranks that share rows out are those of the graph's other collectives",
          "[graph][fx]") {
  const std::string body = R"(h: "bf16[s0, 64]" = torch.ops.vllm.all_reduce.default(x, 'tp:0')
        c: "bf16[((s0 + 3)//4), 64]" = torch.ops.vllm.sequence_parallel_chunk_impl.default(h)
        y: "bf16[((s0 + 3)//4), 64]" = torch.ops.aten.relu.default(c)
        g: "bf16[4*(((s0 + 3)//4)), 64]" = torch.ops.vllm.all_gather.default(y, 0, 4, 'tp:0')
        z: "bf16[s0, 64]" = torch.ops.aten.slice.Tensor(g, 0, 0, s0)
        return z)";
  const std::string parameters = "s0: \"Sym(s0)\", x: \"bf16[s0, 64]\"";
  ContextPtr context = library();
  const FxImport fx = import_text(context, in_function(body, parameters));
  check_lines(
      fx.graph,
      {"g: bf16[4*((s0 + 3) / (4)), 64] = all_gather(y){dim = 0, group = \"tp:0\", world = 4}"});
  const NodeId part = fx.graph.producer(fx.graph.find_value("c"));
  CHECK(fx.graph.op_of(part).name == "shard_padded");
  CHECK(fx.report.opaque.empty());

  // By name, and of a static graph.
  const FxImport fixed = import_text(
      context, in_function("c: \"bf16[2, 64]\" = torch.ops.vllm.sequence_parallel_chunk_impl("
                           "x);  g = torch.ops.vllm.all_gather.default(c, dim = 0, world_size = 4, "
                           "group_name = 'tp:0');  return g",
                           "x: \"bf16[6, 64]\""));
  CHECK(fixed.report.opaque.empty());

  const std::string call = "c: \"bf16[2, 64]\" = torch.ops.vllm.sequence_parallel_chunk_impl(x)";
  const std::string gather = "torch.ops.vllm.all_gather.default(c, 0, ";
  for (const std::string& rest :
       {std::string(";  return c"),
        std::string(";  h = torch.ops.vllm.all_reduce(c, 'tp:0');  return h"),
        ";  g = " + gather + "4, 'tp:0');  h = " + gather + "2, 'dp:0');  return [g, h]"}) {
    INFO(rest);
    const FxImport unknown = import_text(context, in_function(call + rest, "x: \"bf16[6, 64]\""));
    REQUIRE(unknown.report.opaque.size() == 1);
  }
}

TEST_CASE("fx: --symbol goes through inference, not by equality of numbers", "[graph][fx]") {
  ContextPtr context = library();
  FxImport fx = import_fixture(context, "symbols.fx.txt", {{"ids", 0}, {"pos", 0}});
  check_lines(fx.graph,
              {
                  "x: bf16[n, 64] = embedding(table, ids)",
                  "heads: bf16[n, 4, 16] = reshape(x){shape = [n, 4, 16]}",
                  "pairs: bf16[2*n, 32] = reshape(x){shape = [2*n, 32]}",
                  "mm: bf16[n, 512] = mm(x, wide)",
                  "tall: bf16[n, 512] = reshape(mm){shape = [n, 512]}",
                  "head: bf16[n, 512] = slice(mm){dim = 0, end = n, start = 0, step = 1}",
                  "cut: bf16[n, 512] = slice(mm){dim = 1, end = 512, start = 0, step = 1}",
                  "zero: bf16[n, 64] = full(){dtype = bf16, shape = [n, 64], value = 0.0}",
                  "square: bf16[n, 512] = full(){dtype = bf16, shape = [n, 512], value = 1.0}",
                  "rows: bf16[n, 64] = expand(row){shape = [n, 64]}",
                  "y: bf16[n, 64] = rms_norm(sum3, w){eps = 1e-06}",
                  "mine: bf16[n, 8] = mine.project.default(y)",
              });
  auto type = [&](const char* value) {
    return context->types.print(fx.graph.type(fx.graph.find_value(value)));
  };
  CHECK(type("ids") == "i64[n]");
  CHECK(type("table") == "bf16[512, 64]");
  CHECK(type("rope") == "bf16[512, 16]");
  CHECK(type("wide") == "bf16[64, 512]");
  CHECK(fx.graph.facts.find("n")->max == 512);
  CHECK(fx.graph.facts.tokens() == "n");
  CHECK(kinds(fx.graph) == "ids:input pos:input table:weight rope:buffer wide:weight w:weight");
  CHECK(fx.report.substitutions ==
        std::vector<std::string>{
            "heads: reshape to [512, 4, 16] became [n, 4, 16], because it views [n, 64]",
            "pairs: reshape to [1024, 32] became [2*n, 32], because it views [n, 64]",
            "tall: reshape to [512, 512] became [n, 512], because it views [n, 512]",
            "head: slice bound 512 became n, the extent of the axis",
            "zero: full [512, 64] became [n, 64], as its user requires",
            "square: full [512, 512] became [n, 512], as its user requires",
            "rows: expand [512, 64] became [n, 64], as its user requires",
            "out: empty [512, 64] became [n, 64], the result of `rms_norm`",
            "mine: bf16[512, 8] became bf16[n, 8], because `mine.project.default` reads the symbol "
            "and has no signature"});
  round_trip(fx.graph);
}

TEST_CASE("fx: two symbols stay apart, and the first is the tokens", "[graph][fx]") {
  ContextPtr context = library();
  FxOptions options;
  options.symbols = {{"b", {{"x", 0}}}, {"s", {{"x", 1}}}};
  std::string text = in_function(
      "y: \"f32[24, 32]\" = torch.ops.aten.view.default(x, [24, 32]);  z: \"f32[4, 6, 32]\" = "
      "torch.ops.aten.view.default(y, [4, 6, 32])\n        return (y, z)",
      "x: \"f32[4, 6, 32]\"");
  Result<FxImport> fx = import_fx(context, text, options);
  if (!fx) FAIL(messages(fx.error(), *context));
  CHECK(line_of(fx->graph, "y") == "y: f32[b*s, 32] = reshape(x){shape = [b*s, 32]}");
  CHECK(line_of(fx->graph, "z") == "z: f32[b, s, 32] = reshape(y){shape = [b, s, 32]}");
  CHECK(fx->graph.facts.tokens() == "b");
}

TEST_CASE("fx: a symbol keeps its place among equal literals", "[graph][fx]") {
  ContextPtr context = library();
  FxImport fx =
      import_text(context,
                  in_function("t: \"f32[8, 8]\" = torch.ops.aten.t.default(x);  y: \"f32[8, 8]\" = "
                              "torch.ops.aten.view.default(t, [8, 8])\n        return y",
                              "x: \"f32[8, 8]\""),
                  {{"x", 0}});
  CHECK(line_of(fx.graph, "y") == "y: f32[8, n] = reshape(t){shape = [8, n]}");
}

TEST_CASE("fx: symbols of the dump's own", "[graph][fx]") {
  ContextPtr context = library();
  FxImport fx = import_fixture(context, "dynamic.fx.txt");
  CHECK(fx.graph.facts.tokens() == "s0");
  CHECK(fx.graph.inputs().size() == 4);  // s0 is a dim, not a value
  check_lines(fx.graph,
              {"made: f32[2*s0 + 1, 4] = full(){dtype = f32, shape = [2*s0 + 1, 4], value = 0.5}",
               "w: f32[4] = mul(weight, c__0)"});
  CHECK(context->types.print(fx.graph.type(fx.graph.find_value("weight"))) == "?");
  round_trip(fx.graph);
}

TEST_CASE("fx: a stated type that inference contradicts is an error", "[graph][fx]") {
  ContextPtr context = library();
  Result<FxImport> fx = import_fx(
      context, in_function("y: \"f32[4, 9]\" = torch.ops.aten.relu.default(x);  return y"), {});
  REQUIRE_FALSE(fx);
  CHECK(fx.error()[0].code == "PW0511");
  CHECK(fx.error()[0].message == "`y` is stated as f32[4, 9], but `relu` gives f32[4, 8]");
  CHECK(context->sources.text(fx.error()[0].span) == "f32[4, 9]");
}

TEST_CASE("fx: malformed texts say line, column and what was expected", "[graph][fx]") {
  struct Bad {
    std::string text, place, message;
  };
  const Bad cases[] = {
      {"", "1:1", "this text has no torch.fx graph"},
      {"hello world\n", "1:1", "this text has no torch.fx graph"},
      {"graph():\n  %x : [num_users=1] = placeholder[target=x]\n", "1:1",
       "the function returns no value"},
      {"def forward(self, x: \"f32[4]\"\n  return x\n", "1:12", "`(` is not closed"},
      {"def forward(self, x: \"f32[4]\")\n  return x\n", "1:31",
       "expected `:` at the end of the header, found the end of the line"},
      {"def forward(self, x: \"f32[4]\" y):\n  return x\n", "1:31",
       "expected `,` or `)`, found `y`"},
      {"def forward(self, x: \"f99[4]\"):\n  return x\n", "1:23", "unknown dtype `f99`"},
      {"def forward(self, x: \"f32[4\"):\n  return x\n", "1:27", "expected `]`"},
      {"def forward(self, x: \"f32[4]\", x):\n  return x\n", "1:32", "duplicate input `x`"},
      {in_function("y = torch.ops.aten.relu.default(x"), "3:40", "`(` is not closed"},
      {in_function("y = torch.ops.aten.relu.default x"), "3:41",
       "expected `;` or the end of the line, found `x`"},
      {in_function("y = torch.ops.aten.relu.default(x y)"), "3:43",
       "expected `,` or `)`, found `y`"},
      {in_function("y = [x, )"), "3:17", "`)` does not close `[`"},
      {in_function("y = f(x))"), "3:17", "`)` closes nothing"},
      {in_function("y = 'abc"), "3:13", "this string is not closed"},
      {in_function("y = "), "3:12", "expected an expression"},
      {in_function("y: 3 = x"), "3:12", "expected a type, found `3`"},
      {in_function("y = f(a = 1, 2)"), "3:22", "expected `,` or `)`, found `2`"},
      {in_function("y = f(99999999999999999999)"), "3:15", "a number that fits 64 bits"},
      {in_function("y = torch.ops.aten.relu.default(xx)\n        return y"), "3:41",
       "unknown name `xx`"},
      {in_function("f(x) = k"), "3:9", "only a name can be assigned here"},
      {in_function("y = k.shape; y[0] = x"), "3:22", "only items of tensors can be assigned"},
      {in_function("a, b = k.shape"), "3:9", "2 names for 1 items"},
      {in_function("y = x + "), "3:16", "expected an expression"},
      {in_function("y = {1: 2"), "3:13", "`{` is not closed"},
      {in_function("t = torch.ops.aten.split.Tensor(x, 4, 1);  y = t[5]\n        return y"), "3:52",
       "there is no result 5"},
      {in_function(
           "t = torch.ops.higher_order.auto_functionalized_v2(torch.ops._C.rms_norm.default, "
           "_result_base_index = 3, _all_bases = [x])"),
       "3:9", "is not an index of `_all_bases`"},
      {in_function("y: \"f32[3*]\" = torch.ops.aten.relu.default(x)"), "3:19",
       "expected a number or a symbol"},
      {in_function("return x\n        y = x"), "4:9", "a statement after `return`"},
      {in_function("y = torch.ops.aten.relu.default(x)"), "2:5", "the function returns no value"},
      {in_function("return x") +
           "class submod(torch.nn.Module):\n    def forward(self, y):\n        return y\n",
       "4:1", "this text has 2 graphs; choose one with --graph N"},
      {in_function("y = " + std::string(100, '(') + std::string(100, ')')), "3:77",
       "nested deeper than 64"},
      {in_function("y: \"f32[99999999999999]\" = torch.ops.aten.relu.default(x)"), "3:17",
       "out of range"},
  };
  for (const Bad& bad : cases) {
    CAPTURE(bad.text);
    ContextPtr context = library();
    FxOptions options;
    options.file = "d";
    Result<FxImport> fx = import_fx(context, bad.text, options);
    REQUIRE_FALSE(fx);
    bool found = false;
    for (const Diagnostic& d : fx.error())
      found = found || (context->sources.describe(d.span) == "d:" + bad.place &&
                        d.message.find(bad.message) != std::string::npos);
    if (!found)
      FAIL("expected " << bad.place << " " << bad.message << " in\n"
                       << messages(fx.error(), *context));
  }
}

TEST_CASE("fx: symbols that make no sense are refused", "[graph][fx]") {
  ContextPtr context = library();
  struct Bad {
    std::string name;
    Places places;
    std::string message;
  };
  const Bad cases[] = {
      {"n", {{"xx", 0}}, "there is no input `xx`"},
      {"n", {{"x", 2}}, "has no dim 2"},
      {"n", {{"x", -1}}, "has no dim -1"},
      {"n", {{"x", 0}, {"x", 1}}, "is 8, but another is 4"},
      {"n", {}, "names no dim"},
      {"f32", {{"x", 0}}, "cannot name a symbol"},
      {"a b", {{"x", 0}}, "cannot name a symbol"},
  };
  for (const Bad& bad : cases) {
    FxOptions options;
    options.symbols = {{bad.name, bad.places}};
    Result<FxImport> fx = import_fx(context, in_function("return x"), options);
    REQUIRE_FALSE(fx);
    CHECK(fx.error()[0].place == "--symbol " + bad.name);
    CHECK(fx.error()[0].message.find(bad.message) != std::string::npos);
  }
}

TEST_CASE("fx: several mistakes are reported at once", "[graph][fx]") {
  ContextPtr context = library();
  Result<FxImport> fx = import_fx(
      context,
      in_function(
          "a = torch.ops.aten.relu.default(u)\n        b = torch.ops.aten.relu.default(v)\n        "
          "c = torch.ops.aten.mul.Tensor(a, b)\n        return c"),
      {});
  REQUIRE_FALSE(fx);
  CHECK(fx.error().size() == 2);
}

TEST_CASE("fx: the table speaks of ops, operands and attributes that exist", "[graph][fx]") {
  ContextPtr context = library();
  fx::Table table;
  for (const std::string& target : table.targets()) {
    for (const fx::Mapping& m : *table.find(target)) {
      if (m.op.empty()) continue;
      CAPTURE(target, std::string(m.op));
      OpId id = context->ops.find(m.op);
      REQUIRE(id.valid());
      const Op& op = context->ops[id];
      for (const fx::Slot& slot : m.parameters) {
        if (slot.use == fx::Slot::Use::operand && m.special == fx::Special::none && !m.convert)
          CHECK(op.operand_index(slot.to) >= 0);
        if (slot.use == fx::Slot::Use::attribute) CHECK(op.attribute(slot.to) != nullptr);
        if (slot.result >= 0) CHECK(slot.result < static_cast<int>(op.results.size()));
      }
    }
  }
}

TEST_CASE("fx: calls become the ops that are declared for their targets, or for any",
          "[graph][fx]") {
  ContextPtr context = library();
  const fx::MadeOps made(context);
  const auto& anywhere = fx::MadeOps::anywhere();
  const std::pair<std::string, std::string> calls[] = {
      {"aten.view.default", "(x, [8, 4])"},
      {"aten.flatten.using_ints", "(x, 0, 1)"},
      {"aten.unsqueeze.default", "(x, 1)"},
      {"aten.squeeze.default", "(x)"},
      {"aten.t.default", "(x)"},
      {"aten.permute.default", "(x, [1, 0])"},
      {"aten.permute.default", "(x, [0, 1])"},
      {"aten.slice.Tensor", "(x, 1, 2, 6, 2)"},
      {"aten.select.int", "(x, 0, 1)"},
      {"aten.narrow.default", "(x, 1, 2, 3)"},
      {"aten.cat.default", "([x, i], 1)"},
      {"aten.stack.default", "([x, x])"},
      {"aten.expand.default", "(x, [3, 4, 8])"},
      {"aten.full.default", "([4], 1.5)"},
      {"aten.zeros_like.default", "(x)"},
      {"aten.scalar_tensor.default", "(2.0)"},
      {"aten.sum.dim_IntList", "(i, [0, 1])"},
      {"aten.mean.dim", "(x, [-1], True)"},
      {"aten.type_as.default", "(i, x)"},
      {"aten.to.dtype", "(x, torch.float64)"},
      {"aten.copy.default", "(x, i)"},
      {"aten.add.Tensor", "(x, i, alpha = 2)"},
      {"aten.sub.Tensor", "(x, 1)"},
      {"aten.rsub.Scalar", "(x, 1)"},
      {"aten.mul.Tensor", "(i, 2.5)"},
      {"aten.div.Tensor", "(i, i)"},
      {"aten.pow.Tensor_Scalar", "(x, 3)"},
      {"aten.addmm.default", "(x, x.t(), x)"},
      {"aten.silu.default", "(x)"},
      {"aten.clamp.default", "(x, 0.0, 1.0)"},
      {"aten.where.self", "(x > 0, x, i)"},
      {"aten.softmax.int", "(x, -1)"},
      {"aten.rsqrt.default", "(i)"},
  };
  int taken = 0;
  for (const auto& [target, arguments] : calls) {
    CAPTURE(target, arguments);
    const Result<FxImport> fx =
        import_fx(context,
                  in_function("y = torch.ops." + target + arguments + "\n        return (y,)",
                              "x: \"f32[4, 8]\", i: \"i64[4, 8]\""),
                  {});
    REQUIRE(fx);
    if (!fx->report.opaque.empty()) continue;  // a form that no row takes makes nothing
    ++taken;
    const std::optional<fx::MadeOps::Names> names = made("torch.ops." + target);
    for (NodeId n : fx->graph.order()) {
      const std::string& op = fx->graph.op_of(n).name;
      const bool of_arguments = op == "gt" || op == "transpose";  // x > 0, x.t()
      CHECK((of_arguments || anywhere.contains(op) || !names || names->contains(op)));
    }
  }
  CHECK(taken > 28);
}

TEST_CASE("fx: mutated dumps give a graph or a diagnostic with a place", "[graph][fx][fuzz]") {
  const std::uint64_t seed = 77;
  INFO("seed " << seed);
  Random random(seed);
  const std::string bases[] = {text_of("tests/graph/fixtures/aot.fx.txt"),
                               text_of("tests/graph/fixtures/layout.fx.txt"),
                               text_of("tests/graph/fixtures/v2.fx.txt"),
                               text_of("tests/graph/fixtures/symbols.fx.txt"),
                               text_of("tests/graph/fixtures/dynamic.fx.txt"),
                               text_of("tests/graph/fixtures/forms/dynamo.fx.txt"),
                               text_of("tests/graph/fixtures/forms/split.fx.txt"),
                               text_of("tests/graph/fixtures/forms/export.fx.txt"),
                               text_of("tests/graph/fixtures/forms/listing.fx.txt"),
                               text_of("tests/graph/fixtures/forms/table.fx.txt"),
                               text_of("tests/graph/fixtures/forms/code.fx.txt"),
                               text_of("tests/graph/fixtures/forms/joint.fx.txt"),
                               text_of("tests/graph/fixtures/forms/log.fx.txt")};
  const std::string pieces[] = {"(",
                                ")",
                                "[",
                                "]",
                                "\"",
                                "'",
                                ",",
                                ":",
                                "=",
                                ";",
                                ".",
                                "-",
                                "None",
                                "[0]",
                                "99999999999",
                                "s0",
                                "//",
                                "#",
                                "\n",
                                "torch.ops.aten.",
                                "-1",
                                "\\",
                                "\xc3",
                                "%",
                                "{",
                                "}",
                                "+=",
                                "x[0] = ",
                                "self.submod_0(",
                                "slice(",
                                "graph():",
                                ".view(",
                                "class a(b):\n",
                                "Sym(",
                                "Max(",
                                "getattr("};
  int good = 0;
  for (int round = 0; round < 8000; ++round) {
    ContextPtr context;
    if (round % 500 == 0 || !context) {
      static ContextPtr kept;
      if (round % 500 == 0) kept = library();
      context = kept;
    }
    std::string text = bases[random.below(std::size(bases))];
    for (std::uint64_t k = 0, n = 1 + random.below(3); k < n && !text.empty(); ++k) {
      std::size_t at = random.below(text.size());
      switch (random.below(5)) {
        case 0: text[at] = static_cast<char>(random.below(256)); break;
        case 1: text.erase(at, 1 + random.below(20)); break;
        case 2: text.insert(at, pieces[random.below(std::size(pieces))]); break;
        case 3: {
          const std::size_t from = random.below(text.size());
          text.insert(at, text.substr(from, random.below(60)));
          break;
        }
        default: text.resize(at); break;
      }
    }
    FxOptions options;
    if (random.below(3) == 0) options.symbols = {{"n", {{"ids", 0}}}};
    options.graph = random.below(4);
    Result<FxImport> fx = import_fx(context, text, options);
    if (fx) {
      ++good;
      CHECK(messages(verify(fx->graph), *context) == "");
    } else {
      REQUIRE_FALSE(fx.error().empty());
      CHECK((fx.error()[0].span.valid() || !fx.error()[0].place.empty()));
    }
  }
  CHECK(good > 100);
}

TEST_CASE("fx: subscripts inside subscripts parse in linear time", "[graph][fx]") {
  ContextPtr context = library();
  std::string deep = "x";
  for (int i = 0; i < 60; ++i) deep = "x[" + deep + "]";
  Result<FxImport> fx = import_fx(context, in_function("y = " + deep + "\n        return y"), {});
  CHECK(fx.has_value());  // opaque getitems
  std::string chain = "y = x";
  for (int i = 0; i < 20000; ++i) chain += "[0]";
  Result<FxImport> long_chain = import_fx(context, in_function(chain + "\n        return y"), {});
  CHECK(long_chain.has_value());
}

// ---- the example, and real dumps where they are at hand

TEST_CASE("fx: the example decoder imports whole", "[graph][fx]") {
  ContextPtr context = library();
  FxImport fx =
      import_text(context, text_of("examples/tiny-decoder.fx.txt"), {{"arg0_1", 0}, {"arg1_1", 0}});
  CHECK(fx.report.opaque.empty());
  CHECK(fx.graph.facts.tokens() == "n");
  CHECK(fx.graph.input_kind(fx.graph.find_value("arg3_1")) == InputKind::buffer);
  CHECK(context->types.print(fx.graph.type(fx.graph.outputs()[0])) == "bf16[n, 256]");
  round_trip(fx.graph);
}

TEST_CASE("fx: a real model's layer, with and without the token symbol", "[graph][fx]") {
  for (std::string name : {"qwen2-1.5b.tp1.layer1.fx.txt", "qwen2-1.5b.tp2.rank0.layer1.fx.txt"}) {
    std::string path = shared_dump(name);
    if (path.empty()) continue;
    bool tp2 = name.find("tp2") != std::string::npos;
    ContextPtr context = library();
    FxImport fixed = import_text(context, text_of(path));
    CHECK(fixed.report.opaque.empty());
    FxImport fx = import_text(context, text_of(path), {{"arg0_1", 0}, {"arg6_1", 0}});
    CHECK(fx.report.opaque.empty());
    CHECK(fx.report.nodes == (tp2 ? 51 : 27));
    CHECK(fx.report.substitutions.size() == 2);
    CHECK(
        fx.report.substitutions[0] ==
        (tp2 ? "view_7: reshape to [32768, 768] became [n, 768], because it views [n, 6, 128]"
             : "view_7: reshape to [32768, 1536] became [n, 1536], because it views [n, 12, 128]"));
    CHECK(context->types.print(fx.graph.type(fx.graph.find_value("arg5_1"))) == "bf16[32768, 128]");
    CHECK(
        line_of(fx.graph, "getitem_29") ==
        std::string("getitem_29: bf16[n, 1536], getitem_30: bf16[n, 1536] = fused_add_rms_norm(") +
            (tp2 ? "all_reduce_1, all_reduce" : "mm, embedding") +
            ", arg8_1){eps = 1e-06, wide = false}");
    for (NodeId n : fx.graph.order())  // no static token count is left
      CHECK(describe(fx.graph, n).find("32768") == std::string::npos);
    round_trip(fx.graph);
  }
}

TEST_CASE("fx: a real training graph keeps what it does not know as opaque ops", "[graph][fx]") {
  std::string path = shared_dump("megatron-gpt.tp2.layer1.fx.txt");
  if (path.empty()) return;
  ContextPtr context = library();
  FxImport fx = import_text(context, text_of(path));
  CHECK(fx.report.opaque ==
        std::map<std::string, int>{{"_c10d_functional.all_reduce.default", 1},
                                   {"apex.fused_layer_norm_affine_fwd.default", 3},
                                   {"aten.native_dropout.default", 4}});
  CHECK(fx.graph.returned_count() == 45);
  CHECK(line_of(fx.graph, "all_gather_into_tensor") ==
        "all_gather_into_tensor: f32[1536, 8, 768] = all_gather(getitem_2){dim = 0, group = "
        "\"12\", world = 2}");
  round_trip(fx.graph);
}
