// The parser: every production, and what the trees hold.
#include "base/file.hpp"
#include "dsl/dsl.hpp"
#include "tests/catch.hpp"

using namespace pw;

namespace {

struct Parsed {
  SourceMap sources;
  Result<ast::File> file;
  explicit Parsed(std::string text) : file(parse_file(sources, sources.add("test.pwr", std::move(text)))) {
    if (!file) UNSCOPED_INFO(render(file.error(), sources));
  }
  template <class T>
  const T& item(std::size_t i = 0) const {
    REQUIRE(file);
    REQUIRE(file->items.size() > i);
    REQUIRE(std::holds_alternative<T>(file->items[i]));
    return std::get<T>(file->items[i]);
  }
};

}  // namespace

TEST_CASE("parse: every construct of the language", "[dsl]") {
  auto text = read_file("tests/dsl/fixtures/language.pwr");
  REQUIRE(text);
  Parsed parsed(*text);
  REQUIRE(parsed.file);
  CHECK(parsed.file->items.size() == 50);
  CHECK(parsed.file->comments.size() == 14);
}
