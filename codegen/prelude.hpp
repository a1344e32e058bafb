// Source text at the start of every generated kernel, shared by C++ and CUDA.
#pragma once

#include <string_view>

namespace pw::cuda {

/// Returns the text before kernels: scalars, conversions, and a reduction in one thread.
[[nodiscard]] std::string_view prelude();
/// Returns declarations of CUDA built-ins for a C++ compiler without headers; they precede
/// prelude().
[[nodiscard]] std::string_view host_names();

}  // namespace pw::cuda
