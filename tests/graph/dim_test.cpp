#include "graph/dim.hpp"

#include "base/hash.hpp"
#include "tests/catch.hpp"

using namespace pw;

namespace {
struct Symbols {
  Strings strings;
  Dims dims{strings};
  Facts facts;
  DimId n = dims.symbol("n"), d = dims.symbol("d");
  DimId c(std::int64_t v) { return dims.constant(v); }
};
}  // namespace

TEST_CASE_METHOD(Symbols, "dims: equal polynomials have one id", "[graph]") {
  DimId a = dims.mul(dims.add(n, c(1)), dims.sub(n, c(1)));
  DimId b = dims.sub(dims.mul(n, n), c(1));
  CHECK(a == b);
  CHECK(dims.print(dims.add(dims.mul(c(2), d), n)) == dims.print(dims.add(n, dims.add(d, d))));
  CHECK(dims.sub(n, n) == c(0));
}

TEST_CASE_METHOD(Symbols, "dims: quotients are exact where they can be", "[graph]") {
  CHECK(dims.div(dims.mul(n, c(128)), c(64)) == dims.mul(n, c(2)));
  CHECK(dims.div(dims.mul(n, d), d) == n);
  CHECK(dims.div(dims.add(dims.mul(n, c(4)), c(7)), c(4)) == dims.add(n, c(1)));
  CHECK(dims.mod(dims.add(dims.mul(n, c(4)), c(7)), c(4)) == c(3));
  DimId sum = dims.add(n, d);
  CHECK(dims.div(dims.mul(sum, dims.add(n, c(2))), sum) == dims.add(n, c(2)));
  CHECK(!dims.div(n, c(0)).valid());
  CHECK(dims.div(c(-7), c(2)) == c(-4));
}

TEST_CASE_METHOD(Symbols, "dims: filled up to a multiple and divided is a quotient rounded up",
                 "[graph]") {
  const DimId four = c(4), x = dims.add(n, c(2));
  const DimId less = dims.mul(x, c(-1));
  const DimId up = dims.div(dims.add(x, c(3)), four);
  CHECK(dims.div(dims.add(x, dims.mod(less, four)), four) == up);
  const DimId fill = dims.mod(dims.sub(four, dims.mod(x, four)), four);
  CHECK(dims.div(dims.add(x, fill), four) == up);
  CHECK(dims.div(dims.add(n, fill), four) != up);
  for (std::int64_t v = 1; v <= 9; ++v) CHECK(dims.evaluate(up, {{"n", v}}) == (v + 5) / 4);
}

TEST_CASE_METHOD(Symbols, "dims: filled up to a multiple is a multiple", "[graph]") {
  const auto minus = [&](DimId x) { return dims.mul(x, c(-1)); };
  const DimId fill = dims.mod(minus(dims.mod(n, c(8))), c(8));
  CHECK(dims.mod(minus(n), c(8)) == fill);
  const DimId filled = dims.add(n, fill), blocks = dims.div(dims.add(n, c(7)), c(8));
  CHECK(filled == dims.mul(blocks, c(8)));
  CHECK(dims.mod(filled, c(8)) == c(0));
  CHECK(dims.div(dims.mul(filled, d), dims.mul(d, c(8))) == blocks);
  CHECK(dims.div(filled, blocks) == c(8));
  CHECK(dims.mod(dims.add(d, dims.mod(n, c(24))), c(8)) == dims.mod(dims.add(n, d), c(8)));
  CHECK(dims.mod(dims.add(d, dims.mod(n, c(12))), c(8)) != dims.mod(dims.add(n, d), c(8)));
  CHECK(dims.prove(Compare::ge, filled, n, facts) == Truth::yes);
  CHECK(dims.prove(Compare::lt, filled, dims.add(n, c(8)), facts) == Truth::yes);
  CHECK(dims.prove(Compare::lt, fill, c(7), facts) == Truth::unknown);
  CHECK(dims.prove(Compare::le, dims.mul(d, n), dims.mul(d, filled), facts) == Truth::yes);
  CHECK(dims.decided(dims.min(filled, n), facts) == n);
  facts.symbols["n"] = {8, 1024, 8, ""};
  CHECK(dims.prove(Compare::eq, filled, n, facts) == Truth::yes);
}

TEST_CASE_METHOD(Symbols, "dims: quotients and extremes agree with numbers", "[graph]") {
  const std::uint64_t seed = 4711;
  INFO("seed " << seed);
  Random random(seed);
  const auto floored = [](std::int64_t a, std::int64_t b) {
    std::int64_t q = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
  };
  // Each dim with its value for the drawn n and d.
  for (int round = 0; round < 300; ++round) {
    const std::map<std::string, std::int64_t, std::less<>> at = {
        {"n", 1 + static_cast<std::int64_t>(random.below(40))},
        {"d", 1 + static_cast<std::int64_t>(random.below(9))}};
    std::vector<std::pair<DimId, std::int64_t>> made = {
        {n, at.at("n")}, {d, at.at("d")}, {c(1), 1}, {c(2), 2}, {c(3), 3}, {c(-4), -4}};
    for (int step = 0; step < 12; ++step) {
      const auto [x, vx] = made[random.below(made.size())];
      const auto [y, vy] = made[random.below(made.size())];
      std::pair<DimId, std::int64_t> next;
      switch (random.below(8)) {
        case 0: next = {dims.add(x, y), vx + vy}; break;
        case 1: next = {dims.mul(x, y), vx * vy}; break;
        case 2: next = {dims.max(x, y), std::max(vx, vy)}; break;
        case 3: next = {dims.min(x, y), std::min(vx, vy)}; break;
        case 4: next = {dims.sub(x, y), vx - vy}; break;
        case 5:
          if (vy == 0) continue;
          next = {dims.mod(x, y), vx - vy * floored(vx, vy)};
          break;
        default:
          if (vy == 0) continue;
          next = {dims.div(x, y), floored(vx, vy)};
      }
      if (!next.first || next.second > 100000 || next.second < -100000) continue;
      CAPTURE(dims.print(next.first));
      REQUIRE(dims.evaluate(next.first, at) == next.second);
      const Bounds b = dims.bounds(next.first, facts);
      CHECK((!b.min || *b.min <= next.second));
      CHECK((!b.max || *b.max >= next.second));
      CHECK(dims.evaluate(dims.decided(next.first, facts), at) == next.second);
      made.push_back(next);
    }
  }
}

TEST_CASE_METHOD(Symbols, "prove: a maximum that the facts decide", "[graph]") {
  CHECK(dims.prove(Compare::eq, dims.max(n, c(1)), n, facts) == Truth::yes);
  CHECK(dims.prove(Compare::eq, dims.max(n, c(2)), n, facts) == Truth::unknown);
  CHECK(dims.prove(Compare::ge, dims.max(n, c(7)), c(7), facts) == Truth::yes);
  CHECK(dims.prove(Compare::le, dims.min(n, c(7)), c(7), facts) == Truth::yes);
  facts.symbols["n"] = {0, 64, 1, ""};
  CHECK(dims.prove(Compare::eq, dims.max(n, c(1)), n, facts) == Truth::unknown);
  CHECK(dims.prove(Compare::eq, dims.min(n, c(64)), n, facts) == Truth::yes);
}

TEST_CASE_METHOD(Symbols, "dims: a line in a symbol that rises", "[graph]") {
  const auto line = [&](DimId id) {
    const auto found = dims.rising(id, "n", facts);
    return found ? dims.print(found->factor) + " n + " + dims.print(found->rest) : "";
  };
  CHECK(line(n) == "1 n + 0");
  CHECK(line(dims.add(dims.mul(n, dims.mul(c(6), d)), dims.sub(d, c(2)))) == "6*d n + d - 2");
  CHECK(line(c(7)) == "");
  CHECK(line(d) == "");
  CHECK(line(dims.sub(d, n)) == "");
  CHECK(line(dims.mul(n, dims.sub(d, c(3)))) == "");  // d may be 3
  CHECK(line(dims.mul(n, n)) == "");
  CHECK(line(dims.sub(dims.mul(n, dims.mul(n, n)), dims.mul(c(2), n))) == "");
  CHECK(line(dims.div(n, c(2))) == "");
  CHECK(line(dims.add(n, dims.mod(n, c(2)))) == "");
  facts.symbols["d"] = {4, 9, 1, ""};
  CHECK(line(dims.mul(n, dims.sub(d, c(3)))) == "d - 3 n + 0");
}

TEST_CASE_METHOD(Symbols, "dims: overflow gives an invalid id, never a wrong number", "[graph]") {
  DimId big = c(INT64_MAX);
  CHECK(!dims.add(big, c(1)).valid());
  CHECK(!dims.mul(big, c(2)).valid());
  CHECK(!dims.div(c(INT64_MIN), c(-1)).valid());
  CHECK(!dims.div(dims.mul(c(INT64_MIN), n), c(-1)).valid());
  CHECK(dims.mod(c(INT64_MIN), c(-1)) == c(0));
  CHECK(dims.divides(c(-1), dims.mul(c(INT64_MIN), n), facts) != Truth::no);
  CHECK(!dims.add(dims.mul(big, c(2)), n).valid());
}

TEST_CASE_METHOD(Symbols, "prove: three values, from ranges and divisibility", "[graph]") {
  facts.symbols["n"] = {1, 256, 1, "tokens"};
  CHECK(dims.prove(Compare::le, n, c(256), facts) == Truth::yes);
  CHECK(dims.prove(Compare::gt, n, c(256), facts) == Truth::no);
  CHECK(dims.prove(Compare::gt, n, c(8), facts) == Truth::unknown);
  CHECK(dims.prove(Compare::eq, dims.mul(c(2), n), c(7), facts) == Truth::no);
  CHECK(dims.divides(c(8), n, facts) == Truth::unknown);
  CHECK(dims.divides(c(8), dims.mul(n, c(16)), facts) == Truth::yes);
  facts.symbols["n"].multiple = 8;
  CHECK(dims.divides(c(8), n, facts) == Truth::yes);
  CHECK(facts.tokens() == "n");
}

TEST_CASE_METHOD(Symbols, "prove: agrees with brute force over the range", "[graph]") {
  const std::uint64_t seed = 20240917;
  INFO("seed " << seed);
  Random random(seed);
  facts.symbols["n"] = {1, 6, 1, ""};
  facts.symbols["d"] = {2, 5, 1, ""};
  for (int round = 0; round < 3000; ++round) {
    auto pick = [&](auto&& self, int depth) -> DimId {
      std::uint64_t k = random.below(depth > 3 ? 3 : 8);
      if (k == 0) return n;
      if (k == 1) return d;
      if (k == 2) return c(static_cast<std::int64_t>(random.below(7)) - 2);
      DimId a = self(self, depth + 1), b = self(self, depth + 1);
      if (k == 3 || k == 4) return dims.add(a, b);
      if (k == 5) return dims.mul(a, b);
      if (k == 6) return dims.div(a, d);
      return dims.mod(a, dims.add(n, c(1)));
    };
    DimId a = pick(pick, 0), b = pick(pick, 0);
    Compare op = static_cast<Compare>(random.below(6));
    Truth claimed = dims.prove(op, a, b, facts);
    bool always = true, never = true;
    for (std::int64_t i = 1; i <= 6; ++i) {
      for (std::int64_t j = 2; j <= 5; ++j) {
        auto x = dims.evaluate(a, {{"n", i}, {"d", j}}), y = dims.evaluate(b, {{"n", i}, {"d", j}});
        REQUIRE((x && y));
        bool holds = op == Compare::eq   ? *x == *y
                     : op == Compare::ne ? *x != *y
                     : op == Compare::lt ? *x < *y
                     : op == Compare::le ? *x <= *y
                     : op == Compare::gt ? *x > *y
                                         : *x >= *y;
        always = always && holds;
        never = never && !holds;
      }
    }
    INFO(dims.print(a) << " ? " << dims.print(b) << " op " << static_cast<int>(op));
    if (claimed == Truth::yes) REQUIRE(always);
    if (claimed == Truth::no) REQUIRE(never);
  }
}

TEST_CASE_METHOD(Symbols, "dims: substitution and evaluation agree", "[graph]") {
  DimId e = dims.add(dims.mul(n, d), dims.div(dims.add(n, c(3)), d));
  DimId s = dims.substitute(e, {{"n", c(10)}, {"d", c(4)}});
  CHECK(dims.value(s) == dims.evaluate(e, {{"n", 10}, {"d", 4}}));
  CHECK(dims.symbols(e) == std::vector<std::string>{"d", "n"});
}

TEST_CASE_METHOD(Symbols, "dims: quotients by a known divisor are exact", "[graph]") {
  facts.symbols["n"].multiple = 6;
  const DimId twice_half = dims.mul(dims.div(n, c(2)), c(2));
  CHECK(dims.prove(Compare::eq, twice_half, n, facts) == Truth::yes);
  CHECK(dims.prove(Compare::eq, dims.mul(dims.div(n, c(4)), c(4)), n, facts) == Truth::unknown);
  CHECK(dims.prove(Compare::eq, twice_half, n, Facts{}) == Truth::unknown);
}
