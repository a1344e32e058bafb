// For tests of the graph folder: a context with the op library, and short forms of graphs to
// compare with.
#pragma once

#include <string>
#include <vector>

#include "base/io/file.hpp"
#include "dsl/dsl.hpp"
#include "tests/catch.hpp"

namespace pw::test {

inline ContextPtr library() {
  auto context = std::make_shared<Context>();
  auto loaded = load_op_library(context);
  if (!loaded) FAIL(render(loaded.error(), context->sources));
  return context;
}

/// "y: bf16[n, 64] = relu(x)", "a: …, b: … = split(x){dim = 1, sizes = [32, 32]}"; an absent
/// operand is written `none`.
inline std::string describe(const Graph& graph, NodeId n) {
  const Context& context = graph.context();
  std::string out;
  for (std::size_t i = 0; i < graph.result_count(n); ++i) {
    ValueId v = graph.result(n, i);
    out += (i ? ", " : "") + std::string(graph.value_name(v)) + ": " +
           context.types.print(graph.type(v));
  }
  out += " = " + graph.op_of(n).name + "(";
  for (std::size_t i = 0; i < graph.operand_count(n); ++i) {
    ValueId v = graph.operand(n, i);
    out += (i ? ", " : "") + (v.valid() ? std::string(graph.value_name(v)) : "none");
  }
  return out + ")" + context.attributes.print(graph.attributes(n));
}

inline std::vector<std::string> describe(const Graph& graph) {
  std::vector<std::string> out;
  for (NodeId n : graph.order()) out.push_back(describe(graph, n));
  return out;
}

/// The line of the node that defines `name`; empty if there is none.
inline std::string line_of(const Graph& graph, std::string_view name) {
  ValueId v = graph.find_value(name);
  return v.valid() && !graph.is_input(v) ? describe(graph, graph.producer(v)) : "";
}

/// "x:input w:weight", in order.
inline std::string kinds(const Graph& graph) {
  std::string out;
  for (ValueId v : graph.inputs())
    out += (out.empty() ? "" : " ") + std::string(graph.value_name(v)) + ":" +
           std::string(name(graph.input_kind(v)));
  return out;
}

inline std::string text_of(const std::string& path) {
  Result<std::string> text = read_file(path);
  if (!text) FAIL("cannot read " << path);
  return *text;
}

inline std::string messages(const Diagnostics& diagnostics, const Context& context) {
  return render(diagnostics, context.sources);
}

}  // namespace pw::test
