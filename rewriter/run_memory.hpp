// What a run found, kept for the next run on nearly the same graph with nearly the same rules: the
// matches of each pass, seeded ones and those after each rewrite. The next run makes all rewrites
// anew, in the same total order, and so gives the same graph, bit for bit, as one from scratch; but
// only anchors whose matches may be other ones are asked again.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rewriter/correspondence.hpp"
#include "rewriter/rewriter.hpp"

namespace pw {

/// One run of a strategy's rules. Nodes are those of the run's graph, whose ids go on behind those
/// of `start`.
struct PassMemory {
  struct KnownRule {
    std::string name;
    std::uint64_t meaning = 0;  ///< see fingerprint()
    std::uint32_t anchor = 0;   ///< PatternNodeId
    std::uint32_t node_count = 0;
  };
  /// In `pool`: the nodes by PatternNodeId, a mask of swaps, the anchor.
  struct KnownMatch {
    std::uint32_t rule = 0, at = 0;
  };
  /// An anchor that was asked, and the matches found there.
  struct Asked {
    NodeId anchor;
    std::uint32_t first = 0, count = 0;  ///< in `matches`
    bool again = false;  ///< something outside of the match refused one: ask whatever changed
  };
  struct Rewrite {
    std::uint32_t rule = 0, nodes = 0, swaps = 0;  ///< `nodes`: in pool
    std::uint32_t new_count = 0;                   ///< nodes it made: the first states
    std::uint32_t first_erased = 0, erased = 0;    ///< in `ids`
    std::uint32_t first_state = 0, states = 0;     ///< in `states`
    std::uint32_t first_asked = 0, asked = 0;      ///< in `asked`
  };

  std::string label;
  bool usable = false;
  std::shared_ptr<const Graph> start;
  std::vector<KnownRule> rules;
  std::vector<std::uint32_t> pool;
  std::vector<KnownMatch> matches;  ///< of the seeding, sorted; then of rewrites
  std::uint32_t seeds = 0;
  std::vector<NodeId> seeded_again;  ///< anchors as Asked::again
  std::vector<Asked> asked;
  std::vector<NodeId> ids;
  /// Of each node that a rewrite made or touched, as it left it: its id, its first result's, how
  /// many operands and results, op and attributes, the operands, and for each result its uses, in
  /// how many graph outputs it stands, and its type.
  std::vector<std::uint32_t> states;
  std::vector<Rewrite> rewrites;
};

class RunMemory {
 public:
  /// A run begins on a copy of `input`, of the same edition.
  void begin(std::shared_ptr<const Graph> input);
  /// Forgets the run before this one: it will not be compared with.
  void forget();

  /// A strategy's rules are about to run: how they ran at this place before; null where that is
  /// not known.
  const PassMemory* next(const std::string& label, const Graph& graph);
  /// The graph as it is now.
  [[nodiscard]] const std::shared_ptr<const Graph>& start() const { return start_; }
  void keep(std::unique_ptr<PassMemory> pass);
  /// Of the start of `old` and start().
  const Correspondence& corresponding(const PassMemory& old);
  /// See fingerprint(); made once for a rule of a set.
  std::uint64_t meaning_of(const RunRules& rules, RuleId id);
  /// The rules are other ones, perhaps at the same address.
  void new_rules() { meanings_of_ = nullptr; }

  /// Something was warned of in an order that may not be that of a run from scratch.
  bool doubtful = false;
  std::size_t asked = 0;     ///< anchors at which the matcher ran
  std::size_t recalled = 0;  ///< matches taken over

 private:
  std::vector<std::unique_ptr<PassMemory>> before_, now_;
  std::size_t turn_ = 0;
  std::shared_ptr<const Graph> start_;
  Correspondence corresponding_;
  std::shared_ptr<const Graph> compared_old_, compared_now_;
  const RuleSet* meanings_of_ = nullptr;
  std::vector<std::uint64_t> meanings_;  ///< by RuleId; 0: not made yet
};

/// A hash of all that a rule says, by names and texts: equal for rules that match and replace the
/// same, in whatever set they stand.
[[nodiscard]] std::uint64_t fingerprint(const RunRules& rules, RuleId id);
/// Of the parameters of a run.
[[nodiscard]] std::uint64_t fingerprint(const RunRules& rules, const Env& params);

/// run_strategy that remembers. Stats and progress count what was done, which is less.
Result<RewriteReport> run_remembering(Graph& graph, const RuleSet& rules, const Strategy& strategy,
                                      const Env& params, const RewriteOptions& options,
                                      RunMemory& memory);

}  // namespace pw
