// Stand-alone extraction: e-graphs from files of extraction-gym, or from a `saturate` pass.
#pragma once

#include <string>
#include <vector>

#include "pipeline/load.hpp"
#include "pipeline/report/table.hpp"
#include "rewriter/extract/egraph_file.hpp"
#include "rewriter/extract/solve.hpp"

namespace pw {

struct ExtractRequest {
  std::string solver = "own";        ///< own, cbc
  std::uint64_t steps = 20'000'000;  ///< limit of the own solver
  double seconds = 10;               ///< limit of CBC for each part
};

struct Extracted {
  std::string name;
  extract::NamedProblem egraph;
  extract::Answer answer;
  double seconds = 0;
};

/// Extracts from a file. Fails with PW1435 for anything but an e-graph, or if its root cannot be
/// computed; PW1452 if CBC is requested but missing.
Result<Extracted> extract_file(const std::string& path, const ExtractRequest& request);
Result<Extracted> extract_problem(const std::string& name, extract::NamedProblem egraph,
                                  const ExtractRequest& request);
/// Returns the e-graph of the last `saturate` that the pipeline runs. Fails with PW1436 if it runs
/// none.
Result<extract::NamedProblem> saturated_egraph(const Graph& graph, const LoadedRules& rules,
                                               const std::string& pipeline, const Log& log);
/// Returns the answer `extractions`, one row for each file.
[[nodiscard]] Answer extract_answer(const std::vector<Extracted>& found);

}  // namespace pw
