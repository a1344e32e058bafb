// Exports ProofStore.
#include <optional>

#include <nlohmann/json.hpp>

#include "backends/cache/digest.hpp"
#include "pipeline/proof_store.hpp"
#include "pipeline/rule_text.hpp"

namespace pw {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const Specials& specials) {
  return {specials.nan, specials.infinity, specials.zero_sign};
}

Specials specials_from(const Json& in) {
  return {in.at(0).get<bool>(), in.at(1).get<bool>(), in.at(2).get<bool>()};
}

std::optional<RuleVerdict> verdict_named(const std::string& text) {
  for (const RuleVerdict verdict :
       {RuleVerdict::same_bits, RuleVerdict::rounds, RuleVerdict::differs_only_for,
        RuleVerdict::may_overflow, RuleVerdict::refuted, RuleVerdict::no_instance, RuleVerdict::cannot_run,
        RuleVerdict::not_proved})
    if (name(verdict) == text) return verdict;
  return std::nullopt;
}

std::string written(const RuleProof& seen) {
  const proof::Proof& p = seen.proof;
  const Json out{{"verdict", name(seen.verdict)},
                 {"known_by", name(seen.known)},
                 {"ulps", seen.ulps},
                 {"specials", to_json(seen.specials)},
                 {"reason", seen.reason},
                 {"test", seen.test},
                 {"proof",
                  {{"rule", p.rule},
                   {"verdict", name(p.verdict)},
                   {"specials", to_json(p.specials)},
                   {"reason", p.reason},
                   {"granted", p.granted},
                   {"needed", p.needed},
                   {"unneeded", p.unneeded},
                   {"cases", p.cases},
                   {"uncovered", p.uncovered},
                   {"element", p.element}}}};
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// Nothing where a text is none of ours.
std::optional<RuleProof> read(const std::string& text) {
  try {
    const Json in = Json::parse(text);
    const Json& proof = in.at("proof");
    RuleProof out;
    const auto verdict = verdict_named(in.at("verdict").get<std::string>());
    const auto proved = verdict_named(proof.at("verdict").get<std::string>());
    if (!verdict || !proved) return std::nullopt;
    out.verdict = *verdict;
    out.known = in.at("known_by") == name(KnownBy::proof) ? KnownBy::proof : KnownBy::samples;
    out.ulps = in.at("ulps").get<double>();
    out.specials = specials_from(in.at("specials"));
    out.reason = in.at("reason").get<std::string>();
    out.test = in.at("test").get<std::string>();
    out.proof.rule = proof.at("rule").get<std::string>();
    out.proof.verdict = *proved;
    out.proof.specials = specials_from(proof.at("specials"));
    out.proof.reason = proof.at("reason").get<std::string>();
    out.proof.granted = proof.at("granted").get<std::set<std::string>>();
    out.proof.needed = proof.at("needed").get<std::vector<std::string>>();
    out.proof.unneeded = proof.at("unneeded").get<std::vector<std::string>>();
    out.proof.cases = proof.at("cases").get<std::size_t>();
    out.proof.uncovered = proof.at("uncovered").get<std::string>();
    out.proof.element = proof.at("element").get<std::string>();
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
  // What a host runs for an opaque op is in no text either.
  const auto read_of =
      rules.set.context->host_functions ? std::nullopt : rule_text(rules.set, rule, rules.params);
  if (!read_of) return prove();
  KeyParts key;
  key.add("version", proof_version()).add("kind", kind).add("rule", *read_of);
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
  return found ? *found : prove();
}

}  // namespace pw
