#include "base/io/own_folders.hpp"

#include <algorithm>

namespace pw {
namespace {

namespace fs = std::filesystem;

bool lies_in(const fs::path& file, const fs::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), file.begin(), file.end()).first ==
         folder.end();
}

}  // namespace

fs::path real_path(const fs::path& path) {
  std::error_code error;
  fs::path found = fs::weakly_canonical(path.empty() ? fs::path(".") : path, error);
  return error ? path.lexically_normal() : found;
}

void OwnFolders::add_file(const fs::path& file) {
  add(file.parent_path());
  folders_.push_back(real_path(file).parent_path());
}

void OwnFolders::add(const fs::path& folder) { folders_.push_back(real_path(folder)); }

bool OwnFolders::hold(const fs::path& file) const {
  const fs::path place = real_path(file);
  return std::any_of(folders_.begin(), folders_.end(),
                     [&](const fs::path& folder) { return lies_in(place, folder); });
}

}  // namespace pw
