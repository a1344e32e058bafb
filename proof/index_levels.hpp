// Numbering of index levels: output axes first, then the rank, then the indices bound by sums and
// by tensors of opaque ops.
// An index is identified by its level alone, so the ranges must not overlap. reals/dependence.hpp
// adds two more, above these.
#pragma once

#include <cstdint>
#include <string>

#include <fmt/format.h>

namespace pw::proof {

inline constexpr std::uint32_t kAxisLevel = 1000;
inline constexpr std::uint32_t kRankLevel = 2000;

/// Returns a printable name: i0 for the first output axis, k0 for the first bound index.
[[nodiscard]] inline std::string index_name(std::uint32_t level) {
  if (level >= kRankLevel) return "rank";
  return level >= kAxisLevel ? fmt::format("i{}", level - kAxisLevel) : fmt::format("k{}", level);
}

}  // namespace pw::proof
