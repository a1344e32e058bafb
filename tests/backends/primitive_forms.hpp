// Calls of every pointwise primitive, built from the table of primitives, so that a new one is
// tested wherever all of them are.
#pragma once

#include <string>
#include <vector>

#include <fmt/format.h>

#include "graph/ops/scalar_functions.hpp"

namespace pw::test {

/// "neg(x)", "add(x, z)": those of so many operands that take reals, and of one those that give
/// reals only.
inline std::vector<std::string> primitive_forms(int operands) {
  std::vector<std::string> forms;
  const auto add = [&](const char* name, int of) {
    if (of == operands) forms.push_back(fmt::format("{}({})", name, of == 1 ? "x" : "x, z"));
  };
#define PW_ADD(name, of) add(#name, of);
#define PW_ADD_REAL(name) add(#name, 1);
  PW_NUMBER_PRIMITIVES(PW_ADD)
  PW_REAL_PRIMITIVES(PW_ADD_REAL)
#undef PW_ADD
#undef PW_ADD_REAL
  return forms;
}

}  // namespace pw::test
