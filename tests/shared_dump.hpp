// Dumps of real models, for tests that pass without them.
#pragma once

#include <filesystem>
#include <iostream>
#include <string>

#include "base/environment.hpp"

namespace pw::test {

/// The path of an FX dump; empty, with a loud message, if it is absent.
inline std::string shared_dump(const std::string& name) {
  const std::string root = environment("PW_SHARED_DATA");
  const std::string path = (root.empty() ? "../shared/data" : root) + "/fx/" + name;
  if (std::filesystem::exists(path)) return path;
  std::cerr << "SKIPPED: " << path << " is not there; set PW_SHARED_DATA to the folder with fx/\n";
  return "";
}

}  // namespace pw::test
