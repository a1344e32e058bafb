#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <variant>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include "base/try.hpp"
#include "cuda/device/host_driver.hpp"
#include "engines/python_call_json.hpp"
#include "engines/run_given.hpp"
#include "engines/step_engine.hpp"
#include "python/dlpack.hpp"
#include "python/host_call.hpp"
#include "python/module.hpp"

namespace py = pybind11;

namespace pw::python {
namespace {

/// Returns its name in ml_dtypes; null if numpy has the dtype.
const char* extended_name(DType dtype) {
  if (dtype == DType::bf16) return "bfloat16";
  if (dtype == DType::f8e4m3) return "float8_e4m3fn";
  return dtype == DType::f8e5m2 ? "float8_e5m2" : nullptr;
}

/// Returns the row-major bytes of an array of this dtype. Errors name `what`.
py::array row_major_array(const py::handle& given, DType dtype, const std::string& what) {
  py::array array = py::array::ensure(given, py::array::c_style);
  if (!array) {
    PyErr_Clear();
    throw mistake("PW1411", what + " is not an array");
  }
  const auto found = py::str(array.dtype().attr("name")).cast<std::string>();
  const char* extended = extended_name(dtype);
  if (found == numpy_dtype(dtype) || (extended != nullptr && found == extended)) return array;
  throw mistake(
      "PW1411",
      what + " is a " + std::string(name(dtype)) + ", which needs an array of " +
          std::string(numpy_dtype(dtype)) +
          (extended == nullptr ? "" : std::string(" bits (or ml_dtypes.") + extended + ")") +
          ", not of " + found);
}

Extents shape_of(const py::array& array) { return {array.shape(), array.shape() + array.ndim()}; }

}  // namespace

Tensor tensor_of(const py::handle& given, DType dtype, const std::string& what) {
  if (!py::isinstance<py::array>(given) && py::hasattr(given, "__dlpack__"))
    return tensor_of_dlpack(given, dtype, what);
  const py::array array = row_major_array(given, dtype, what);
  Tensor out(dtype, shape_of(array));
  std::memcpy(out.data(), array.data(), out.view().bytes());
  return out;
}

/// Calls numpy to allocate it, because the descriptors of numpy versions differ.
py::array numpy_of(const TensorView& view) {
  py::tuple shape(view.extents.size());
  for (std::size_t i = 0; i < shape.size(); ++i) shape[i] = view.extents[i];
  py::array out =
      py::module_::import("numpy").attr("empty")(shape, std::string(numpy_dtype(view.dtype)));
  std::memcpy(out.mutable_data(), view.data, view.bytes());
  return out;
}

namespace {

/// Returns conversions to and from numpy arrays, which copy.
HostArrays numpy_arrays() {
  return {numpy_of, [](const py::handle& given, const TensorView& place, const std::string& what) {
            const Tensor tensor = tensor_of(given, place.dtype, what);
            if (tensor.extents() != place.extents)
              throw mistake("PW1411", fmt::format("{} has a different shape than its type: ({})",
                                                  what, fmt::join(tensor.extents(), ", ")));
            std::memcpy(place.data, tensor.data(), place.bytes());
          }};
}

}  // namespace

PythonFunctions::PythonFunctions(const ContextPtr& context,
                                 const std::map<std::string, py::object>& functions)
    : context_(context), before_(context->host_functions) {
  context->host_functions = std::make_shared<HostFunctions>();
  for (const auto& [op, function] : functions)
    give_host_function(*context, op, host_function_of(function, numpy_arrays(), raised_));
}

PythonFunctions::~PythonFunctions() { context_->host_functions = before_; }

void PythonFunctions::rethrow() const {
  if (*raised_) std::rethrow_exception(*raised_);
}

namespace {

/// `cuda-host` is cuda on the emulator.
Result<GivenOutputs> run_on(const Graph& graph, const std::string& backend,
                            const GivenInputs& inputs, Symbols symbols) {
  if (backend == "cuda-host") {
    cuda::HostDriver driver;
    return run_given(graph, driver, inputs, std::move(symbols));
  }
  EngineList engines = builtin_engines();
  std::erase_if(engines, [](const StepEngineKind& engine) { return engine.can.capture; });
  const EngineOptions options;
  const auto engine = PW_TRY(open_engine(engines, backend, options));
  return run_given(graph, engine->whole(), inputs, std::move(symbols));
}

[[noreturn]] void throw_unknown_input(const Context& context, const Graph& graph,
                                      const std::string& name) {
  std::vector<std::string> names;
  for (ValueId v : graph.inputs()) names.emplace_back(graph.value_name(v));
  const std::string near = nearest(name, names);
  throw PiecewiseError(
      {error_in("graph " + graph.name, "PW1411", "the graph has no input `" + name + "`",
                near.empty() ? "" : "did you mean `" + near + "`?")},
      context.sources);
}

py::tuple compute(const PyGraph& g, const py::dict& given,
                  const std::map<std::string, py::object>& functions, const std::string& backend,
                  const std::map<std::string, std::int64_t>& symbols) {
  GivenInputs inputs = inputs_of(g.context, g.graph, given);
  inputs.merge(contents_of_inputs(g.graph));
  const PythonFunctions scope(g.context, functions);
  auto done = run_on(g.graph, backend, inputs, {symbols.begin(), symbols.end()});
  scope.rethrow();
  const GivenOutputs outputs = need(g.context, std::move(done));
  py::list names, arrays;
  for (std::size_t i = 0; i < outputs.returned.size(); ++i) {
    names.append(std::string(g.graph.value_name(g.graph.outputs()[i])));
    arrays.append(numpy_of(outputs.returned[i].view()));
  }
  py::dict written;
  for (const auto& [name, tensor] : outputs.written)
    written[py::str(name)] = numpy_of(tensor.view());
  return py::make_tuple(names, arrays, written);
}

}  // namespace

GivenInputs inputs_of(const ContextPtr& context, const Graph& graph, const py::dict& given) {
  std::map<std::string, ValueId, std::less<>> known;
  for (ValueId v : graph.inputs()) known.emplace(graph.value_name(v), v);
  GivenInputs inputs;
  for (const auto& [key, value] : given) {
    const auto name = py::str(key).cast<std::string>();
    const auto found = known.find(name);
    if (found == known.end()) throw_unknown_input(*context, graph, name);
    const TypeId type = graph.type(found->second);
    if (type == Types::unknown()) continue;  // not a tensor here
    inputs.emplace(name, tensor_of(value, context->types[type].dtype, "input " + name));
  }
  return inputs;
}

void add_run(py::class_<PyGraph>& graph) {
  graph.def("compute", &compute, py::arg("inputs"),
            py::arg("functions") = std::map<std::string, py::object>{},
            py::arg("backend") = "eager",
            py::arg("symbols") = std::map<std::string, std::int64_t>{},
            "Returns the names and arrays of the outputs, and the new contents of written inputs; "
            "see run()");
  graph.def_property_readonly(
      "tokens", [](const PyGraph& g) { return g.graph.facts.tokens(); },
      "the symbol that counts tokens, or empty");
}

}  // namespace pw::python
