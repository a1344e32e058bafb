// How a long stage says how far it is.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>

namespace pw {

/// `what` is done now, "reading": `done` of `total` things counted in `unit`. Called now and then;
/// may be empty.
using StageProgress = std::function<void(std::string_view what, std::size_t done, std::size_t total,
                                         std::string_view unit)>;

/// Every so many things a stage says a word: often enough for an eye, seldom enough to cost
/// nothing.
inline constexpr std::size_t kToldEvery = 4096;

inline void tell(const StageProgress& progress, std::string_view what, std::size_t done,
                 std::size_t total, std::string_view unit) {
  if (progress && done % kToldEvery == 0) progress(what, done, total, unit);
}

}  // namespace pw
