// dce and cse.
#include "tests/rewriter/fixture.hpp"

using namespace pw;
using namespace pw::test;

namespace {
constexpr const char* kOps = R"(
op log_row(x: T[*s]) -> y: T[*s] effect
op store(mut cache: T[*s], x: T[*s]) -> (c: T[*s] from cache)
)";
}

TEST_CASE("dce: what nothing needs goes, transitively; effects and writes stay", "[rewriter]") {
  World world(kOps);
  Graph g = world.graph(
      "in x: f32[n], c: f32[n]  a = neg(x)  b = relu(a)  l = log_row(x)  d = store(c, x)  y = "
      "abs(x)  out y");
  std::vector<NodeId> erased;
  CHECK(eliminate_dead(g, &erased) == 2);
  CHECK(erased.size() == 2);
  CHECK(count(g, "log_row") == 1);
  CHECK(count(g, "store") == 1);
  CHECK(eliminate_dead(g) == 0);
}

TEST_CASE("cse: equal nodes become one, chains of them too, and outputs keep their names",
          "[rewriter]") {
  World world(kOps);
  Graph g = world.graph(R"(in x: f32[n, 8], z: f32[n, 8]
    a = relu(x + z)
    y = relu(z + x)
    p, q = split(x){dim = 1, sizes = [4, 4]}
    r, s = split(x){dim = 1, sizes = [4, 4]}
    t = p + s
    out y, t)");
  CHECK(eliminate_common(g) == 3);
  CHECK(eliminate_common(g) == 0);
  CHECK(count(g, "split") == 1);
  CHECK(count(g, "relu") == 1);
  CHECK(g.value_name(g.outputs()[0]) == "y");
  CHECK(verify(g).empty());
}

TEST_CASE("elide_clones: a copy stays where the caller could tell it from what it copies",
          "[rewriter]") {
  World world(kOps);
  Graph g = world.graph(R"(in x: f32[n, 8], c: f32[n, 8]
    inner = clone(x)
    a = relu(inner)
    of_input = clone(reshape(x){shape = [n, 2, 4]})
    b = neg(x)
    second = clone(b)
    only = clone(abs(x))
    stored = store(c, x)
    before = clone(c)
    d = relu(before)
    out a, of_input, b, second, only, d)");
  CHECK(elide_clones(g) == 2);
  CHECK(elide_clones(g) == 0);
  CHECK_FALSE(g.find_value("inner").valid());
  for (const char* kept : {"of_input", "second", "before"}) {
    INFO(kept);
    const ValueId v = g.find_value(kept);
    REQUIRE(v.valid());
    CHECK(g.op_of(g.producer(v)).name == "clone");
  }
  CHECK(g.op_of(g.producer(g.find_value("only"))).name == "abs");
  CHECK(verify(g).empty());
  CHECK(eliminate_common(g) == 0);
}

TEST_CASE("cse: attributes tell nodes apart; effects, collectives and written values stay apart",
          "[rewriter]") {
  World world(kOps);
  Graph g = world.graph(R"(in x: bf16[n, 64], w: bf16[64], c: bf16[n, 64]
    a = rms_norm(x, w)
    b = rms_norm(x, w){eps = 1e-5}
    h = all_reduce(x){group = "tp:0"}
    i = all_reduce(x){group = "tp:0"}
    l = log_row(x)
    m = log_row(x)
    u = relu(c)
    d = store(c, x)
    v = relu(c)
    out a, b, h, i, u, v, d)");
  CHECK(eliminate_common(g) == 0);
}
