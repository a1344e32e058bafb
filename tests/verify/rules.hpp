// Rule sets for the tests of verification: the library's, or the library's with one text replaced.
#pragma once

#include <string>
#include <vector>

#include "dsl/dsl.hpp"
#include "dsl/embedded_rules.hpp"
#include "tests/catch.hpp"

namespace pw::test {

inline RuleSet checked(Result<RuleSet> rules, const ContextPtr& context) {
  INFO((rules ? std::string() : render(rules.error(), context->sources)));
  REQUIRE(rules);
  return std::move(*rules);
}

/// All files of rules/, ops included.
inline RuleSet library_rules() {
  const auto context = std::make_shared<Context>();
  return checked(load_rules(context, {"llm"}), context);
}

/// One text on top of the op library.
inline RuleSet rules_of(const std::string& text) {
  const auto context = std::make_shared<Context>();
  return checked(load_rule_texts(context, {{"test.pwr", text}}), context);
}

/// One rule file of the library over its ops, with a piece of text of the ops replaced.
inline RuleSet library_with_op(const std::string& path, const std::string& from,
                               const std::string& to) {
  std::vector<std::pair<std::string, std::string>> texts;
  int places = 0;
  for (const EmbeddedFile& file : embedded_rules()) {
    const bool op = file.path.starts_with("ops/");
    if (!op && file.path != path) continue;
    std::string text(file.text);
    if (const std::size_t at = text.find(from); op && at != std::string::npos) {
      text.replace(at, from.size(), to);
      ++places;
    }
    texts.emplace_back(std::string(file.path), text);
  }
  REQUIRE(places == 1);
  const auto context = std::make_shared<Context>();
  LoadOptions options;
  options.library = false;
  return checked(load_rule_texts(context, texts, options), context);
}

}  // namespace pw::test
