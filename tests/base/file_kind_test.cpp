#include "base/io/file_kind.hpp"

#include "tests/catch.hpp"

using namespace pw;
using namespace std::string_literals;

TEST_CASE("file_kind: by the first bytes, and nothing for text", "[base]") {
  CHECK(file_kind("\x89PNG\r\n\x1a\n") == "a PNG picture");
  CHECK(file_kind("%PDF-1.7") == "a PDF document");
  CHECK(file_kind("\x80\x04\x95"s) == "a pickle, as written by torch.save");
  CHECK(file_kind("text\0more"s) == "a binary file");
  CHECK(file_kind(std::string(257, 'x') + "ustar") == "a tar archive");
  for (const char* text : {"", "rule r { y = x => y = x }", "{\"a\": 1}", "x", "graph g { }"})
    CHECK(file_kind(text).empty());
}

TEST_CASE("file_kind: the format that a document states", "[base]") {
  CHECK(stated_format(" {\n \"format\" : \"piecewise.plan/1\", \"x\": 1}") == "piecewise.plan/1");
  for (const char* text : {"", "{", "{\"name\": \"format\"}", "[\"format\", \"x\"]", "format: x"})
    CHECK(stated_format(text).empty());
  CHECK(stated_format("{\"format\": \"cut of") == "cut of");
}
