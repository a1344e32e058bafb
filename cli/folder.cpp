// Exports make_folder.
#include <filesystem>

#include "cli/rewriting.hpp"

namespace pw::cli {

void make_folder(const Session& session, const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error)
    session.die("cannot make the folder `" + path + "`: " + error.message(), "", kInvalidInput);
}

}  // namespace pw::cli
