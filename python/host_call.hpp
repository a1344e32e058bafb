// Calls opaque ops in Python: converts arguments, with tensors of any library.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include <pybind11/pybind11.h>

#include "backends/host_functions.hpp"

namespace pw::python {

/// Conversion of tensors to and from Python.
struct HostArrays {
  /// Returns an array with a view's contents, or over its memory.
  std::function<pybind11::object(const TensorView&)> array;
  /// Copies an array into place; raises an error that names `what` if dtype or extents differ.
  std::function<void(const pybind11::handle& given, const TensorView& place,
                     const std::string& what)>
      keep;
  bool named = false;  ///< pass the node's name as the first argument
};

/// Calls the function and stores written and returned tensors. Propagates Python exceptions; PW1214
/// for a wrong number of results.
void call_python(const HostCall& call, const pybind11::object& function, const HostArrays& arrays);

/// Returns the host function of a callable. With `raised`, an exception is stored there and the
/// call fails with PW1214; otherwise it propagates through the run.
HostFunction host_function_of(pybind11::object function, HostArrays arrays,
                              std::shared_ptr<std::exception_ptr> raised = nullptr);

/// The functions of a context during a run, with tensors as numpy arrays, and the first exception
/// that one raised.
class PythonFunctions {
 public:
  PythonFunctions(const ContextPtr& context,
                  const std::map<std::string, pybind11::object>& functions);
  ~PythonFunctions();
  PythonFunctions(const PythonFunctions&) = delete;
  PythonFunctions& operator=(const PythonFunctions&) = delete;

  /// Rethrows the Python exception that ended the run, if any.
  void rethrow() const;

 private:
  ContextPtr context_;
  std::shared_ptr<HostFunctions> before_;
  std::shared_ptr<std::exception_ptr> raised_ = std::make_shared<std::exception_ptr>();
};

}  // namespace pw::python
