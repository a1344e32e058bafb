// Internal to cuda/: how the threads of a team divide a row program, and the text of that.
#pragma once

#include <string>

#include "cuda/kernels/emitter.hpp"

namespace pw::cuda {

/// The body of the kernel; fills how it is launched and what it does.
std::string emit_body(const rows::RowProgram& program, Kernel& kernel);

}  // namespace pw::cuda
