// Runs the compiled matcher at every anchor of a graph without rewriting, and counts the legal
// matches of one strategy's rules. Serves measurements, and a first look at a rule set.
#pragma once

#include <memory>

#include "rewriter/rewriter.hpp"

namespace pw {

class Scan {
 public:
  /// Compiles the rules for the graph. All arguments must outlive the scan; the graph does not
  /// change.
  Scan(Graph& graph, const RuleSet& rules, const Strategy& strategy, const Env& params,
       const RewriteOptions& options = {});
  ~Scan();
  Scan(const Scan&) = delete;
  Scan& operator=(const Scan&) = delete;
  /// Visits every anchor and returns the number of matches; the same number each time.
  std::size_t run();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace pw
