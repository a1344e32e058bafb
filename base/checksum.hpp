// A checksum of bytes that is the same on every machine.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/hash.hpp"

namespace pw {

/// Reads a little-endian number, whatever its alignment.
inline std::uint32_t number_at(std::string_view bytes, std::size_t at) {
  const auto* p = reinterpret_cast<const unsigned char*>(bytes.data() + at);
  return p[0] | std::uint32_t{p[1]} << 8 | std::uint32_t{p[2]} << 16 | std::uint32_t{p[3]} << 24;
}

/// Computes a checksum in eight lanes, so that it keeps up with memory. Each lane is mixed from
/// word to word, so that two one-bit changes do not cancel. It detects damage and change, not
/// malice.
inline std::uint64_t checksum(std::string_view bytes) {
  constexpr std::size_t kLanes = 8, kBlock = 8 * kLanes;
  std::array<std::uint64_t, kLanes> lanes = {1, 2, 3, 4, 5, 6, 7, 8};
  const auto word = [&](std::size_t at) {
    return std::uint64_t{number_at(bytes, at)} | std::uint64_t{number_at(bytes, at + 4)} << 32;
  };
  std::size_t at = 0;
  for (; at + kBlock <= bytes.size(); at += kBlock)
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      std::uint64_t& sum = lanes[lane];
      sum = (sum ^ word(at + 8 * lane)) * 0x9fb21c651e98df25ull;
      sum ^= sum >> 29;
    }
  std::uint64_t out = bytes.size();
  for (; at < bytes.size(); ++at) out = combine(out, static_cast<unsigned char>(bytes[at]));
  for (const std::uint64_t sum : lanes) out = combine(out, sum);
  return out;
}

}  // namespace pw
