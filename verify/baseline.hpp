// Counts kept in a file: what pipelines do to a generated model, each rule's rewrites and the nodes
// that are left. A change of rules or engine that changes them shows as a difference.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "rewriter/rewriter.hpp"

namespace pw {

struct PipelineCounts {
  std::size_t nodes = 0;                        ///< after it
  std::map<std::string, std::size_t> rewrites;  ///< by full rule name; those that never fired are
                                                ///< left out
  friend bool operator==(const PipelineCounts&, const PipelineCounts&) = default;
};

struct Baseline {
  std::string generate;            ///< the options of `pwr generate`: "llama --layers 2"
  std::vector<std::string> rules;  ///< files or names of the library
  std::vector<std::pair<std::string, std::string>> params;
  std::map<std::string, PipelineCounts> pipelines;
};

/// Fails (PW13xx) on anything but the form that baseline_to_json writes; `file` is for messages.
Result<Baseline> baseline_from_json(const std::string& text, const std::string& file);
std::string baseline_to_json(const Baseline& baseline);

/// A copy of the graph through one pipeline.
Result<PipelineCounts> count_pipeline(const Graph& graph, const RuleSet& rules,
                                      const std::string& pipeline, const Env& params);
/// A line for each number that differs, as a table of before and after; empty if none does.
std::string counts_difference(const PipelineCounts& before, const PipelineCounts& after);

}  // namespace pw
