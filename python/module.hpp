// What the sources of the extension module share: its error, and graphs as Python holds them.
#pragma once

#include <stdexcept>
#include <string>

#include <pybind11/pybind11.h>

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

/// Graph.compute: a run on numpy arrays.
void add_run(pybind11::class_<PyGraph>& graph);

}  // namespace pw::python
