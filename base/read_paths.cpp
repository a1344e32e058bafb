// Exports note_read_path and read_paths.
#include "base/read_paths.hpp"

#include <algorithm>
#include <mutex>

#include "base/file.hpp"

namespace pw {
namespace {

struct ReadPaths {
  std::mutex lock;
  std::vector<ReadPath> paths;
};

ReadPaths& noted() {
  static ReadPaths paths;
  return paths;
}

}  // namespace

void note_read_path(const std::string& path) {
  ReadPaths& all = noted();
  const std::lock_guard held(all.lock);
  if (std::ranges::find(all.paths, path, &ReadPath::path) == all.paths.end())
    all.paths.push_back({path, file_stamp(path)});
}

std::vector<ReadPath> read_paths() {
  ReadPaths& all = noted();
  const std::lock_guard held(all.lock);
  return all.paths;
}

}  // namespace pw
