// Connected pieces of real graphs as forms over small sizes, deduplicated.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "discover/discover.hpp"
#include "graph/graph.hpp"

namespace pw::discover {

struct Window {
  Pair pair;                                  ///< at small sizes; `after` is empty
  Parts parts;                                ///< splits of small sizes
  std::map<std::int64_t, std::int64_t> real;  ///< by small size
  std::size_t seen = 1;
};

/// Returns the windows of at most `nodes` nodes, in order of discovery. Nodes are connected if one
/// reads the other, or if both have one op and read one value. Excludes pieces with effects,
/// non-convex pieces, and pieces that are not well typed at small sizes.
[[nodiscard]] std::vector<Window> windows_of(const std::vector<Graph>& graphs, std::size_t nodes,
                                             Counts& counts);

/// Small numbers for the sizes of a pair's left side: distinct for distinct sizes, and sums for
/// split sizes. `real` types may have symbols.
struct Shrunk {
  Pair pair;
  Parts parts;
  std::map<std::int64_t, std::int64_t> real;
};
[[nodiscard]] std::optional<Shrunk> shrunk(Context& context, const Pair& pair, const Facts& facts);

}  // namespace pw::discover
