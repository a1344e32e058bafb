// Equations of einsum, `ij,jk->ik`, in which PyTorch and ONNX agree: one letter an axis of an
// operand, and those of the result.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "graph/foreign.hpp"

namespace pw {

/// The letters of each operand and of the result. Axes that `...` stands for are digits here, right
/// aligned, which no equation may use itself.
struct EinsumTerms {
  std::vector<std::string> operands;
  std::string result;
};

/// Of operands of these ranks. A reason where the equation is of another form: a letter that stands
/// twice in a term, a result with a letter of no term, more than ten axes for an ellipsis.
OrReason<EinsumTerms> einsum_terms(std::string_view equation,
                                   const std::vector<std::size_t>& ranks);

}  // namespace pw
