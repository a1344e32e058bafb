// The words that may come next are those that the grammar takes.
#include "dsl/syntax/expected_words.hpp"

#include <algorithm>

#include "tests/catch.hpp"

namespace pw {
namespace {

/// At the `^` of a text, which is taken out.
std::vector<std::string> at_mark(std::string text) {
  const std::size_t mark = text.find('^');
  text.erase(mark, 1);
  return expected_words(SourceText("a.pwr", text), static_cast<std::uint32_t>(mark));
}
bool has(const std::vector<std::string>& expected, const std::string& word) {
  return std::find(expected.begin(), expected.end(), word) != expected.end();
}

TEST_CASE("expected words: items where none is open", "[dsl]") {
  CHECK(has(at_mark("^"), "rule"));
  CHECK(has(at_mark("rule a { y = relu(x) => y = x }\n^"), "pipeline"));
  CHECK(has(at_mark("ru^"), "rule"));
  CHECK(at_mark("group g {\n  ^\n}") == std::vector<std::string>{"rule"});
}

TEST_CASE("expected words: those of the place, whatever follows it", "[dsl]") {
  const std::vector<std::string> head = at_mark("rule a ^ { y = relu(x) => y = x }");
  CHECK(has(head, "over"));
  CHECK(has(head, "for"));
  CHECK_FALSE(has(head, "where"));
  const std::vector<std::string> body = at_mark("rule a {\n  y = relu(x)\n  ^");
  CHECK(has(body, "where"));
  CHECK(has(body, "given"));
  CHECK_FALSE(has(body, "over"));
  CHECK(has(at_mark("pass p = gr^"), "greedy"));
  CHECK(has(at_mark("pass p = greedy { a } ^\n"), "fuel"));
  CHECK(has(at_mark("test t { ap^ }"), "apply"));
}

TEST_CASE("expected words: nothing is reported after a mistake in the same item", "[dsl]") {
  const std::vector<std::string> expected = at_mark("rule a { y = = relu(x) wh^");
  CHECK(expected.empty());
}

}  // namespace
}  // namespace pw
