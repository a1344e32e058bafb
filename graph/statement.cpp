#include "graph/statement.hpp"

namespace pw {

PW_DEFAULT_SPECIAL_MEMBERS(Expr);
PW_DEFAULT_SPECIAL_MEMBERS(Statement);
PW_DEFAULT_SPECIAL_MEMBERS(TypeExpr);

}  // namespace pw
