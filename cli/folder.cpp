// Exports make_folder.
#include <filesystem>

#include "base/standard_output.hpp"
#include "cli/rewriting.hpp"

namespace pw::cli {

void make_folder(const Session& session, const std::string& path) {
  if (names_stream(path))
    session.die("`" + path + "` is no folder, and several files are written",
                "name a folder; it is made where it is absent", kUsage);
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error)
    session.die("cannot make the folder `" + path + "`: " + error.message(), "", kInvalidInput);
}

}  // namespace pw::cli
