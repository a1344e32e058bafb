// Rewriting again after an edit of the graph or of the rules: only what the edit can change is
// asked again, and graph, journal and report are those of run_pipeline on the edited graph. The
// greedy passes keep their result alive (rewriter/kept_pass.hpp); what cannot be kept is rewritten
// from scratch, and counters() says why.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "rewriter/rewriter.hpp"

namespace pw {

class IncrementalRun {
 public:
  struct Rewritten {
    Graph graph;
    RewriteReport report;
  };
  /// Of the last update.
  struct Counters {
    bool kept = false;         ///< nothing was rewritten from scratch
    std::string why;           ///< it was
    std::size_t rewrites = 0;  ///< in all
    std::size_t undone = 0;    ///< rewrites of the run before that were taken back
    std::size_t redone = 0;    ///< of these, made again as they were
    std::size_t fresh = 0;     ///< rewrites that the run before had not
    std::size_t asked = 0;     ///< anchors that were matched again
  };
  IncrementalRun();
  ~IncrementalRun();
  IncrementalRun(IncrementalRun&&) noexcept;
  IncrementalRun& operator=(IncrementalRun&&) noexcept;

  /// Brings the rewritten graph up to date with `input`, an edited copy of the one before: its
  /// nodes and values have the ids they had. Anything else is taken as well, and rewritten from
  /// scratch. A pipeline that states ranges of tokens is refused (PW1109).
  Result<std::monostate> update(std::shared_ptr<const Graph> input,
                                std::shared_ptr<const RuleSet> rules, std::string_view pipeline,
                                const Env& params);
  /// The rewritten graph. Where counters() say that it was kept, ids and names of values without a
  /// given name are its own, as is the order of nodes that do not depend on each other.
  [[nodiscard]] const Graph& graph() const;
  /// Graph and report as run_pipeline makes them of the input, to the last id.
  [[nodiscard]] Result<Rewritten> result() const;
  [[nodiscard]] const Counters& counters() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace pw
