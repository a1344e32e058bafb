#include "base/io/read_paths.hpp"

#include <algorithm>
#include <mutex>

#include "base/io/file.hpp"

namespace pw {
namespace {

struct ReadPaths {
  std::mutex lock;
  std::vector<ReadPath> paths;
  std::vector<std::string> ignored;  ///< folders, each with its slash
};

ReadPaths& noted() {
  static ReadPaths paths;
  return paths;
}

}  // namespace

void note_read_path(const std::string& path) {
  ReadPaths& all = noted();
  const std::lock_guard held(all.lock);
  const auto below = [&](const std::string& folder) { return path.starts_with(folder); };
  if (std::ranges::any_of(all.ignored, below)) return;
  if (std::ranges::find(all.paths, path, &ReadPath::path) == all.paths.end())
    all.paths.push_back({path, file_stamp(path)});
}

std::vector<ReadPath> read_paths() {
  ReadPaths& all = noted();
  const std::lock_guard held(all.lock);
  return all.paths;
}

void ignore_reads_below(const std::string& folder) {
  ReadPaths& all = noted();
  const std::lock_guard held(all.lock);
  if (std::ranges::find(all.ignored, folder + "/") == all.ignored.end())
    all.ignored.push_back(folder + "/");
}

}  // namespace pw
