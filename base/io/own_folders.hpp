// The folders of the files that a user named. A file that those name elsewhere may be none of the
// user's: what is wrong with it is told without quoting it.
#pragma once

#include <filesystem>
#include <vector>

namespace pw {

class OwnFolders {
 public:
  /// The folder of a file: where its name stands, and where it is if that is a link.
  void add_file(const std::filesystem::path& file);
  void add(const std::filesystem::path& folder);
  /// Whether the file lies in one of them or below, links followed.
  [[nodiscard]] bool hold(const std::filesystem::path& file) const;

 private:
  std::vector<std::filesystem::path> folders_;
};

/// The path without links and dots; as far as it exists.
[[nodiscard]] std::filesystem::path real_path(const std::filesystem::path& path);

}  // namespace pw
