// Layout shared by the reader and the writer of graph.pwb.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/checksum.hpp"

namespace pw::binary {

// Like PNG's: a transfer as text damages it, and no text begins with it.
inline constexpr std::string_view kMagic = "\x89PWB\r\n\x1a\n";
inline constexpr std::uint32_t kVersion = 2;
inline constexpr std::uint32_t kNone = 0xffffffffu;  // no operand, group or source
// Bit of a name or another phrase: set for a pattern and its number, clear for a text.
inline constexpr std::uint32_t kPatternBit = 1u << 31;
inline constexpr std::uint32_t kVariantBit = 1u << 31;  // of a node's kind: a variant, else a kind
inline constexpr std::size_t kMostPatterns = 1023;

/// Counts of each table after magic, version and checksum, in the order of the tables. `json` and
/// `characters` are bytes; each entry of the others has as many 32-bit numbers as kWidths states.
struct Counts {
  enum : std::uint8_t {
    json,        // the kinds, as graph.json
    characters,  // of all texts
    texts,       // where each ends
    patterns,    // the texts before and after the number
    places,      // group and source, each words or kNone
    variants,    // a kind, one of its attributes (a text), the words that replace it
    inputs,      // kind, name
    nodes,       // kind or variant, place and one more, or 0
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
inline constexpr std::array<std::uint32_t, Counts::count> kWidths = {0, 0, 1, 2, 2, 3, 2,
                                                                     2, 1, 1, 2, 1, 2, 0};
inline constexpr std::size_t kBody = kMagic.size() + 4 + 8;  // where the checksum begins
inline constexpr std::size_t kHeader = kBody + 4 * Counts::count;

}  // namespace pw::binary
