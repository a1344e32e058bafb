// Graphs and tensors from text, for the tests of backends.
#pragma once

#include <string>
#include <vector>

#include "backends/backend.hpp"
#include "dsl/dsl.hpp"
#include "tensor/numerics.hpp"
#include "tests/catch.hpp"

namespace pw::test {

inline ContextPtr library() {
  const auto context = std::make_shared<Context>();
  const auto loaded = load_op_library(context);
  INFO((loaded ? std::string() : render(loaded.error(), context->sources)));
  REQUIRE(loaded);
  return context;
}

inline Graph graph_of(const std::string& text, const ContextPtr& context = library()) {
  auto graph = parse_graph(context, "graph g {\n" + text + "\n}\n", "test.pwg");
  INFO((graph ? std::string() : render(graph.error(), context->sources)));
  REQUIRE(graph);
  return std::move(*graph);
}

inline Tensor tensor(DType dtype, Extents extents, const std::vector<double>& values) {
  Tensor made(dtype, std::move(extents));
  REQUIRE(static_cast<std::size_t>(made.view().count()) == values.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    store(dtype, made.data(), static_cast<std::int64_t>(i), values[i]);
  return made;
}

inline std::vector<double> values(const Tensor& tensor) {
  std::vector<double> out;
  for (std::int64_t i = 0; i < tensor.view().count(); ++i)
    out.push_back(load(tensor.dtype(), tensor.data(), i));
  return out;
}

inline std::vector<TensorView> views(const std::vector<Tensor>& tensors) {
  std::vector<TensorView> out;
  for (const Tensor& tensor : tensors) out.push_back(tensor.view());
  return out;
}

}  // namespace pw::test
