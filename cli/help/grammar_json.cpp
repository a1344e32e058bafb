#include <nlohmann/json.hpp>

#include "cli/help/grammar.hpp"
#include "dsl/syntax/lexical.hpp"

namespace pw::cli {
namespace {

using nlohmann::ordered_json;

std::string scope_of(LexicalClass kind) {
  constexpr std::pair<LexicalClass, std::string_view> kScopes[] = {
      {LexicalClass::comment, "comment.line.double-slash"},
      {LexicalClass::string, "string.quoted.double"},
      {LexicalClass::escape, "constant.character.escape"},
      {LexicalClass::quoted, "variable.other.quoted"},
      {LexicalClass::number, "constant.numeric"},
      {LexicalClass::literal, "constant.language"},
      {LexicalClass::reserved, "keyword.control"},
      {LexicalClass::contextual, "keyword.other"},
      {LexicalClass::dtype, "storage.type"},
      {LexicalClass::call, "entity.name.function"},
      {LexicalClass::name, "variable.other"},
      {LexicalClass::operation, "keyword.operator"},
      {LexicalClass::bracket, "punctuation.bracket"},
      {LexicalClass::invalid, "invalid.illegal"},
  };
  for (const auto& [of, scope] : kScopes)
    if (of == kind) return std::string(scope) + ".pwr";
  return {};
}

ordered_json pattern_of(const LexicalRule& rule) {
  ordered_json out{{"name", scope_of(rule.kind)}, {"match", rule.pattern}};
  if (!rule.escapes) return out;
  ordered_json inside = ordered_json::array();
  for (const LexicalRule& escape : escape_rules()) inside.push_back(pattern_of(escape));
  out["captures"]["0"]["patterns"] = std::move(inside);
  return out;
}

}  // namespace

std::string textmate_grammar() {
  ordered_json out{{"name", "Piecewise rules"},
                   {"scopeName", "source.pwr"},
                   {"comment", "made by `pwr grammar textmate`"},
                   {"fileTypes", ordered_json::array({"pwr", "pwg"})},
                   {"patterns", ordered_json::array()}};
  for (const LexicalRule& rule : lexical_rules()) out["patterns"].push_back(pattern_of(rule));
  return out.dump(2) + "\n";
}

}  // namespace pw::cli
