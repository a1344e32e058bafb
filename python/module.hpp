// What the sources of the extension module share: its error, graphs, rules and arrays as Python
// holds them.
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

/// What Python's Error tells of one diagnostic.
struct ErrorItem {
  std::string severity, code, message, hint;
  std::string file;                  ///< empty where it is about no file
  std::string place;                 ///< "rules.pwr:3:7", "model.json at /nodes/3/op"
  std::size_t line = 0, column = 0;  ///< 0: of no line
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

/// A mistake that only Python can make.
PiecewiseError mistake(std::string_view code, std::string message, std::string hint = {});

/// Makes piecewise.Error, with the first diagnostic as its attributes.
void add_error(pybind11::module_& module);

template <class T>
T need(const ContextPtr& context, Result<T> result) {
  if (!result) throw PiecewiseError(result.error(), context->sources);
  return std::move(*result);
}

/// A graph and what keeps its names and types alive.
struct PyGraph {
  ContextPtr context;
  Graph graph;
};

struct PyRules {
  ContextPtr context;
  std::shared_ptr<const RuleSet> set;
};

/// Rules with params, as a call gives them. `of`: the graph that they are for, where there is one.
/// Warnings are said.
LoadedRules loaded_rules(const PyRules& rules, const std::vector<std::string>& definitions,
                         const Log& log, const PyGraph* of = nullptr, bool believe = false);

/// Lines that the stages say go to a callable; none where it is None.
Log log_to(const pybind11::object& callable, const ContextPtr& context);

/// The objects of a JSON text.
pybind11::object from_json(const std::string& text);

/// A copy: numpy may keep it.
pybind11::array numpy_of(const TensorView& view);
/// A copy of a numpy array, or of what exports CPU memory by __dlpack__. `what` is named in errors.
Tensor tensor_of(const pybind11::handle& given, DType dtype, const std::string& what);

/// By input name. PW1411 for a name that no input has.
GivenInputs inputs_of(const ContextPtr& context, const Graph& graph, const pybind11::dict& given);

/// Graph.compute: a run on arrays.
void add_run(pybind11::class_<PyGraph>& graph);
/// run_request, bench_request, report_request, engines.
void add_pipeline(pybind11::module_& module);
/// What the other commands do: check, explain, match, verify, test, …
void add_commands(pybind11::module_& module);
/// What plans graphs: split, plan, sizes, compile, tune.
void add_planning(pybind11::module_& module);
/// Ref, FxGraph: graphs of torch.fx, told call by call.
void add_fx_graph(pybind11::module_& module);
void add_seen_import(pybind11::module_& module);
/// Compiled: a graph compiled once, run on memory of the caller's.
void add_compiled(pybind11::module_& module);
/// What a run changed.
void add_changes(pybind11::module_& module);
/// Texts that the compile cache keeps.
void add_kept(pybind11::class_<Context, ContextPtr>& session);

}  // namespace pw::python
