// Exports rule_check_to_json.
#include <nlohmann/json.hpp>

#include "pipeline/verifying.hpp"

namespace pw {
namespace {

using Json = nlohmann::ordered_json;

Json specials_to_json(const Specials& specials) {
  Json out = Json::array();
  if (specials.nan) out.push_back("nan");
  if (specials.infinity) out.push_back("infinity");
  if (specials.zero_sign) out.push_back("zero_sign");
  return out;
}

Json judgement_to_json(const Judgement& judgement) {
  Json out{{"verdict", name(judgement.verdict)}, {"ulps", judgement.ulps}};
  out["only_for"] = specials_to_json(judgement.specials);
  out["reason"] = judgement.reason;
  return out;
}

Json rule_check_json(const RuleCheck& check) {
  Json out{{"rule", check.rule}};
  out.update(judgement_to_json(check.judgement));
  out["known_by"] = name(check.known);
  out["proof"] = name(check.proved);
  out["by_dtype"] = Json::object();
  for (const auto& [dtype, judgement] : check.by_dtype)
    out["by_dtype"][dtype] = judgement_to_json(judgement);
  out["graphs"] = check.instances;
  out["samples"] = check.runs;
  out["ranks"] = check.ranks;
  out["guards"] = {
      {"held", check.held}, {"refused", check.refused}, {"unreached", check.unreached}};
  return out;
}

}  // namespace

std::string rule_check_to_json(const RuleCheck& check) {
  return rule_check_json(check).dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace pw
