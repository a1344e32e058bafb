// A rule of a pass with everything about it that does not depend on a match, derived once for each
// compilation.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rewriter/engine/run_state.hpp"
#include "rewriter/explain/near_miss_codes.hpp"
#include "rewriter/matcher/machine.hpp"
#include "rewriter/strategies/verdicts.hpp"

namespace pw {

struct PassRule {
  /// Operand slot of a pattern's node, with the value expected there.
  struct Operand {
    std::uint16_t node = 0, slot = 0;
    std::uint32_t value = 0;
    bool none = false, optional = false;
    bool produced = false;  ///< by a node of the pattern
    bool first = false;     ///< nothing is bound there yet, or the bound value may differ
  };
  /// Result slot of a pattern's node, with the value expected there.
  struct ResultSlot {
    std::uint16_t node = 0, slot = 0;
    std::uint32_t value = 0;
  };
  /// Inputs of the gates, as indices of nodes and values: own nodes, outputs, values that the right
  /// side reads; consumed values with their uses inside.
  struct Ends {
    std::vector<std::uint16_t> own, outputs, reads;
    std::vector<std::pair<std::uint16_t, std::uint32_t>> consumed;
  };
  /// Registers from which a structural match is read, in the rule's numbering. A value that the
  /// program does not find maps to the last register of its kind, which is never written.
  struct Reading {
    std::vector<std::uint16_t> nodes, values, swaps;
    std::vector<std::pair<std::uint32_t, std::uint16_t>> numbers;  ///< value, its node's register
    Verdicts::Places places;                                       ///< the values' and the nodes'
    Ends ends;
  };

  const PreparedRule* rule = nullptr;
  std::unique_ptr<Verdicts> verdicts;
  RuleStats* stats = nullptr;
  bool memo = true;            ///< a verdict depends only on types and attributes
  bool lasting = true;         ///< and on nothing that a rewrite may change while the nodes live
  bool lists = false;          ///< members or `unless`: finished by the naive search
  bool ambiguous = false;      ///< one set of nodes may match in several ways
  bool compares = false;       ///< of those, and the program finds some that do not count
  bool permutable = false;     ///< two of its nodes have the same op and may be exchanged
  bool simple = false;         ///< the quick gates decide the usual case
  bool settled = false;        ///< its verdict remains valid while it waits
  bool swept = false;          ///< found by the sweep, at the first node that it replaces
  bool always_convex = false;  ///< no path can lead from what it defines to what it reads
  std::vector<OpId> ops;       ///< by PatternNodeId
  std::vector<ResultSlot> results;  ///< read by rebind()
  std::vector<Operand> operands;
  Reading reading;
  Ends ends;        ///< in a candidate
  Candidate found;  ///< the structural match at hand
  Candidate taken;  ///< the pending one at hand
  std::vector<PatternValueId> reads, named;
  std::vector<PatternValueId> outside;  ///< values read by own nodes and produced by none of them
  Journal::NamesId names;
  std::vector<std::uint32_t> above;  ///< rules whose matches may block one of this rule
  bool under = false;                ///< one of them is declared over this rule
  std::array<std::uint64_t, kNearMissCodes.size()> rejections{};  ///< by code
  [[nodiscard]] const RuleLayout& layout() const { return rule->layout; }
  [[nodiscard]] const Rule& ast() const { return *rule->layout.rule; }

  /// Counts a rejection by its code, and returns false.
  bool reject(const char* reason) {
    if (near_miss_code(reason) != nullptr) ++rejections[place_of(reason)];
    return false;
  }
  bool reject(const Verdict& verdict) {
    if (verdict.place != Verdict::kNoPlace) ++rejections[verdict.place];
    return false;
  }
};

/// Derives the data of all rules of a pass, in the order of ranks. The variants of an opened
/// frontier take its place.
std::vector<PassRule> prepare_rules(RunState& run, const Strategy& strategy, PassStats& stats);
/// Maps the places of a rule to registers of the program. `quick`: its matches may be decided from
/// the registers. `walk`: positions before the cursor do not count.
void map_registers(PassRule& rule, const ProgramRule& compiled, const Registers& registers,
                   bool quick, bool walk);
/// Reads a structural match from the registers.
void read_candidate(const Graph& graph, const Registers& registers, const PassRule& rule,
                    Candidate& out);

}  // namespace pw
