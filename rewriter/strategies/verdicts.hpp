// The guard cache: memoised type, attribute and guard checks of structural matches, one cache for
// each rule. They depend only on the type ids of a match's values and the attribute ids of its
// nodes. A model repeats its layers, so nearly every check has been made before. The same key gives
// the recipe: the new nodes of the right side, complete with attributes and types.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "rewriter/matcher/matcher.hpp"
#include "rewriter/matcher/search.hpp"

namespace pw {

/// The right side for one key: nodes to add, and the new values of the outputs.
struct Recipe {
  /// A value of the pattern, a result of a new node, or nothing.
  struct Source {
    static constexpr std::uint32_t kNew = 0x80000000u, kAbsent = 0xffffffffu;
    std::uint32_t code = kAbsent;
    [[nodiscard]] bool absent() const { return code == kAbsent; }
    [[nodiscard]] bool fresh() const { return !absent() && (code & kNew) != 0; }
    [[nodiscard]] std::uint32_t index() const { return code & ~kNew; }
  };
  struct NewNode {
    OpId op;
    AttributesId attributes;
    std::uint32_t first_operand = 0, operand_count = 0;  ///< in operands
    std::uint32_t first_result = 0, result_count = 0;    ///< in types; numbers new results
  };
  std::vector<NewNode> nodes;
  std::vector<Source> operands;
  std::vector<TypeId> types;
  std::vector<char> reads;      ///< by PatternValueId: whether a new node does
  std::vector<Source> outputs;  ///< in the order of Rule::outputs
  /// True if the node that makes an output may equal an existing one.
  bool may_change_nothing = false;
  bool barriers = false;  ///< it makes a node with an effect
};

struct Verdict {
  const char* reason = "";  ///< empty: the rule applies
  Span span;
  Recipe recipe;
  std::vector<Condition> conditions;
  Diagnostics refused;           ///< the right side cannot be built: the rule's mistake
  std::size_t place = kNoPlace;  ///< of the reason, in kNearMissCodes
  static constexpr std::size_t kNoPlace = ~std::size_t{0};
  [[nodiscard]] bool yes() const { return *reason == '\0'; }
  void refuse(const char* code, Span where);
};

/// A structural match of one rule, in the rule's own numbering.
struct Candidate {
  std::vector<NodeId> nodes;        ///< by PatternNodeId
  std::vector<ValueId> values;      ///< by PatternValueId; numbers: the constant's value
  std::vector<std::uint8_t> swaps;  ///< by PatternNodeId
};

/// Result of guess(): undecided, the rule does not apply, it applies, or it applies and may change
/// nothing.
enum class Guess : std::uint8_t { unknown, no, yes, yes_perhaps };

class Verdicts {
 public:
  Verdicts(const Graph& graph, const RuleLayout& layout, const Env& base);
  /// Returns the verdict, cached or new. The candidate must have passed the closed-world and
  /// convexity checks, which depend on more than the key. The reference holds until the next call.
  const Verdict& ask(const Candidate& candidate);
  /// Returns the cached verdict of an equal key, or null.
  const Verdict* known(const Candidate& candidate);
  /// Registers of a candidate's values and nodes, while a structural match is in them.
  struct Places {
    std::span<const std::uint16_t> values, nodes;
  };
  /// Returns the verdict's kind if it equals the verdict that followed the previous one last time,
  /// or the previous one itself, as in most cases; else unknown. Reads only the key.
  Guess guess(const Places& places, const ValueId* values, const NodeId* nodes) {
    if (kinds_.empty() || !numbers_.empty()) return Guess::unknown;
    const std::uint32_t last = last_;
    std::uint32_t verdict = followers_[last];
    if (!is_key_of(verdict, places, values, nodes)) {
      if (verdict == last || !is_key_of(last, places, values, nodes)) return Guess::unknown;
      verdict = last;
    }
    last_ = verdict;
    return kinds_[verdict];
  }
  /// Returns a verdict without caching it: for guards that depend on more than the key.
  const Verdict& ask_anew(const Candidate& candidate) {
    anew_ = judge(candidate);
    return *anew_;
  }
  /// Returns the number of the last verdict of ask() or known(); the next function returns the
  /// verdict of a number.
  [[nodiscard]] std::uint32_t last() const { return last_; }
  [[nodiscard]] const Verdict& number(std::uint32_t verdict) const { return *verdicts_[verdict]; }
  /// Returns true if it inspects constants: which constant a value is may change with a rewrite.
  [[nodiscard]] bool reads_numbers() const { return !numbers_.empty(); }
  [[nodiscard]] std::size_t size() const { return verdicts_.size(); }

 private:
  static constexpr std::uint32_t kAbsent = 0xffffffff;   ///< in a key
  static constexpr std::uint32_t kUntyped = 0x80000000;  ///< and the value, which has no type
  [[nodiscard, gnu::always_inline]] bool is_key_of(std::uint32_t verdict, const Places& places,
                                                   const ValueId* values,
                                                   const NodeId* nodes) const {
    const Graph& graph = graph_;
    const std::uint32_t* known =
        keys_.data() + verdict * (places.values.size() + places.nodes.size());
    for (const std::uint16_t place : places.values) {
      const ValueId value = values[place];
      if (*known++ != (value.valid() ? graph.type(value).index : kAbsent)) return false;
    }
    for (const std::uint16_t place : places.nodes) {
      const NodeId node = nodes[place];
      if (*known++ != (node.valid() ? graph.attributes(node).index : kAbsent)) return false;
    }
    return true;
  }
  void read_key(const Candidate& candidate);
  [[nodiscard]] std::uint64_t hash_key() const;
  std::uint32_t& slot_of_key();
  const Verdict* follow(std::uint32_t verdict);
  std::unique_ptr<Verdict> judge(const Candidate& candidate);
  void keep(std::unique_ptr<Verdict> verdict);
  void grow();

  const Graph& graph_;
  const RuleLayout* layout_;
  const Env* base_;
  std::vector<std::uint32_t> numbers_;  // values that stand for numbers
  std::vector<std::uint32_t> key_;      // of the question
  std::vector<std::uint32_t> keys_;     // of all verdicts, one after the other
  std::vector<std::uint32_t> table_;    // open addressing: verdict, or kEmpty
  std::vector<std::unique_ptr<Verdict>> verdicts_;
  std::unique_ptr<Verdict> anew_;
  /// Verdict that followed each one the last time: layers repeat, and so do their queries.
  std::vector<std::uint32_t> followers_;
  std::vector<Guess> kinds_;  ///< by verdict
  std::uint32_t last_ = 0;
};

/// Returns the match with exactly these nodes and exchanged operands, with everything bound;
/// nothing, and the reason in `why`, if there is none.
std::optional<Match> bind_candidate(const Graph& graph, const RuleLayout& layout, const Env& base,
                                    const Candidate& candidate, Failure* why = nullptr);
/// Builds the right side in a separate graph, for the types of this match. Fails if building it in
/// place would fail.
Result<Recipe> make_recipe(const Graph& graph, const RuleLayout& layout, const Match& match,
                           const Candidate& candidate);

}  // namespace pw
