// Calls without an effect and calls that no output reads are left out, so that one model is one
// graph however it was traced.
#include "graph/text/graph_json.hpp"
#include "graph/verify.hpp"
#include "import/fx/fx.hpp"
#include "tests/graph/library.hpp"

using namespace pw;
using namespace pw::test;

namespace {

using Counts = std::map<std::string, int>;
using Lines = std::vector<std::string>;

FxImport imported(const ContextPtr& context, const std::string& body, bool keep_idle = false) {
  FxOptions options;
  options.file = "dump.fx.txt";
  options.keep_idle = keep_idle;
  Result<FxImport> fx = import_fx(context,
                                  "class M(torch.nn.Module):\n"
                                  "    def forward(self, x: \"f32[4, 8]\", mask: \"b8[4, 4]\"):\n" +
                                      body + "\n",
                                  options);
  if (!fx) FAIL(messages(fx.error(), *context));
  CHECK(messages(verify(fx->graph), *context) == "");
  return std::move(*fx);
}

std::string output(const Graph& graph, std::size_t i = 0) {
  return std::string(graph.value_name(graph.outputs()[i]));
}

}  // namespace

TEST_CASE("fx: calls without an effect are left out", "[graph][fx]") {
  const ContextPtr context = library();
  const std::string body = R"(
        relu: "f32[4, 8]" = torch.ops.aten.relu.default(x)
        drop: "f32[4, 8]" = torch.ops.aten.dropout.default(relu, 0.1, False)
        same: "f32[4, 8]" = torch.ops.aten.to.dtype(drop, torch.float32)
        copy: "f32[4, 8]" = torch.ops.aten.clone.default(same)
        neg: "f32[4, 8]" = torch.ops.aten.neg.default(copy)
        last: "f32[4, 8]" = torch.ops.aten.dropout.default(neg, 0.1, False)
        return last)";
  const FxImport fx = imported(context, body);
  CHECK(describe(fx.graph) == Lines{"relu: f32[4, 8] = relu(x)", "last: f32[4, 8] = neg(relu)"});
  CHECK(fx.report.nodes == 2);
  CHECK(fx.report.dropped == Counts{{"detach", 3}, {"clone", 1}});
  CHECK(fx.report.unread.empty());
  CHECK(fx.report.aliases.at("copy") == "relu");
  CHECK(fx.report.aliases.at("drop") == "relu");
  CHECK(fx.report.aliases.at("neg") == "last");
  CHECK(imported(context, body, true).report.nodes == 6);
}

TEST_CASE("fx: calls that no output reads are left out", "[graph][fx]") {
  const ContextPtr context = library();
  const FxImport fx = imported(context, R"(
        relu: "f32[4, 8]" = torch.ops.aten.relu.default(x)
        arange: "i64[4]" = torch.ops.aten.arange.default(4)
        unsqueeze: "i64[1, 4]" = torch.ops.aten.unsqueeze.default(arange, 0)
        add: "f32[4, 8]" = torch.ops.aten.add.Tensor(relu, 2)
        return relu)");
  CHECK(describe(fx.graph) == Lines{"relu: f32[4, 8] = relu(x)"});
  CHECK(fx.report.unread == Counts{{"iota", 1}, {"reshape", 1}, {"add", 1}});
  CHECK(fx.report.aliases.count("add") == 0);
}

TEST_CASE("fx: two returned tensors stay two", "[graph][fx]") {
  const ContextPtr context = library();
  const Graph copied = imported(context, R"(
        relu: "f32[4, 8]" = torch.ops.aten.relu.default(x)
        copy: "f32[4, 8]" = torch.ops.aten.clone.default(relu)
        return (relu, copy))")
                           .graph;
  CHECK(output(copied, 0) == "relu");
  CHECK(output(copied, 1) == "copy");
  CHECK(copied.node_count() == 2);
  const Graph viewed = imported(context, R"(
        relu: "f32[4, 8]" = torch.ops.aten.relu.default(x)
        view: "f32[4, 8]" = torch.ops.aten.detach.default(relu)
        return (relu, view))")
                           .graph;
  CHECK(viewed.node_count() == 2);
  const Graph own = imported(context, R"(
        copy: "f32[4, 8]" = torch.ops.aten.clone.default(x)
        view: "f32[4, 8]" = torch.ops.aten.detach.default(x)
        return (copy, view))")
                        .graph;
  CHECK(own.node_count() == 2);
}

TEST_CASE("fx: a copy that is written afterwards stays apart from its source", "[graph][fx]") {
  const ContextPtr context = library();
  const Graph graph = imported(context, R"(
        copy: "f32[4, 8]" = torch.ops.aten.clone.default(x)
        add_: "f32[4, 8]" = torch.ops.aten.add_.Tensor(copy, 1.0);  add_ = None
        neg: "f32[4, 8]" = torch.ops.aten.neg.default(x)
        return (copy, neg))")
                          .graph;
  CHECK(graph.written_inputs().empty());
  CHECK(describe(graph).back() == "neg: f32[4, 8] = neg(x)");
}

TEST_CASE("fx: a pool with one window is a mean, a mask of b8 one of numbers", "[graph][fx]") {
  const ContextPtr context = library();
  const auto ops = [&](const std::string& body) {
    Lines out;
    const Graph graph = imported(context, body).graph;
    for (const NodeId n : graph.order())
      if (!graph.op_of(n).is_literal()) out.push_back(graph.op_of(n).name);
    return out;
  };
  CHECK(ops(R"(
        image: "f32[1, 1, 4, 8]" = torch.ops.aten.view.default(x, [1, 1, 4, 8])
        pool: "f32[1, 1, 1, 1]" = torch.ops.aten.adaptive_avg_pool2d.default(image, [1, 1])
        return pool)") == Lines{"reshape", "mean", "mean"});
  CHECK(ops(R"(
        image: "f32[1, 1, 2, 2, 8]" = torch.ops.aten.view.default(x, [1, 1, 2, 2, 8])
        pool: "f32[1, 1, 1, 1, 1]" = torch.ops.aten.adaptive_avg_pool3d.default(image, [1, 1, 1])
        return pool)") == Lines{"reshape", "mean", "mean", "mean"});
  CHECK(ops(R"(
        image: "f32[1, 1, 4, 8]" = torch.ops.aten.view.default(x, [1, 1, 4, 8])
        pool: "f32[1, 1, 2, 1]" = torch.ops.aten.adaptive_avg_pool2d.default(image, [2, 1])
        return pool)") == Lines{"reshape", "adaptive_avg_pool"});
  CHECK(ops(R"(
        q: "f32[1, 1, 4, 8]" = torch.ops.aten.view.default(x, [1, 1, 4, 8])
        y: "f32[1, 1, 4, 8]" = torch.ops.aten.scaled_dot_product_attention.default(q, q, q, mask)
        return y)") == Lines{"reshape", "select", "expand", "scaled_attention"});
}
