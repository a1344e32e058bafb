// Exports add_run and numpy_of: a graph run on numpy arrays, opaque ops by Python callables.
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <variant>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include "backends/cuda/host_driver.hpp"
#include "backends/host_functions.hpp"
#include "backends/run_given.hpp"
#include "base/try.hpp"
#include "python/dlpack.hpp"
#include "python/module.hpp"
#include "runtime/step_engine.hpp"

namespace py = pybind11;

namespace pw::python {
namespace {

/// The numpy dtype that holds a dtype; bits where numpy has none.
const char* numpy_name(DType dtype) {
  switch (dtype) {
    case DType::b8: return "bool";
    case DType::i8: return "int8";
    case DType::i32: return "int32";
    case DType::i64: return "int64";
    case DType::u8:
    case DType::f8e4m3:
    case DType::f8e5m2: return "uint8";
    case DType::f16: return "float16";
    case DType::bf16: return "uint16";
    case DType::f32: return "float32";
    case DType::f64: return "float64";
  }
  return "uint8";
}

/// What ml_dtypes calls it; null where numpy has it.
const char* extended_name(DType dtype) {
  if (dtype == DType::bf16) return "bfloat16";
  if (dtype == DType::f8e4m3) return "float8_e4m3fn";
  return dtype == DType::f8e5m2 ? "float8_e5m2" : nullptr;
}

/// Row-major bytes of an array that holds this dtype. `what` is named in errors.
py::array row_major_array(const py::handle& given, DType dtype, const std::string& what) {
  py::array array = py::array::ensure(given, py::array::c_style);
  if (!array) {
    PyErr_Clear();
    throw mistake("PW1411", what + " is no array");
  }
  const auto found = py::str(array.dtype().attr("name")).cast<std::string>();
  const char* extended = extended_name(dtype);
  if (found == numpy_name(dtype) || (extended != nullptr && found == extended)) return array;
  throw mistake(
      "PW1411",
      what + " is a " + std::string(name(dtype)) + ", which is an array of " + numpy_name(dtype) +
          (extended == nullptr ? "" : std::string(" bits (or ml_dtypes.") + extended + ")") +
          "; given is one of " + found);
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

/// Made by numpy itself, whose descriptors differ between versions.
py::array numpy_of(const TensorView& view) {
  py::tuple shape(view.extents.size());
  for (std::size_t i = 0; i < shape.size(); ++i) shape[i] = view.extents[i];
  py::array out = py::module_::import("numpy").attr("empty")(shape, numpy_name(view.dtype));
  std::memcpy(out.mutable_data(), view.data, view.bytes());
  return out;
}

namespace {

py::object object_of(const HostValue& value) {
  return std::visit(
      [](const auto& v) -> py::object {
        using V = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<V, std::monostate>)
          return py::none();
        else if constexpr (std::is_same_v<V, DType>)
          return py::str(std::string(name(v)));
        else
          return py::cast(v);
      },
      value);
}

/// One call of a Python callable.
class PythonCall {
 public:
  explicit PythonCall(const HostCall& call) : call_(call) {}

  void run(const py::object& function) {
    pass_operands();
    py::list positional;
    py::dict keywords;
    for (const HostArgument& argument : call_.arguments) {
      if (argument.keyword.empty())
        positional.append(object(argument));
      else
        keywords[py::str(argument.keyword)] = object(argument);
    }
    const py::object returned = function(*py::tuple(positional), **keywords);
    for (std::size_t i : call_.writes) keep(operands_[i], *call_.operands[i], what_of_operand(i));
    keep_results(returned);
  }

 private:
  std::string what_of_operand(std::size_t i) const {
    return "operand " + std::to_string(i) + " of " + call_.op + ", as it is written,";
  }

  /// Operands in one buffer are one array.
  void pass_operands() {
    std::map<const void*, py::object> known;
    for (const auto& operand : call_.operands) {
      if (!operand) {
        operands_.push_back(py::none());
        continue;
      }
      auto [found, fresh] = known.try_emplace(operand->data);
      if (fresh) found->second = numpy_of(*operand);
      operands_.push_back(found->second);
    }
  }

  py::object items(const HostArgument& argument, bool tuple) const {
    py::list out;
    for (const HostArgument& item : argument.items) out.append(object(item));
    return tuple ? py::object(py::tuple(out)) : py::object(out);
  }

  py::object object(const HostArgument& argument) const {
    switch (argument.kind) {
      case HostArgument::Kind::operand: return operands_[argument.operand];
      case HostArgument::Kind::value: return object_of(argument.value);
      case HostArgument::Kind::list: return items(argument, false);
      case HostArgument::Kind::tuple: return items(argument, true);
      case HostArgument::Kind::call: return called(argument);
    }
    return py::none();
  }

  py::object called(const HostArgument& argument) const {
    if (argument.word == "dict") {
      py::dict out;
      for (const HostArgument& item : argument.items) out[py::str(item.keyword)] = object(item);
      return out;
    }
    return py::module_::import("builtins").attr("slice")(*items(argument, true));
  }

  void keep(const py::handle& given, const TensorView& place, const std::string& what) const {
    const Tensor tensor = tensor_of(given, place.dtype, what);
    if (tensor.extents() != place.extents)
      throw mistake("PW1411", fmt::format("{} has another shape than its type says: ({})", what,
                                          fmt::join(tensor.extents(), ", ")));
    std::memcpy(place.data, tensor.data(), place.bytes());
  }

  void keep_results(const py::object& returned) const {
    if (call_.results.empty()) return;
    py::list results;
    if (call_.results.size() == 1 && !returned.is_none() && !py::isinstance<py::tuple>(returned) &&
        !py::isinstance<py::list>(returned))
      results.append(returned);
    else if (py::isinstance<py::tuple>(returned) || py::isinstance<py::list>(returned))
      results = py::list(returned);
    if (results.size() != call_.results.size())
      throw mistake("PW1214", "the function of " + call_.op + " returned " +
                                  (returned.is_none() ? "nothing" : "another number of results") +
                                  ", and the op has " + std::to_string(call_.results.size()));
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (call_.results[i].data == nullptr) continue;
      keep(results[i], call_.results[i], "result " + std::to_string(i) + " of " + call_.op);
    }
  }

  const HostCall& call_;
  std::vector<py::object> operands_;
};

/// The functions of a context while a graph runs, and the first exception that one raised.
class Functions {
 public:
  Functions(const ContextPtr& context, const std::map<std::string, py::object>& functions)
      : context_(context), before_(context->host_functions) {
    context->host_functions = std::make_shared<HostFunctions>();
    for (const auto& [op, function] : functions)
      give_host_function(*context, op, [this, function](const HostCall& call) {
        return this->call(function, call);
      });
  }
  ~Functions() { context_->host_functions = before_; }
  Functions(const Functions&) = delete;
  Functions& operator=(const Functions&) = delete;

  /// Python's own exception, where one ended the run.
  void rethrow() const {
    if (raised_) std::rethrow_exception(raised_);
  }

 private:
  Result<std::monostate> call(const py::object& function, const HostCall& call) {
    try {
      PythonCall(call).run(function);
      return std::monostate{};
    } catch (...) {
      raised_ = std::current_exception();
      return fail(error_in("node " + call.node, "PW1214", "its host function failed"));
    }
  }

  ContextPtr context_;
  std::shared_ptr<HostFunctions> before_;
  std::exception_ptr raised_;
};

/// `cuda-host` is cuda on the emulator.
Result<GivenOutputs> run_on(const Graph& graph, const std::string& backend,
                            const GivenInputs& inputs, Symbols symbols) {
  if (backend == "cuda-host") {
    cuda::HostDriver driver;
    return run_given(graph, driver, inputs, std::move(symbols));
  }
  EngineList engines = builtin_engines();
  std::erase_if(engines, [](const StepEngineKind& engine) { return engine.can.capture; });
  const auto engine = PW_TRY(open_engine(engines, backend, {}));
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
  const GivenInputs inputs = inputs_of(g.context, g.graph, given);
  const Functions scope(g.context, functions);
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
    if (type == Types::unknown()) continue;  // it is no tensor here
    inputs.emplace(name, tensor_of(value, context->types[type].dtype, "input " + name));
  }
  return inputs;
}

void add_run(py::class_<PyGraph>& graph) {
  graph.def("compute", &compute, py::arg("inputs"),
            py::arg("functions") = std::map<std::string, py::object>{},
            py::arg("backend") = "eager",
            py::arg("symbols") = std::map<std::string, std::int64_t>{},
            "names and arrays of what the graph returns, and what written inputs hold afterwards; "
            "see run()");
  graph.def_property_readonly(
      "tokens", [](const PyGraph& g) { return g.graph.facts.tokens(); },
      "the symbol that counts tokens, or empty");
}

}  // namespace pw::python
