// Proves a graph and those of several ranks equal, as rows and lines.
#pragma once

#include <string>
#include <vector>

#include "pipeline/report/table.hpp"
#include "proof/equal/equal.hpp"

namespace pw {

/// Fails with PW1419 if the relation does not fit the graphs.
Result<proof::Equality> equal_graphs(const Graph& single, const std::vector<const Graph*>& ranks,
                                     const proof::Relation& relation, const std::string& place);
/// Returns one row for each claim, the verdict and its source, and the assumptions.
[[nodiscard]] Answer equality_answer(const proof::Equality& equality);
/// Returns same_bits, rounds, or unknown.
[[nodiscard]] std::string equality_verdict(const proof::Equality& equality);
/// Returns a sentence: "`div_2` is replicated as `div_2`: not proved: …"
[[nodiscard]] std::string claim_text(const proof::ClaimVerdict& claim);

}  // namespace pw
