#include "base/io/unfinished_files.hpp"

#include <array>
#include <atomic>
#include <climits>
#include <cstring>

#include <unistd.h>

namespace pw {
namespace {

constexpr std::size_t kPlaces = 16;  // threads that write at once

struct Place {
  std::atomic<bool> taken{false};
  std::atomic<bool> holds{false};  ///< the path is all there
  std::array<char, PATH_MAX> path{};
};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler reads them");

std::array<Place, kPlaces> places;

}  // namespace

UnfinishedFile::UnfinishedFile(const std::string& path) : place_(kPlaces) {
  if (path.size() >= PATH_MAX) return;
  for (std::size_t i = 0; i < kPlaces; ++i) {
    if (places[i].taken.exchange(true)) continue;
    std::memcpy(places[i].path.data(), path.c_str(), path.size() + 1);
    places[i].holds = true;
    place_ = i;
    return;
  }
}

UnfinishedFile::~UnfinishedFile() {
  if (place_ == kPlaces) return;
  places[place_].holds = false;
  places[place_].taken = false;
}

void remove_unfinished_files() noexcept {
  for (Place& place : places)
    if (place.holds) ::unlink(place.path.data());
}

}  // namespace pw
