// Extensions of a run in Python: backends and hooks.
#pragma once

#include <memory>
#include <string>

#include <pybind11/pybind11.h>

#include "engines/step_engine.hpp"

namespace pw::python {

/// Returns a backend from a callable. `compile(graph)` returns a callable that takes an array for
/// each input and returns one for each output, in order.
StepEngineKind engine_of_python(const std::string& name, const pybind11::object& compile);
/// Returns a hook from an object with `before(call)`, `after(call)`, or both; null for None.
std::unique_ptr<PieceHook> hook_of_python(const pybind11::object& hook);
/// Adds PieceCall and bind_extern.
void add_engines(pybind11::module_& module);

}  // namespace pw::python
