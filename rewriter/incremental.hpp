// Incremental rewriting: the same pipeline again and again, on graphs and with rules of which
// little changes from run to run. Each run gives what one from scratch gives, bit for bit: graph,
// ids, journal.
#pragma once

#include <memory>
#include <string>

#include "rewriter/rewriter.hpp"

namespace pw {

class RunMemory;

class IncrementalRun {
 public:
  explicit IncrementalRun(RewriteOptions options = {});
  ~IncrementalRun();
  IncrementalRun(const IncrementalRun&) = delete;
  IncrementalRun& operator=(const IncrementalRun&) = delete;

  struct Rewritten {
    Graph graph;
    RewriteReport report;
  };
  /// `input` and `rules` are kept until the next run, and may not be changed by then: a caller
  /// edits copies. Where context, pipeline or limits are others than before, everything is asked;
  /// so are strategies other than `greedy`, and those with lists, `unless`, recursion, or guards
  /// that look beyond the match.
  Result<Rewritten> run(std::shared_ptr<const Graph> input, std::shared_ptr<const RuleSet> rules,
                        std::string_view pipeline, const Env& params);

  /// Of the last run: anchors at which the matcher ran, and matches taken over instead.
  [[nodiscard]] std::size_t asked() const;
  [[nodiscard]] std::size_t recalled() const;

 private:
  RewriteOptions options_;
  std::string pipeline_;
  std::shared_ptr<const RuleSet> rules_;
  std::unique_ptr<RunMemory> memory_;
};

}  // namespace pw
