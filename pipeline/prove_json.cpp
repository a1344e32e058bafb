// Exports rule_proof_to_json.
#include <nlohmann/json.hpp>

#include "pipeline/proving.hpp"

namespace pw {

std::string rule_proof_to_json(const RuleProof& proof) {
  using Json = nlohmann::ordered_json;
  Json only_for = Json::array();
  if (proof.specials.nan) only_for.push_back("nan");
  if (proof.specials.infinity) only_for.push_back("infinity");
  if (proof.specials.zero_sign) only_for.push_back("zero_sign");
  Json out{{"rule", proof.proof.rule},
           {"verdict", name(proof.verdict)},
           {"known_by", name(proof.known)},
           {"ulps", proof.ulps},
           {"only_for", only_for},
           {"reason", proof.reason},
           {"granted", proof.proof.granted},
           {"guards", {{"needed", proof.proof.needed}, {"unneeded", proof.proof.unneeded}}},
           {"uncovered", proof.proof.uncovered},
           {"cases", proof.proof.cases},
           {"test", proof.test}};
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace pw
