// Writes in a dump: what is read afterwards, under whatever name, is what was written.
#include "graph/text/graph_json.hpp"
#include "graph/verify.hpp"
#include "import/fx/fx.hpp"
#include "tests/graph/library.hpp"

using namespace pw;
using namespace pw::test;

namespace {

Result<FxImport> import_body(const ContextPtr& context, const std::string& parameters,
                             const std::string& body) {
  FxOptions options;
  options.file = "dump.fx.txt";
  return import_fx(
      context,
      "class M(torch.nn.Module):\n    def forward(self, " + parameters + "):\n" + body + "\n",
      options);
}

FxImport imported(const ContextPtr& context, const std::string& parameters,
                  const std::string& body) {
  Result<FxImport> fx = import_body(context, parameters, body);
  if (!fx) FAIL(messages(fx.error(), *context));
  CHECK(messages(verify(fx->graph), *context) == "");
  return std::move(*fx);
}

/// A value as the calls that compute it: `add(neg(x), 2)`, `f(x).1`. All views except slices are
/// left out.
std::string made(const Graph& graph, ValueId v) {
  if (!v.valid()) return "none";
  if (graph.is_input(v)) return std::string(graph.value_name(v));
  const NodeId n = graph.producer(v);
  const std::string& op = graph.op_of(n).name;
  if (op == "constant") return graph.context().attributes.print(*graph.attribute(n, "value"));
  if (op == "reshape" || op == "detach" || op == "transpose")
    return made(graph, graph.operand(n, 0));
  std::string out = op + "(";
  for (std::size_t i = 0; i < graph.operand_count(n); ++i)
    out += (i ? ", " : "") + made(graph, graph.operand(n, i));
  if (op == "slice" || op == "slice_scatter")
    for (const char* bound : {"start", "end"})
      out += ", " + graph.context().attributes.print(*graph.attribute(n, bound));
  out += ")";
  if (graph.result_count(n) > 1) out += "." + std::to_string(graph.result_index(v));
  return out;
}

std::vector<std::string> outputs(const Graph& graph) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < graph.returned_count(); ++i)
    out.push_back(made(graph, graph.outputs()[i]));
  return out;
}

std::map<std::string, std::string> written(const Graph& graph) {
  std::map<std::string, std::string> out;
  for (std::size_t i = 0; i < graph.written_inputs().size(); ++i)
    out[std::string(graph.value_name(graph.written_inputs()[i]))] =
        made(graph, graph.outputs()[graph.returned_count() + i]);
  return out;
}

using Outputs = std::vector<std::string>;
using Written = std::map<std::string, std::string>;

}  // namespace

TEST_CASE("fx memory: a write through a view reaches what it is a view of", "[graph][fx]") {
  ContextPtr context = library();
  FxImport fx = imported(context, "x: \"f32[4, 8]\"", R"(
        h: "f32[4, 8]" = torch.ops.aten.neg.default(x)
        before: "f32[4, 8]" = torch.ops.aten.relu.default(h)
        view: "f32[4, 2, 4]" = torch.ops.aten.view.default(h, [4, 2, 4])
        mul_: "f32[4, 2, 4]" = torch.ops.aten.mul_.Scalar(view, 2.0);  mul_ = None
        after: "f32[4, 8]" = torch.ops.aten.relu.default(h)
        return (before, after))");
  CHECK(outputs(fx.graph) == Outputs{"relu(neg(x))", "relu(mul(neg(x), 2.0))"});
  CHECK(written(fx.graph).empty());
}

TEST_CASE("fx memory: a write into a base reaches its views, and views of these", "[graph][fx]") {
  ContextPtr context = library();
  FxImport fx = imported(context, "x: \"f32[4, 8]\"", R"(
        h: "f32[4, 8]" = torch.ops.aten.neg.default(x)
        rows: "f32[2, 8]" = torch.ops.aten.slice.Tensor(h, 0, 1, 3)
        t: "f32[8, 2]" = torch.ops.aten.t.default(rows)
        add_ = torch.ops.aten.add_.Tensor(h, 1.0);  add_ = None
        y: "f32[8, 2]" = torch.ops.aten.relu.default(t)
        return (y,))");
  CHECK(outputs(fx.graph) == Outputs{"relu(slice(add(neg(x), 1.0), 1, 3))"});
}

TEST_CASE("fx memory: parts that do not overlap stay as they were", "[graph][fx]") {
  ContextPtr context = library();
  FxImport fx = imported(context, "x: \"f32[4, 8]\"", R"(
        h: "f32[4, 8]" = torch.ops.aten.neg.default(x)
        split = torch.ops.aten.split.Tensor(h, 4, 1)
        a: "f32[4, 4]" = split[0]
        b: "f32[4, 4]" = split[1]
        add_ = torch.ops.aten.add_.Tensor(a, 1.0);  add_ = None
        mul: "f32[4, 4]" = torch.ops.aten.mul.Tensor(a, b)
        relu: "f32[4, 8]" = torch.ops.aten.relu.default(h)
        return (mul, relu))");
  CHECK(outputs(fx.graph) ==
        Outputs{"mul(add(split(neg(x)).0, 1.0), split(neg(x)).1)",
                "relu(slice_scatter(neg(x), add(split(neg(x)).0, 1.0), 0, 4))"});
}

TEST_CASE("fx memory: a clone is memory of its own", "[graph][fx]") {
  ContextPtr context = library();
  FxImport fx = imported(context, "x: \"f32[4]\"", R"(
        relu: "f32[4]" = torch.ops.aten.relu.default(x)
        clone: "f32[4]" = torch.ops.aten.clone.default(relu)
        add_: "f32[4]" = torch.ops.aten.add_.Tensor(clone, 1.0);  add_ = None
        return (relu, clone))");
  CHECK(outputs(fx.graph) == Outputs{"relu(x)", "add(relu(x), 1.0)"});
  CHECK(fx.graph.value_name(fx.graph.outputs()[0]) == "relu");
  CHECK(fx.graph.value_name(fx.graph.outputs()[1]) == "clone");
}

TEST_CASE("fx memory: inputs that are written hold it at the end", "[graph][fx]") {
  ContextPtr context = library();
  FxImport fx = imported(context, "x: \"f32[4, 8]\", y: \"f32[4, 8]\"", R"(
        row: "f32[8]" = torch.ops.aten.select.int(x, 0, 2)
        fill_ = torch.ops.aten.fill_.Scalar(row, 3.0);  fill_ = None
        neg: "f32[4, 8]" = torch.ops.aten.neg.default(y)
        return (neg,))");
  CHECK(outputs(fx.graph) == Outputs{"neg(y)"});
  CHECK(written(fx.graph) == Written{{"x", "slice_scatter(x, full(), 2, 3)"}});
}

TEST_CASE("fx memory: an unknown op may write all it is given", "[graph][fx]") {
  ContextPtr context = library();
  FxImport fx = imported(context, "x: \"f32[4, 8]\", w: \"f32[8]\"", R"(
        buf: "f32[4, 8]" = torch.ops.aten.zeros.default([4, 8])
        view: "f32[32]" = torch.ops.aten.view.default(buf, [32])
        out = torch.ops.mylib.norm.default(view, x, None, w);  out = None
        neg: "f32[4, 8]" = torch.ops.aten.neg.default(buf)
        return (neg,))");
  CHECK(outputs(fx.graph) == Outputs{"neg(mylib.norm.default(full(), x, w).0)"});
  CHECK(written(fx.graph) == Written{{"x", "mylib.norm.default(full(), x, w).1"},
                                     {"w", "mylib.norm.default(full(), x, w).2"}});
  const Graph& g = fx.graph;
  NodeId call;
  for (NodeId n : g.order())
    if (g.op_of(n).name == "mylib.norm.default") call = n;
  CHECK(g.op_of(call).traits.effect);
  CHECK(context->attributes.print(g.attributes(call)) ==
        R"({call = "%0, %1, None, %2", writes = [0, 1, 2]})");
}

TEST_CASE("fx memory: a tensor that stands twice in a call is one", "[graph][fx]") {
  const ContextPtr context = library();
  const FxImport fx = imported(context, "x: \"f32[2]\", w: \"f32[2]\"",
                               "        clone = torch.ops.aten.clone.default(x)\n"
                               "        f = torch.ops.mine.f.default(x, w, x, clone);  f = None\n"
                               "        return (x, clone)");
  const Graph& graph = fx.graph;
  NodeId call;
  for (NodeId n = graph.first(); n.valid(); n = graph.next(n))
    if (graph.op_of(n).name == "mine.f.default") call = n;
  REQUIRE(call.valid());
  CHECK(graph.context().attributes.print(*graph.attribute(call, "call")) == "\"%0, %1, %0, %3\"");
  CHECK(graph.context().attributes.print(*graph.attribute(call, "writes")) == "[0, 1, 3]");
}

TEST_CASE("fx memory: what PyTorch's schema calls pure has no effect", "[graph][fx]") {
  ContextPtr context = library();
  FxImport fx = imported(context, "x: \"f32[4, 8]\"", R"(
        gamma: "f32[4, 8]" = torch.ops.aten.digamma.default(x)
        put: "f32[4, 8]" = torch.ops.aten.digamma_.default(gamma)
        rand: "f32[4]" = torch.ops.aten.rand.default([4])
        return (gamma, rand, x))");
  CHECK(outputs(fx.graph) ==
        Outputs{"aten.digamma_.default(aten.digamma.default(x))", "aten.rand.default()", "x"});
  CHECK(written(fx.graph).empty());
  for (NodeId n : fx.graph.order())
    CHECK(fx.graph.op_of(n).traits.effect == (fx.graph.op_of(n).name == "aten.rand.default"));
}

TEST_CASE("fx memory: out-variants write their buffer", "[graph][fx]") {
  ContextPtr context = library();
  FxImport fx = imported(context, "x: \"f32[4]\", y: \"f32[4]\"", R"(
        buf: "f32[4]" = torch.ops.aten.empty.memory_format([4], dtype = torch.float32)
        same: "f32[4]" = torch.ops.aten.detach.default(buf)
        add = torch.ops.aten.add.out(x, y, out = buf);  add = None
        return (same,))");
  CHECK(outputs(fx.graph) == Outputs{"add(x, y)"});
}

TEST_CASE("fx memory: a strided part is put back among its neighbours", "[graph][fx]") {
  ContextPtr context = library();
  FxImport fx = imported(context, "x: \"f32[7]\"", R"(
        odd: "f32[3]" = torch.ops.aten.slice.Tensor(x, 0, 1, 7, 2)
        zero_ = torch.ops.aten.zero_.default(odd);  zero_ = None
        return ())");
  // 1 before, groups of two whose first is new, the last new one, 1 behind.
  REQUIRE(written(fx.graph).contains("x"));
  CHECK(written(fx.graph)["x"] ==
        "cat(slice(x, 0, 1), cat(slice(full(), 0, 2), slice(slice(x, 1, 5), 1, 2)), "
        "slice(full(), 2, 3), slice(x, 6, 7))");
}

TEST_CASE("fx memory: what cannot be determined is refused with the op's name", "[graph][fx]") {
  ContextPtr context = library();
  Result<FxImport> shown_twice = import_body(context, "x: \"f32[1, 8]\"", R"(
        e: "f32[4, 8]" = torch.ops.aten.expand.default(x, [4, 8])
        add_ = torch.ops.aten.add_.Tensor(e, 1.0);  add_ = None
        return (x,))");
  REQUIRE_FALSE(shown_twice);
  CHECK(shown_twice.error()[0].message.find("expand") != std::string::npos);
  Result<FxImport> strided = import_body(context, "x: \"f32[8]\"", R"(
        d: "f32[2]" = torch.ops.aten.as_strided.default(x, [2], [3])
        add_ = torch.ops.aten.add_.Tensor(d, 1.0);  add_ = None
        return (x,))");
  REQUIRE_FALSE(strided);
  CHECK(strided.error()[0].message.find("as_strided") != std::string::npos);
}

TEST_CASE("fx memory: without types a write through a reshape is kept, and reported",
          "[graph][fx]") {
  ContextPtr context = library();
  FxImport fx = imported(context, "x", R"(
        view = torch.ops.aten.view.default(x, [2, 8])
        add_ = torch.ops.aten.add_.Tensor(view, 1.0);  add_ = None
        neg = torch.ops.aten.neg.default(x)
        return (neg,))");
  CHECK(outputs(fx.graph) == Outputs{"neg(write_through_view(add(x, 1.0)))"});
  CHECK(fx.report.opaque.contains("write_through_view"));
  CHECK(fx.report.reasons.size() == 1);
}

TEST_CASE("fx memory: a graph with written inputs reads back the same", "[graph][fx]") {
  ContextPtr context = library();
  FxImport fx = imported(context, "x: \"f32[4]\"", R"(
        add_: "f32[4]" = torch.ops.aten.add_.Tensor(x, 1.0)
        return (add_,))");
  CHECK(written(fx.graph) == Written{{"x", "add(x, 1.0)"}});
  const std::string json = graph_to_json(fx.graph);
  Result<Graph> again = graph_from_json(library(), json, "g.json", parse_op);
  REQUIRE(again);
  CHECK(written(*again) == written(fx.graph));
  CHECK(graph_to_json(*again) == json);
}
