// Baselines: for a generated model and a pipeline, the number of rewrites by rule and of remaining
// nodes, stored in a file. A change of rules or engine shows as a difference.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "rewriter/rewriter.hpp"

namespace pw {

struct PipelineCounts {
  std::size_t nodes = 0;  ///< after the pipeline
  std::map<std::string, std::size_t>
      rewrites;  ///< by full rule name, without rules that never fired
  friend bool operator==(const PipelineCounts&, const PipelineCounts&) = default;
};

struct Baseline {
  std::string generate;            ///< the options of `pwr generate`: "llama --layers 2"
  std::vector<std::string> rules;  ///< files or names of the library
  std::vector<std::pair<std::string, std::string>> params;
  std::map<std::string, PipelineCounts> pipelines;
};

/// Parses what baseline_to_json writes; fails with PW13xx on anything else. `file` names the source
/// in messages.
Result<Baseline> baseline_from_json(const std::string& text, const std::string& file);
std::string baseline_to_json(const Baseline& baseline);

/// Runs a pipeline on a copy of the graph and counts its effect.
Result<PipelineCounts> count_pipeline(const Graph& graph, const RuleSet& rules,
                                      const std::string& pipeline, const Env& params);
/// Returns a table of the numbers that differ, before and after; empty if none does.
std::string counts_difference(const PipelineCounts& before, const PipelineCounts& after);

}  // namespace pw
