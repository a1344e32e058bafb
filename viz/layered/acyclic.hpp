// Orders of graphs that should have one: stable topological orders, and the parts that have none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace pw::viz {

struct Arrow {
  std::uint32_t from = 0, to = 0;  ///< vertices; from = to is left out
};

/// Whether the vertices are in a topological order as they are numbered.
bool goes_forward(const std::vector<Arrow>& arrows);
/// The topological order that takes the vertex with the least number wherever it may; nothing, if
/// there is a cycle. O((V + E) log V).
std::optional<std::vector<std::uint32_t>> stable_order(std::size_t vertices,
                                                       const std::vector<Arrow>& arrows);
/// By vertex: a vertex of its strongly connected component, the same for all in it (Tarjan 1972,
/// without recursion). O(V + E).
std::vector<std::uint32_t> components(std::size_t vertices, const std::vector<Arrow>& arrows);

/// Out-arrows by vertex, in the order given.
struct Adjacency {
  std::vector<std::uint32_t> begin, to;
  Adjacency(std::size_t vertices, const std::vector<Arrow>& arrows);
};

}  // namespace pw::viz
