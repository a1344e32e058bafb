#include "python/host_call.hpp"

#include <map>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include <pybind11/stl.h>

#include "python/module.hpp"

namespace py = pybind11;

namespace pw::python {
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
  PythonCall(const HostCall& call, const HostArrays& arrays) : call_(call), arrays_(arrays) {}

  void run(const py::object& function) {
    pass_operands();
    py::list positional;
    py::dict keywords;
    if (arrays_.named) positional.append(call_.node);
    for (const HostArgument& argument : call_.arguments) {
      if (argument.keyword.empty())
        positional.append(object(argument));
      else
        keywords[py::str(argument.keyword)] = object(argument);
    }
    const py::object returned = function(*py::tuple(positional), **keywords);
    for (std::size_t i : call_.writes)
      arrays_.keep(operands_[i], *call_.operands[i], what_of_operand(i));
    keep_results(returned);
  }

 private:
  std::string what_of_operand(std::size_t i) const {
    return "operand " + std::to_string(i) + " of " + call_.op + ", which the op writes,";
  }

  /// A tensor that is passed twice becomes one array.
  void pass_operands() {
    std::map<std::tuple<const void*, DType, Extents>, py::object> known;
    for (const auto& operand : call_.operands) {
      if (!operand) {
        operands_.push_back(py::none());
        continue;
      }
      auto [found, fresh] = known.try_emplace({operand->data, operand->dtype, operand->extents});
      if (fresh) found->second = arrays_.array(*operand);
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

  void keep_results(const py::object& returned) const {
    if (call_.results.empty()) return;
    py::list results;
    if (call_.results.size() == 1 && !returned.is_none() && !py::isinstance<py::tuple>(returned) &&
        !py::isinstance<py::list>(returned))
      results.append(returned);
    else if (py::isinstance<py::tuple>(returned) || py::isinstance<py::list>(returned))
      results = py::list(returned);
    // The op has the results that the graph reads; a list, such as a split's, may be longer.
    if (py::isinstance<py::list>(returned))
      while (results.size() > call_.results.size()) results.attr("pop")();
    if (results.size() != call_.results.size())
      throw mistake("PW1214",
                    "the function of " + call_.op + " returned " +
                        (returned.is_none() ? "nothing" : "a different number of results") +
                        ", but the op has " + std::to_string(call_.results.size()));
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (call_.results[i].data == nullptr) continue;
      arrays_.keep(results[i], call_.results[i], "result " + std::to_string(i) + " of " + call_.op);
    }
  }

  const HostCall& call_;
  const HostArrays& arrays_;
  std::vector<py::object> operands_;
};

}  // namespace

void call_python(const HostCall& call, const py::object& function, const HostArrays& arrays) {
  PythonCall(call, arrays).run(function);
}

HostFunction host_function_of(py::object function, HostArrays arrays,
                              std::shared_ptr<std::exception_ptr> raised) {
  // Graphs may be copied and destroyed without the GIL.
  const std::shared_ptr<py::object> held(new py::object(std::move(function)), [](py::object* f) {
    const py::gil_scoped_acquire holding;
    delete f;
  });
  return [held, arrays = std::move(arrays),
          raised = std::move(raised)](const HostCall& call) -> Status {
    const py::gil_scoped_acquire holding;
    try {
      call_python(call, *held, arrays);
      return {};
    } catch (...) {
      if (raised == nullptr) throw;
      *raised = std::current_exception();
      return fail(error_in("node " + call.node, "PW1214", "its host function failed"));
    }
  };
}

}  // namespace pw::python
