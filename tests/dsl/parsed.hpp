// A text, parsed: for tests.
#pragma once

#include <memory>
#include <string>

#include "dsl/dsl.hpp"
#include "tests/catch.hpp"

namespace pw {

struct Parsed {
  SourceMap sources;
  Result<ast::File> file;
  explicit Parsed(std::string text, const char* name = "test.pwr")
      : file(parse_file(sources, sources.add(name, std::move(text)))) {}

  [[nodiscard]] std::string errors() const { return file ? "" : render(file.error(), sources); }
  [[nodiscard]] std::string first_code() const { return file ? "" : file.error().at(0).code; }
  template <class T>
  const T& item(std::size_t i = 0) const {
    INFO(errors());
    REQUIRE(file);
    REQUIRE(file->items.size() > i);
    REQUIRE(std::holds_alternative<T>(file->items[i]));
    return std::get<T>(file->items[i]);
  }
  /// The right side of `x = …` in a rule.
  static Expr expression(const std::string& text) {
    Parsed parsed("rule r { x = " + text + " => y = x }");
    return parsed.item<ast::Rule>().body.statements.at(0).value;
  }
};

/// The text as the formatter lays it out.
inline std::string formatted(const std::string& text) {
  Parsed parsed(text);
  INFO(parsed.errors());
  REQUIRE(parsed.file);
  return format_file(*parsed.file, parsed.sources);
}

}  // namespace pw
