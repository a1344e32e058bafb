// Queries to torch objects: graph nodes, and the fake tensors of their results.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "python/module.hpp"

namespace pw::python {

/// Names of node attributes, as interned Python strings.
struct NodeNames {
  pybind11::str name{"name"}, target{"target"}, args{"args"}, kwargs{"kwargs"}, meta{"meta"},
      val{"val"}, stack{"stack_trace"}, modules{"nn_module_stack"},
      forward_modules{"fwd_nn_module_stack"}, dtype{"dtype"}, layout{"layout"}, device{"device"},
      shape{"shape"}, op{"op"}, inputs{"_input_nodes"};
};

pybind11::object attribute(const pybind11::handle& object, const pybind11::str& name);
std::string_view text_of(const pybind11::handle& value);
/// Raises PW1411 for a name that no value may have.
void check_value_name(const std::string& name);

/// Callbacks from `torch` in FxGraph's constructor: the types `node` and `tensor`, `strided`, and
/// the names of `dtypes`. The functions are target(target) → text, leaf(value) → placeholder for an
/// unsupported value, and type(value) → text. purity(target) returns "core" for a pure op of
/// PyTorch, "other" for another pure op, and "" for all else.
class TorchObjects {
 public:
  explicit TorchObjects(const pybind11::object& torch)
      : node_(torch.attr("node")),
        tensor_(torch.attr("tensor")),
        strided_(torch.attr("strided")),
        target_(torch.attr("target")),
        leaf_(torch.attr("leaf")),
        type_(torch.attr("type")),
        purity_(torch.attr("purity")),
        dtypes_(torch.attr("dtypes")) {}

  const NodeNames names;

  [[nodiscard]] bool is_node(const pybind11::handle& value) const {
    return pybind11::type::handle_of(value).is(node_);
  }
  [[nodiscard]] pybind11::object leaf(const pybind11::handle& value) const { return leaf_(value); }

  /// Returns a target's text, cached.
  const std::string& target(const pybind11::object& target) {
    const auto [entry, first] = targets_.try_emplace(target.ptr());
    if (first) entry->second = {target, target_(target).cast<std::string>()};
    return entry->second.second;
  }

  [[nodiscard]] std::string purity(const pybind11::object& target) const {
    return purity_(target).cast<std::string>();
  }
  [[nodiscard]] bool is_tensor(const pybind11::handle& value) const {
    return PyType_IsSubtype(Py_TYPE(value.ptr()), type_object(tensor_)) != 0;
  }

  /// Returns a type as torch prints it, f32[s0, 64] or Sym(s0); empty for anything but a tensor or
  /// a number.
  std::string type(const pybind11::handle& value);
  /// Returns a node's name; raises PW1411 if it is not a valid value name.
  [[nodiscard]] std::string name(const pybind11::handle& node) const;
  /// Returns a node's meta["val"], or None.
  [[nodiscard]] pybind11::handle value(const pybind11::handle& node) const;

 private:
  static PyTypeObject* type_object(const pybind11::object& type) {
    return reinterpret_cast<PyTypeObject*>(type.ptr());
  }
  std::string type_text(const pybind11::handle& value) const {
    return type_(value).cast<std::string>();
  }
  /// Returns true for the CPU device, which most tensors share as one object.
  bool is_known(const pybind11::object& device);

  pybind11::object node_, tensor_, strided_, target_, leaf_, type_, purity_, dtypes_, cpu_;
  std::unordered_map<PyObject*, std::pair<pybind11::object, std::string>> targets_;
};

}  // namespace pw::python
