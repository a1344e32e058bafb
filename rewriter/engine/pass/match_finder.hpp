// Finds matches: runs the match program at an anchor and offers or queues what it accepts.
#pragma once

#include <utility>
#include <vector>

#include "rewriter/engine/pass/list_finder.hpp"
#include "rewriter/engine/pass/sweep.hpp"

namespace pw {

class MatchFinder {
 public:
  MatchFinder(PassState& pass, MatchQueue& queue, Refusals& refusals, ListFinder& lists,
              Sweep& sweep)
      : pass_(pass),
        graph_(pass.graph),
        queue_(queue),
        refusals_(refusals),
        lists_(lists),
        sweep_(sweep) {}
  /// Matches all rules at one anchor under a budget of steps.
  void attempt(NodeId anchor);
  /// Counts matches from now on instead of keeping them, or keeps them again.
  void count(bool only) {
    counting_ = only;
    counted_ = 0;
  }
  [[nodiscard]] bool counting() const { return counting_; }
  [[nodiscard]] std::size_t counted() const { return counted_; }
  /// Returns true if a frontier has matched since the last take_frontiers().
  [[nodiscard]] bool any_frontiers() const { return !frontiers_.empty(); }
  std::vector<RuleId> take_frontiers() { return std::exchange(frontiers_, {}); }

 private:
  /// One set of nodes of an ambiguous rule at the current anchor, in its first assignment.
  struct Choice {
    std::uint32_t rule = 0, verdict = 0;
    bool legal = false;  ///< known to be
    bool waits = false;  ///< an entry exists already
    Candidate best;
  };
  enum class Gate : std::uint8_t { unknown, no, yes };

  /// Handles a structural match that the program has found. Returns true if exchanges of operands
  /// need not be tried.
  bool accept(std::uint32_t rule, NodeId anchor);
  bool accept_with_care(std::uint32_t rule, NodeId anchor);
  void accept_frontier(const PassRule& rule);
  /// Decides closedness, convexity and the verdict from registers alone, if possible.
  Gate pass_gates(PassRule& rule);
  [[nodiscard]] bool promising(PassRule& rule, NodeId anchor, const Candidate& c);
  void push(std::uint32_t rule, NodeId anchor, Candidate& c, std::uint32_t verdict);
  void give_up(std::uint32_t rule, NodeId anchor);

  bool choose(std::uint32_t rule, NodeId anchor, const Candidate& c);
  Choice& add_choice(std::size_t at, std::uint32_t rule);
  [[nodiscard]] bool has_choice_of(std::uint32_t rule) const;
  [[nodiscard]] bool precedes(const PassRule& rule, const Candidate& a, const Candidate& b) const;
  void keep_choices(NodeId anchor);

  PassState& pass_;
  Graph& graph_;
  MatchQueue& queue_;
  Refusals& refusals_;
  ListFinder& lists_;
  Sweep& sweep_;
  std::vector<Choice> choices_;  ///< the first choice_count_; the others keep their memory
  std::size_t choice_count_ = 0;
  std::vector<RuleId> frontiers_;  ///< that fit somewhere, and are to be opened
  bool counting_ = false;
  std::size_t counted_ = 0;
};

}  // namespace pw
