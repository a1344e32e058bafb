// Whether a graph and those of several ranks compute the same, as rows and lines.
#pragma once

#include <string>
#include <vector>

#include "pipeline/report/table.hpp"
#include "proof/equal/equal.hpp"

namespace pw {

/// PW1419: the relation and the graphs do not fit together.
Result<proof::Equality> equal_graphs(const Graph& single, const std::vector<const Graph*>& ranks,
                                     const proof::Relation& relation, const std::string& place);
/// rows, one a claim; the verdict and how it is known; what was taken for granted.
[[nodiscard]] Answer equality_answer(const proof::Equality& equality);
/// same_bits, rounds, or unknown.
[[nodiscard]] std::string equality_verdict(const proof::Equality& equality);
/// "`div_2` is replicated as `div_2`: not proved: …"
[[nodiscard]] std::string claim_text(const proof::ClaimVerdict& claim);

}  // namespace pw
