// Matches seen in a run, each with its fate. Copied and restored with the graph.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "rewriter/engine/run_state.hpp"

namespace pw {

/// A node at the time it was seen. It may be gone since, and its name another node's.
struct SeenNode {
  NodeId id;
  std::string name, op;
  std::string text;                ///< "q, s = quant(x)"
  std::vector<std::string> names;  ///< the node's, and those of all its results
};
SeenNode see(const Graph& graph, NodeId node);
/// Returns "%n (op)".
std::string named(const SeenNode& node);
/// Returns text with runs of digits as `*`.
std::string without_numbers(std::string_view text);

/// One rewrite, with the pass that made it.
struct RewriteStep {
  RuleId rule;           ///< invalid: a built-in pass
  std::string name;      ///< of the rule, or of the built-in pass
  std::string pass;      ///< the top-level pass that made it
  std::size_t step = 0;  ///< of the pass, from 1 on; of a built-in pass each node is one
};

/// Returns "`r` at step 3 of pass `p`".
std::string describe(const RewriteStep& step);

/// An `ensures` that was violated, so that its strategy was undone.
struct BrokenPromise {
  std::string strategy, promise;
  std::string values;              ///< "count(exp) is 1"
  std::vector<std::string> nodes;  ///< those it counts, made by the strategy first
};

struct Reason {
  std::string code, message;
  Span span;           ///< in the rule set; invalid: the rule's name
  std::size_t at = 0;  ///< of the match's nodes
  std::string help;    ///< empty: that of the code
  std::optional<RewriteStep> taken_by;
  std::optional<BrokenPromise> undone_by;
};

/// A match at the time it appeared.
struct SeenMatch {
  RuleId rule;
  std::string rule_name, base_name;
  Span span;                    ///< of the rule's name
  std::vector<SeenNode> nodes;  ///< in pattern order, then members; none is absent
  std::size_t front = 0;        ///< of `nodes`: the first that is replaced
  std::vector<NodeId> own;      ///< those that are replaced
  std::vector<NodeId> pattern;  ///< by PatternNodeId
  std::string place;            ///< group of the first node, numbers as *
  std::string since;            ///< the pass in which it appeared; empty: in the given graph
  std::size_t leaf = 0;         ///< strategies that had begun to rewrite by then
};

/// Describes a match in the present graph, and one that was applied to the given graph.
SeenMatch seen_match(const Graph& graph, const Rule& rule, const RuleLayout& layout,
                     const Match& match);
SeenMatch seen_match(const Graph& graph, const Rule& rule, const MatchEvent& event);

struct MatchRecord {
  std::shared_ptr<const SeenMatch> seen;
  enum class Fate : std::uint8_t {
    standing,
    applied,
    replaced,  ///< another variant of its rule was applied to it
    lost
  } fate = Fate::standing;
  std::optional<RewriteStep> applied;
  std::optional<Reason> why;   ///< why its own passes did not apply it
  std::optional<Reason> loss;  ///< what ended it
  bool starved = false;        ///< a pass with the rule ran then, or later
  std::string missed_by;       ///< the first such pass that began after that
  bool tried = false;
  std::optional<Reason> refusal;  ///< it could not be applied when it was seen
  std::vector<std::string> notes;
};

/// Records of all matches seen. Invariant: a standing one is listed at each of its nodes.
class MatchRecords {
 public:
  [[nodiscard]] const std::vector<MatchRecord>& all() const { return records_; }
  [[nodiscard]] std::vector<MatchRecord>& all() { return records_; }
  MatchRecord& operator[](std::size_t record) { return records_[record]; }
  [[nodiscard]] std::size_t size() const { return records_.size(); }
  /// Returns the record of a rule's match of these nodes.
  [[nodiscard]] std::optional<std::size_t> find(RuleId rule,
                                                const std::vector<NodeId>& nodes) const;
  /// Makes a match stand that was not seen yet, or was lost. Returns its record.
  std::size_t stand(std::optional<std::size_t> known, const std::vector<NodeId>& nodes,
                    std::shared_ptr<const SeenMatch> seen);
  /// Adds a match that has ended already.
  void add(MatchRecord record) { records_.push_back(std::move(record)); }
  /// Ends a standing match.
  void leave(std::size_t record, MatchRecord::Fate fate);
  [[nodiscard]] std::vector<std::uint32_t> standing_at(NodeId node) const;

  /// Returns the records that were added or decided since `before`, a copy of an earlier state.
  [[nodiscard]] std::vector<MatchRecord> outcomes_since(const MatchRecords& before) const;
  /// Returns the rule and the nodes of each match, as text.
  [[nodiscard]] std::set<std::string> names() const;
  /// Records the outcome of a match in a part that was undone for a reason. `reported`: names()
  /// before the first such outcome.
  void add_undone(const MatchRecord& outcome, const Reason& why,
                  const std::set<std::string>& reported);

 private:
  using Key = std::pair<RuleId, std::vector<NodeId>>;  ///< nodes by id
  std::vector<MatchRecord> records_;
  std::map<Key, std::size_t> known_;
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> at_node_;  ///< standing ones
};

/// Returns the valid nodes by id, each once.
std::vector<NodeId> by_id(std::vector<NodeId> nodes);

}  // namespace pw
