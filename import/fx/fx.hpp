// Reads PyTorch FX text into a graph: the output of print_readable(), gm.code, str(graph),
// print_tabular(), torch.export and TORCH_LOGS, at the level of ATen and at Dynamo's.
#pragma once

#include <string>

#include "graph/graph_format.hpp"

namespace pw {

namespace fx {
struct Function;
}

struct FxImport {
  Graph graph;
  FxReport report;
};

Result<FxImport> import_fx(const ContextPtr& context, std::string_view text,
                           const FxOptions& options);

/// Imports a graph held by a program: its inputs and calls as the tree of import/fx/text/ast.hpp.
/// `form` is the report's.
Result<FxImport> import_fx(const ContextPtr& context, fx::Function function,
                           const FxOptions& options, std::string form);

/// Returns true if the text contains a graph of torch.fx.
[[nodiscard]] bool looks_like_fx(std::string_view text);

}  // namespace pw
