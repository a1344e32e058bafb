// The folders of the files that a user named. A file that those refer to elsewhere may belong to
// somebody else: errors in it are reported without quoting it.
#pragma once

#include <filesystem>
#include <vector>

namespace pw {

class OwnFolders {
 public:
  /// Adds the folder of a file: the one in its path, and for a link also the one of its target.
  void add_file(const std::filesystem::path& file);
  void add(const std::filesystem::path& folder);
  /// Returns true if the file is in one of the folders or below, after following links.
  [[nodiscard]] bool hold(const std::filesystem::path& file) const;

 private:
  std::vector<std::filesystem::path> folders_;
};

/// Returns the path without links and dots, as far as it exists.
[[nodiscard]] std::filesystem::path real_path(const std::filesystem::path& path);

}  // namespace pw
