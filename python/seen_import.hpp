// A graph of torch.fx, imported as far as the rules of a pipeline can see it.
#pragma once

#include <pybind11/pybind11.h>

#include "import/fx/fx.hpp"

namespace pw::python {

/// Returns an import's graph and messages as a Python dict.
pybind11::dict summary_of(const ContextPtr& context, FxImport done);

}  // namespace pw::python
