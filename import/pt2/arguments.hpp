// Converts arguments of calls in a PT2 archive to expressions of the importer.
#pragma once

#include <functional>
#include <string>

#include "import/fx/text/ast.hpp"
#include "import/pt2/document.hpp"

namespace pw::pt2 {

/// Reads a subgraph, a GraphArgument, and returns the name by which a call refers to it.
using GraphTaker = std::function<Result<std::string>(const Part& graph)>;

/// Reads a union Argument of the schema. Complex numbers and objects become texts, which no known
/// op accepts. PW0531; PW0532 for a form of argument that is newer than the schema.
Result<fx::Expr> read_argument(const Part& argument, const Span& span, const GraphTaker& take);

/// Reads a valid name of a value: a word, and not a module of Python with which calls begin.
/// PW0531.
Result<std::string> read_value_name(const Part& name);

[[nodiscard]] fx::Expr make_expr(fx::Expr::Kind kind, const Span& span, std::string text = {});

}  // namespace pw::pt2
