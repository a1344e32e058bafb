// Traverses the arguments of torch calls for the importer, generically in the result type.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "import/fx/text/ast.hpp"
#include "python/module.hpp"
#include "python/torch_objects.hpp"

namespace pw::python {

/// A reference in an argument: a value of the graph, or a torch name such as torch.float32.
struct Ref {
  std::string name;
};

/// Converts an argument to Make::Made by make's functions node, word, none, boolean, integer, real,
/// text, list, slice, and dict. Fails with PW1411 for an argument that no graph call has.
template <class Make>
typename Make::Made torch_argument(const TorchObjects& torch, Make& make,
                                   const pybind11::handle& object, int depth = 0) {
  namespace py = pybind11;
  using Made = typename Make::Made;
  const auto inner = [&](const py::handle& item) {
    return torch_argument(torch, make, item, depth + 1);
  };
  const auto list = [&](bool tuple) {
    std::vector<Made> items;
    items.reserve(static_cast<std::size_t>(PySequence_Fast_GET_SIZE(object.ptr())));
    for (const py::handle item : object) items.push_back(inner(item));
    return make.list(std::move(items), tuple);
  };
  PyObject* const value = object.ptr();
  if (depth > fx::kMaxNesting) throw mistake("PW1411", "an argument is nested too deeply");
  if (torch.is_node(object)) return make.node(object);
  if (object.is_none()) return make.none();
  if (PyBool_Check(value)) return make.boolean(value == Py_True);
  if (PyLong_CheckExact(value)) return make.integer(object.cast<std::int64_t>());
  if (PyTuple_Check(value) || PyList_Check(value)) return list(PyTuple_Check(value));
  if (PyFloat_Check(value)) return make.real(object.cast<double>());
  if (PyUnicode_Check(value)) return make.text(object.cast<std::string>());
  if (py::isinstance<Ref>(object)) return make.word(object.cast<Ref>().name);
  if (PyDict_Check(value)) {
    std::vector<std::pair<std::string, Made>> items;
    for (const auto& [key, item] : py::reinterpret_borrow<py::dict>(object))
      items.emplace_back(py::str(key).cast<std::string>(), inner(item));
    return make.dict(std::move(items));
  }
  if (PySlice_Check(value))
    return make.slice(inner(object.attr("start")), inner(object.attr("stop")),
                      inner(object.attr("step")));
  const py::object leaf = torch.leaf(object);
  if (!leaf.is(object)) return inner(leaf);
  if (PyLong_Check(value)) return make.integer(object.cast<std::int64_t>());
  throw mistake("PW1411", fmt::format("an argument is a {}, which graph calls cannot have",
                                      py::str(py::type::of(object)).cast<std::string>()));
}

}  // namespace pw::python
