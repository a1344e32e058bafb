// A rule file's text, loaded; a test fails where that does.
#pragma once

#include <string>
#include <string_view>

#include "dsl/dsl.hpp"
#include "graph/text/text.hpp"
#include "tests/catch.hpp"

namespace {

struct Loaded {
  pw::ContextPtr context = std::make_shared<pw::Context>();
  pw::RuleSet set;
  [[nodiscard]] std::string declaration(std::string_view name) const {
    const pw::OpId id = context->ops.find(name);
    if (!id.valid()) return "no such op";
    return print_declaration(context->ops[id], context->attributes, "; ");
  }
  [[nodiscard]] std::string right(std::size_t rule) const {
    return print(set.rules[pw::RuleId(rule)].replacement.front());
  }
};

[[maybe_unused]] Loaded load(const std::string& text) {
  [[maybe_unused]] Loaded loaded;
  auto set = pw::load_rule_texts(loaded.context, {{"test.pwr", text}});
  INFO((set ? std::string() : pw::render(set.error(), loaded.context->sources)));
  REQUIRE(set);
  loaded.set = std::move(*set);
  return loaded;
}

}  // namespace
