// The formatter: stable, and the tree stays the same.
#include <algorithm>
#include <filesystem>

#include "base/io/file.hpp"
#include "tests/dsl/ast_dump.hpp"
#include "tests/dsl/parsed.hpp"

using namespace pw;

namespace {

std::string tree(const std::string& text) {
  Parsed parsed(text);
  INFO(parsed.errors() << text);
  REQUIRE(parsed.file);
  return dump(*parsed.file);
}

void check_round_trip(const std::string& text) {
  const std::string once = formatted(text);
  CHECK(formatted(once) == once);
  CHECK(tree(once) == tree(text));
}

std::vector<std::string> rule_files() {
  std::vector<std::string> out;
  for (const char* root : {"rules", "tests", "examples"})
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root))
      if (entry.path().extension() == ".pwr" || entry.path().extension() == ".pwg")
        out.push_back(entry.path().string());
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

TEST_CASE("format: every rule file of the project keeps its tree, and the second time its text",
          "[dsl]") {
  std::size_t read = 0;
  for (const std::string& path : rule_files()) {
    auto text = read_file(path);
    REQUIRE(text);
    if (!Parsed(*text).file) continue;  // tests/fail holds some that do not parse
    ++read;
    DYNAMIC_SECTION(path) { check_round_trip(*text); }
  }
  CHECK(read > 15);
}

TEST_CASE("format: a block that stood on one line stays there if it fits", "[dsl]") {
  CHECK(formatted("rule r{y=f(x,w){a,b=1}=>y=x}") == "rule r { y = f(x, w){a, b = 1} => y = x }\n");
  CHECK(formatted("rule r{y=f(x)\n=>y=x}") == "rule r {\n  y = f(x)\n  =>\n  y = x\n}\n");
  const std::string wide(80, 'w');
  CHECK(formatted("rule r { y = f(" + wide + ") => y = x }") ==
        "rule r {\n  y = f(" + wide + ")\n  =>\n  y = x\n}\n");
}

TEST_CASE("format: a long line is filled", "[dsl]") {
  const std::string name(30, 'n');
  const std::string text = formatted("rule r { y = f(" + name + ", " + name + ", " + name + ", " +
                                     name + ") => y = x }");
  CHECK(text == "rule r {\n  y = f(" + name + ", " + name + ",\n    " + name + ", " + name +
                    ")\n  =>\n  y = x\n}\n");
  check_round_trip(text);
}

TEST_CASE("format: comments and blank lines stay where they were", "[dsl]") {
  const std::string text = R"(// top

// of the rule
rule r {  // opens
  // first
  y = f(x)  // trailing

  // last on the left
  =>
  y = x
  // before the end
}

// the end
)";
  CHECK(formatted(text) == text);
  CHECK(formatted("\n\n\n// a\n\n\n\n// b\nrule r { y = x => y = x } // c\n\n\n\n") ==
        "// a\n\n// b\nrule r { y = x => y = x }  // c\n");
}

TEST_CASE("format: comments inside a statement move behind it", "[dsl]") {
  const std::string text = "rule r {\n  y = f(x, // one\n    // two\n    w) // three\n  => y = x }";
  const std::string once = formatted(text);
  CHECK(once == "rule r {\n  y = f(x, w)  // one\n  // two\n  // three\n  =>\n  y = x\n}\n");
  CHECK(formatted(once) == once);
}

TEST_CASE("format: numbers keep their spelling", "[dsl]") {
  CHECK(formatted("param eps: float = 1e-6") == "param eps: float = 1e-6\n");
  CHECK(formatted("param eps: float = -0.50") == "param eps: float = -0.50\n");
}

TEST_CASE("format: parts of strategies that would read otherwise are set apart", "[dsl]") {
  for (const char* text :
       {"pipeline p {\n  a when f ; (b ; c) when g\n}",
        "pass p = repeat (greedy { a } fuel 2) fuel 3", "pass p = a ; (b fuel 2)",
        "pass p = (a ; b) fuel 3", "pass p = best of { (a ; b) when c | d ; e } by time",
        "pipeline p { (a ; b) fuel 3 }", "pipeline p { for n in ranges(2, 4) { a b } }",
        "pass p = ((a))"})
    check_round_trip(text);
}

TEST_CASE("format: the type of an operation keeps its parentheses", "[dsl]") {
  for (const char* text : {"rule r { y = relu((x + b): T[m]) => y = x }\n",
                           "rule r { y = relu((-b): T[m]) => y = b }\n",
                           "rule r { y = relu(add(x, b: T[m])) => y = x }\n"}) {
    CHECK(formatted(text) == text);
    check_round_trip(text);
  }
}
