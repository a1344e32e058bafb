// The list of pointwise primitives. An op is listed by name and not by its trait, because a term
// must represent everything that determines the result.
#include "proof/primitives.hpp"

#include <set>

namespace pw::proof {

bool is_pointwise_primitive(std::string_view op) {
  static const std::set<std::string_view> kOps = {
      "add",         "sub",         "mul",     "div",        "pow",         "fmod",
      "remainder",   "atan2",       "maximum", "minimum",    "eq",          "ne",
      "lt",          "le",          "gt",      "ge",         "bitwise_and", "bitwise_or",
      "bitwise_xor", "bitwise_not", "select",  "shift_left", "shift_right", "neg",
      "abs",         "floor",       "ceil",    "trunc",      "round",       "sqrt",
      "rsqrt",       "exp",         "log",     "tanh",       "sin",         "cos",
      "tan",         "asin",        "acos",    "atan",       "sinh",        "cosh",
      "asinh",       "acosh",       "atanh",   "expm1",      "log1p",       "log2",
      "log10",       "cast"};
  return kOps.contains(op);
}

}  // namespace pw::proof
