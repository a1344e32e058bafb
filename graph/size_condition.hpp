// Conditions on sizes under which an imported program computes what its graph computes.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "graph/dim.hpp"

namespace pw {

/// Comparisons as texts, in the order of Compare.
inline constexpr std::array<std::string_view, 6> kCompares{"==", "!=", "<", "<=", ">", ">="};

/// A comparison that the program requires: it raises an error for other sizes.
struct SizeCondition {
  Compare op = Compare::eq;
  DimId left, right;
  std::string text;  ///< as the program states it: a guard, or the message of an assert
};
using SizeConditions = std::vector<SizeCondition>;

}  // namespace pw
