// Internal to cuda/: divides a row program among the threads of a team, and emits the text.
#pragma once

#include <string>

#include "cuda/kernels/emitter.hpp"

namespace pw::cuda {

/// Returns the body of the kernel, and fills its launch configuration and statistics.
std::string emit_body(const rows::RowProgram& program, Kernel& kernel);

}  // namespace pw::cuda
