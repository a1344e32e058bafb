// A lower bound for one part: each class has a price, which its users pay together. The bound is
// the dual of the linear relaxation, so any split of the prices is valid; a subgradient method
// improves it. Every split also suggests a choice in which shared classes look cheap.
#pragma once

#include <functional>

#include "rewriter/extract/problem.hpp"

namespace pw::extract {

/// Edge between classes. One class may need another by several of its nodes, but by only one of
/// them at a time.
struct Edge {
  ClassIndex from, to;
};

/// The problem with its edges numbered, children before users.
struct Network {
  explicit Network(const Problem& problem);

  const Problem& problem;
  Derivation derivation;
  std::vector<std::uint32_t> component;
  std::vector<Edge> edges;
  std::vector<std::vector<std::uint32_t>> node_edges;  ///< by node, as its children
  std::vector<std::vector<std::uint32_t>> out_edges;   ///< by class: each once
  std::vector<std::vector<std::uint32_t>> in_edges;    ///< by class
  std::vector<bool> root;                              ///< by class
  [[nodiscard]] bool forward(std::uint32_t edge) const {
    return derivation.place[edges[edge].to] < derivation.place[edges[edge].from];
  }
};

struct Prices {
  double bound = 0;
  std::vector<double> price;   ///< by class: its least cost, by its cheapest node
  std::vector<double> paid;    ///< by edge: the part of the price of `to` that `from` pays
  std::vector<double> excess;  ///< by node: the cost above the cheapest of its class
};

/// Computes prices. Calls `suggest` with choices found on the way.
Prices find_prices(const Network& network, std::size_t rounds,
                   const std::function<void(const Choice&)>& suggest);

}  // namespace pw::extract
