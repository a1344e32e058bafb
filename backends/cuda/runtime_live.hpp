// Internal to cuda/: the step that a runtime is in.
#pragma once

#include "backends/cuda/runtime.hpp"

namespace pw::cuda {

struct Runtime::Live {
  Step step;
  StepReport report;
  RunOptions options;
  std::size_t next = 0;  ///< of the plan's steps
};

}  // namespace pw::cuda
