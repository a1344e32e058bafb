// Files that a test passes to readers of files.
#pragma once

#include <fstream>
#include <string>

namespace pw::test {

/// The path of a file of this text, below build/.
inline std::string written(const std::string& name, const std::string& text) {
  const std::string path = "build/" + name;
  std::ofstream(path) << text;
  return path;
}

}  // namespace pw::test
