// For tests: a graph run on a backend, and its outputs compared bit by bit.
#pragma once

#include <cmath>
#include <cstring>
#include <iostream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "backends/backend.hpp"
#include "backends/cpu/cpu.hpp"
#include "backends/program.hpp"
#include "base/hash.hpp"
#include "codegen/toolchain.hpp"
#include "tensor/numerics.hpp"
#include "tests/catch.hpp"

namespace pw::test {

inline std::vector<Tensor> outputs_of(Backend& backend, const Graph& graph,
                                      const std::vector<TensorView>& inputs,
                                      const RunContext& context) {
  auto executable = backend.compile(graph);
  if (!executable) FAIL(render(executable.error(), graph.context().sources));
  std::vector<Tensor> outputs;
  std::vector<TensorView> views;
  for (ValueId v : graph.outputs()) {
    outputs.emplace_back(graph.context().types[graph.type(v)].dtype,
                         extents_of(graph, v, context.symbols).value());
    views.push_back(outputs.back().view());
  }
  auto done = (*executable)->run(inputs, views, context);
  if (!done) FAIL(render(done.error(), graph.context().sources));
  return outputs;
}

inline std::vector<TensorView> views_of(const std::vector<Tensor>& tensors) {
  std::vector<TensorView> out;
  for (const Tensor& t : tensors) out.push_back(t.view());
  return out;
}

/// Normal numbers; ids and b8 below 2 or 7.
inline std::vector<Tensor> random_inputs(const Graph& graph, const Symbols& symbols,
                                         std::uint64_t seed) {
  Random random(seed);
  std::vector<Tensor> inputs;
  for (ValueId v : graph.inputs()) {
    const DType dtype = graph.context().types[graph.type(v)].dtype;
    Tensor t(dtype, extents_of(graph, v, symbols).value());
    for (std::int64_t i = 0; i < t.view().count(); ++i)
      store(dtype, t.data(), i,
            is_float(dtype) ? random.normal()
                            : static_cast<double>(random.below(dtype == DType::b8 ? 2 : 7)));
    inputs.push_back(std::move(t));
  }
  return inputs;
}

/// The first element whose bits differ (a NaN equals a NaN), or an empty text.
inline std::string bit_difference(const Tensor& got, const Tensor& wanted) {
  if (got.dtype() != wanted.dtype() || got.extents() != wanted.extents()) return "another type";
  const auto size = static_cast<std::size_t>(size_of(got.dtype()));
  for (std::int64_t i = 0; i < got.view().count(); ++i) {
    const auto at = static_cast<std::size_t>(i) * size;
    if (std::memcmp(got.data() + at, wanted.data() + at, size) == 0) continue;
    const double a = load(got.dtype(), got.data(), i), b = load(got.dtype(), wanted.data(), i);
    if (std::isnan(a) && std::isnan(b)) continue;
    return fmt::format("element {}: {:.9g}, not {:.9g}", i, a, b);
  }
  return "";
}

/// Prints a loud message if no compiler is found, because everything then runs on eager.
inline bool have_compiler() {
  if (!host_compiler().empty()) return true;
  std::cerr << "SKIPPED: no C++ compiler on PATH, so generated kernels are not tested\n";
  return false;
}

}  // namespace pw::test
