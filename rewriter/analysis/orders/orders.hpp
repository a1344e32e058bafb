// All orders of some passes on one graph. A pass does the same to equal graphs, so each is run once
// on each graph that some order comes to: orders that begin alike, or meet, share all that follows.
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
  std::vector<std::pair<std::size_t, std::size_t>> before;  ///< the first stands before the second
  Strategy last;                    ///< runs behind each order; may be empty
  bool subsets = false;             ///< passes may be left out
  std::size_t most_runs = 200'000;  ///< of a pass
};

/// A graph that some order ends with.
struct OrderEnd {
  std::size_t graph = 0;             ///< in OrderResults::graphs
  std::uint64_t orders = 0;          ///< how many end with it
  std::vector<std::size_t> example;  ///< the first of them, as places in the space's passes
};

/// What two passes do to each other, wherever both can still run.
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
  // Of more than 16 passes; otherwise both are empty.
  /// Passes that change no graph that an order of the others comes to, wherever they stand. Orders
  /// are counted, and examples are given, without them.
  std::vector<std::size_t> idle;
  /// Passes that run as one, in the written order, as too many change the graph. Where the written
  /// order comes to them, the other order gives the same graph; orders that part them are left out.
  std::vector<std::vector<std::size_t>> together;
};

/// Explores the orders of up to 16 passes. Of more, those that change nothing are left out, and if
/// still more than 16 are left, neighbours that commute run as one. A run that fails is the
/// mistake. PW1114 where too many passes are left, for too many runs, and where no order keeps
/// `before`.
Result<OrderResults> explore_orders(const Graph& graph, const RuleSet& rules, const Env& params,
                                    const OrderSpace& space);

/// An order of the passes that are not idle, with the idle ones: each after the pass that it
/// follows in the written order, as far as `before` allows that.
std::vector<std::size_t> with_idle(const std::vector<std::size_t>& order, const OrderSpace& space,
                                   const OrderResults& results);

/// A match of one pass that another pass took nodes of.
struct Theft {
  std::size_t thief = 0, victim = 0;  ///< passes of the space
  std::string thief_rule, victim_rule;
  std::size_t lost = 0;  ///< matches of the victim's rule that are gone with the thief before it
  std::string node;      ///< one that the thief took, as text
  std::vector<std::size_t> losing, keeping;  ///< the orders that show it: with few passes before
};
/// For each two passes, on the graph and on what one other pass makes of it: matches that the one
/// has alone, and not behind the other, with the rewrite of the other that consumed a node of them.
Result<std::vector<Theft>> find_thefts(const Graph& graph, const RuleSet& rules, const Env& params,
                                       const OrderSpace& space);

}  // namespace pw
