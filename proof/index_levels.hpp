// What indices stand for, by their level: axes of outputs, the rank, and below these what sums and
// tensors of opaque ops bind.
#pragma once

#include <cstdint>
#include <string>

#include <fmt/format.h>

namespace pw::proof {

inline constexpr std::uint32_t kAxisLevel = 1000;
inline constexpr std::uint32_t kRankLevel = 2000;

/// i0 for the first axis of an output, k0 for what a sum binds.
[[nodiscard]] inline std::string index_name(std::uint32_t level) {
  if (level >= kRankLevel) return "rank";
  return level >= kAxisLevel ? fmt::format("i{}", level - kAxisLevel) : fmt::format("k{}", level);
}

}  // namespace pw::proof
