// The canonical form of a piece: its text with layer names, weights and value names abstracted. Two
// pieces of one context are equal if and only if their forms are. The hash is computed from printed
// text, so that it is stable between runs.
#pragma once

#include <cstdint>
#include <vector>

#include "splitter/splitter.hpp"

namespace pw {

/// Returns interned ids and value numbers, node by node.
std::vector<std::uint32_t> canonical_form(const Graph& piece);
std::uint64_t canonical_hash(const Graph& piece);

/// Fills `classes` and each piece's `piece_class`. With fold off, every piece is its own class.
void fold_pieces(StitchedGraph& stitched, bool fold);

}  // namespace pw
