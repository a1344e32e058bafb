// Lines and columns as editors count them.
#include "dsl/syntax/text_lines.hpp"

#include "base/hash.hpp"
#include "tests/catch.hpp"

namespace pw {
namespace {

TEST_CASE("text lines: columns are units of UTF-16 or bytes of UTF-8", "[dsl]") {
  // é is two bytes and one unit, the emoji four bytes and two units.
  const std::string text = "a\xc3\xa9\xf0\x9f\x99\x82z\nb";
  const TextLines lines(text);
  REQUIRE(lines.size() == 2);
  CHECK(lines.place(7, ColumnUnit::utf16) == TextPlace{0, 4});
  CHECK(lines.place(7, ColumnUnit::utf8) == TextPlace{0, 7});
  CHECK(lines.offset({0, 4}, ColumnUnit::utf16) == 7);
  CHECK(lines.offset({0, 3}, ColumnUnit::utf16) == 3);  // between the halves of a pair
  CHECK(lines.offset({0, 99}, ColumnUnit::utf16) == 8);
  CHECK(lines.offset({9, 0}, ColumnUnit::utf16) == text.size());
  CHECK(lines.place(9, ColumnUnit::utf16) == TextPlace{1, 0});
}

TEST_CASE("text lines: every line end ends a line", "[dsl]") {
  const std::string text = "a\r\nb\rc\n";
  const TextLines lines(text);
  REQUIRE(lines.size() == 4);
  CHECK(lines.line(0) == "a");
  CHECK(lines.line(1) == "b");
  CHECK(lines.line(2) == "c");
  CHECK(lines.line(3).empty());
}

TEST_CASE("text lines: there and back is the same on any bytes", "[dsl]") {
  Random random(3);
  for (int i = 0; i < 200; ++i) {
    std::string text;
    for (std::uint64_t n = random.below(60); n > 0; --n) {
      constexpr std::string_view kParts[] = {
          "a", "\n", "\r\n", "\xc3\xa9", "\xff", "\xf0\x9f\x99\x82", "\xc3"};
      text += kParts[random.below(7)];
    }
    const TextLines lines(text);
    for (const ColumnUnit unit : {ColumnUnit::utf8, ColumnUnit::utf16})
      for (std::size_t at = 0; at <= text.size(); ++at) {
        const std::uint32_t back = lines.offset(lines.place(at, unit), unit);
        REQUIRE(back <= at);  // inside of a character or a line end: where it begins
        REQUIRE(lines.place(back, unit) == lines.place(at, unit));
      }
  }
}

}  // namespace
}  // namespace pw
