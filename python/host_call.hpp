// A call of an opaque op as Python makes it: its arguments as they were written, around tensors of
// any library.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include <pybind11/pybind11.h>

#include "backends/host_functions.hpp"

namespace pw::python {

/// How tensors reach Python and come back.
struct HostArrays {
  /// An array of a view's contents, or over its memory.
  std::function<pybind11::object(const TensorView&)> array;
  /// Copies an array to its place; raises where dtype or extents are others. `what` is named then.
  std::function<void(const pybind11::handle& given, const TensorView& place,
                     const std::string& what)>
      keep;
  bool named = false;  ///< the callable gets the node's name first
};

/// Calls the function, and keeps what it wrote and returned. Python's exceptions pass through;
/// PW1214 for another number of results than the op has.
void call_python(const HostCall& call, const pybind11::object& function, const HostArrays& arrays);

/// The host function of a callable. What the callable raises goes to `raised`, and the call fails
/// with PW1214; without one it is thrown through the run.
HostFunction host_function_of(pybind11::object function, HostArrays arrays,
                              std::shared_ptr<std::exception_ptr> raised = nullptr);

/// The functions of a context while a graph runs, with tensors as arrays of numpy; and the first
/// exception that one raised.
class PythonFunctions {
 public:
  PythonFunctions(const ContextPtr& context,
                  const std::map<std::string, pybind11::object>& functions);
  ~PythonFunctions();
  PythonFunctions(const PythonFunctions&) = delete;
  PythonFunctions& operator=(const PythonFunctions&) = delete;

  /// Python's own exception, where one ended the run.
  void rethrow() const;

 private:
  ContextPtr context_;
  std::shared_ptr<HostFunctions> before_;
  std::shared_ptr<std::exception_ptr> raised_ = std::make_shared<std::exception_ptr>();
};

}  // namespace pw::python
