// What the reader and the writer of graph.pwb agree on.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/hash.hpp"

namespace pw::binary {

// Like PNG's: a transfer as text damages it, and no text begins so.
inline constexpr std::string_view kMagic = "\x89PWB\r\n\x1a\n";
inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::uint32_t kNone = 0xffffffffu;  // no operand
// Of a name: with the top bit a pattern and the number in it, else a text.
inline constexpr std::uint32_t kPatternBit = 1u << 31;
inline constexpr std::size_t kMostPatterns = 1023;

/// After magic, version and checksum: how many of each, in the order in which they stand. `json`
/// and `characters` are bytes; each of the others is as many numbers of 32 bits as kWidths says.
struct Counts {
  enum : std::uint8_t {
    json,        // the kinds, as graph.json
    characters,  // of all texts
    texts,       // where each ends
    patterns,    // the texts before and after the number
    places,      // group and source, each a text and one more, or 0
    inputs,      // kind, name
    nodes,       // kind, place and one more, or 0
    operands,    // of all nodes: a value or kNone
    results,     // of all nodes: a name
    own_names,   // node, text
    outputs,     // a value
    writes,      // input, value
    input_kinds,
    count
  };
  std::array<std::uint32_t, count> of{};
  std::uint32_t operator[](std::size_t i) const { return of[i]; }
  std::uint32_t& operator[](std::size_t i) { return of[i]; }
};
inline constexpr std::array<std::uint32_t, Counts::count> kWidths = {0, 0, 1, 2, 2, 2, 2,
                                                                     1, 1, 2, 1, 2, 0};
inline constexpr std::size_t kBody = kMagic.size() + 4 + 8;  // where the checksum begins
inline constexpr std::size_t kHeader = kBody + 4 * Counts::count;

/// Little-endian, wherever it stands.
inline std::uint32_t number_at(std::string_view bytes, std::size_t at) {
  const auto* p = reinterpret_cast<const unsigned char*>(bytes.data() + at);
  return p[0] | std::uint32_t{p[1]} << 8 | std::uint32_t{p[2]} << 16 | std::uint32_t{p[3]} << 24;
}

/// Four lanes, so that it keeps up with memory. It finds damage, not malice: a stranger's file is
/// checked like any other.
inline std::uint64_t checksum(std::string_view bytes) {
  std::array<std::uint64_t, 4> lanes = {1, 2, 3, 4};
  const auto word = [&](std::size_t at) {
    return std::uint64_t{number_at(bytes, at)} | std::uint64_t{number_at(bytes, at + 4)} << 32;
  };
  std::size_t at = 0;
  for (; at + 32 <= bytes.size(); at += 32)
    for (std::size_t lane = 0; lane < 4; ++lane) {
      std::uint64_t& sum = lanes[lane];
      sum = (sum ^ word(at + 8 * lane)) * 0x9fb21c651e98df25ull;
      sum ^= sum >> 29;
    }
  std::uint64_t out = bytes.size();
  for (; at < bytes.size(); ++at) out = combine(out, static_cast<unsigned char>(bytes[at]));
  for (const std::uint64_t sum : lanes) out = combine(out, sum);
  return out;
}

}  // namespace pw::binary
