#include "algebra/rational.hpp"

#include <cmath>

#include "tests/catch.hpp"

using pw::Rational;

TEST_CASE("rational: sums and products are exact and in lowest terms", "[algebra]") {
  const Rational third = Rational(1) / 3;
  CHECK(third + third + third == 1);
  CHECK((third * 6).print() == "2");
  CHECK((Rational(-2) / -4).print() == "1/2");
  CHECK((Rational(1) / -3).print() == "-1/3");
  CHECK(third - third == 0);
  CHECK(Rational(1) / 3 < Rational(34) / 100);
  CHECK(abs(-third) == third);
  CHECK((third * 5).floor() == 1);
  CHECK((third * -5).floor() == -2);
  CHECK((third - third).floor() == 0);
}

TEST_CASE("rational: a number converts exactly", "[algebra]") {
  CHECK(Rational::of(0.1) != Rational(1) / 10);
  CHECK(Rational::of(0.1).approximate() == 0.1);
  CHECK(Rational::of(-0x1p-1074) * Rational::of(0x1p1000) * Rational::of(0x1p74) == -1);
  CHECK(Rational::of(0x1p62).integer() == std::int64_t{1} << 62);
  CHECK_FALSE(Rational::of(0.5).is_integer());
}

TEST_CASE("rational: neighbours beyond 64 bits differ", "[algebra]") {
  const Rational most = INT64_MAX, least = INT64_MIN;
  CHECK(most + 1 == -least);
  CHECK(most + 1 != most);
  CHECK((most + 1) - 1 == most);
  CHECK((most + 1 - 1).pair().has_value());
  CHECK(least.integer() == INT64_MIN);
  CHECK(-(-least) == least);
  Rational power = 1;
  for (int i = 0; i < 300; ++i) power *= 2;
  CHECK(power.bits() == 301);
  CHECK(power + 1 > power);
  CHECK((power + 1) - power == 1);
  CHECK_FALSE(power.integer());
  CHECK((power / power).print() == "1");
  CHECK(least * least == Rational::of(0x1p126));
}

TEST_CASE("rational: residues wrap around as integers of a machine do", "[algebra]") {
  CHECK(Rational(255).signed_residue(8) == -1);
  CHECK(Rational(-129).signed_residue(8) == 127);
  CHECK((Rational(INT64_MAX) + 1).signed_residue(64) == INT64_MIN);
  CHECK((Rational(INT64_MIN) - 1).signed_residue(64) == INT64_MAX);
  CHECK((Rational(INT64_MAX) * 4 + 7).signed_residue(32) == 3);
}
