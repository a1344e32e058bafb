// Equations of einsum, `ij,jk->ik`, in the form shared by PyTorch and ONNX: one letter for each
// axis of an operand, and the letters of the result.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "graph/foreign.hpp"

namespace pw {

/// Letters of each operand and of the result. Axes that `...` covers are digits here, right
/// aligned; equations themselves may not use digits.
struct EinsumTerms {
  std::vector<std::string> operands;
  std::string result;
};

/// Returns the terms for operands of these ranks. A reason if the equation has another form: a
/// repeated letter in a term, a result with a letter of no term, more than ten axes for an
/// ellipsis.
OrReason<EinsumTerms> einsum_terms(std::string_view equation,
                                   const std::vector<std::size_t>& ranks);

}  // namespace pw
