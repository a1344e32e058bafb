// The syntax tree as text without places, to compare trees by.
#pragma once

#include <string>

#include "dsl/syntax/ast.hpp"

namespace pw {

std::string dump(const Expr& e);
std::string dump(const TypeExpr& type);
std::string dump(const Statement& s);
std::string dump(const ast::File& file);

}  // namespace pw
