// Arguments of calls in a PT2 archive as expressions of the importer.
#pragma once

#include <functional>
#include <string>

#include "import/fx/ast.hpp"
#include "import/pt2/document.hpp"

namespace pw::pt2 {

/// Takes in a subgraph, a GraphArgument, and gives the name by which a call refers to it.
using GraphTaker = std::function<Result<std::string>(const Part& graph)>;

/// Of a union Argument of the schema. Complex numbers and objects are texts, which no known op
/// takes. PW0531; PW0532 for a form of argument that is newer than the schema.
Result<fx::Expr> read_argument(const Part& argument, const Span& span, const GraphTaker& take);

/// A name that a value may have: a word, and no module of Python's that calls begin with. PW0531.
Result<std::string> read_value_name(const Part& name);

[[nodiscard]] fx::Expr make_expr(fx::Expr::Kind kind, const Span& span, std::string text = {});

}  // namespace pw::pt2
