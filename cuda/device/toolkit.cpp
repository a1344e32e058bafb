#include "cuda/device/toolkit.hpp"

#include "base/environment.hpp"

namespace pw::cuda {

std::vector<std::string> toolkit_files(const std::string& library, int newest) {
  std::vector<std::string> folders{""};
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const std::string root = environment(variable); !root.empty())
      folders.push_back(root + "/lib64/");
  }
  folders.emplace_back("/usr/local/cuda/lib64/");
  std::vector<std::string> paths;
  for (int version : {13, 12}) {
    if (newest != 0 && version > newest) continue;
    for (const std::string& folder : folders)
      paths.push_back(folder + library + ".so." + std::to_string(version));
  }
  return paths;
}

}  // namespace pw::cuda
