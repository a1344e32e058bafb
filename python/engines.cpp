#include "python/engines.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <pybind11/stl.h>

#include "base/try.hpp"
#include "dsl/natives.hpp"
#include "exec/piece_hook.hpp"
#include "python/module.hpp"

namespace py = pybind11;

namespace pw::python {
namespace {

/// A piece compiled by a Python function: called once per step with an array for each input.
class PyExecutable final : public Executable {
 public:
  PyExecutable(std::string name, const Graph& graph, py::object function)
      : name_(std::move(name)), graph_(graph), function_(std::move(function)) {}

  Status run(std::span<const TensorView> inputs, std::span<const TensorView> outputs,
             const RunContext&) override {
    py::list arrays;
    for (const TensorView& input : inputs) arrays.append(numpy_of(input));
    const py::object returned = function_(*py::tuple(arrays));
    const bool several = py::isinstance<py::list>(returned) || py::isinstance<py::tuple>(returned);
    const py::list results = several ? py::list(returned) : py::list(py::make_tuple(returned));
    if (results.size() != outputs.size())
      return refused(
          fmt::format("it returned {} arrays for {} outputs", results.size(), outputs.size()));
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const std::string output(graph_.value_name(graph_.outputs()[i]));
      const Tensor tensor = tensor_of(results[i], outputs[i].dtype, "output " + output);
      if (tensor.extents() != outputs[i].extents)
        return refused(fmt::format("output {} is [{}], but the array is [{}]", output,
                                   fmt::join(outputs[i].extents, ", "),
                                   fmt::join(tensor.extents(), ", ")));
      std::memcpy(outputs[i].data, tensor.data(), outputs[i].bytes());
    }
    return {};
  }

 private:
  [[nodiscard]] tl::unexpected<Diagnostics> refused(std::string why) const {
    return fail(error_in("backend " + name_, "PW1414", std::move(why),
                         "the function of a piece must return an array for each output, in order"));
  }

  std::string name_;
  Graph graph_;
  py::object function_;
};

class PyBackend final : public Backend {
 public:
  PyBackend(std::string name, py::object compile)
      : name_(std::move(name)), compile_(std::move(compile)) {}
  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] Result<std::unique_ptr<Executable>> compile(const Graph& piece) override {
    return std::make_unique<PyExecutable>(name_, piece,
                                          compile_(PyGraph{piece.context_ptr(), piece}));
  }

 private:
  std::string name_;
  py::object compile_;
};

class PyHook final : public PieceHook {
 public:
  explicit PyHook(py::object hook) : hook_(std::move(hook)) {}
  Status before(PieceCall& call) override { return tell("before", call); }
  Status after(PieceCall& call) override { return tell("after", call); }

 private:
  Status tell(const char* name, PieceCall& call) {
    if (py::hasattr(hook_, name))
      hook_.attr(name)(py::cast(&call, py::return_value_policy::reference));
    return {};
  }
  py::object hook_;
};

/// Raises the error of a failed call in the caller.
template <class T>
T given(Result<T> result) {
  if (!result) throw PiecewiseError(result.error(), SourceMap());
  return std::move(*result);
}

py::list sequences_of(const PieceCall& call) {
  py::list out;
  for (const Sequence& sequence : call.step().sequences) {
    py::dict row;
    row["id"] = sequence.id;
    row["past"] = sequence.past;
    row["new"] = sequence.new_tokens;
    out.append(row);
  }
  return out;
}

py::object python_of(const Attribute& value, const Context& context) {
  return std::visit(
      [&](const auto& item) -> py::object {
        using T = std::decay_t<decltype(item)>;
        if constexpr (std::is_same_v<T, None>) {
          return py::none();
        } else if constexpr (std::is_same_v<T, DType>) {
          return py::str(std::string(name(item)));
        } else if constexpr (std::is_same_v<T, DimId>) {
          const auto number = context.dims.value(item);
          return number ? py::object(py::int_(*number)) : py::str(context.dims.print(item));
        } else if constexpr (std::is_same_v<T, std::vector<DimId>>) {
          py::list out;
          for (const DimId dim : item) out.append(python_of(Attribute(dim), context));
          return out;
        } else {
          return py::cast(item);
        }
      },
      value);
}

/// Converts a bool, a number, a string, or None, which means unknown.
Attribute attribute_of(const py::object& value, const std::string& name) {
  if (value.is_none()) return None{};
  if (py::isinstance<py::bool_>(value)) return value.cast<bool>();
  if (py::isinstance<py::int_>(value)) return value.cast<std::int64_t>();
  if (py::isinstance<py::float_>(value)) return value.cast<double>();
  if (py::isinstance<py::str>(value)) return value.cast<std::string>();
  throw py::type_error("extern " + name + " returned " + py::repr(value).cast<std::string>() +
                       ", but must return a bool, a number, a string or None");
}

AttributeKind kind_of(const std::string& text) {
  constexpr AttributeKind kKinds[] = {
      AttributeKind::int_,   AttributeKind::float_, AttributeKind::bool_, AttributeKind::str,
      AttributeKind::dtype,  AttributeKind::axis,   AttributeKind::ints,  AttributeKind::dims,
      AttributeKind::floats, AttributeKind::strs};
  for (const AttributeKind kind : kKinds)
    if (name(kind) == text) return kind;
  throw mistake("PW1415", "there is no kind `" + text + "`",
                "kinds are int, float, bool, str, dtype, axis, ints, dims, floats, strs");
}

void bind_extern(const ContextPtr& context, const std::string& name,
                 const std::vector<std::string>& kinds, const py::object& function) {
  std::vector<AttributeKind> known;
  for (const std::string& kind : kinds) known.push_back(kind_of(kind));
  Context* in = context.get();  // which owns the function
  bind_native(*context, name, std::move(known),
              [in, name, function](std::span<const Attribute> arguments) -> Result<Attribute> {
                py::list items;
                for (const Attribute& argument : arguments) items.append(python_of(argument, *in));
                return attribute_of(function(*py::tuple(items)), name);
              });
}

}  // namespace

StepEngineKind engine_of_python(const std::string& name, const py::object& compile) {
  return engine_of({name, "of Python", {.ranks = true}, [name, compile](const BackendOptions&) {
                      return std::make_unique<PyBackend>(name, compile);
                    }});
}

std::unique_ptr<PieceHook> hook_of_python(const py::object& hook) {
  if (hook.is_none()) return nullptr;
  return std::make_unique<PyHook>(hook);
}

void add_engines(py::module_& module) {
  py::class_<PieceCall>(module, "PieceCall",
                        "A piece of a step that is about to run, or has just run, on one rank. "
                        "Valid only during the call of the hook.")
      .def_property_readonly(
          "piece", [](const PieceCall& c) { return c.piece().name; }, "Its name, such as piece_3.")
      .def_property_readonly("rank", &PieceCall::rank, "The rank of this process, from 0.")
      .def_property_readonly("sequences", &sequences_of,
                             "The step: a dict of id, past and new for each sequence.")
      .def_property_readonly("inputs", &PieceCall::inputs,
                             "Names of the values that the piece reads.")
      .def_property_readonly("outputs", &PieceCall::outputs, "Names of the values that it writes.")
      .def(
          "names_of",
          [](const PieceCall& c, const std::string& op) {
            py::dict out;
            for (const auto& [name, value] : c.names_of(op)) out[py::str(name)] = value;
            return out;
          },
          py::arg("op"),
          "The operands and results of the piece's first op with that name, by their names in the "
          "op's signature: {'q': 'q_3', 'k': …}; empty if it has no such op.")
      .def(
          "read",
          [](PieceCall& c, const std::string& value) {
            return numpy_of(given(c.read(value)).view());
          },
          py::arg("value"),
          "Returns a copy of a tensor's valid rows. Raises PW1216 for an unknown name.")
      .def(
          "write",
          [](PieceCall& c, const std::string& value, const py::object& array) {
            const DType dtype = given(c.read(value)).dtype();
            given(c.write(value, tensor_of(array, dtype, value).view()));
          },
          py::arg("value"), py::arg("array"),
          "Replaces the valid rows of a tensor that a piece computed. Raises PW1216 for the "
          "graph's inputs, and for a different shape.");
  module.def("bind_extern", &bind_extern, py::arg("session"), py::arg("name"), py::arg("kinds"),
             py::arg("function"), "see Session.bind_extern");
}

}  // namespace pw::python
