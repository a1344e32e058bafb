// All orders of some passes on one graph. A pass does the same to equal graphs, so each runs once
// on each reached graph: orders with equal beginnings, or with equal intermediate graphs, share all
// that follows.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "rewriter/analysis/pass_states.hpp"
#include "rewriter/egraph/cost.hpp"
#include "rewriter/rewriter.hpp"

namespace pw {

struct OrderSpace {
  std::vector<Strategy> passes;                             ///< in the written order
  std::vector<std::pair<std::size_t, std::size_t>> before;  ///< the first precedes the second
  Strategy last;                                            ///< runs after each order; may be empty
  bool subsets = false;                                     ///< passes may be left out
  std::size_t most_runs = 200'000;                          ///< of a pass
};

/// A graph that some order ends with.
struct OrderEnd {
  std::size_t graph = 0;             ///< in OrderResults::graphs
  std::uint64_t orders = 0;          ///< how many end with it
  std::vector<std::size_t> example;  ///< the first of them, as places in the space's passes
};

/// Effect of two passes on each other, wherever both can still run.
struct OrderPair {
  std::size_t first = 0, second = 0;  ///< in the space's passes
  std::size_t states = 0;             ///< where both orders were run
  std::size_t different = 0;          ///< of these: where the graphs differ
};

struct OrderResults {
  std::vector<SeenGraph> graphs;             ///< the first is the graph that all orders begin with
  std::shared_ptr<const PassStates> states;  ///< what they are, by their places in `graphs`
  std::vector<OrderEnd> ends;                ///< each graph once
  std::vector<OrderPair> pairs;              ///< of all passes, first < second
  std::uint64_t orders = 0;                  ///< in the space, those of `before` left out
  std::size_t runs = 0;                      ///< of a pass
  std::size_t written = 0;                   ///< of `ends`: of the written order
  // For more than 16 passes; otherwise both are empty.
  /// Passes that change no graph that an order of the others reaches, at any place. Orders and
  /// examples exclude them.
  std::vector<std::size_t> idle;
  /// Passes that run as one, in the written order, since too many change the graph. On the written
  /// order's graph their other order gives the same result; orders that separate them are omitted.
  std::vector<std::vector<std::size_t>> together;
};

/// Explores the orders of up to 16 passes. With more, idle passes are omitted, and if more than 16
/// remain, neighbours that commute run as one. A failing run is returned as the error. PW1114 for
/// too many remaining passes, for too many runs, and if no order satisfies `before`.
Result<OrderResults> explore_orders(const Graph& graph, const RuleSet& rules, const Env& params,
                                    const OrderSpace& space);

/// Returns an order of the active passes with the idle ones inserted: each after its predecessor in
/// the written order, as far as `before` allows.
std::vector<std::size_t> with_idle(const std::vector<std::size_t>& order, const OrderSpace& space,
                                   const OrderResults& results);

/// A match of one pass whose nodes another pass consumed.
struct Theft {
  std::size_t thief = 0, victim = 0;  ///< passes of the space
  std::string thief_rule, victim_rule;
  std::size_t lost = 0;  ///< matches of the victim's rule that are gone with the thief before it
  std::string node;      ///< one that the thief took, as text
  std::vector<std::size_t> losing, keeping;  ///< the orders that show it: with few passes before
};
/// Finds, for each two passes, on the graph and on what one other pass makes of it, matches that
/// one has alone and not after the other, with the other's rewrite that consumed a node of them.
Result<std::vector<Theft>> find_thefts(const Graph& graph, const RuleSet& rules, const Env& params,
                                       const OrderSpace& space);

}  // namespace pw
