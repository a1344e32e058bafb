// Runs the compiled matcher at every anchor of a graph without rewriting: the number of legal
// matches of one strategy's rules. For measurements, and for a first look at a rule set.
#pragma once

#include <memory>

#include "rewriter/rewriter.hpp"

namespace pw {

class Scan {
 public:
  /// Compiles the rules for the graph. All arguments must outlive the scan; the graph is not
  /// changed.
  Scan(Graph& graph, const RuleSet& rules, const Strategy& strategy, const Env& params,
       const RewriteOptions& options = {});
  ~Scan();
  Scan(const Scan&) = delete;
  Scan& operator=(const Scan&) = delete;
  /// Visits every anchor; the same number each time.
  std::size_t run();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace pw
