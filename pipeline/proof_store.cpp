// Exports ProofStore.
#include "pipeline/proof_store.hpp"

#include <optional>

#include <nlohmann/json.hpp>

#include "backends/cache/digest.hpp"
#include "base/version.hpp"
#include "proof/rule_text.hpp"

namespace pw {
namespace {

using Json = nlohmann::ordered_json;

Specials specials_from(const Json& list) {
  Specials out;
  for (const std::string& name : list.get<std::vector<std::string>>()) {
    out.nan = out.nan || name == "nan";
    out.infinity = out.infinity || name == "infinity";
    out.zero_sign = out.zero_sign || name == "zero_sign";
  }
  return out;
}

std::optional<RuleVerdict> verdict_named(const std::string& text) {
  for (const RuleVerdict verdict :
       {RuleVerdict::same_bits, RuleVerdict::rounds, RuleVerdict::differs_only_for,
        RuleVerdict::refuted, RuleVerdict::no_instance, RuleVerdict::cannot_run,
        RuleVerdict::not_proved})
    if (name(verdict) == text) return verdict;
  return std::nullopt;
}

std::string written(const RuleProof& proof) {
  Json out = Json::parse(rule_proof_to_json(proof));
  out["proof"] = {{"verdict", name(proof.proof.verdict)}, {"reason", proof.proof.reason}};
  return out.dump();
}

/// Nothing where a text is none of ours.
std::optional<RuleProof> read(const std::string& text) {
  try {
    const Json in = Json::parse(text);
    RuleProof out;
    const auto verdict = verdict_named(in.at("verdict").get<std::string>());
    const auto proved = verdict_named(in.at("proof").at("verdict").get<std::string>());
    if (!verdict || !proved) return std::nullopt;
    out.verdict = *verdict;
    out.known = in.at("known_by") == "proof" ? KnownBy::proof : KnownBy::samples;
    out.ulps = in.at("ulps").get<double>();
    out.specials = specials_from(in.at("only_for"));
    out.reason = in.at("reason").get<std::string>();
    out.test = in.at("test").get<std::string>();
    out.proof.rule = in.at("rule").get<std::string>();
    out.proof.verdict = *proved;
    out.proof.reason = in.at("proof").at("reason").get<std::string>();
    out.proof.specials = out.specials;
    out.proof.granted = in.at("granted").get<std::set<std::string>>();
    out.proof.needed = in.at("guards").at("needed").get<std::vector<std::string>>();
    out.proof.unneeded = in.at("guards").at("unneeded").get<std::vector<std::string>>();
    out.proof.uncovered = in.at("uncovered").get<std::string>();
    out.proof.cases = in.at("cases").get<std::size_t>();
    return out;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

}  // namespace

ProofStore::ProofStore(bool keep) {
  if (keep) cache_ = std::make_unique<CompileCache>(CacheOptions::from_environment());
}

RuleProof ProofStore::get(const LoadedRules& rules, RuleId rule, const std::string& kind,
                          const std::function<RuleProof()>& prove) {
  if (!cache_ || cache_->folder().empty()) return prove();
  KeyParts key;
  key.add("engine", proof::engine_version())
      .add("version", version())
      .add("kind", kind)
      .add("rule", proof::text_of(rules.set, rule, rules.params));
  std::optional<RuleProof> made;
  const auto text = cache_->get(
      "proof", key.digest(),
      [&]() -> Result<std::string> {
        made = prove();
        return written(*made);
      },
      [](const std::string& bytes) { return read(bytes).has_value(); });
  if (made) return *made;
  auto found = text ? read(*text) : std::nullopt;
  if (!found) return prove();
  found->proof.rule = rules.set.rules[rule].name;  // two names may have one text
  return *found;
}

}  // namespace pw
