#include <optional>

#include <nlohmann/json.hpp>

#include "codegen/cache/digest.hpp"
#include "pipeline/judge/proof_store.hpp"
#include "pipeline/judge/rule_text.hpp"

namespace pw {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const Specials& specials) {
  return {specials.nan, specials.infinity, specials.zero_sign, specials.rounding};
}

Specials specials_from(const Json& in) {
  return {in.at(0).get<bool>(), in.at(1).get<bool>(), in.at(2).get<bool>(), in.at(3).get<bool>()};
}

std::optional<RuleVerdict> verdict_named(const std::string& text) {
  for (const RuleVerdict verdict :
       {RuleVerdict::same_bits, RuleVerdict::rounds, RuleVerdict::differs_only_for,
        RuleVerdict::may_overflow, RuleVerdict::refuted, RuleVerdict::no_instance,
        RuleVerdict::cannot_run, RuleVerdict::unknown})
    if (name(verdict) == text) return verdict;
  return std::nullopt;
}

Json to_json(const Judgement& seen) {
  return {{"verdict", name(seen.verdict)},
          {"ulps", seen.ulps},
          {"specials", to_json(seen.specials)},
          {"reason", seen.reason},
          {"unrounded", seen.unrounded}};
}

RuleVerdict verdict_from(const Json& in) {
  const auto verdict = verdict_named(in.get<std::string>());
  if (!verdict) throw Json::other_error::create(501, "unknown verdict", &in);
  return *verdict;
}

Judgement judgement_from(const Json& in) {
  Judgement out;
  out.verdict = verdict_from(in.at("verdict"));
  out.ulps = in.at("ulps").get<double>();
  out.specials = specials_from(in.at("specials"));
  out.reason = in.at("reason").get<std::string>();
  out.unrounded = in.at("unrounded").get<bool>();
  return out;
}

/// Dtypes as their numbers.
Json to_json(const DrawnSamples& drawn) {
  Json special = Json::array();
  for (const auto& [dtype, share] : drawn.special)
    special.push_back({dtype, share.least, share.of});
  return {
      {"dtypes", drawn.dtypes}, {"refused", drawn.refused},     {"ranks", drawn.ranks},
      {"sizes", drawn.sizes},   {"first", drawn.first_smaller}, {"others", drawn.others_smaller},
      {"special", special}};
}

DrawnSamples drawn_from(const Json& in) {
  DrawnSamples out;
  out.dtypes = in.at("dtypes").get<std::set<DType>>();
  out.refused = in.at("refused").get<std::set<DType>>();
  out.ranks = in.at("ranks").get<std::set<std::size_t>>();
  out.sizes = in.at("sizes").get<std::set<std::int64_t>>();
  out.first_smaller = in.at("first").get<bool>();
  out.others_smaller = in.at("others").get<bool>();
  for (const Json& entry : in.at("special"))
    out.special[entry.at(0).get<DType>()] = {entry.at(1).get<std::size_t>(),
                                             entry.at(2).get<std::size_t>()};
  return out;
}

Json to_json(const RuleCheck& check) {
  Json by_dtype = Json::object();
  for (const auto& [dtype, judgement] : check.by_dtype) by_dtype[dtype] = to_json(judgement);
  return {{"rule", check.rule},           {"instances", check.instances},
          {"runs", check.runs},           {"ranks", check.ranks},
          {"held", check.held},           {"refused", check.refused},
          {"unreached", check.unreached}, {"judgement", to_json(check.judgement)},
          {"by_dtype", by_dtype},         {"drawn", to_json(check.drawn)}};
}

RuleCheck samples_from(const Json& in) {
  RuleCheck out;
  out.rule = in.at("rule").get<std::string>();
  out.instances = in.at("instances").get<std::size_t>();
  out.runs = in.at("runs").get<std::size_t>();
  out.ranks = in.at("ranks").get<std::vector<std::int64_t>>();
  out.held = in.at("held").get<std::size_t>();
  out.refused = in.at("refused").get<std::size_t>();
  out.unreached = in.at("unreached").get<std::vector<std::string>>();
  out.judgement = judgement_from(in.at("judgement"));
  out.drawn = drawn_from(in.at("drawn"));
  for (const auto& [dtype, judgement] : in.at("by_dtype").items())
    out.by_dtype.emplace(dtype, judgement_from(judgement));
  return out;
}

Json to_json(const proof::Proof& p) {
  return {{"rule", p.rule},
          {"verdict", name(p.verdict)},
          {"specials", to_json(p.specials)},
          {"reason", p.reason},
          {"granted", p.granted},
          {"needed", p.needed},
          {"unneeded", p.unneeded},
          {"cases", p.cases},
          {"uncovered", p.uncovered},
          {"element", p.element},
          {"flips", p.flips}};
}

proof::Proof proof_from(const Json& in) {
  proof::Proof out;
  out.rule = in.at("rule").get<std::string>();
  out.verdict = verdict_from(in.at("verdict"));
  out.specials = specials_from(in.at("specials"));
  out.reason = in.at("reason").get<std::string>();
  out.granted = in.at("granted").get<std::set<std::string>>();
  out.needed = in.at("needed").get<std::vector<std::string>>();
  out.unneeded = in.at("unneeded").get<std::vector<std::string>>();
  out.cases = in.at("cases").get<std::size_t>();
  out.uncovered = in.at("uncovered").get<std::string>();
  out.element = in.at("element").get<std::string>();
  out.flips = in.at("flips").get<bool>();
  return out;
}

std::string written(const RuleJudgement& seen) {
  const Json out{{"proof", to_json(seen.proof)}, {"samples", to_json(seen.samples)}};
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// Returns nothing for a text that written() did not produce.
std::optional<RuleJudgement> read(const std::string& text) {
  try {
    const Json in = Json::parse(text);
    return combine_evidence(proof_from(in.at("proof")), samples_from(in.at("samples")));
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

}  // namespace

ProofStore::ProofStore(bool keep) {
  if (keep) cache_ = std::make_unique<CompileCache>(CacheOptions::from_environment());
}

RuleJudgement ProofStore::get(const LoadedRules& rules, RuleId rule, const std::string& kind,
                              const std::function<RuleJudgement()>& judge) {
  if (!cache_ || cache_->folder().empty()) return judge();
  // The text omits the host function of an opaque op.
  const auto read_of =
      rules.set.context->host_functions ? std::nullopt : rule_text(rules.set, rule, rules.params);
  if (!read_of) return judge();
  KeyParts key;
  key.add("version", proof_version()).add("kind", kind).add("rule", *read_of);
  std::optional<RuleJudgement> made;
  const auto text = cache_->get(
      "proof", key.of(rules.set.rules[rule].name),
      [&]() -> Result<std::string> {
        made = judge();
        return written(*made);
      },
      [](const std::string& bytes) { return read(bytes).has_value(); });
  if (made) return *made;
  auto found = text ? read(*text) : std::nullopt;
  return found ? *found : judge();
}

}  // namespace pw
