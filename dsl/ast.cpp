// Exports what copying, moving and destroying the syntax tree costs, once.
#include "dsl/ast.hpp"

namespace pw::ast {

PW_DEFAULT_SPECIAL_MEMBERS(OpItem);
PW_DEFAULT_SPECIAL_MEMBERS(ForeignItem);
PW_DEFAULT_SPECIAL_MEMBERS(Rule);
PW_DEFAULT_SPECIAL_MEMBERS(Pattern);
PW_DEFAULT_SPECIAL_MEMBERS(Strategy);
PW_DEFAULT_SPECIAL_MEMBERS(Pipeline);
PW_DEFAULT_SPECIAL_MEMBERS(GraphItem);
PW_DEFAULT_SPECIAL_MEMBERS(Expectation);
PW_DEFAULT_SPECIAL_MEMBERS(Test);
PW_DEFAULT_SPECIAL_MEMBERS(File);

}  // namespace pw::ast
