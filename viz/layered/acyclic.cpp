// Kahn's algorithm with a priority queue gives the lexicographically smallest topological order.
// Tarjan's algorithm (1972) with an explicit stack finds strongly connected components; the stack
// avoids deep recursion on long graphs. Arrows are stored as compressed adjacency lists.
#include "viz/layered/acyclic.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>

namespace pw::viz {

/// A counting sort by source: begin[v] … begin[v + 1] are the arrows of v, in the order given.
Adjacency::Adjacency(std::size_t vertices, const std::vector<Arrow>& arrows)
    : begin(vertices + 1, 0), to(arrows.size()) {
  for (const Arrow& arrow : arrows) ++begin[arrow.from + 1];
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  std::vector<std::uint32_t> next(begin.begin(), begin.end() - 1);
  for (const Arrow& arrow : arrows) to[next[arrow.from]++] = arrow.to;
}

bool goes_forward(const std::vector<Arrow>& arrows) {
  return std::all_of(arrows.begin(), arrows.end(),
                     [](const Arrow& arrow) { return arrow.from <= arrow.to; });
}

/// Among all vertices without open predecessors the smallest one comes next. Equal graphs thus get
/// equal orders, and an order that is already topological stays.
std::optional<std::vector<std::uint32_t>> stable_order(std::size_t vertices,
                                                       const std::vector<Arrow>& arrows) {
  const Adjacency out(vertices, arrows);
  std::vector<std::uint32_t> waiting(vertices, 0), order;
  for (const Arrow& arrow : arrows) waiting[arrow.to] += arrow.from == arrow.to ? 0 : 1;
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> ready;
  for (std::uint32_t v = 0; v < vertices; ++v)
    if (waiting[v] == 0) ready.push(v);
  while (!ready.empty()) {
    const std::uint32_t v = ready.top();
    ready.pop();
    order.push_back(v);
    for (std::uint32_t k = out.begin[v]; k < out.begin[v + 1]; ++k)
      if (out.to[k] != v && --waiting[out.to[k]] == 0) ready.push(out.to[k]);
  }
  if (order.size() < vertices) return std::nullopt;
  return order;
}

/// `low[v]` is the smallest number reachable from v by tree arrows and at most one other arrow. A
/// vertex whose `low` is its own number is the root of a component, which is then the top of
/// `open`.
std::vector<std::uint32_t> components(std::size_t vertices, const std::vector<Arrow>& arrows) {
  const Adjacency out(vertices, arrows);
  constexpr std::uint32_t kUnseen = 0xffffffffu;
  std::vector<std::uint32_t> seen(vertices, kUnseen), low(vertices), component(vertices, kUnseen);
  std::vector<std::uint32_t> at(out.begin.begin(), out.begin.end() - 1), path, open;
  std::uint32_t number = 0;
  for (std::uint32_t root = 0; root < vertices; ++root) {
    if (seen[root] != kUnseen) continue;
    path.push_back(root);
    while (!path.empty()) {
      const std::uint32_t v = path.back();
      if (seen[v] == kUnseen) {
        seen[v] = low[v] = number++;
        open.push_back(v);
      }
      if (at[v] < out.begin[v + 1]) {
        const std::uint32_t w = out.to[at[v]++];
        if (seen[w] == kUnseen)
          path.push_back(w);
        else if (component[w] == kUnseen)
          low[v] = std::min(low[v], seen[w]);
        continue;
      }
      path.pop_back();
      if (!path.empty()) low[path.back()] = std::min(low[path.back()], low[v]);
      if (low[v] != seen[v]) continue;
      for (std::uint32_t w = kUnseen; w != v; open.pop_back()) component[w = open.back()] = v;
    }
  }
  return component;
}

}  // namespace pw::viz
