// The text forms of dumps: each is recognised, named and read whole.
#include <filesystem>

#include "base/io/file_kind.hpp"
#include "graph/text/graph_json.hpp"
#include "graph/text/text.hpp"
#include "graph/verify.hpp"
#include "import/fx/fx.hpp"
#include "import/fx/module_path.hpp"
#include "tests/graph/library.hpp"
#include "tests/shared_dump.hpp"

using namespace pw;
using namespace pw::test;

namespace {

std::string fixture(const std::string& name) {
  return text_of("tests/graph/fixtures/forms/" + name + ".fx.txt");
}

FxImport import_with(const ContextPtr& context, const std::string& text, FxOptions options = {}) {
  options.file = "dump.fx.txt";
  Result<FxImport> imported = import_fx(context, text, options);
  if (!imported) FAIL(messages(imported.error(), *context));
  CHECK(messages(verify(imported->graph), *context) == "");
  return std::move(*imported);
}

std::string error_of(const std::string& text, const FxOptions& options = {}) {
  ContextPtr context = library();
  Result<FxImport> imported = import_fx(context, text, options);
  return imported ? "" : imported.error()[0].message;
}

void check_nodes(const Graph& graph, const std::vector<std::string>& lines) {
  for (const std::string& line : lines)
    CHECK(line_of(graph, line.substr(0, line.find_first_of(":,"))) == line);
}

std::string shown_outputs(const Graph& graph) {
  std::string out;
  for (ValueId v : graph.outputs())
    out += (out.empty() ? "" : " ") + std::string(graph.value_name(v));
  return out;
}

std::string in_module(
    const std::string& body,
    const std::string& parameters = "x: \"f32[4, 8]\", y: \"f32[4, 8]\", i: \"i64[3]\"") {
  return "class GraphModule(torch.nn.Module):\n    def forward(self, " + parameters +
         "):\n        " + body + "\n";
}

}  // namespace

TEST_CASE("forms: each is recognised and named", "[graph][fx][forms]") {
  const std::pair<std::string, std::string> cases[] = {
      {"listing", "str(graph) of torch.fx"},
      {"table", "print_tabular() of torch.fx"},
      {"dynamo", "Dynamo's graph, before AOT autograd"},
      {"split", "a split module of 3 pieces; AOT autograd"},
      {"export", "torch.export's text"},
      {"code", "gm.code: Python's calls without types"},
      {"joint", "AOT autograd's joint or backward graph"},
  };
  for (const auto& [file, form] : cases) {
    CAPTURE(file);
    ContextPtr context = library();
    CHECK(looks_like_fx(fixture(file)));
    CHECK(import_with(context, fixture(file)).report.form == form);
  }
  ContextPtr context = library();
  CHECK(import_with(context, text_of("tests/graph/fixtures/v2.fx.txt")).report.form ==
        "AOT autograd, functionalised (v2)");
}

TEST_CASE("forms: str(graph) has nodes with unquoted strings and devices", "[graph][fx][forms]") {
  ContextPtr context = library();
  FxImport fx = import_with(context, fixture("listing"));
  CHECK(line_of(fx.graph, "gelu") == "gelu: ? = gelu_tanh(gate)");
  CHECK(line_of(fx.graph, "full") ==
        "full: f32[4, 8] = full(){dtype = f32, shape = [4, 8], value = -inf}");
  CHECK(line_of(fx.graph, "gate").find("gate: ?, up: ? = split(addmm)") == 0);
  CHECK(line_of(fx.graph, "mul") == "mul: ? = mul(gelu, up)");
  CHECK(shown_outputs(fx.graph).find("getitem full scale") == 0);
}

TEST_CASE("forms: a listing of older PyTorch", "[graph][fx][forms]") {
  ContextPtr context = library();
  FxImport fx = import_with(context,
                            "graph(x, y : torch.Tensor):\n"
                            "    %add : [#users=1] = call_function[target=operator.add](args = "
                            "(%x, %y), kwargs = {})\n"
                            "    %relu : torch.Tensor [#users=1] = call_function[target=torch.ops."
                            "aten.relu.default](args = (%add,), kwargs = {})\n"
                            "    return relu\n");
  CHECK(shown_outputs(fx.graph) == "relu");
  CHECK(line_of(fx.graph, "add") == "add: ? = add(x, y)");
}

TEST_CASE("forms: a table's targets are Python's reprs", "[graph][fx][forms]") {
  ContextPtr context = library();
  FxImport fx = import_with(context, fixture("table"));
  CHECK(line_of(fx.graph, "sin") == "sin: ? = sin(linear)");
  CHECK(line_of(fx.graph, "gelu") == "gelu: ? = gelu_tanh(sin)");
  CHECK(line_of(fx.graph, "view") == "view: ? = reshape(gelu){shape = [-1, 4]}");
  CHECK(line_of(fx.graph, "relu") == "relu: ? = relu(getitem)");
  CHECK(error_of("opcode name target args kwargs\n---- ---- ----\nplaceholder x x\n") ==
        "this table does not have five columns");
}

TEST_CASE("forms: Dynamo's methods, operators and subscripts", "[graph][fx][forms]") {
  ContextPtr context = library();
  FxImport fx = import_with(context, fixture("dynamo"));
  CHECK(fx.report.opaque.empty());
  CHECK(fx.report.dropped.at("torch._C._set_grad_enabled") == 1);
  check_nodes(fx.graph,
              {"view: f32[s0, 4, 8] = reshape(y){shape = [s0, 4, 8]}",
               "last: f32[s0, 4, 4] = slice(view){dim = 2, end = 8, start = 4, step = 1}",
               "neg: f32[s0, 4, 4] = neg(last)", "turned: f32[s0, 4, 8] = cat(neg, first){dim = 2}",
               "row: f32[s0, 8] = embedding(L_self_buffers_table_, L_ids_)",
               "row_1: f32[s0, 1, 8] = reshape(row){shape = [s0, 1, 8]}",
               "flat: f32[s0, 32] = reshape(scaled){shape = [s0, 32]}"});
  CHECK(kinds(fx.graph).find("l_x_:input l_self_modules_fc_parameters_weight_:weight "
                             "L_self_modules_fc_parameters_bias_:weight "
                             "L_self_buffers_table_:buffer L_ids_:input") == 0);
}

TEST_CASE("forms: Dynamo's spelling and ATen's give one graph", "[graph][fx][forms]") {
  const std::pair<std::string, std::string> cases[] = {
      {"z = x.view(2, -1)", "z = torch.ops.aten.view.default(x, [2, -1])"},
      {"z = x.reshape((8, 4))", "z = torch.ops.aten.reshape.default(x, [8, 4])"},
      {"z = x.permute(1, 0)", "z = torch.ops.aten.permute.default(x, [1, 0])"},
      {"z = x.transpose(0, 1)", "z = torch.ops.aten.transpose.int(x, 0, 1)"},
      {"z = x.unsqueeze(-1)", "z = torch.ops.aten.unsqueeze.default(x, -1)"},
      {"z = x.mean(-1, keepdim = True)", "z = torch.ops.aten.mean.dim(x, [-1], True)"},
      {"z = x.float()", "z = torch.ops.aten.alias.default(x)"},
      {"z = x.to(torch.bfloat16)", "z = torch.ops.aten.to.dtype(x, torch.bfloat16)"},
      {"z = x.to(device(type='cpu'), torch.float16)",
       "z = torch.ops.aten.to.dtype(x, torch.float16)"},
      {"z = x.expand(2, -1, -1)", "z = torch.ops.aten.expand.default(x, [2, -1, -1])"},
      {"z = x + y", "z = torch.ops.aten.add.Tensor(x, y)"},
      {"z = x @ y.t()", "t = torch.ops.aten.t.default(y); z = torch.ops.aten.mm.default(x, t)"},
      {"z = torch.add(x, y, alpha = 2)", "z = torch.ops.aten.add.Tensor(x, y, alpha = 2)"},
      {"z = -x", "z = torch.ops.aten.neg.default(x)"},
      {"z = torch.rsqrt(x)", "z = torch.ops.aten.rsqrt.default(x)"},
      {"z = x.pow(2)", "z = torch.ops.aten.pow.Tensor_Scalar(x, 2)"},
      {"z = operator.mul(x, y)", "z = torch.ops.aten.mul.Tensor(x, y)"},
      {"z = torch.where(x > 0, x, y)",
       "g = torch.ops.aten.gt.Scalar(x, 0); z = torch.ops.aten.where.self(g, x, y)"},
      {"z = x[1]", "z = torch.ops.aten.select.int(x, 0, 1)"},
      {"z = x[:, 2:4]", "z = torch.ops.aten.slice.Tensor(x, 1, 2, 4)"},
      {"z = x[(Ellipsis, slice(None, 4, None))]", "z = torch.ops.aten.slice.Tensor(x, 1, None, 4)"},
      {"z = x[(None, slice(None, None, None), 3)]",
       "u = torch.ops.aten.unsqueeze.default(x, 0); z = torch.ops.aten.select.int(u, 2, 3)"},
      {"z = x[i]", "z = torch.ops.aten.index.Tensor(x, [i])"},
      {"z = x[(slice(None, None, None), i)]", "z = torch.ops.aten.index.Tensor(x, [None, i])"},
      {"z = torch.nn.functional.embedding(i, x)", "z = torch.ops.aten.embedding.default(x, i)"},
      {"z = torch.nn.functional.dropout(x, 0.1, False, False)",
       "z = torch.ops.aten.detach.default(x)"},
      {"s = x.shape; z = y.view(s[1], s[0])", "z = torch.ops.aten.view.default(y, [8, 4])"},
      {"s = x.size(); z = y.reshape(s[:1] + (2, 4))",
       "z = torch.ops.aten.view.default(y, [4, 2, 4])"},
      {"n = x.dim() + x.numel() // 16; z = y.view(n, -1)",
       "z = torch.ops.aten.view.default(y, [4, -1])"},
      {"a, b = x.chunk(2, -1); z = a * b",
       "c = torch.ops.aten.chunk.default(x, 2, -1); a = c[0]; b = c[1]; z = "
       "torch.ops.aten.mul.Tensor(a, b)"},
      {"z = x * 2 + y * 3",
       "a = torch.ops.aten.mul.Tensor(x, 2); b = torch.ops.aten.mul.Tensor(y, 3); z = "
       "torch.ops.aten.add.Tensor(a, b)"},
      {"w = torch.neg(x); w += y; z = w",
       "w = torch.ops.aten.neg.default(x); torch.ops.aten.add_.Tensor(w, y); z = w"},
      {"w = torch.neg(x); w[:, 2:4] = 0; z = w",
       "w = torch.ops.aten.neg.default(x); v = torch.ops.aten.slice.Tensor(w, 1, 2, 4); f = "
       "torch.ops.aten.fill_.Scalar(v, 0); z = w"},
      {"w = torch.neg(x); w[(Ellipsis, slice(4, None, None))] = y[:, :4]; z = w",
       "w = torch.ops.aten.neg.default(x); v = torch.ops.aten.slice.Tensor(w, 1, 4, None); u = "
       "torch.ops.aten.slice.Tensor(y, 1, None, 4); f = torch.ops.aten.copy_.default(v, u); z = w"},
  };
  // Names of values in between differ: nodes are compared by op, types and attributes.
  auto shape_of = [](const std::string& body) {
    ContextPtr context = library();
    FxImport fx = import_with(context, in_module(body + "; return (z,)"));
    std::string out;
    for (NodeId n : fx.graph.order()) {
      out += fx.graph.op_of(n).name + context->attributes.print(fx.graph.attributes(n)) + " ";
      for (std::size_t r = 0; r < fx.graph.result_count(n); ++r)
        out += context->types.print(fx.graph.type(fx.graph.result(n, r))) + " ";
    }
    return out;
  };
  for (const auto& [python, aten] : cases) {
    CAPTURE(python);
    CHECK(shape_of(python) == shape_of(aten));
  }
}

TEST_CASE("forms: what no overload takes is kept under its own name", "[graph][fx][forms]") {
  ContextPtr context = library();
  FxImport fx = import_with(
      context, in_module("a = x.frobnicate(y, mode = 'fast')\n        b = torch.frobnicate(a)\n  "
                         "      c = self.norm(b)\n        return (c,)"));
  CHECK(fx.report.opaque == std::map<std::string, int>{{"method.frobnicate", 1},
                                                       {"self.norm", 1},
                                                       {"torch.frobnicate", 1}});
}

TEST_CASE("forms: precedence is Python's", "[graph][fx][forms]") {
  ContextPtr context = library();
  FxImport fx = import_with(
      context, in_module("a = 2 + 3 * 4 - 6 // 4 ** 1\n        b = (2 + 3) * -2 + 14\n        z = "
                         "torch.ops.aten.view.default(x, [a - 9, b + 4])\n        return (z,)"));
  // 2 + 12 - 1 = 13; 5 * -2 + 14 = 4.
  CHECK(context->types.print(fx.graph.type(fx.graph.outputs()[0])) == "f32[4, 8]");
}

TEST_CASE("forms: printed module stacks are groups", "[graph][fx][forms]") {
  const FxImport fx = import_with(
      library(),
      in_module(
          "# nn_module_stack: {'7': (\"L['self'].layers.0\", <class 'm.Layer'>), '8': "
          "(\"L['self'].layers.0.act\", <class 'm.Act'>)} # File: m.py:3 in forward, code: y\n"
          "        a = torch.ops.aten.relu.default(x)\n"
          "        b = torch.ops.aten.neg.default(a)\n\n"
          "        # File: m.py:9 in forward, code: return b\n"
          "        c = torch.ops.aten.abs.default(b)\n        return (c,)"));
  const auto node = [&](std::string_view value) {
    return fx.graph.producer(fx.graph.find_value(value));
  };
  CHECK(fx.graph.group(node("a")) == "layers.0.act");
  CHECK(fx.graph.source(node("b")) == "m.py:3");
  CHECK(fx.graph.group(node("b")) == "layers.0.act");
  CHECK(fx.graph.group(node("c")).empty());
  fx::ModuleStack stack;
  stack.enter("1", "L['self']._modules['blocks']._modules['0']");
  stack.enter("2@1", "L['self'].blocks[0].norm");
  CHECK(stack.group() == "blocks.0.norm@1");
}

TEST_CASE("forms: calls are grouped by the modules of their weights", "[graph][fx][forms]") {
  const std::string text =
      "ExportedProgram:\n    class GraphModule(torch.nn.Module):\n        def forward(self, "
      "p_l_0_norm_w: \"f32[8]\", p_l_0_up_w: \"f32[8, 8]\", p_l_1_norm_w: \"f32[8]\", b_t: "
      "\"f32[8]\", x: \"f32[4, 8]\"):\n"
      "            # File: m.py:3 in forward, code: s = x * x\n"
      "            s = torch.ops.aten.mul.Tensor(x, x)\n"
      "            # File: m.py:4 in forward, code: return s * self.w\n"
      "            n = torch.ops.aten.mul.Tensor(s, p_l_0_norm_w)\n"
      "            # File: m.py:20 in forward, code: t = n * self.t\n"
      "            t = torch.ops.aten.mul.Tensor(n, b_t)\n"
      "            # File: linear.py:9 in forward, code: return F.linear(x, self.w)\n"
      "            u = torch.ops.aten.mm.default(t, p_l_0_up_w)\n"
      "            # File: m.py:21 in forward, code: r = x + u\n"
      "            r = torch.ops.aten.add.Tensor(x, u)\n"
      "            # File: m.py:3 in forward, code: s = x * x\n"
      "            s1 = torch.ops.aten.mul.Tensor(r, r)\n"
      "            # File: m.py:4 in forward, code: return s * self.w\n"
      "            n1 = torch.ops.aten.mul.Tensor(s1, p_l_1_norm_w)\n"
      "            # File: m.py:20 in forward, code: t = n * self.t\n"
      "            t1 = torch.ops.aten.mul.Tensor(n1, b_t)\n"
      "            return (t1,)\n\nGraph signature:\n    # inputs\n"
      "    p_l_0_norm_w: PARAMETER target='l.0.norm.w'\n"
      "    p_l_0_up_w: PARAMETER target='l.0.up.w'\n"
      "    p_l_1_norm_w: PARAMETER target='l.1.norm.w'\n"
      "    b_t: BUFFER target='l.0.rope.t' persistent=False\n    x: USER_INPUT\n";
  const FxImport fx = import_with(library(), text);
  const auto group = [&](std::string_view value) {
    return std::string(fx.graph.group(fx.graph.producer(fx.graph.find_value(value))));
  };
  CHECK(group("s") == "l.0.norm");  // by its line of source
  CHECK(group("n") == "l.0.norm");
  CHECK(group("t") == "l.0.rope");
  CHECK(group("u") == "l.0.up");
  CHECK(group("r") == "l.0");  // between two layers
  CHECK(group("s1") == "l.1.norm");
  CHECK(group("n1") == "l.1.norm");
  CHECK(group("t1").empty());  // layers share the buffer

  const FxImport dynamo = import_with(
      library(), in_module("w = L_self_modules_layers_modules_0_modules_up_parameters_weight_\n"
                           "        d = torch._C._autograd._get_data_attr(w)\n"
                           "        y = torch._C._nn.linear(x, d, None)\n        return (y,)",
                           "x: \"f32[4, 8]\", "
                           "L_self_modules_layers_modules_0_modules_up_parameters_weight_: "
                           "\"f32[8, 8]\""));
  CHECK(dynamo.graph.group(dynamo.graph.producer(dynamo.graph.find_value("y"))) == "layers.0.up");
}

TEST_CASE("forms: submodules are inlined, with their path as the group", "[graph][fx][forms]") {
  ContextPtr context = library();
  FxImport fx = import_with(context, fixture("split"));
  CHECK(fx.report.opaque.empty());
  auto group = [&](std::string_view value) {
    return std::string(fx.graph.group(fx.graph.producer(fx.graph.find_value(value))));
  };
  CHECK(group("mm") == "submod_0");
  CHECK(group("submod_0_inner_mm") == "submod_0.inner");
  CHECK(group("relu_") == "submod_1");
  CHECK(group("submod_2_mm") == "submod_2");
  // What submod_1 writes is read by submod_2.
  check_nodes(fx.graph, {"mm: f32[s0, 8] = mm(x, w)", "submod_0_inner_mm: f32[s0, 8] = neg(view)",
                         "relu_: f32[s0, 8] = relu(submod_0_inner_mm)",
                         "submod_2_mm: f32[s0, 8] = add(view, relu_)"});
  CHECK(context->types.print(fx.graph.type(fx.graph.outputs()[0])) == "f32[8*s0]");
  CHECK(fx.graph.source(fx.graph.producer(fx.graph.find_value("mm"))) == "model.py:3");
}

TEST_CASE("forms: submodules of higher-order ops, and twice the same", "[graph][fx][forms]") {
  ContextPtr context = library();
  FxImport fx = import_with(
      context,
      "class GraphModule(torch.nn.Module):\n"
      "    def forward(self, x: \"f32[4]\"):\n"
      "        submod = self.submod\n"
      "        a = torch.ops.higher_order.wrap_with_set_grad_enabled(False, submod, x)\n"
      "        b = self.submod(a[0])\n"
      "        return (b[0],)\n"
      "    class submod(torch.nn.Module):\n"
      "        def forward(self, x: \"f32[4]\"):\n"
      "            neg: \"f32[4]\" = torch.ops.aten.neg.default(x)\n"
      "            return (neg,)\n");
  check_nodes(fx.graph, {"neg: f32[4] = neg(x)", "submod_neg: f32[4] = neg(neg)"});
  CHECK(shown_outputs(fx.graph) == "submod_neg");
  CHECK(error_of("class A(torch.nn.Module):\n    def forward(self, x):\n        y = self.b(x, x)\n"
                 "        return y\n    class b(torch.nn.Module):\n        def forward(self, x):\n"
                 "            return x\n") == "`b` takes 1 arguments, but gets 2");
}

TEST_CASE("forms: torch.export states kinds and ranges", "[graph][fx][forms]") {
  ContextPtr context = library();
  FxImport fx = import_with(context, fixture("export"));
  CHECK(kinds(fx.graph) ==
        "p_fc_weight:weight p_fc_bias:weight b_scale:buffer c_one:weight x:input w_like:input");
  CHECK(fx.report.guessed.empty());
  CHECK(fx.report.opaque.empty());
  CHECK(fx.report.dropped.size() == 2);
  REQUIRE(fx.graph.facts.find("s77"));
  CHECK(fx.graph.facts.find("s77")->min == 2);
  CHECK(fx.graph.facts.find("s77")->max == 512);
}

TEST_CASE("forms: a log's graphs are found, and one is chosen", "[graph][fx][forms]") {
  const std::string log = fixture("log");
  ContextPtr context = library();
  Result<FxImport> all = import_fx(context, log, {});
  REQUIRE_FALSE(all);
  CHECK(all.error()[0].message == "this text has 4 graphs; choose one with --graph N");
  CHECK(all.error()[0].help.find("2: Forward graph 0, about") != std::string::npos);
  const std::pair<std::size_t, std::string> cases[] = {
      {1, "y: f32[s77, 8] = sin(l_x_)"},
      {2, "sin: f32[s77, 8] = sin(arg1_1)"},
      {3, "neg: f32[4] = neg(arg0_1)"},
      {4, "mul: f32[2, 8] = mul(primals_1, primals_2)"},
  };
  for (const auto& [number, line] : cases) {
    CAPTURE(number);
    FxOptions options;
    options.graph = number;
    FxImport fx = import_with(context, log, options);
    check_nodes(fx.graph, {line});
    CHECK(fx.graph.node_count() == 1);
  }
  FxOptions beyond;
  beyond.graph = 5;
  CHECK(error_of(log, beyond) == "this text has 4 graphs");
  FxOptions second;
  second.graph = 2;
  CHECK(import_with(context, log, second).report.form == "AOT autograd (2 of 4), from a log");
}

TEST_CASE("forms: a joint graph's inputs are those that it flattens", "[graph][fx][forms]") {
  ContextPtr context = library();
  FxImport fx = import_with(context, fixture("joint"));
  CHECK(kinds(fx.graph).find("primals_1:") == 0);
  CHECK(fx.graph.inputs().size() == 3);
  CHECK(shown_outputs(fx.graph) == "relu mul primals_2");
}

TEST_CASE("forms: files that are not FX text are named by their kind", "[graph][fx][forms]") {
  using namespace std::string_literals;
  const std::pair<std::string, std::string> cases[] = {
      {"PK\x03\x04\x14\0\0"s, "a zip file: torch.export's .pt2, or torch.save's?"},
      {"\x80\x02}q\0."s, "a pickle, as written by torch.save"},
      {"\x08\x0a\x12\x07pytorch\x3a\x10"s, "an ONNX file"},
      {"\x1f\x8b\x08\0"s, "a gzip file"},
      {"import torch\n\nx = torch.zeros(3)\n", "Python source, not a dump of a graph"},
      {"# Model\n\n```\nimport torch\n```\n", "a Markdown document"},
      {"class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n    def "
       "forward(self, "
       "x):\n        return x + 1\nm = M()\n",
       "Python source, not a dump of a graph"},
      {"graph(%x : Tensor):\n  %y : Tensor = aten::relu(%x)\n  return (%y)\n",
       "TorchScript's graph"},
      {"HloModule jit_f\n", "XLA's HLO"},
      {"module {\n  func.func @main() {}\n}\n", "MLIR"},
  };
  for (const auto& [text, known] : cases) {
    CAPTURE(known);
    CHECK(known_as(text) == known);
    CHECK_FALSE(looks_like_fx(text));
  }
  CHECK(error_of("PK\x03\x04").find("this is a zip file") == 0);
  CHECK(known_as(fixture("export")).empty());
  CHECK_FALSE(looks_like_fx("graph g {\n  in x: f32[4]\n  out x\n}\n"));
}

// ---- types, symbols and kinds

TEST_CASE("forms: values of other dtypes and annotations have no type", "[graph][fx][forms]") {
  ContextPtr context = library();
  FxImport fx = import_with(
      context,
      in_module("b: \"f32[4]\" = torch.ops.aten.neg.default(x)\n        return (b, h, c)",
                "x: \"f32[4]\", h: \"i16[4]\", c: \"c64[4][1]cuda:0\", n : torch.Tensor, l : "
                "vllm_utils_torch_utils_LayerName, o : Optional[torch.Tensor]"));
  for (const char* name : {"h", "c", "n", "l", "o"})
    CHECK(context->types.print(fx.graph.type(fx.graph.find_value(name))) == "?");
  CHECK(fx.report.notes ==
        std::vector<std::string>{"i16 is not a supported dtype: its values stay without a type",
                                 "c64 is not a supported dtype: its values stay without a type"});
}

TEST_CASE("forms: symbols as torch prints them", "[graph][fx][forms]") {
  ContextPtr context = library();
  FxImport fx = import_with(
      context,
      in_module("floordiv: \"Sym((s0//(-4)))\" = s0 // -4\n"
                "        neg: \"Sym(-((s0//(-4))))\" = -floordiv\n"
                "        top = torch.sym_max(4, s0)\n"
                "        a: \"f32[(s0//2), 4]\" = torch.ops.aten.slice.Tensor(x, 0, 0, -1, 2)\n"
                "        b: \"f32[-4*((s0//(-4))), 2]\" = torch.ops.aten.full.default([neg * 4, "
                "2], 1.0, dtype = torch.float32)\n"
                "        c: \"f32[Max(4, s0), 2]\" = torch.ops.aten.full.default([top, 2], 1.0, "
                "dtype = torch.float32)\n"
                "        return (a, b, c)",
                "s0: \"Sym(s0)\", x: \"f32[s0, 4]\""));
  CHECK(context->types.print(fx.graph.type(fx.graph.find_value("c"))) == "f32[max(4, s0), 2]");
  const std::string pwg = print_pwg(fx.graph), json = graph_to_json(fx.graph);
  ContextPtr other = library();
  Result<Graph> back = parse_graph(other, pwg, "g.pwg");
  if (!back) FAIL(messages(back.error(), *other));
  CHECK(print_pwg(*back) == pwg);
  Result<Graph> again = graph_from_json(other, json, "g.json", parse_op);
  if (!again) FAIL(messages(again.error(), *other));
  CHECK(graph_to_json(*again) == json);
}

TEST_CASE("forms: several symbols become one", "[graph][fx][forms]") {
  const std::string text = in_module(
      "q: \"f32[s72, 8]\" = torch.ops.aten.neg.default(x)\n"
      "        r: \"f32[s72, 8]\" = torch.ops.aten.mul.Tensor(q, y)\n        return (r,)",
      "arg0_1: \"Sym(s72)\", arg1_1: \"Sym(s80)\", x: \"f32[s72, 8]\", y: \"f32[s80, 8]\", i: "
      "\"i64[s80]\"");
  ContextPtr context = library();
  FxOptions options;
  options.symbols = {{"n", {{"x", 0}, {"i", 0}}}};
  FxImport fx = import_with(context, text, options);
  check_nodes(fx.graph, {"r: f32[n, 8] = mul(q, y)"});
  CHECK(fx.graph.facts.tokens() == "n");
  CHECK(fx.graph.facts.symbols.size() == 1);
  options.symbols = {{"s80", {{"x", 0}}}};
  CHECK(error_of(text, options) == "the dump already has a symbol `s80`");
  options.symbols = {{"n", {{"x", 0}, {"x", 1}}}};
  CHECK(error_of(text, options) == "one dim is 8, but another is a symbol");
  options.symbols = {{"n", {{"x", 0}}}, {"m", {{"x", 0}}}};
  CHECK(error_of(text, options) == "this dim is already called `n`");
}

TEST_CASE("forms: kinds that are requested come before those that are guessed",
          "[graph][fx][forms]") {
  ContextPtr context = library();
  FxOptions options;
  options.kinds = {{"x", InputKind::input}, {"i", InputKind::buffer}};
  FxImport fx = import_with(context, in_module("z = x + y; return (z,)"), options);
  CHECK(kinds(fx.graph) == "x:input y:weight i:buffer");
  CHECK(fx.report.guessed ==
        std::vector<std::pair<std::string, InputKind>>{{"y", InputKind::weight}});
  options.kinds = {{"xx", InputKind::weight}};
  CHECK(error_of(in_module("return x"), options) == "there is no input `xx`");
}

// ---- real dumps, where they are at hand

TEST_CASE("forms: vLLM 0.33's texts import whole", "[graph][fx][forms]") {
  const std::string folder = shared_dump("vllm-0.33");
  if (folder.empty()) return;
  std::size_t texts = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".txt") continue;
    CAPTURE(entry.path().string());
    ContextPtr context = library();
    FxImport fx = import_with(context, text_of(entry.path().string()));
    CHECK(fx.report.nodes >= 3);
    ++texts;
  }
  CHECK(texts == 41);
}
