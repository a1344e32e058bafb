// Finds libraries of the CUDA toolkit.
#pragma once

#include <string>
#include <vector>

namespace pw::cuda {

/// Returns candidate paths of a library such as "libnvrtc": .so.13, then .so.12, each on the
/// loader's path, then in CUDA_HOME, CUDA_PATH and /usr/local/cuda. None is newer than `newest`; 0:
/// any.
[[nodiscard]] std::vector<std::string> toolkit_files(const std::string& library, int newest = 0);

}  // namespace pw::cuda
