// Topological orders and strongly connected components of directed graphs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace pw::viz {

struct Arrow {
  std::uint32_t from = 0, to = 0;  ///< vertices; self-loops are ignored
};

/// Returns true if the vertex numbers are a topological order.
bool goes_forward(const std::vector<Arrow>& arrows);
/// Returns the lexicographically smallest topological order; nothing if there is a cycle. O((V + E)
/// log V).
std::optional<std::vector<std::uint32_t>> stable_order(std::size_t vertices,
                                                       const std::vector<Arrow>& arrows);
/// Returns, for each vertex, the representative of its strongly connected component (Tarjan 1972,
/// iterative). O(V + E).
std::vector<std::uint32_t> components(std::size_t vertices, const std::vector<Arrow>& arrows);

/// Outgoing arrows by vertex, in the order given.
struct Adjacency {
  std::vector<std::uint32_t> begin, to;
  Adjacency(std::size_t vertices, const std::vector<Arrow>& arrows);
};

}  // namespace pw::viz
