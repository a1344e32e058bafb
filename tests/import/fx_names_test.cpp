// Names that Dynamo and Inductor print beside ATen's: what they become, and what stays unknown.
#include "graph/verify.hpp"
#include "import/fx/fx.hpp"
#include "tests/graph/library.hpp"

using namespace pw;
using namespace pw::test;

namespace {

Result<FxImport> import_names(const ContextPtr& context, const std::string& parameters,
                              const std::string& body) {
  FxOptions options;
  options.file = "dump.fx.txt";
  return import_fx(
      context,
      "class M(torch.nn.Module):\n    def forward(self, " + parameters + "):\n" + body + "\n",
      options);
}

FxImport imported_names(const ContextPtr& context, const std::string& parameters,
                        const std::string& body) {
  Result<FxImport> fx = import_names(context, parameters, body);
  if (!fx) FAIL(messages(fx.error(), *context));
  CHECK(messages(verify(fx->graph), *context) == "");
  return std::move(*fx);
}

std::string refusal(const std::string& parameters, const std::string& body) {
  const ContextPtr context = library();
  const Result<FxImport> fx = import_names(context, parameters, body);
  return fx ? "" : fx.error().front().code + ": " + fx.error().front().message;
}

/// Why an op of a dump stayed unknown.
std::string reason(const std::string& parameters, const std::string& body) {
  const FxImport fx = imported_names(library(), parameters, body);
  return fx.report.reasons.empty() ? "" : fx.report.reasons.begin()->first;
}

}  // namespace

TEST_CASE("fx: results are taken by key", "[graph][fx]") {
  const ContextPtr context = library();
  const FxImport fx = imported_names(context, "x: \"f32[4, 8]\"",
                                     R"(
        empty: "f32[4, 8]" = torch.ops.aten.empty.memory_format([4, 8], dtype = torch.float32)
        sums: "f32[4]" = torch.ops.aten.empty.memory_format([4], dtype = torch.float32)
        w = torch.ops.higher_order.triton_kernel_wrapper_functional(kernel_idx = 0, constant_args_idx = 0, grid = [(4, 1, 1)], tma_descriptor_metadata = {}, kwargs = {'in_ptr': x, 'out_ptr': empty, 'sum_ptr': sums}, tensors_to_clone = ['out_ptr', 'sum_ptr'])
        getitem: "f32[4]" = w['sum_ptr']
        getitem_1: "f32[4, 8]" = w['out_ptr'];  w = None
        relu: "f32[4, 8]" = torch.ops.aten.relu.default(getitem_1)
        return (relu, getitem))");
  CHECK(fx.report.opaque ==
        std::map<std::string, int>{{"higher_order.triton_kernel_wrapper_functional", 1}});
  const Graph& graph = fx.graph;
  const NodeId call = graph.producer(graph.find_value("getitem"));
  REQUIRE(call == graph.producer(graph.find_value("getitem_1")));
  CHECK(graph.result_index(graph.find_value("getitem")) == 0);
  CHECK(graph.result_count(call) == 2);  // and it writes nothing
  const Attribute* keys = graph.attribute(call, "keys");
  REQUIRE(keys);
  CHECK(std::get<std::vector<std::string>>(*keys) ==
        std::vector<std::string>{"sum_ptr", "out_ptr"});
  CHECK(graph.attribute(call, "writes") == nullptr);
}

TEST_CASE("fx: an op that depends on data is reported", "[graph][fx]") {
  const std::string size = "the size of its result depends on the contents of its operand";
  for (const char* call : {"torch.functional.unique(x)", "torch.ops.aten.nonzero.default(x)"}) {
    const std::string why =
        reason("x: \"f32[4]\"", std::string("        u = ") + call + "\n        return (u,)");
    CAPTURE(call, why);
    CHECK(why.find(size) != std::string::npos);
  }
}

TEST_CASE("fx: an equation of another form stays PyTorch's, with the reason", "[graph][fx]") {
  const std::string why =
      reason("x: \"f32[4, 4]\"", "        y = torch.einsum('ii->i', x)\n        return (y,)");
  CAPTURE(why);
  CHECK(why.find("a letter occurs twice in one term") != std::string::npos);
}

TEST_CASE("fx: a write that is seen through gathered elements is refused", "[graph][fx]") {
  const std::string unfold =
      "        w = torch.ops.aten.unfold.default(x, 0, 2, 1)\n"
      "        a = torch.ops.aten.add_.Tensor(%, 1.0)\n"
      "        y = torch.ops.aten.neg.default(^)\n        return (y,)";
  const auto with = [&](const std::string& written, const std::string& read) {
    std::string out = unfold;
    out.replace(out.find('%'), 1, written);
    return out.replace(out.find('^'), 1, read);
  };
  CHECK(refusal("x: \"f32[4]\"", with("w", "x")).starts_with("PW0516"));
  CHECK(refusal("x: \"f32[4]\"", with("x", "w")).starts_with("PW0516"));
  CHECK(refusal("x: \"f32[4]\"", with("x", "x")).empty());
}

TEST_CASE("fx: as_strided reads memory whose order is known", "[graph][fx]") {
  const std::string body =
      "        y: \"f32[8, 4]\" = torch.ops.aten.as_strided.default(x, [8, 4], [1, 8])\n"
      "        return (y,)";
  CHECK(reason("x: \"f32[4, 8]\"", body).empty());
  CHECK(reason("x: \"f32[4, 8][8, 1]cpu\"", body).empty());
  CHECK(reason("x: \"f32[4, 8][1, 4]cpu\"", body)
            .find("the memory layout of its operand is unknown") != std::string::npos);
}

TEST_CASE("fx: as_strided reads copies as their memory format has them", "[graph][fx]") {
  const auto read = [&](const std::string& made) {
    return reason("x: \"f32[4, 8, 1, 2]\"",
                  "        t: \"f32[8, 4, 1, 2]\" = torch.ops.aten.transpose.int(x, 0, 1)\n"
                  "        c: \"f32[8, 4, 1, 2]\" = " +
                      made + "\n" +
                      "        y: \"f32[3]\" = torch.ops.aten.as_strided.default(c, [3], [2], 1)\n"
                      "        return (y,)");
  };
  for (const char* row_major :
       {"torch.ops.aten.clone.default(t, memory_format = torch.contiguous_format)",
        "torch.ops.aten._to_copy.default(t, memory_format = torch.contiguous_format)",
        "torch.ops.aten.clone.default(x.view(8, 4, 1, 2), memory_format = "
        "torch.preserve_format)"}) {
    CAPTURE(row_major);
    CHECK(read(row_major).empty());
  }
  for (const char* other :
       {"torch.ops.aten.clone.default(t)",
        "torch.ops.aten.clone.default(t, memory_format = torch.preserve_format)",
        "torch.ops.aten.clone.default(x.view(8, 4, 1, 2), memory_format = torch.channels_last)",
        "torch.ops.aten.contiguous.default(x.view(8, 4, 1, 2), memory_format = "
        "torch.channels_last)"}) {
    CAPTURE(other);
    CHECK(read(other).find("the memory layout of its operand is unknown") != std::string::npos);
  }
}

TEST_CASE("fx: collectives in place write their operand, whoever names them", "[graph][fx]") {
  for (const char* call : {"torch.ops.sglang.inplace_all_reduce.default(h, group_name = 'tp:0')",
                           "torch.ops.vllm.inplace_all_reduce.default(h, 'tp:0')",
                           "torch.ops._c10d_functional.all_reduce_.default(h, 'sum', 'tp:0')"}) {
    const FxImport fx = imported_names(
        library(), "x: \"f32[4, 8]\"",
        std::string("        h = torch.ops.aten.neg.default(x)\n") + "        r = " + call +
            "\n        y = torch.ops.aten.relu.default(h)\n" + "        return (y,)");
    CAPTURE(call);
    CHECK(fx.report.opaque.empty());
    const NodeId relu = fx.graph.producer(fx.graph.outputs()[0]);
    CHECK(fx.graph.op_of(fx.graph.producer(fx.graph.operand(relu, 0))).name == "all_reduce");
  }
}
