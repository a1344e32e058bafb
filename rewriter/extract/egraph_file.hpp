// E-graphs as files: the JSON of egraph-serialize, which extraction-gym's extractors read. `nodes`
// is an object by name, of {op, children: names of nodes, eclass, cost: 1 unless given};
// `root_eclasses` is a list of classes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.hpp"
#include "rewriter/extract/problem.hpp"

namespace pw::extract {

struct NamedProblem {
  Problem problem;
  std::vector<std::string> nodes, ops, classes;  ///< by index
};

/// Reads an e-graph, nodes in the order of their names. PW1435 for text of another format, with a
/// JSON pointer.
Result<NamedProblem> read_egraph(std::string_view text, const std::string& file);
/// Writes an e-graph. Reading it gives the same problem, in the order of names.
[[nodiscard]] std::string write_egraph(const NamedProblem& egraph);
/// Writes `{"choices": {class: node}}` for the needed classes.
[[nodiscard]] std::string write_choices(const NamedProblem& egraph,
                                        const std::vector<ClassIndex>& needed,
                                        const Choice& choice);

}  // namespace pw::extract
