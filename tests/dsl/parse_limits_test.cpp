// Inputs that are too deep, too long, too large or no text at all: diagnostics, never a crash.
#include "base/hash.hpp"
#include "base/io/file.hpp"
#include "tests/dsl/parsed.hpp"

using namespace pw;

namespace {

std::string repeated(const std::string& part, std::size_t n) {
  std::string out;
  out.reserve(part.size() * n);
  for (std::size_t i = 0; i < n; ++i) out += part;
  return out;
}
std::string rule_with(const std::string& expression) {
  return "rule r { y = " + expression + " => y = x }";
}

}  // namespace

TEST_CASE("parse limits: brackets nest 64 deep and no deeper", "[dsl]") {
  const auto nested = [](std::size_t n) {
    return rule_with(repeated("(", n) + "x" + repeated(")", n));
  };
  CHECK(Parsed(nested(63)).file);  // the rule's own brace is one more
  CHECK(Parsed(nested(64)).first_code() == "PW0106");
  CHECK(Parsed(nested(1000000)).first_code() == "PW0106");
  CHECK(Parsed(rule_with(repeated("f(", 1000000))).first_code() == "PW0106");
  CHECK(Parsed(repeated("graph {", 1000)).first_code() == "PW0106");
  CHECK(Parsed("// " + repeated("(", 100) + "\n" + rule_with("f(\"" + repeated("(", 100) + "\")"))
            .file);
}

TEST_CASE("parse limits: chains of operators", "[dsl]") {
  CHECK(Parsed(rule_with("a" + repeated(" + a", 200))).file);
  for (const char* part : {" + a", " * a", " and a", " or a", " - -a"})
    CHECK(Parsed(rule_with("a" + repeated(part, 1000000))).first_code() == "PW0107");
  for (const char* part : {"-", "not ", "- -"})
    CHECK(Parsed(rule_with(repeated(part, 1000000) + "a")).first_code() == "PW0107");
  CHECK(Parsed(rule_with("a" + repeated("[0]", 1000000))).first_code() == "PW0107");
  CHECK(Parsed("pass p = " + repeated("atomic ", 1000000) + "a").first_code() == "PW0107");
  CHECK(Parsed("pass p = " + repeated("repeat ", 100) + "a").file);
  // Many levels with many operators each: every level is within its limit, but the tree is not.
  std::string mixed = "a";
  for (int i = 0; i < 60; ++i) mixed = "(" + mixed + repeated(" + a", 20) + ")";
  CHECK(Parsed(rule_with(mixed)).first_code() == "PW0107");
}

TEST_CASE("parse limits: wide is fine", "[dsl]") {
  CHECK(Parsed(rule_with("cat(x" + repeated(", x", 100000) + ")")).file);
  CHECK(Parsed("pass p = a" + repeated(" ; a", 10000)).file);
  std::string path = "a" + repeated(".b", 10000);
  CHECK(Parsed(rule_with(path)).item<ast::Rule>().body.statements[0].value.text == path);
}

TEST_CASE("parse limits: a file of 64 MiB and a byte is refused before it is read", "[dsl]") {
  CHECK(Parsed(std::string((std::size_t{64} << 20) + 1, ' ')).first_code() == "PW0100");
  CHECK(Parsed(std::string(std::size_t{1} << 20, ' ')).file);
}

TEST_CASE("parse limits: bytes that are not text", "[dsl]") {
  CHECK(Parsed(std::string("\0", 1)).first_code() == "PW0105");
  CHECK(Parsed("\xef\xbb\xbf" + rule_with("x")).file);
  CHECK(Parsed("\xef\xbb" + rule_with("x")).first_code() == "PW0105");
  CHECK(Parsed(rule_with("\x80\xff")).first_code() == "PW0105");
  CHECK(Parsed(rule_with("f(\"\x80\xff\x01\")")).file);
  CHECK(Parsed("// \x80\xff\x01\n" + rule_with("x")).file);
  CHECK(Parsed("").file);
  CHECK(Parsed("\"").first_code() == "PW0102");
  CHECK(Parsed("\"\\").first_code() == "PW0102");
  CHECK(Parsed("`").first_code() == "PW0102");
  CHECK(Parsed(std::string(100000, '\x01')).file.error().size() == 1);
  CHECK(Parsed(repeated("\x01 ", 100000)).file.error().size() <= 100);
}

TEST_CASE("parse limits: a thousand broken items give at most a hundred errors", "[dsl]") {
  Parsed parsed(repeated("rule r { y = }\n", 1000));
  REQUIRE_FALSE(parsed.file);
  CHECK(parsed.file.error().size() == 100);
}

TEST_CASE("parse limits: every prefix of a file is parsed or refused", "[dsl]") {
  auto text = read_file("tests/dsl/fixtures/language.pwr");
  REQUIRE(text);
  for (std::size_t n = 0; n < text->size(); n += 7) {
    Parsed parsed(text->substr(0, n));
    if (!parsed.file) CHECK(!parsed.errors().empty());
  }
}

TEST_CASE("parse limits: mutated files give diagnostics or a tree that prints", "[dsl]") {
  auto text = read_file("tests/dsl/fixtures/language.pwr");
  REQUIRE(text);
  static const std::vector<std::string> kPieces = {"(",
                                                   ")",
                                                   "[",
                                                   "]",
                                                   "{",
                                                   "}",
                                                   "=",
                                                   "=>",
                                                   "<=>",
                                                   "..",
                                                   "...",
                                                   ",",
                                                   "\"",
                                                   "`",
                                                   "//",
                                                   "\n",
                                                   "-",
                                                   "not ",
                                                   "in",
                                                   "out",
                                                   "many ",
                                                   "1e999",
                                                   "99999999999999999999",
                                                   "\xff",
                                                   "\0",
                                                   "where ",
                                                   "op ",
                                                   "rule x {",
                                                   "=",
                                                   "@",
                                                   "fuse",
                                                   "*",
                                                   "|",
                                                   "inf",
                                                   " ",
                                                   "x"};
  constexpr std::uint64_t kSeed = 20240611;
  INFO("seed " << kSeed);
  Random random(kSeed);
  int refused = 0, accepted = 0;
  for (int round = 0; round < 3000; ++round) {
    const std::size_t begin = random.below(text->size());
    std::string mutant = text->substr(begin, 200 + random.below(2000));
    if (random.below(2) == 0) mutant = text->substr(0, begin);
    for (std::uint64_t edits = 1 + random.below(4); edits > 0 && !mutant.empty(); --edits) {
      const std::size_t at = random.below(mutant.size());
      switch (random.below(4)) {
        case 0: mutant.insert(at, kPieces[random.below(kPieces.size())]); break;
        case 1: mutant.erase(at, 1 + random.below(20)); break;
        case 2: mutant[at] = static_cast<char>(random.below(256)); break;
        default: {
          const std::size_t from = random.below(mutant.size());
          mutant.insert(at, mutant.substr(from, random.below(60)));
        }
      }
    }
    Parsed parsed(mutant);
    if (!parsed.file) {
      ++refused;
      for (const Diagnostic& d : parsed.file.error())
        REQUIRE((d.span.valid() && !d.message.empty() && d.code.starts_with("PW01")));
      if (round % 16 == 0) REQUIRE(!parsed.errors().empty());
      continue;
    }
    ++accepted;
    const std::string once = format_file(*parsed.file, parsed.sources);
    Parsed again(once);
    INFO(mutant << "\n---- formatted\n" << once << again.errors());
    REQUIRE(again.file);
    REQUIRE(format_file(*again.file, again.sources) == once);
  }
  CHECK(refused > 1000);
  CHECK(accepted > 10);
}
