// Compares the tensors of a call with those of an earlier one through the C functions that PyTorch
// exports for compiled models: no call into Python for each tensor.
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <pybind11/stl.h>

#include "python/module.hpp"

namespace py = pybind11;

namespace pw::python {
namespace {

/// A handle is the address of an at::Tensor, whose one member is the address of its TensorImpl.
using Handle = const std::uintptr_t*;
struct TorchFunctions {
  int (*data)(Handle tensor, void** out);             ///< aoti_torch_get_data_ptr
  int (*strides)(Handle tensor, std::int64_t** out);  ///< aoti_torch_get_strides
};

/// Tensors among the arguments of a call. Holds weak references, as the caller owns them. PyTorch
/// exchanges the TensorImpl only of tensors without these.
class SameTensors {
 public:
  SameTensors(std::pair<std::uintptr_t, std::uintptr_t> functions, const py::list& arguments,
              std::vector<std::size_t> indices)
      : torch_{reinterpret_cast<decltype(TorchFunctions::data)>(functions.first),
               reinterpret_cast<decltype(TorchFunctions::strides)>(functions.second)},
        indices_(std::move(indices)) {
    for (const std::size_t i : indices_) {
      if (i >= arguments.size()) throw mistake("PW1411", "there is no argument of this index");
      const py::object tensor = arguments[i];
      Seen seen{py::weakref(tensor), tensor.attr("_cdata").cast<std::uintptr_t>(), nullptr, {}};
      std::int64_t* strides = nullptr;
      if (torch_.data(&seen.tensor, &seen.address) != 0 ||
          torch_.strides(&seen.tensor, &strides) != 0)
        throw mistake("PW1411", "an argument has no memory");
      seen.strides.assign(strides, strides + tensor.attr("ndim").cast<std::size_t>());
      seen_.push_back(std::move(seen));
    }
  }

  /// Returns true if these are the same objects, with the same memory and strides. Their dtypes and
  /// sizes are those of the graph.
  [[nodiscard]] bool are(const py::list& arguments) const {
    for (std::size_t i = 0; i < indices_.size(); ++i) {
      const Seen& seen = seen_[i];
      if (indices_[i] >= arguments.size() ||
          !is(seen.object, PyList_GET_ITEM(arguments.ptr(), static_cast<Py_ssize_t>(indices_[i]))))
        return false;
      void* address = nullptr;
      std::int64_t* strides = nullptr;
      if (torch_.data(&seen.tensor, &address) != 0 || address != seen.address ||
          torch_.strides(&seen.tensor, &strides) != 0 ||
          !std::equal(seen.strides.begin(), seen.strides.end(), strides))
        return false;
    }
    return true;
  }

 private:
  struct Seen {
    py::weakref object;
    std::uintptr_t tensor = 0;  ///< its TensorImpl, which lives while the object does
    void* address = nullptr;
    std::vector<std::int64_t> strides;
  };
  static bool is(const py::weakref& reference, PyObject* object) {
#if PY_VERSION_HEX >= 0x030d0000
    PyObject* found = nullptr;
    if (PyWeakref_GetRef(reference.ptr(), &found) <= 0) return false;
    Py_DECREF(found);
    return found == object;
#else
    return PyWeakref_GetObject(reference.ptr()) == object;
#endif
  }

  TorchFunctions torch_;
  std::vector<std::size_t> indices_;
  std::vector<Seen> seen_;
};

}  // namespace

void add_same_tensors(py::module_& module) {
  py::class_<SameTensors>(module, "SameTensors",
                          "Tensors among the arguments of a call, to compare later calls with.")
      .def(py::init<std::pair<std::uintptr_t, std::uintptr_t>, const py::list&,
                    std::vector<std::size_t>>(),
           py::arg("functions"), py::arg("arguments"), py::arg("indices"))
      .def("are", &SameTensors::are, py::arg("arguments"),
           "Returns True if a call has the same tensors, at the same addresses and with the same "
           "strides. `functions`: the addresses of aoti_torch_get_data_ptr and "
           "aoti_torch_get_strides.");
}

}  // namespace pw::python
