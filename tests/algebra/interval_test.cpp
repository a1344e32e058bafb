#include "algebra/interval.hpp"

#include "algebra/rational.hpp"
#include "tests/catch.hpp"

using Range = pw::Interval<pw::Rational>;

TEST_CASE("interval: ends of products may be infinite", "[algebra]") {
  const Range positive{1, {}}, any{}, some{-2, 3};
  CHECK((positive * positive).at_least(1));
  CHECK_FALSE((positive * positive).high);
  CHECK_FALSE((positive * some).low);
  CHECK((Range::point(0) * any).contains(Range::point(0)));
  CHECK((Range::point(0) * any).at_most(0));
  CHECK((some * some).contains({-6, 9}));
  CHECK(some.power(2).at_least(0));
  CHECK(some.power(2).at_most(9));
  CHECK_FALSE(any.power(3).low);
  CHECK((positive + some).at_least(-1));
}

TEST_CASE("interval: extremes", "[algebra]") {
  const Range low{0, 5}, high{2, {}};
  CHECK(greater(low, high).at_least(2));
  CHECK_FALSE(greater(low, high).high);
  CHECK(lesser(low, high).at_most(5));
  CHECK(lesser(low, high).at_least(0));
  CHECK_FALSE(lesser(low, Range{}).low);
  CHECK(*Range{-7, 3}.magnitude() == 7);
}
