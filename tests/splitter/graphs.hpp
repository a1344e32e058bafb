// Graphs for the splitter's tests: ops are declared by name only, since splitting reads neither
// bodies nor signatures.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "graph/graph.hpp"
#include "models/generate.hpp"
#include "splitter/splitter.hpp"

namespace pw::test {

/// A graph under construction over f32[n, 8] values.
struct Builder {
  ContextPtr context = std::make_shared<Context>();
  Graph graph{context, "toy"};

  Builder() { graph.facts.symbols["n"] = {1, 8192, 1, "tokens"}; }

  OpId op(const std::string& name, Traits traits = {}) {
    Op declared;
    declared.name = name;
    declared.traits = traits;
    const OpId known = context->ops.find(name);
    return known.valid() ? known : *context->ops.declare(declared);
  }
  TypeId type(std::int64_t width = 8) {
    return context->types.get(DType::f32,
                              {context->dims.symbol("n"), context->dims.constant(width)});
  }
  ValueId input(const std::string& name, InputKind kind = InputKind::input) {
    return graph.add_input(name, type(), kind);
  }
  std::vector<ValueId> call(const std::string& name, std::vector<ValueId> operands, int results = 1,
                            AttributeList attributes = {}, std::int64_t width = 8) {
    NodeSpec spec;
    spec.op = op(name);
    spec.operands = std::move(operands);
    spec.attributes = context->attributes.intern(std::move(attributes));
    for (int i = 0; i < results; ++i) spec.results.push_back({type(width), name});
    const NodeId n = graph.add_node(spec);
    std::vector<ValueId> out;
    for (int i = 0; i < results; ++i) out.push_back(graph.result(n, static_cast<std::size_t>(i)));
    return out;
  }
  ValueId one(const std::string& name, std::vector<ValueId> operands,
              AttributeList attributes = {}) {
    return call(name, std::move(operands), 1, std::move(attributes)).front();
  }
  ValueId literal(double value) {
    NodeSpec spec;
    spec.op = op("constant");
    spec.attributes = context->attributes.intern({{context->strings.intern("value"), value}});
    spec.results.push_back({context->types.get(DType::f64, {}), "c"});
    return graph.result(graph.add_node(spec));
  }
  ValueId attention(ValueId x, int layer) {
    return one("attention", {x, x, x},
               {{context->strings.intern("layer"), "layers." + std::to_string(layer) + ".attn"}});
  }
  StitchedGraph cut(std::initializer_list<const char*> names, bool fold = true) {
    std::vector<OpId> ids;
    for (const char* name : names) ids.push_back(op(name));
    return split(graph, ids, {{}, fold}).value();
  }
};

/// x+1; x+2; attention; −2; −1; attention; +1
inline Builder toy() {
  Builder b;
  ValueId x = b.input("x");
  x = b.one("add", {x, b.literal(1)});
  x = b.one("add", {x, b.literal(2)});
  x = b.attention(x, 0);
  x = b.one("sub", {x, b.literal(2)});
  x = b.one("sub", {x, b.literal(1)});
  x = b.attention(x, 1);
  x = b.one("add", {x, b.literal(1)});
  b.graph.add_output(x);
  return b;
}

/// One relu, and no symbols.
inline Builder static_graph() {
  Builder b;
  const TypeId type = b.context->types.get(DType::f32, {b.context->dims.constant(4)});
  NodeSpec spec;
  spec.op = b.op("relu");
  spec.operands = {b.graph.add_input("x", type, InputKind::input)};
  spec.results = {{type, "y"}};
  b.graph.add_output(b.graph.result(b.graph.add_node(spec)));
  b.graph.facts.symbols.clear();
  return b;
}

/// A generated decoder with narrow layers.
inline LlamaOptions small_llama(std::int64_t layers = 12) {
  return {.layers = layers,
          .hidden = 128,
          .heads = 8,
          .kv_heads = 2,
          .ffn = 256,
          .vocab = 512,
          .positions = 256};
}

}  // namespace pw::test
