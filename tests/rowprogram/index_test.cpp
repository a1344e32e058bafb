// Index expressions: a simplified expression has the value of the original.
#include "codegen/rowprogram/index.hpp"

#include "base/hash.hpp"
#include "tests/catch.hpp"

using namespace pw;
using namespace pw::rows;

namespace {

std::int64_t value(const Indices& indices, IndexId id, const std::vector<std::int64_t>& vars) {
  const Index& node = indices[id];
  const auto a = [&] { return value(indices, node.a, vars); };
  const auto b = [&] { return value(indices, node.b, vars); };
  switch (node.kind) {
    case Index::Kind::constant: return node.constant;
    case Index::Kind::variable: return vars[static_cast<std::size_t>(node.constant)];
    case Index::Kind::add: return a() + b();
    case Index::Kind::sub: return a() - b();
    case Index::Kind::mul: return a() * b();
    case Index::Kind::div: return a() / b();
    case Index::Kind::mod: return a() % b();
    case Index::Kind::clamp: return std::min(a(), b() - 1);
    case Index::Kind::param:
    case Index::Kind::slot: break;
  }
  FAIL("not made here");
  return 0;
}

}  // namespace

TEST_CASE("index: quotients and remainders of sums are taken apart", "[rowprogram]") {
  Indices x;
  const auto number = [&](std::int64_t n) { return x.constant(n); };
  const VarId row = x.variable(number(1000)), group = x.variable(number(6)),
              inside = x.variable(number(128));
  const IndexId place = x.add(x.mul(x.use(group), number(128)), x.use(inside));
  CHECK(x.div(place, number(128)) == x.use(group));
  CHECK(x.mod(place, number(128)) == x.use(inside));
  CHECK(x.print(x.mod(x.div(place, number(64)), number(2))) == "i2 / 64");
  CHECK(x.print(x.div(x.div(x.add(x.mul(x.use(row), number(768)), place), number(8)),
                      number(16))) == "i1 + row * 6");
  CHECK(x.print(x.substitute(x.div(x.use(inside), number(2)), inside,
                             x.add(x.mul(x.use(group), number(8)), number(5)))) == "i1 * 4 + 2");
  // An index that was split in three, after another one.
  const IndexId j = x.use(inside), first = x.div(j, number(12)),
                second = x.mod(x.div(j, number(4)), number(3)), third = x.mod(j, number(4));
  const IndexId two = x.add(x.mul(x.add(x.mul(x.use(row), number(11)), first), number(3)), second);
  CHECK(x.print(x.add(x.mul(two, number(4)), third)) == "((row * 11) * 3) * 4 + i2");
}

TEST_CASE("index: random expressions keep their value", "[rowprogram]") {
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    Random random(seed);
    Indices x;
    std::vector<std::int64_t> extents, at;
    std::vector<VarId> vars;
    struct Known {
      IndexId id;
      std::int64_t value;
    };
    std::vector<Known> known;
    for (int v = 0; v < 3; ++v) {
      extents.push_back(1 + static_cast<std::int64_t>(random.below(40)));
      at.push_back(
          static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(extents.back()))));
      vars.push_back(x.variable(x.constant(extents.back())));
      known.push_back({x.use(vars.back()), at.back()});
    }
    for (int step = 0; step < 12; ++step) {
      const Known a = known[random.below(known.size())], b = known[random.below(known.size())];
      const auto number = static_cast<std::int64_t>(1 + random.below(24));
      Known made{};
      switch (random.below(5)) {
        case 0: made = {x.add(a.id, b.id), a.value + b.value}; break;
        case 1: made = {x.mul(a.id, x.constant(number)), a.value * number}; break;
        case 2: made = {x.div(a.id, x.constant(number)), a.value / number}; break;
        case 3: made = {x.mod(a.id, x.constant(number)), a.value % number}; break;
        default: made = {x.add(a.id, x.constant(number)), a.value + number};
      }
      INFO("seed " << seed << ": " << x.print(made.id));
      REQUIRE(value(x, made.id, at) == made.value);
      const Interval range = x.interval(made.id);
      REQUIRE((range.low <= made.value && made.value <= range.high));
      known.push_back(made);
    }
    // Another position for the first variable.
    const Known last = known.back();
    std::vector<std::int64_t> moved = at;
    moved[0] = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(extents[0])));
    const IndexId there = x.substitute(last.id, vars[0], x.constant(moved[0]));
    REQUIRE(value(x, there, at) == value(x, last.id, moved));
  }
}
