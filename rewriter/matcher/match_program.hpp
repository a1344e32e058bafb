// The rules of one pass compiled to one program. Each rule becomes a linear sequence of predicates
// starting at its anchor; common prefixes form a decision tree, one for each op of an anchor. The
// tree is laid out as instructions; on failure the program continues at the next branch. Registers
// hold graph ids.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "rewriter/strategies/layout.hpp"
#include "rewriter/strategies/statistics.hpp"

namespace pw {

enum class Code : std::uint8_t {
  producer,         ///< node := producer of value; it has op `number`
  result,           ///< value is result `slot` of node
  users,            ///< node := a user of value with op `number`; the next one on failure
  next_user,        ///< where `users` goes on
  swap,             ///< the first two operands of node as written, exchanged on failure
  next_swap,        ///< where `swap` goes on
  arity,            ///< node has `number` operands (a tail of absent ones aside), `slot` results;
                    ///< `second` and on := the first `more` results
  operand,          ///< value := operand `slot` of node; it is present
  operands,         ///< value and on := operand `slot` and `more` after it, of a node that has as
                    ///< many; they are present
  operand_or_none,  ///< value := operand `slot` of node
  same,             ///< operand `slot` of node is value
  none,             ///< operand `slot` of node is absent
  constant,         ///< `second` := the constant node that operand `slot` of node comes from
  bind_result,      ///< value := result `slot` of node
  few_uses,         ///< value has at most `number` uses
  distinct,         ///< node is not `second`
  accept,           ///< rule `number` has matched
};

struct Instruction {
  static constexpr std::uint8_t kNoSwap = 0xff;
  Code code = Code::accept;
  std::uint8_t swap = kNoSwap;  ///< register that holds whether slots 0 and 1 are exchanged
  std::uint16_t slot = 0;
  std::uint16_t node = 0, second = 0, value = 0;  ///< registers
  bool last_choice = false;  ///< of next_swap: below it are one rule's values, and no nodes
  std::uint8_t more = 0;
  std::uint32_t number = 0;
  std::uint32_t fail = 0;  ///< where a failure continues; kNowhere: this anchor is done

  static constexpr std::uint32_t kNowhere = 0xffffffff;
  /// Returns true if both are the same predicate, wherever they continue.
  friend bool same_question(const Instruction& a, const Instruction& b) {
    return a.code == b.code && a.swap == b.swap && a.slot == b.slot && a.node == b.node &&
           a.second == b.second && a.value == b.value && a.number == b.number && a.more == b.more;
  }
};

/// Near-miss code of a failure, and the place of the predicate in its rule.
struct Origin {
  const char* reason = "";  ///< N01 …; empty: never fails
  Span span;
};

/// A rule of the program, with the registers of its parts at acceptance.
struct ProgramRule {
  static constexpr std::uint16_t kNone = 0xffff;
  const RuleLayout* layout = nullptr;
  PatternNodeId anchor;
  OpId lacks;               ///< it is omitted because the graph has no node of this op
  bool from_first = false;  ///< the anchor precedes all other replaced nodes
  bool first_way = false;   ///< of the ways a set of nodes matches, the first one found counts
  std::vector<std::uint16_t> nodes;      ///< register, by PatternNodeId; kNone: not matched here
  std::vector<std::uint16_t> values;     ///< register, by PatternValueId
  std::vector<std::uint16_t> constants;  ///< node register of a number's node, by PatternValueId
  std::vector<std::uint16_t> swaps;      ///< register, by PatternNodeId
  std::vector<std::uint32_t> path;       ///< its instructions, in order
};

/// A way from a node of a pattern to the anchor, through the graph.
struct WayBack {
  struct SearchStep {
    Hop::Kind kind = Hop::Kind::producer;
    int slot = 0;
    bool either = false;
    OpId to;
    friend bool operator==(const SearchStep&, const SearchStep&) = default;
  };
  std::vector<SearchStep> steps;
};

struct MatchProgram {
  std::vector<Instruction> code;
  std::vector<Origin> origins;       ///< by instruction
  std::vector<std::uint32_t> entry;  ///< by op of the anchor; kNowhere: no rule starts there
  std::vector<ProgramRule> rules;    ///< as given to compile
  std::size_t nodes = 0, values = 0, swaps = 0;  ///< registers
  /// Ways from a node with an op to anchors whose matches may contain it, by op.
  std::vector<std::vector<WayBack>> ways;
  /// Flags by op: rules that begin at the first node are found at its nodes, and other rules.
  static constexpr std::uint8_t kNothing = 0, kFromFirst = 1, kElsewhere = 2;
  std::vector<std::uint8_t> finds;
  /// Flags by op: a rule is omitted because the graph has no node of it.
  std::vector<std::uint8_t> awaits;

  /// Returns the ways of an op; empty for one that a rewrite declared.
  [[nodiscard]] const std::vector<WayBack>& ways_of(OpId op) const {
    static const std::vector<WayBack> none;
    return op.index < ways.size() ? ways[op.index] : none;
  }
  [[nodiscard]] std::uint8_t finds_of(OpId op) const {
    return op.index < finds.size() ? finds[op.index] : kNothing;
  }
  [[nodiscard]] bool awaits_op(OpId op) const {
    return op.index < awaits.size() && awaits[op.index] != 0;
  }
  [[nodiscard]] std::uint32_t entry_of(OpId op) const {
    return op.index < entry.size() ? entry[op.index] : Instruction::kNowhere;
  }
};

/// Choice of anchors: the cheapest ones, or the first replaced node if the others are reachable
/// from it at a similar cost. Such matches are found in the order in which they are applied.
enum class Anchoring : std::uint8_t { cheapest, first };
/// Returns the anchoring for a pass of this kind.
[[nodiscard]] Anchoring anchoring_of(ast::Strategy::Kind kind);
struct ProgramOptions {
  Anchoring anchoring = Anchoring::cheapest;
  /// Omits rules that need an op which the graph lacks and which no rule names as a result; the
  /// program awaits such an op.
  bool leave_out = false;
  std::set<OpId> expected = {};  ///< ops that will appear: rules that need them are kept
};
/// Compiles `rules`, in order of rank. They may include recursion's frontiers.
MatchProgram compile_program(const RuleSet& rules, const std::vector<const RuleLayout*>& layouts,
                             const GraphStatistics& statistics, ProgramOptions options);
/// Prints the instructions as text, one a line.
std::string print(const MatchProgram& program, const RuleSet& rules);
/// Prints the programs of each pass of a strategy, compiled for the graph: `pwr opt --emit
/// matcher`.
std::string print_programs(const Graph& graph, const RuleSet& rules, const Strategy& strategy);

}  // namespace pw
