#include <nlohmann/json.hpp>

#include "pipeline/judge/judge.hpp"

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

Json samples_to_json(const Judgement& judgement) {
  return {{"verdict", name(judgement.verdict)},
          {"ulps", judgement.ulps},
          {"only_for", specials_to_json(judgement.specials)},
          {"reason", judgement.reason}};
}

Json names_of(const std::set<DType>& dtypes) {
  Json out = Json::array();
  for (const DType dtype : dtypes) out.push_back(name(dtype));
  return out;
}

/// Returns what the samples were like.
Json drawn_to_json(const DrawnSamples& drawn) {
  Json broadcast = Json::array(), sizes = Json::array(), special = Json::object();
  if (drawn.first_smaller) broadcast.push_back("first");
  if (drawn.others_smaller) broadcast.push_back("others");
  for (const std::int64_t size : drawn.sizes)
    if (size < 2) sizes.push_back(size);
  for (const auto& [dtype, share] : drawn.special)
    special[std::string(name(dtype))] = {{"least", share.least}, {"of", share.of}};
  return {{"dtypes", names_of(drawn.dtypes)},
          {"refused_dtypes", names_of(drawn.refused)},
          {"ranks", drawn.ranks},
          {"sizes", sizes},
          {"broadcast", broadcast},
          {"special_values", special}};
}

Json row(const RuleJudgement& seen) {
  const RuleCheck& samples = seen.samples;
  const proof::Proof& proof = seen.proof;
  Json out{{"rule", seen.rule},
           {"verdict", name(seen.verdict)},
           {"known_by", seen.verdict == RuleVerdict::unknown ? Json() : Json(name(seen.known))},
           {"ulps", samples.judgement.ulps},
           {"only_for", specials_to_json(seen.specials)},
           {"reason", seen.reason},
           {"contradiction", seen.contradiction},
           {"proof", name(proof.verdict)},
           {"left_to_show", seen.left_to_show()},
           {"uncovered", proof.uncovered},
           {"granted", proof.granted},
           {"cases", proof.cases}};
  out["by_dtype"] = Json::object();
  for (const auto& [dtype, judgement] : samples.by_dtype)
    out["by_dtype"][dtype] = samples_to_json(judgement);
  out["graphs"] = samples.instances;
  out["samples"] = samples.runs;
  out["ranks"] = samples.ranks;
  out["drawn"] = drawn_to_json(samples.drawn);
  out["guards"] = {{"held", samples.held},
                   {"refused", samples.refused},
                   {"unreached", samples.unreached},
                   {"needed", proof.needed},
                   {"unneeded", proof.unneeded}};
  out["test"] = seen.test;
  return out;
}

}  // namespace

std::string judgement_to_json(const RuleJudgement& judgement) {
  return row(judgement).dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace pw
