// One spelling for attributes and numbers that can be written in several.
#include "graph/compare/canonical.hpp"

#include <cmath>
#include <limits>
#include <random>

#include "graph/verify.hpp"
#include "tests/graph/library.hpp"

using namespace pw;
using pw::test::describe;
using pw::test::library;
using pw::test::line_of;

namespace {

Graph read(const std::string& body) {
  const ContextPtr context = library();
  auto graph = parse_graph(context, "graph g {" + body + "}", "test.pwg");
  if (!graph) FAIL(render(graph.error(), context->sources));
  CHECK(verify(*graph).empty());
  return std::move(*graph);
}

std::string producer(const Graph& graph, std::string_view name) {
  return graph.op_of(graph.producer(graph.find_value(name))).name;
}

NodeId node(const Graph& graph, std::string_view name) {
  return graph.producer(graph.find_value(name));
}

}  // namespace

TEST_CASE("canonical: the axes of a transpose stand in ascending order", "[graph]") {
  const Graph graph = read(R"(in k: f32[4, 6, 8]
    a = transpose(k){dim0 = -1, dim1 = -2}
    b = transpose(k){dim0 = 1, dim1 = 2}
    c = transpose(k){dim0 = 2, dim1 = 1}
    d = transpose(k){dim0 = 2, dim1 = -2}
    e = transpose(k){dim0 = 2, dim1 = 0}
    out a, b, c, d, e)");
  for (const char* same : {"b", "c", "d"})
    CHECK(graph.attributes(node(graph, same)) == graph.attributes(node(graph, "a")));
  CHECK(line_of(graph, "a") == "a: f32[4, 8, 6] = transpose(k){dim0 = 1, dim1 = 2}");
  CHECK(line_of(graph, "e") == "e: f32[8, 6, 4] = transpose(k){dim0 = 0, dim1 = 2}");
}

TEST_CASE("canonical: bounds of a slice lie within an extent that is known", "[graph]") {
  const Graph graph = read(R"(in k: f32[n, 8]
    a = slice(k){dim = 1, start = -3, end = 9223372036854775807}
    b = slice(k){dim = -1, start = 5, end = 8}
    c = slice(k){dim = 1, start = -20, end = -6}
    d = slice(k){dim = 0, end = 9223372036854775807}
    e = slice(k){dim = 0, start = 2, end = 7}
    out a, b, c, d, e)");
  CHECK(graph.attributes(node(graph, "a")) == graph.attributes(node(graph, "b")));
  CHECK(line_of(graph, "c") == "c: f32[n, 2] = slice(k){dim = 1, end = 2, start = 0, step = 1}");
  CHECK(line_of(graph, "d") == "d: f32[n, 8] = slice(k){dim = 0, end = n, start = 0, step = 1}");
  CHECK(line_of(graph, "e") == "e: f32[5, 8] = slice(k){dim = 0, end = 7, start = 2, step = 1}");
}

TEST_CASE("canonical: a full of rank 0 is a constant, unless it is memory", "[graph]") {
  const Graph graph = read(R"(
    op add_to(mut c: f32[], x: f32[]) -> (o: f32[] from c) { o = c + x }
    in x: f32[n], z: f32[]
    a = full(){shape = [], value = 2.0, dtype = f32}
    b = full(){shape = [], value = 3.0, dtype = f32}
    c = full(){shape = [], value = 4.0, dtype = f32}
    y = mul(x, a)
    d = add_to(b, z)
    out y, c, d)");
  CHECK(line_of(graph, "a") == "a: f32[] = constant(){dtype = f32, value = 2.0}");
  CHECK(producer(graph, "b") == "full");
  CHECK(producer(graph, "c") == "full");
}

TEST_CASE("canonical: one element that is broadcast is read as a constant", "[graph]") {
  const Graph graph = read(R"(in x: f32[n, 4], h: f16[n, 4], w: f32[4], s: f32[]
    one = full(){shape = [1], value = 2.0, dtype = f32}
    wide = full(){shape = [1, 1, 1], value = 2.0, dtype = f32}
    a = mul(x, one)
    b = mul(h, one)
    c = mul(x, wide)
    d = mul(s, one)
    e = cat(w, one)
    out a, b, c, d, e)");
  const auto number = [&](std::string_view name) {
    return graph.op_of(graph.producer(graph.operand(node(graph, name), 1))).name;
  };
  CHECK(number("a") == "constant");
  CHECK(number("b") == "full");  // f16 with f32[1] is computed in f32, and with a number it is f16
  CHECK(number("c") == "full");  // the result has three axes
  CHECK(number("d") == "full");  // the result has one axis
  CHECK(number("e") == "full");
}

TEST_CASE("canonical: numbers are rounded as their dtype holds them", "[graph]") {
  std::mt19937_64 draw(7);
  std::uniform_real_distribution<double> exponent(-150, 127), part(1, 2);
  for (int i = 0; i < 20000; ++i) {
    const double x = std::ldexp(part(draw), static_cast<int>(exponent(draw))) * (i % 2 ? 1 : -1);
    REQUIRE(as_held(DType::f32, x) == static_cast<double>(static_cast<float>(x)));
    REQUIRE(as_held(DType::f64, x) == x);
  }
  CHECK(as_held(DType::f16, 1.4142135623730951) == 1.4140625);
  CHECK(as_held(DType::bf16, 1.4142135623730951) == 1.4140625);
  CHECK(as_held(DType::bf16, 0.044715) == 0.044677734375);
  CHECK(as_held(DType::f16, 0x1p-24) == 0x1p-24);
  CHECK(as_held(DType::f16, 0x1p-26) == 0);
  CHECK(as_held(DType::f8e4m3, 0.3) == 0.3125);
  CHECK(as_held(DType::i64, 3.0) == 3.0);
  CHECK(std::isinf(as_held(DType::f32, std::numeric_limits<double>::infinity())));
}

TEST_CASE("canonical: an op reads a number in the dtype it computes in", "[graph]") {
  const Graph graph = read(R"(in x: f32[n], h: bf16[n], w: f64[n], i: i32[n], s: f32[]
    a = mul(x, 2.5)
    b = mul(h, 2.5)
    c = mul(w, 2.5)
    d = mul(i, 2)
    e = lt(x, 2.5)
    f = mul(s, 2.5)
    out a, b, c, d, e, f)");
  const auto read_as = [&](std::string_view name) {
    return number_dtype(graph, node(graph, name), 1);
  };
  CHECK(read_as("a") == DType::f32);
  CHECK(read_as("b") == DType::f32);
  CHECK(read_as("c") == DType::f64);
  CHECK(read_as("d") == DType::i32);
  CHECK(read_as("e") == DType::f32);
  CHECK(read_as("f") == DType::f64);  // of two rank-0 operands the wider dtype counts
}
