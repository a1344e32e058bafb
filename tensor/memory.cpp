#include "tensor/memory.hpp"

#include <algorithm>
#include <fstream>
#include <limits>

#include <sys/resource.h>
#include <unistd.h>

namespace pw {
namespace {

constexpr std::int64_t kUnknown = std::numeric_limits<std::int64_t>::max();

std::int64_t physical() {
  const std::int64_t pages = ::sysconf(_SC_PHYS_PAGES), size = ::sysconf(_SC_PAGE_SIZE);
  return pages > 0 && size > 0 ? pages * size : kUnknown;
}

std::int64_t of_process() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kUnknown;
  return static_cast<std::int64_t>(std::min<rlim_t>(limit.rlim_cur, kUnknown));
}

/// A file with the text "max" contains no number.
std::int64_t of_group() {
  std::ifstream file("/sys/fs/cgroup/memory.max");
  std::int64_t bytes = 0;
  return file >> bytes && bytes > 0 ? bytes : kUnknown;
}

}  // namespace

std::int64_t memory_limit() {
  static const std::int64_t limit = std::min({physical(), of_process(), of_group()});
  return limit;
}

}  // namespace pw
