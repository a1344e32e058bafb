#include "python/torch_objects.hpp"

#include "import/fx/text/ast.hpp"

namespace py = pybind11;

namespace pw::python {

py::object attribute(const py::handle& object, const py::str& name) {
  PyObject* const value = PyObject_GetAttr(object.ptr(), name.ptr());
  if (value == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(value);
}

std::string_view text_of(const py::handle& value) {
  Py_ssize_t size = 0;
  const char* const text = PyUnicode_AsUTF8AndSize(value.ptr(), &size);
  if (text == nullptr) throw py::error_already_set();
  return {text, static_cast<std::size_t>(size)};
}

void check_value_name(const std::string& name) {
  if (!fx::is_word(name)) throw mistake("PW1411", "`" + name + "` is not a valid name of a value");
}

std::string TorchObjects::name(const py::handle& node) const {
  std::string out(text_of(attribute(node, names.name)));
  check_value_name(out);
  return out;
}

std::string TorchObjects::type(const py::handle& value) {
  if (value.is_none() || PyTuple_Check(value.ptr()) || PyList_Check(value.ptr())) return {};
  if (!is_tensor(value)) return type_text(value);
  const py::object dtype = attribute(value, names.dtype);
  PyObject* const name = PyDict_GetItem(dtypes_.ptr(), dtype.ptr());
  if (name == nullptr || !attribute(value, names.layout).is(strided_) ||
      !is_known(attribute(value, names.device)))
    return type_text(value);
  std::string out = py::handle(name).cast<std::string>();
  char before = '[';
  for (const py::handle extent : attribute(value, names.shape)) {
    out += before;
    if (before == ',') out += ' ';
    out += PyLong_CheckExact(extent.ptr()) ? std::to_string(extent.cast<std::int64_t>())
                                           : py::str(extent).cast<std::string>();
    before = ',';
  }
  if (before == '[') out += '[';
  if (out.find("Float") != std::string::npos) return type_text(value);  // computed in floats
  return out += ']';
}

py::handle TorchObjects::value(const py::handle& node) const {
  const py::object meta = attribute(node, names.meta);
  PyObject* const found = PyDict_GetItem(meta.ptr(), names.val.ptr());
  return found != nullptr ? found : Py_None;
}

bool TorchObjects::is_known(const py::object& device) {
  if (device.is(cpu_)) return true;
  if (device.attr("type").cast<std::string_view>() != "cpu") return false;
  cpu_ = device;
  return true;
}

}  // namespace pw::python
