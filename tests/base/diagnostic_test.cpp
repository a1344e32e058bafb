#include "base/diagnostic.hpp"

#include "tests/catch.hpp"

using namespace pw;

TEST_CASE("diagnostic: underlines the span and gives line and column", "[base]") {
  SourceMap sources;
  SourceId id = sources.add("a.pwr", "rule one {\n  y = rellu(x)\n}\n");
  Diagnostic d = error_at({id, 17, 22}, "PW0320", "unknown op `rellu`", "did you mean `relu`?");
  std::string text = render({d}, sources);
  CHECK(text ==
        "error[PW0320]: unknown op `rellu`\n"
        "  --> a.pwr:2:7\n"
        "2 |   y = rellu(x)\n"
        "  |       ^^^^^\n"
        "help: did you mean `relu`?\n");
}

TEST_CASE("diagnostic: comes in source order, and counts what is over the limit", "[base]") {
  SourceMap sources;
  SourceId id = sources.add("a", "one\ntwo\nthree\n");
  Diagnostics list{error_at({id, 8, 13}, "C", "third"), error_at({id, 0, 3}, "A", "first"),
                   error_at({id, 4, 7}, "B", "second")};
  std::string text = render(list, sources, {false, 2});
  CHECK(text.find("first") < text.find("second"));
  CHECK(text.find("third") == std::string::npos);
  CHECK(text.find("… and 1 more") != std::string::npos);
}

TEST_CASE("diagnostic: control bytes of a stranger's text are escaped", "[base]") {
  SourceMap sources;
  SourceId id = sources.add("a", "x\x1b[31my\n");
  std::string text = render({error_at({id, 0, 1}, "A", "bad \x1b]0;title\x07")}, sources);
  CHECK(text.find('\x1b') == std::string::npos);
  CHECK(text.find('\x07') == std::string::npos);
}

TEST_CASE("diagnostic: a place beyond the end of the text is still rendered", "[base]") {
  SourceMap sources;
  SourceId id = sources.add("a", "");
  CHECK(render({error_at({id, 7, 9}, "A", "unexpected end")}, sources).find("a:1:1") !=
        std::string::npos);
}

TEST_CASE("nearest: a typing mistake is found, an unrelated word is not", "[base]") {
  std::vector<std::string> names{"rms_norm", "relu", "reshape"};
  CHECK(nearest("rms_nrom", names) == "rms_norm");
  CHECK(nearest("rehsape", names) == "reshape");
  CHECK(nearest("attention", names).empty());
  CHECK(nearest("tset", {"rest of it", "test"}) == "test");  // neighbours exchanged: one mistake
  CHECK(nearest("tset", {"mist"}).empty());
}
