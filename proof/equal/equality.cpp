// Reports of equality proofs: the rows of `pwr equal` and its verdict.
#include "proof/equal/equality.hpp"

#include <fmt/format.h>

namespace pw {

Result<proof::Equality> equal_graphs(const Graph& single, const std::vector<const Graph*>& ranks,
                                     const proof::Relation& relation, const std::string& place) {
  proof::Equality equality = proof::prove_equal(single, ranks, relation);
  if (!equality.problem.empty())
    return fail(error_in(place, "PW1419", equality.problem,
                         "write a line like `input = gathered(input){dim = 0}`"));
  return equality;
}

/// `rounds` means that ranks add in another order than the single device.
std::string equality_verdict(const proof::Equality& equality) {
  if (!equality.proved()) return "unknown";
  return equality.rounds ? "rounds" : "same_bits";
}

Answer equality_answer(const proof::Equality& equality) {
  Table table({"output", "claim", "of", "verdict", "node", "op", "source", "reason"});
  for (const proof::ClaimVerdict& claim : equality.claims) {
    const std::string dim = claim.part == proof::Part::gathered
                                ? fmt::format("{{dim = {}}}", claim.dim)
                                : std::string();
    table.add({claim.left, std::string(name(claim.part)) + dim, claim.right,
               std::string(claim.proved ? "proved" : "unknown"), claim.node, claim.op, claim.source,
               claim.reason});
  }
  Answer out;
  out.add("rows", std::move(table));
  out.add("verdict", Cell(equality_verdict(equality)));
  out.add("known_by", Cell(std::string("proof")));
  Table granted({"granted"}), assumed({"input"});
  for (const std::string& each : equality.granted) granted.add({each});
  for (const std::string& each : equality.assumed) assumed.add({each});
  out.add("granted", std::move(granted));
  out.add("equal_by_name", std::move(assumed));
  out.add("nodes", Cell(equality.nodes));
  out.add("matched", Cell(equality.matched));
  return out;
}

std::string claim_text(const proof::ClaimVerdict& claim) {
  std::string text = fmt::format("`{}` is {} as `{}`: {}", claim.left, name(claim.part),
                                 claim.right, claim.proved ? "proved" : "not proved");
  if (claim.proved) return text;
  if (!claim.node.empty())
    text += fmt::format("\n  they first differ at `{}` = {}{}", claim.node, claim.op,
                        claim.source.empty() ? "" : fmt::format(" ({})", claim.source));
  return text + "\n  " + claim.reason;
}

}  // namespace pw
