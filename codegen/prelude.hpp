// Texts that every generated kernel begins with, the same for C++ and for CUDA.
#pragma once

#include <string_view>

namespace pw::cuda {

/// Returns the text before kernels: scalars, conversions, and a reduction in one thread.
[[nodiscard]] std::string_view prelude();
/// Returns declarations that CUDA has built in, for a C++ compiler without headers; they stand
/// before prelude().
[[nodiscard]] std::string_view host_names();

}  // namespace pw::cuda
