// How a long stage reports its progress.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>

namespace pw {

/// Called now and then with the current activity ("reading") and `done` of `total` items counted in
/// `unit`. May be empty.
using StageProgress = std::function<void(std::string_view what, std::size_t done, std::size_t total,
                                         std::string_view unit)>;

/// Number of items between two reports: often enough for a viewer, rare enough to cost nothing.
inline constexpr std::size_t kToldEvery = 4096;

inline void tell(const StageProgress& progress, std::string_view what, std::size_t done,
                 std::size_t total, std::string_view unit) {
  if (progress && done % kToldEvery == 0) progress(what, done, total, unit);
}

}  // namespace pw
