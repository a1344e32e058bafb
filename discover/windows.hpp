// Connected pieces of real graphs as forms over small sizes. Pieces that are alike are one window.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "discover/discover.hpp"
#include "graph/graph.hpp"

namespace pw::discover {

struct Window {
  Pair pair;                                  ///< at small sizes; `after` is empty
  Parts parts;                                ///< of small sizes
  std::map<std::int64_t, std::int64_t> real;  ///< by small size
  std::size_t seen = 1;
};

/// Those of at most so many nodes, in the order in which they are met. Nodes belong together where
/// one reads the other, or both are of one op and read one value. What has an effect, what is
/// reached again from outside, and what is not well typed at small sizes, is no window.
[[nodiscard]] std::vector<Window> windows_of(const std::vector<Graph>& graphs, std::size_t nodes,
                                             Counts& counts);

/// Small numbers in place of the sizes of a pair's left side: unlike ones for unlike sizes, sums
/// for what a step takes apart. `real` types may have symbols.
struct Shrunk {
  Pair pair;
  Parts parts;
  std::map<std::int64_t, std::int64_t> real;
};
[[nodiscard]] std::optional<Shrunk> shrunk(Context& context, const Pair& pair, const Facts& facts);

}  // namespace pw::discover
