// The patterns that editors colour by agree with the parser's tokens.
#include "dsl/syntax/lexical.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/catch.hpp"
#include "tests/dsl/mutants.hpp"

namespace pw {
namespace {

std::string read(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

/// Whether the lexer refuses a form; a number out of range is one all the same.
bool refused(const std::string& text) {
  for (const Diagnostic& d : lex(text, SourceId()).diagnostics) {
    const bool form = d.code == "PW0102" || d.code == "PW0103" || d.code == "PW0105" ||
                      (d.code == "PW0104" && d.message == "a number runs into a name");
    if (form) return true;
  }
  return false;
}
bool has_invalid(const std::string& text) {
  for (const LexicalSpan& span : lexical_spans(text))
    if (span.kind == LexicalClass::invalid) return true;
  return false;
}

std::string classes_of(const std::string& text) {
  std::string out;
  for (const LexicalSpan& span : lexical_spans(text))
    out +=
        text.substr(span.begin, span.end - span.begin) + ":" + std::string(name(span.kind)) + " ";
  return out;
}

TEST_CASE("lexical: classes follow the words around them", "[dsl]") {
  CHECK(classes_of("rule group { y = group(x){group = 1.5, rule} }") ==
        "rule:contextual group:contextual {:bracket y:name =:operation group:call (:bracket x:name "
        "):bracket {:bracket group:name =:operation 1.5:number ,:operation rule:name }:bracket "
        "}:bracket ");
  CHECK(classes_of("f32(x.bf16)") == "f32:dtype (:bracket x:name .:operation bf16:name ):bracket ");
  CHECK(classes_of("true where inf") == "true:literal where:reserved inf:number ");
  CHECK(classes_of("at // at") == "at:contextual // at:comment ");
}

TEST_CASE("lexical: strings have escapes, and errors where the lexer has them", "[dsl]") {
  CHECK(classes_of("\"a\\n\\q\"") == "\"a:string \\n:escape \\:invalid q\":string ");
  CHECK(classes_of("`a\\x41`") == "`a:quoted \\x41:escape `:quoted ");
  CHECK(classes_of("\"open") == "\"open:invalid ");
  CHECK(classes_of("1e5 1e5x 12x 1.5") == "1e5:number 1e5x:invalid 12x:invalid 1.5:number ");
  CHECK(classes_of("a # b") == "a:name #:invalid b:name ");
}

TEST_CASE("lexical: invalid is what the lexer refuses, on the tree and 1000 mutants", "[dsl]") {
  std::vector<std::vector<std::string>> texts;
  for (const char* folder : {"rules", "examples", "tests/fail", "tests/language"})
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      if (entry.path().extension() != ".pwr" && entry.path().extension() != ".pwg") continue;
      const std::string text = read(entry.path());
      INFO(entry.path().string());
      CHECK(has_invalid(text) == refused(text));
      texts.push_back(test::pieces_of(text));
    }
  REQUIRE(texts.size() > 40);
  const std::vector<std::string> foreign{"\"",       "`",    "\\",  "1.5",  "#",  "$",
                                         "\xc3\xa9", "\xff", "!",   "e5",   "12", "x",
                                         "\n",       "//",   "\\q", "\\x4", "?",  "=>"};
  Random random(19);
  std::size_t bad = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::string text = test::mutated(texts[random.below(texts.size())], foreign, random);
    INFO("mutant " << i);
    REQUIRE(has_invalid(text) == refused(text));
    if (refused(text)) ++bad;
  }
  CHECK(bad > 100);
  CHECK(bad < 900);
}

}  // namespace
}  // namespace pw
