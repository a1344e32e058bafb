#include "base/io/shown_path.hpp"

namespace pw {

std::string shown_path(std::string_view path) {
  if (path.empty() || path[0] != '/') return std::string(path);
  return std::string(path.substr(path.rfind('/') + 1));
}

}  // namespace pw
