// Indices in normal form: digits of mixed radix, quotients, and what is known of ranges.
#include "proof/integers/integers.hpp"

#include "tests/catch.hpp"

namespace {

using namespace pw::proof;

struct Sizes {
  Solver solver;
  Integers i{solver};
  Ix n = i.symbol("n"), h = i.symbol("h"), d = i.symbol("d");
  Ix x = i.variable(0, n), y = i.variable(1, h), z = i.variable(2, d);
  Ix flat = i.add(i.mul(i.add(i.mul(x, h), y), d), z);
};

}  // namespace

TEST_CASE("integers: digits of a flat index are the indices", "[proof]") {
  Sizes s;
  CHECK(s.i.mod(s.flat, s.d) == s.z);
  CHECK(s.i.div(s.flat, s.d) == s.i.add(s.i.mul(s.x, s.h), s.y));
  CHECK(s.i.div(s.flat, s.i.mul(s.h, s.d)) == s.x);
  CHECK(s.i.mod(s.i.div(s.flat, s.d), s.h) == s.y);
}

TEST_CASE("integers: a number of another radix is not a digit", "[proof]") {
  Sizes s;
  CHECK_FALSE(s.i.mod(s.flat, s.h) == s.z);
  CHECK_FALSE(s.i.div(s.flat, s.h) == s.x);
}

TEST_CASE("integers: a multiple does not change a remainder", "[proof]") {
  Sizes s;
  const Ix i = s.i.variable(3, s.i.symbol("k"));
  CHECK(s.i.mod(s.i.add(i, s.d), s.d) == s.i.mod(i, s.d));
  CHECK_FALSE(s.i.mod(s.i.add(i, s.i.constant(1)), s.d) == s.i.mod(i, s.d));
}

TEST_CASE("integers: ranges are proved, and only those", "[proof]") {
  Sizes s;
  const Ix one = s.i.constant(1);
  CHECK(s.i.nonnegative(s.i.sub(s.i.sub(s.n, one), s.x)));
  CHECK_FALSE(s.i.nonnegative(s.i.sub(s.i.sub(s.n, s.i.constant(2)), s.x)));
  CHECK(s.i.nonnegative(s.i.sub(s.i.mul(s.n, s.d), s.n)));
  CHECK_FALSE(s.i.nonnegative(s.i.sub(s.n, s.d)));
  const auto mark = s.i.mark();
  s.i.assume(s.i.sub(s.n, s.d));
  CHECK(s.i.nonnegative(s.i.sub(s.n, s.d)));
  CHECK(s.i.nonnegative(s.i.sub(s.i.sub(s.n, one), s.z)));
  s.i.back_to(mark);
  CHECK_FALSE(s.i.nonnegative(s.i.sub(s.n, s.d)));
}

TEST_CASE("integers: facts that cannot be are found out", "[proof]") {
  Sizes s;
  CHECK_FALSE(s.i.contradictory());
  s.i.assume(s.i.sub(s.i.constant(0), s.n));
  CHECK(s.i.contradictory());
}
