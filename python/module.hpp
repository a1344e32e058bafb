// What the sources of the extension module share: its error, graphs and arrays as Python holds
// them.
#pragma once

#include <stdexcept>
#include <string>

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include "backends/tensor.hpp"
#include "graph/graph.hpp"

namespace pw::python {

class PiecewiseError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

template <class T>
T need(const ContextPtr& context, Result<T> result) {
  if (!result) throw PiecewiseError(render(result.error(), context->sources));
  return std::move(*result);
}

/// A graph and what keeps its names and types alive.
struct PyGraph {
  ContextPtr context;
  Graph graph;
};

/// A copy: numpy may keep it.
pybind11::array numpy_of(const TensorView& view);

/// Graph.compute: a run on numpy arrays.
void add_run(pybind11::class_<PyGraph>& graph);
/// run_request, engines.
void add_pipeline(pybind11::module_& module);

}  // namespace pw::python
