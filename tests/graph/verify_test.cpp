#include "graph/verify.hpp"

#include "graph/build.hpp"
#include "tests/graph/library.hpp"

using namespace pw;
using namespace pw::test;

namespace {

struct Small {
  ContextPtr context = library();
  Graph graph{context, "small"};
  NodeId norm, parts, sum;

  Small() {
    Dims& dims = context->dims;
    DimId n = dims.symbol("n");
    ValueId x = graph.add_input("x", context->types.get(DType::bf16, {n, dims.constant(64)}),
                                InputKind::input);
    ValueId w = graph.add_input("w", context->types.get(DType::bf16, {dims.constant(64)}),
                                InputKind::weight);
    norm = add("rms_norm", {x, w}, {}, {"y"});
    parts = add("split", {graph.result(norm)},
                {{context->strings.intern("sizes"), Shape{dims.constant(32), dims.constant(32)}}},
                {"a", "b"});
    sum = add("add", {graph.result(parts, 0), graph.result(parts, 1)}, {}, {"c"});
    graph.add_output(graph.result(sum));
  }
  NodeId add(std::string_view op, std::vector<ValueId> operands, AttributeList attributes,
             std::vector<std::string> names) {
    NodeRequest request;
    request.op = context->ops.find(op);
    request.operands = std::move(operands);
    request.attributes = std::move(attributes);
    request.result_names = std::move(names);
    Result<NodeId> node = build_node(graph, request);
    if (!node) FAIL(messages(node.error(), *context));
    return *node;
  }
  void expect(std::string_view code, std::string_view text) {
    Diagnostics found = verify(graph);
    bool there = false;
    for (const Diagnostic& d : found)
      there = there || (d.code == code && (d.message + d.place).find(text) != std::string::npos);
    INFO("expected " << code << " " << text << " in:\n" << messages(found, *context));
    REQUIRE(there);
  }
};

}  // namespace

TEST_CASE("verify: a graph as built is well formed", "[graph][verify]") {
  Small small;
  Diagnostics found = verify(small.graph);
  CHECK(messages(found, *small.context) == "");
}

TEST_CASE("verify: a write is of one input, once, of its type", "[graph][verify]") {
  Small small;
  const ValueId x = small.graph.inputs()[0];
  small.graph.add_write(x, small.graph.result(small.norm));
  CHECK(messages(verify(small.graph), *small.context) == "");
  Small twice = small;
  twice.graph.add_write(x, x);
  twice.expect("PW0609", "written twice");
  Small other = small;
  other.graph.add_write(other.graph.inputs()[1], other.graph.result(other.norm));
  other.expect("PW0609", "is written to it");
}

TEST_CASE("verify: a type that the op does not give is found", "[graph][verify]") {
  Small small;
  small.graph.set_type(small.graph.result(small.sum), small.context->types.get(DType::f32, {}));
  small.expect("PW0607", "result `c` has type f32[], but its op gives bf16[n, 32]");
}

TEST_CASE("verify: an operand that does not fit is found", "[graph][verify]") {
  Small small;
  small.graph.set_operand(small.norm, 1, small.graph.inputs()[0]);
  small.expect("PW0607", "operand `w`");
}

TEST_CASE("verify: an absent operand is found", "[graph][verify]") {
  Small small;
  small.graph.set_operand(small.norm, 1, ValueId());
  small.expect("PW0604", "operand `w` is absent");
}

TEST_CASE("verify: a wrong number of operands and results is found", "[graph][verify]") {
  Small small;
  small.graph.set_op(small.norm, small.context->ops.find("relu"));
  small.expect("PW0604", "it has 2 operands, not 1");
  small.graph.set_op(small.norm, small.context->ops.find("fused_add_rms_norm"));
  small.expect("PW0604", "it has 2 operands, not 3");
}

TEST_CASE("verify: attributes are declared, complete, and of their kind", "[graph][verify]") {
  Small small;
  Attributes& attributes = small.context->attributes;
  NameId eps = small.context->strings.intern("eps"), other = small.context->strings.intern("other");
  small.graph.set_attributes(small.norm, Attributes::empty());
  small.expect("PW0605", "incomplete");
  small.graph.set_attributes(small.norm, attributes.intern({{eps, 1e-6}, {other, true}}));
  small.expect("PW0605", "no attribute `other`");
  small.graph.set_attributes(small.norm, attributes.intern({{eps, std::string("small")}}));
  small.expect("PW0605", "not of kind float");
}

TEST_CASE("verify: a value read before it is made is found", "[graph][verify]") {
  Small small;
  small.graph.move_before(small.sum, small.norm);
  small.expect("PW0602", "defined at or after its use");
}

TEST_CASE("verify: at most twenty violations are listed", "[graph][verify]") {
  Small small;
  ValueId v = small.graph.result(small.sum);
  std::vector<NodeId> nodes;
  for (int i = 0; i < 30; ++i) nodes.push_back(small.add("relu", {v}, {}, {""}));
  for (NodeId n : nodes)
    small.graph.set_type(small.graph.result(n), small.context->types.get(DType::f32, {}));
  CHECK(verify(small.graph).size() == 20);
}
