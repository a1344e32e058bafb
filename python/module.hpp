// Common declarations of the extension module: its error type, graphs, rules, and arrays.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include "engines/run_given.hpp"
#include "graph/graph.hpp"
#include "pipeline/load.hpp"
#include "tensor/tensor.hpp"

namespace pw::python {

/// One diagnostic of Python's Error.
struct ErrorItem {
  std::string severity, code, message, hint;
  std::string file;                  ///< empty: about no file
  std::string place;                 ///< "rules.pwr:3:7", "model.json at /nodes/3/op"
  std::size_t line = 0, column = 0;  ///< 0: about no line
};

class PiecewiseError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  PiecewiseError(const Diagnostics& diagnostics, const SourceMap& sources);
  PiecewiseError(const std::string& text, std::vector<ErrorItem> items)
      : std::runtime_error(text), items_(std::move(items)) {}
  [[nodiscard]] const std::vector<ErrorItem>& items() const { return items_; }

 private:
  std::vector<ErrorItem> items_;
};

/// Returns an error that only the Python interface can cause.
PiecewiseError mistake(std::string_view code, std::string message, std::string hint = {});

/// Defines piecewise.Error, with the first diagnostic as its attributes.
void add_error(pybind11::module_& module);

template <class T>
T need(const ContextPtr& context, Result<T> result) {
  if (!result) throw PiecewiseError(result.error(), context->sources);
  return std::move(*result);
}

/// A graph with the owners of its names and types.
struct PyGraph {
  ContextPtr context;
  Graph graph;
};

/// Returns a copy in a separate context: others may intern in the graph's context while it runs.
Graph in_own_context(const Graph& graph);

struct PyRules {
  ContextPtr context;
  std::shared_ptr<const RuleSet> set;
};

/// Returns rules with params. `of` is the graph that they apply to, if any. Logs warnings.
LoadedRules loaded_rules(const PyRules& rules, const std::vector<std::string>& definitions,
                         const Log& log, const PyGraph* of = nullptr, bool believe = false);

/// Returns a log that passes lines to a callable; silent for None.
Log log_to(const pybind11::object& callable, const ContextPtr& context);

/// Parses JSON into Python objects.
pybind11::object from_json(const std::string& text);

/// Copies a view, so that numpy may keep it.
pybind11::array numpy_of(const TensorView& view);
/// Copies a numpy array, or CPU memory from __dlpack__; errors name `what`.
Tensor tensor_of(const pybind11::handle& given, DType dtype, const std::string& what);

/// Converts inputs by name. Raises PW1411 for an unknown input name.
GivenInputs inputs_of(const ContextPtr& context, const Graph& graph, const pybind11::dict& given);

/// Adds Graph.compute, which runs on arrays.
void add_run(pybind11::class_<PyGraph>& graph);
/// Adds run_request, bench_request, report_request, engines.
void add_pipeline(pybind11::module_& module);
/// Adds the other commands: check, explain, match, verify, test, …
void add_commands(pybind11::module_& module);
/// Adds the planning commands: split, plan, sizes, compile, tune.
void add_planning(pybind11::module_& module);
/// Adds Ref and FxGraph, which import torch.fx graphs call by call.
void add_fx_graph(pybind11::module_& module);
void add_seen_import(pybind11::module_& module);
/// Adds Compiled: a graph compiled once, which runs on the caller's memory.
void add_compiled(pybind11::module_& module);
/// Adds Device and DeviceProgram: a graph compiled for a device, enqueued on the caller's stream.
void add_device(pybind11::module_& module);
/// Adds read_captured_graph and draw_captured_graph.
void add_lens(pybind11::module_& module);
/// Adds SameTensors: whether a call has the tensors of an earlier one.
void add_same_tensors(pybind11::module_& module);
/// Adds the changes of a run.
void add_changes(pybind11::module_& module);
/// Adds texts stored in the compile cache.
void add_kept(pybind11::class_<Context, ContextPtr>& session);

}  // namespace pw::python
