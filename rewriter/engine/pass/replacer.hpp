// Replaces matches by their recipes.
#pragma once

#include <vector>

#include "rewriter/engine/pass/requeue.hpp"

namespace pw {

class Replacer {
 public:
  Replacer(RunState& run, const Requeue& requeue)
      : run_(run), graph_(run.graph), requeue_(requeue) {}
  /// Replaces a legal match. `in_place`: every value it reads precedes all nodes that it replaces.
  /// The result is valid until the next call.
  const Delta& replace(const PassRule& rule, const Candidate& c, const Recipe& recipe,
                       bool in_place);

 private:
  void collect_own(const PassRule& rule, const Candidate& c);
  /// Makes the users of the old outputs read the new values, and moves names.
  void redirect(const PassRule& rule, const Candidate& c, const Recipe& recipe);
  /// Erases the consumed nodes, users before producers.
  void erase_matched(const PassRule& rule, const Candidate& c, const Recipe& recipe);
  void erase_what_is_unneeded(const PassRule& rule, const Candidate& c);
  [[nodiscard]] bool is_needed(NodeId node) const;
  [[nodiscard]] bool stands_for(ValueId made, ValueId old) const;
  void note_touched();
  [[nodiscard]] ValueId resolve(Recipe::Source source, const Candidate& c) const {
    if (source.absent()) return {};
    return source.fresh() ? new_results_[source.index()] : c.values[source.index()];
  }
  void touch(NodeId node) {
    if (!requeue_.leads_anywhere(node)) return;
    if (delta_.touched.empty() || delta_.touched.back() != node) delta_.touched.push_back(node);
  }
  void touch_producer(ValueId v) {
    if (v.valid() && !graph_.is_input(v)) touch(graph_.producer(v));
  }

  RunState& run_;
  Graph& graph_;
  const Requeue& requeue_;
  Delta delta_;
  NodeId first_new_;
  std::vector<ValueId> new_results_, operands_, reads_, writes_, named_values_;
  std::vector<NodeId> suspects_;  ///< nodes that may have become unneeded
  std::vector<char> were_outputs_, taken_over_;
};

}  // namespace pw
