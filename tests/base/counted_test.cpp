#include "base/counted.hpp"

#include <cstdint>

#include "tests/catch.hpp"

namespace pw {
namespace {

TEST_CASE("counted: one is singular, all other numbers are plural", "[base]") {
  CHECK(counted(std::size_t{1}, "rule") == "1 rule");
  CHECK(counted(std::size_t{0}, "rule") == "0 rules");
  CHECK(counted(std::int64_t{2}, "built-in step") == "2 built-in steps");
  CHECK(counted(-1, "token") == "-1 tokens");
  CHECK(are(1) == "is");
  CHECK(are(0) == "are");
}

TEST_CASE("counted: plurals by the noun's last letters", "[base]") {
  CHECK(plural_of("piece") == "pieces");
  CHECK(plural_of("class") == "classes");
  CHECK(plural_of("match") == "matches");
  CHECK(plural_of("axis") == "axes");
  CHECK(plural_of("entry") == "entries");
  CHECK(plural_of("array") == "arrays");
  CHECK(plural_of("y") == "ys");
}

}  // namespace
}  // namespace pw
