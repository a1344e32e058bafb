// Extraction alone: e-graphs from files of extraction-gym, or those that a `saturate` has found.
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
  std::uint64_t steps = 20'000'000;  ///< of the own solver
  double seconds = 10;               ///< of CBC, for each part
};

struct Extracted {
  std::string name;
  extract::NamedProblem egraph;
  extract::Answer answer;
  double seconds = 0;
};

/// PW1435 for a file that is no e-graph, or whose root cannot be computed; PW1452 where CBC is
/// asked for and is not there.
Result<Extracted> extract_file(const std::string& path, const ExtractRequest& request);
Result<Extracted> extract_problem(const std::string& name, extract::NamedProblem egraph,
                                  const ExtractRequest& request);
/// The e-graph of the last `saturate` that the pipeline runs. PW1436 where it runs none.
Result<extract::NamedProblem> saturated_egraph(const Graph& graph, const LoadedRules& rules,
                                               const std::string& pipeline, const Log& log);
/// `extractions`: a row a file.
[[nodiscard]] Answer extract_answer(const std::vector<Extracted>& found);

}  // namespace pw
