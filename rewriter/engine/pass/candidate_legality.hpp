// Gates of a candidate as pure functions: graph and candidate in, outcome out. Only the guard
// cache of the rule remembers anything. Refusals are recorded by the caller (refusals.hpp).
#pragma once

#include <vector>

#include "rewriter/engine/pass/pass_rule.hpp"

namespace pw {

/// Outcome of the gates for one candidate.
struct GateResult {
  const Verdict* verdict = nullptr;  ///< accepted; valid until the next one of the same rule
  const Verdict* refusal = nullptr;  ///< refused by types, attributes or guards
  const char* code = nullptr;        ///< refused by another gate; null: it would change nothing
  bool in_place = false;             ///< see Surely
  std::vector<NodeId> in_the_way;    ///< the path or the barrier that refused it
};

/// Result of the quick legality test. `in_place`: legal, and every value it reads precedes all
/// nodes that it replaces.
enum class Surely : std::uint8_t { not_known, legal, in_place };
/// Tests legality by use counts and labels alone. `ends` holds indices in `nodes` and `values`.
Surely surely_legal(const Graph& graph, const PassRule::Ends& ends, bool always_convex,
                    const NodeId* nodes, const ValueId* values);

/// Runs the gates up to the verdict. `known`: the verdict, if it was stored with the match.
GateResult judge_fit(const Graph& graph, PassRule& rule, const Candidate& c,
                     const Verdict* known = nullptr);
/// Runs all gates. `barriers`: the graph may hold ops with effects.
GateResult judge(const Graph& graph, bool barriers, PassRule& rule, const Candidate& c,
                 const Verdict* known = nullptr);

/// Rebinds a known match in `taken` of its rule, from its nodes and the mask of nodes with
/// exchanged operands. Returns false if it no longer exists.
bool rebind(const Graph& graph, PassRule& rule, const std::uint32_t* known, std::uint32_t swaps);
/// Returns the position: the smallest label of the nodes that the match replaces.
std::uint64_t position_of(const Graph& graph, const PassRule& rule, const Candidate& c);
bool is_own(const PassRule& rule, const Candidate& c, NodeId node);
/// Reads the values that the right side reads, and those that it redefines. Convexity depends on
/// them.
void read_boundary(const PassRule& rule, const Candidate& c, std::vector<ValueId>& reads,
                   std::vector<ValueId>& writes);
void read_writes(const PassRule& rule, const Candidate& c, std::vector<ValueId>& writes);

}  // namespace pw
