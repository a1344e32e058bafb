// Where libraries of the CUDA toolkit are looked for.
#pragma once

#include <string>
#include <vector>

namespace pw::cuda {

/// The files of a library, "libnvrtc": .so.13, then .so.12, each by the loader's path, then under
/// CUDA_HOME, CUDA_PATH and /usr/local/cuda. None of a newer version than `newest`; 0: any.
[[nodiscard]] std::vector<std::string> toolkit_files(const std::string& library, int newest = 0);

}  // namespace pw::cuda
