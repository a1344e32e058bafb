// The interpreter and eager: each primitive compared with numbers computed by hand, and with the
// other engine.
#include <cmath>
#include <limits>

#include "backends/eager/eager.hpp"
#include "backends/interpreter/interpreter.hpp"
#include "backends/program.hpp"
#include "exec/runner.hpp"
#include "tests/backends/graphs.hpp"

namespace {

using namespace pw;
using namespace pw::test;
const double kNaN = std::nan("");
const double kInfinity = std::numeric_limits<double>::infinity();

std::vector<std::unique_ptr<Backend>> engines() {
  std::vector<std::unique_ptr<Backend>> all;
  all.push_back(make_eager());
  all.push_back(make_interpreter());
  all.push_back(make_interpreter(Precision::single));
  return all;
}

std::vector<Tensor> run(Backend& backend, const Graph& graph, const std::vector<Tensor>& inputs,
                        RunContext context = {}) {
  auto executable = backend.compile(graph);
  INFO((executable ? std::string() : render(executable.error(), graph.context().sources)));
  REQUIRE(executable);
  std::vector<Tensor> outputs;
  for (ValueId output : graph.outputs()) {
    outputs.emplace_back(graph.context().types[graph.type(output)].dtype,
                         extents_of(graph, output, context.symbols).value());
  }
  auto done = (*executable)->run(views(inputs), views(outputs), context);
  INFO((done ? std::string() : render(done.error(), graph.context().sources)));
  REQUIRE(done);
  return outputs;
}

void check(const std::vector<double>& got, const std::vector<double>& expected,
           double tolerance = 0) {
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    INFO("element " << i << ": " << got[i] << ", expected " << expected[i]);
    const bool same = got[i] == expected[i] || (std::isnan(got[i]) && std::isnan(expected[i]));
    CHECK((same ||
           std::fabs(got[i] - expected[i]) <= tolerance * std::max(1.0, std::fabs(expected[i]))));
  }
}

/// One output of a graph on all engines.
void check_all(const std::string& text, const std::vector<Tensor>& inputs,
               const std::vector<double>& expected, double tolerance = 0) {
  const Graph graph = graph_of(text);
  for (const auto& engine : engines()) {
    INFO(engine->name() << ": " << text);
    check(values(run(*engine, graph, inputs)[0]), expected, tolerance);
  }
}

}  // namespace

TEST_CASE("engines: arithmetic broadcasts and rounds once to the result's dtype", "[backends]") {
  const Tensor x = tensor(DType::f32, {2, 3}, {1, 2, 3, -4, 5, 0.5});
  const Tensor row = tensor(DType::f32, {3}, {10, 20, 40});
  const Tensor column = tensor(DType::f32, {2, 1}, {2, 4});
  check_all("in x: f32[2, 3], r: f32[3]  y = x + r  out y", {x, row}, {11, 22, 43, 6, 25, 40.5});
  check_all("in x: f32[2, 3], c: f32[2, 1]  y = x * c  out y", {x, column}, {2, 4, 6, -16, 20, 2});
  check_all("in r: f32[3], c: f32[2, 1]  y = r - c  out y", {row, column}, {8, 18, 38, 6, 16, 36});
  check_all("in x: f32[2, 3], c: f32[2, 1]  y = x / c  out y", {x, column},
            {0.5, 1, 1.5, -1, 1.25, 0.125});
  check_all("in x: f32[2, 3]  y = pow(x, 2)  out y", {x}, {1, 4, 9, 16, 25, 0.25});
  check_all("in x: f32[2, 3]  y = pow(2.0, x)  out y", {x}, {2, 4, 8, 0.0625, 32, std::sqrt(2.0)},
            1e-6);
  check_all("in x: bf16[2]  y = x + 1.0  out y", {tensor(DType::bf16, {2}, {1.0 / 256, 3.0 / 256})},
            {1, 1.015625});
}

TEST_CASE("engines: comparisons, select and the NaN rule of extremes", "[backends]") {
  const Tensor a = tensor(DType::f32, {4}, {1, 2, kNaN, -1}),
               b = tensor(DType::f32, {4}, {2, 2, 0, kNaN});
  check_all("in a: f32[4], b: f32[4]  y = lt(a, b)  out y", {a, b}, {1, 0, 0, 0});
  check_all("in a: f32[4], b: f32[4]  y = le(a, b)  out y", {a, b}, {1, 1, 0, 0});
  check_all("in a: f32[4], b: f32[4]  y = gt(a, b)  out y", {a, b}, {0, 0, 0, 0});
  check_all("in a: f32[4], b: f32[4]  y = ge(a, b)  out y", {a, b}, {0, 1, 0, 0});
  check_all("in a: f32[4], b: f32[4]  y = eq(a, b)  out y", {a, b}, {0, 1, 0, 0});
  check_all("in a: f32[4], b: f32[4]  y = ne(a, b)  out y", {a, b}, {1, 0, 1, 1});
  check_all("in a: f32[4], b: f32[4]  y = maximum(a, b)  out y", {a, b}, {2, 2, kNaN, kNaN});
  check_all("in a: f32[4], b: f32[4]  y = minimum(a, b)  out y", {a, b}, {1, 2, kNaN, kNaN});
  check_all("in a: f32[4], b: f32[4]  y = select(eq(a, b), a, 7.0)  out y", {a, b}, {7, 2, 7, 7});
}

TEST_CASE("engines: integers and masks are exact and wrap", "[backends]") {
  const double big = 9007199254740992.0;  // 2^53
  const Tensor i = tensor(DType::i64, {3}, {big, -7, 6}), j = tensor(DType::i64, {3}, {1, 2, 3});
  check_all("in i: i64[3], j: i64[3]  y = (i + j) - i  out y", {i, j}, {1, 2, 3});
  check_all("in i: i64[3], j: i64[3]  y = gt(i + j, i)  out y", {i, j}, {1, 1, 1});
  check_all("in i: i64[3], j: i64[3]  y = i / j  out y", {i, j}, {big, -3, 2});
  check_all("in i: i64[3], j: i64[3]  y = bitwise_and(i, j)  out y", {i, j}, {0, 0, 2});
  check_all("in i: i64[3], j: i64[3]  y = bitwise_or(i, j)  out y", {i, j}, {big + 1 - 1, -5, 7},
            1e-15);
  check_all("in i: i64[3], j: i64[3]  y = bitwise_xor(j, 3)  out y", {i, j}, {2, 1, 0});
  const Tensor by = tensor(DType::i64, {3}, {2, 63, -1});
  check_all("in i: i64[3], b: i64[3]  y = shift_right(i, b)  out y", {i, by}, {big / 4, -1, 0});
  check_all("in j: i64[3], b: i64[3]  y = shift_left(j, b)  out y", {j, by}, {4, 0, 0});
  const Tensor bytes = tensor(DType::i8, {4}, {100, -128, -3, 1}),
               far = tensor(DType::i8, {4}, {1, 7, 8, 100});
  check_all("in x: i8[4], b: i8[4]  y = shift_left(x, b)  out y", {bytes, far}, {-56, 0, 0, 0});
  check_all("in x: i8[4], b: i8[4]  y = shift_right(x, b)  out y", {bytes, far}, {50, -1, -1, 0});
  check_all("in u: u8[2]  y = shift_right(u, 1)  out y", {tensor(DType::u8, {2}, {255, 1})},
            {127, 0});
  const Tensor m = tensor(DType::b8, {2}, {1, 0});
  check_all("in m: b8[2]  y = shift_left(m, m)  out y", {m}, {0, 0});
  check_all("in m: b8[2]  y = bitwise_xor(m, ne(m, 0))  out y", {m}, {0, 0});
  check_all("in m: b8[2]  y = bitwise_not(m)  out y", {m}, {0, 1});
  check_all("in u: u8[2]  y = u + u  out y", {tensor(DType::u8, {2}, {200, 3})}, {144, 6});
}

TEST_CASE("engines: one operand", "[backends]") {
  const Tensor x = tensor(DType::f32, {3}, {0.25, 4, 1});
  check_all("in x: f32[3]  y = neg(x)  out y", {x}, {-0.25, -4, -1});
  check_all("in x: f32[3]  y = abs(neg(x))  out y", {x}, {0.25, 4, 1});
  const Tensor halves = tensor(DType::f32, {5}, {0.25, -0.25, 4, -2.5, 0x1p100});
  check_all("in x: f32[5]  y = ceil(x)  out y", {halves}, {1, 0, 4, -2, 0x1p100});
  check_all("in x: f32[5]  y = trunc(x)  out y", {halves}, {0, 0, 4, -2, 0x1p100});
  check_all("in x: f32[5]  y = round(x)  out y", {halves}, {0, 0, 4, -2, 0x1p100});
  check_all("in x: f32[5]  y = floor(x)  out y", {halves}, {0, -1, 4, -3, 0x1p100});
  check_all("in i: i64[2]  y = floor(i)  out y", {tensor(DType::i64, {2}, {-7, 6})}, {-7, 6});
  check_all("in x: f32[3]  y = sqrt(x)  out y", {x}, {0.5, 2, 1});
  check_all("in x: f32[3]  y = rsqrt(x)  out y", {x}, {2, 0.5, 1});
  check_all("in x: f32[3]  y = exp(x)  out y", {x}, {std::exp(0.25), std::exp(4), std::exp(1)},
            1e-6);
  check_all("in x: f32[3]  y = log(x)  out y", {x}, {std::log(0.25), std::log(4), 0}, 1e-6);
  check_all("in x: f32[3]  y = tanh(x)  out y", {x}, {std::tanh(0.25), std::tanh(4), std::tanh(1)},
            1e-6);
  check_all("in x: f32[3]  y = sin(x)  out y", {x}, {std::sin(0.25), std::sin(4), std::sin(1)},
            1e-6);
  check_all("in x: f32[3]  y = cos(x)  out y", {x}, {std::cos(0.25), std::cos(4), std::cos(1)},
            1e-6);
  const Tensor part = tensor(DType::f32, {3}, {0.25, -0.5, 1});
  const auto of = [](double (*f)(double), std::vector<double> of_each) {
    for (double& one : of_each) one = f(one);
    return of_each;
  };
#define PW_CHECK(name)                                       \
  check_all("in x: f32[3]  y = " #name "(x)  out y", {part}, \
            of([](double a) { return std::name(a); }, {0.25, -0.5, 1}), 1e-6);
  PW_CHECK(tan)
  PW_CHECK(asin)
  PW_CHECK(acos)
  PW_CHECK(atan)
  PW_CHECK(sinh)
  PW_CHECK(cosh)
  PW_CHECK(asinh)
  PW_CHECK(acosh)
  PW_CHECK(atanh)
  PW_CHECK(expm1)
  PW_CHECK(log1p)
  PW_CHECK(log2)
  PW_CHECK(log10)
#undef PW_CHECK
}

TEST_CASE("engines: seldom functions over their domains, and at the ends of them", "[backends]") {
  std::vector<double> of{kInfinity, -kInfinity, 0.0, -0.0, 1.0, -1.0, kNaN, 1e-45, -1e-45, 3e38};
  for (double x = 1e-30; x < 1e30; x *= 37.3) of.insert(of.end(), {x, -x});
  for (double x = -7; x < 7; x += 0.11) of.push_back(x);
  for (double& x : of) x = static_cast<float>(x);
  const Tensor x = tensor(DType::f32, {static_cast<std::int64_t>(of.size())}, of);
  const auto check = [&](const char* name, double (*f)(double)) {
    INFO(name);
    std::vector<double> wanted;
    for (double one : of) wanted.push_back(static_cast<float>(f(one)));
    check_all(fmt::format("in x: f32[{}]  y = {}(x)  out y", of.size(), name), {x}, wanted, 2e-7);
  };
#define PW_CHECK(name) check(#name, [](double a) { return std::name(a); });
  PW_CHECK(tan)
  PW_CHECK(atan)
  PW_CHECK(atanh)
  PW_CHECK(expm1)
  PW_CHECK(log1p)
  PW_CHECK(log2)
  PW_CHECK(log10)
#undef PW_CHECK
}

TEST_CASE("engines: rests of divisions, and angles", "[backends]") {
  const Tensor x = tensor(DType::f32, {4}, {7, -7, 7, -7}),
               y = tensor(DType::f32, {4}, {3, 3, -3, -3});
  check_all("in x: f32[4], y: f32[4]  z = fmod(x, y)  out z", {x, y}, {1, -1, 1, -1});
  check_all("in x: f32[4], y: f32[4]  z = remainder(x, y)  out z", {x, y}, {1, 2, -2, -1});
  check_all("in x: f32[4], y: f32[4]  z = atan2(x, y)  out z", {x, y},
            {std::atan2(7, 3), std::atan2(-7, 3), std::atan2(7, -3), std::atan2(-7, -3)}, 1e-6);
  const Tensor i = tensor(DType::i64, {5}, {7, -7, 7, -7, 5}),
               j = tensor(DType::i64, {5}, {3, 3, -3, -1, 0});
  check_all("in i: i64[5], j: i64[5]  z = fmod(i, j)  out z", {i, j}, {1, -1, 1, 0, 0});
  check_all("in i: i64[5], j: i64[5]  z = remainder(i, j)  out z", {i, j}, {1, 2, -2, 0, 0});
}

TEST_CASE("engines: roots of infinity, of zeros and of negative numbers", "[backends]") {
  std::vector<double> of, roots, inverse;
  for (int i = 0; i < 8; ++i) {  // whole vectors, and a rest
    for (double x : {kInfinity, -kInfinity, -0.0, 0.0, 4.0, -1.0, kNaN}) of.push_back(x);
    for (double y : {kInfinity, kNaN, -0.0, 0.0, 2.0, kNaN, kNaN}) roots.push_back(y);
    for (double y : {0.0, kNaN, -kInfinity, kInfinity, 0.5, kNaN, kNaN}) inverse.push_back(y);
  }
  const Tensor x = tensor(DType::f32, {56}, of);
  check_all("in x: f32[56]  y = sqrt(x)  out y", {x}, roots);
  check_all("in x: f32[56]  y = rsqrt(x)  out y", {x}, inverse);
  check_all("in x: f32[56]  y = 1.0 / sqrt(x)  out y", {x}, inverse);  // the sign of zero
}

TEST_CASE("engines: powers of integers wrap, and of negative powers only those of ±1 are left",
          "[backends]") {
  const Tensor a = tensor(DType::i32, {6}, {3, -3, 65536, 46341, 7, 0}),
               p = tensor(DType::i32, {6}, {21, 21, 2, 2, 0, 0});
  check_all("in a: i32[6], p: i32[6]  y = pow(a, p)  out y", {a, p},
            {1870418611, -1870418611, 0, -2147479015, 1, 1});
  const Tensor b = tensor(DType::i64, {7}, {1, -1, -1, 2, 0, -5, -1}),
               n = tensor(DType::i64, {7}, {-3, -3, -2, -1, -1, -1, -9223372036854775808.0});
  check_all("in a: i64[7], p: i64[7]  y = pow(a, p)  out y", {b, n}, {1, -1, 1, 0, 0, 0, 1});
  // 2^62 to the fourth, and 10^10 cubed modulo 2^64, by products that wrap.
  const Tensor large = tensor(DType::i64, {3}, {0x1p62, 1e10, 9007199254740993.0});
  check_all("in a: i64[3]  y = eq(pow(a, 4), (a * a) * (a * a))  out y", {large}, {1, 1, 1});
  check_all("in a: u8[2]  y = pow(a, a)  out y", {tensor(DType::u8, {2}, {5, 13})}, {53, 253});
}

TEST_CASE("engines: a cast to the same dtype changes no value", "[backends]") {
  for (const DType dtype : {DType::f8e4m3, DType::f8e5m2}) {
    Tensor x(dtype, {256});
    for (int i = 0; i < 256; ++i) x.data()[i] = static_cast<std::byte>(i);
    const std::string type = std::string(name(dtype));
    check_all("in x: " + type + "[256]  y = cast(x){dtype = " + type + "}  out y", {x}, values(x));
    check_all("in x: " + type + "[256]  y = select(le(x, x), x, x)  out y", {x}, values(x));
    check_all("in x: " + type + "[256]  y = neg(neg(x))  out y", {x}, values(x));
  }
}

TEST_CASE("engines: casts round, truncate and saturate", "[backends]") {
  const Tensor x = tensor(DType::f32, {5}, {1.06, -3.7, 1e4, -kInfinity, kNaN});
  check_all("in x: f32[5]  y = f8e4m3(x)  out y", {x}, {1, -3.75, 448, -448, kNaN});
  check_all("in x: f32[5]  y = f8e5m2(x)  out y", {x}, {1, -3.5, 10240, -kInfinity, kNaN});
  check_all("in x: f32[3]  y = f8e5m2(x)  out y", {tensor(DType::f32, {3}, {61440, 1e30, -3e38})},
            {57344, 57344, -57344});
  check_all("in x: f32[5]  y = i32(x)  out y", {x}, {1, -3, 10000, -2147483648.0, 0});
  check_all("in x: f32[5]  y = u8(x)  out y", {x}, {1, 0, 255, 0, 0});
  check_all("in i: i64[2]  y = f32(i)  out y", {tensor(DType::i64, {2}, {16777217, 3})},
            {16777216, 3});
  check_all("in i: i64[2]  y = i8(i)  out y", {tensor(DType::i64, {2}, {300, -1})}, {44, -1});
}

TEST_CASE("engines: reductions along any axis", "[backends]") {
  const Tensor x = tensor(DType::f32, {2, 3}, {1, 2, 3, 4, 5, 6});
  check_all("in x: f32[2, 3]  y = sum(x){dim = 1}  out y", {x}, {6, 15});
  check_all("in x: f32[2, 3]  y = sum(x){dim = 0, keepdim = true}  out y", {x}, {5, 7, 9});
  check_all("in x: f32[2, 3]  y = mean(x)  out y", {x}, {2, 5});
  check_all("in x: f32[2, 3]  y = amax(x){dim = 0}  out y", {x}, {4, 5, 6});
  check_all("in x: f32[2, 3]  y = amin(x)  out y", {x}, {1, 4});
  check_all("in x: f32[2]  y = amax(x)  out y", {tensor(DType::f32, {2}, {kNaN, 3})}, {kNaN});
  check_all("in x: f32[2]  y = amin(x)  out y", {tensor(DType::f32, {2}, {3, kNaN})}, {kNaN});
  check_all("in i: i64[2]  y = sum(i)  out y", {tensor(DType::i64, {2}, {9007199254740992.0, 2})},
            {9007199254740994.0});
  std::vector<double> ones(1000, 1);
  check_all("in x: bf16[1000]  y = sum(x)  out y", {tensor(DType::bf16, {1000}, ones)}, {1000});
}

TEST_CASE("engines: layout ops move elements", "[backends]") {
  const Tensor x = tensor(DType::f32, {2, 4}, {0, 1, 2, 3, 4, 5, 6, 7});
  check_all("in x: f32[2, 4]  y = transpose(x){dim0 = 0, dim1 = 1}  out y", {x},
            {0, 4, 1, 5, 2, 6, 3, 7});
  check_all("in x: f32[2, 4]  y = reshape(transpose(x){dim0 = 0, dim1 = 1}){shape = [8]}  out y",
            {x}, {0, 4, 1, 5, 2, 6, 3, 7});
  check_all("in x: f32[2, 4]  y = slice(x){dim = 1, start = 1, end = 4, step = 2}  out y", {x},
            {1, 3, 5, 7});
  check_all(
      "in x: f32[2, 4]  a, b = split(x){dim = 1, sizes = [1, 3]}  y = cat(b, a){dim = 1}  out y",
      {x}, {1, 2, 3, 0, 5, 6, 7, 4});
  check_all(
      "in x: f32[2, 4]  a, b = split(x){dim = 0, sizes = [1, 1]}  y = expand(b){shape = [2, 2, 4]} "
      " out y",
      {x}, {4, 5, 6, 7, 4, 5, 6, 7, 4, 5, 6, 7, 4, 5, 6, 7});
  check_all("in x: f32[2, 4]  y = full(){shape = [2], value = 1.5, dtype = f16} out y", {x},
            {1.5, 1.5});
  check_all("in x: f32[2, 4]  y = empty(){shape = [2], dtype = i32} out y", {x}, {0, 0});
  check_all(
      "in x: f32[2, 4]  y = slice_scatter(x, neg(slice(x){dim = 1, start = 0, end = 2})){dim = 1, "
      "start = 1, end = 3}  out y",
      {x}, {0, 0, -1, 3, 4, -4, -5, 7});
}

TEST_CASE("engines: embedding gathers rows and refuses an index outside the table", "[backends]") {
  const Tensor table = tensor(DType::bf16, {3, 2}, {1, 2, 3, 4, 5, 6});
  const std::string text = "in t: bf16[3, 2], i: i64[2]  y = embedding(t, i)  out y";
  check_all(text, {table, tensor(DType::i64, {2}, {2, 0})}, {5, 6, 1, 2});
  const Graph graph = graph_of(text);
  for (const auto& engine : engines()) {
    Tensor out(DType::bf16, {2, 2});
    const Tensor ids = tensor(DType::i64, {2}, {0, 3});
    const std::vector<TensorView> in = {table.view(), ids.view()}, to = {out.view()};
    const auto done = engine->compile(graph).value()->run(in, to, {});
    REQUIRE(!done);
    CHECK(done.error()[0].code == "PW1204");
  }
}

TEST_CASE("engines: elements by tensors of indices", "[backends]") {
  const Tensor x = tensor(DType::bf16, {2, 3}, {1, 2, 3, 4, 5, 6}),
               i = tensor(DType::i64, {2, 1}, {1, 0}), j = tensor(DType::i64, {2}, {-1, 0}),
               k = tensor(DType::i64, {3}, {1, 1, 0}), none = tensor(DType::i64, {0}, {});
  const std::string in = "in x: bf16[2, 3], i: i64[2, 1], j: i64[2], k: i64[3], z: i64[0]  ";
  const std::vector<Tensor> all = {x, i, j, k, none};
  check_all(in + "y = index(x, i, j){wrap = true}  out y", all, {6, 4, 3, 1});
  check_all(in + "y = index(x, k){dim = 1}  out y", all, {2, 2, 1, 5, 5, 4});
  check_all(in + "y = index(transpose(x){dim0 = 0, dim1 = 1}, i)  out y", all, {2, 5, 1, 4});
  check_all(in + "y = index(x, z)  out y", all, {});
  check_all(in + "y = iota(){shape = [2, 3], dtype = f16}  out y", all, {0, 1, 2, 0, 1, 2});
  const std::string put = in + "y = index_put(x, 10.0, k){dim = 1, reduce = ";
  check_all(put + "\"set\"}  out y", all, {10, 10, 3, 10, 10, 6});
  check_all(put + "\"sum\"}  out y", all, {11, 22, 3, 14, 25, 6});
  check_all(put + "\"prod\"}  out y", all, {10, 200, 3, 40, 500, 6});
  check_all(put + "\"amin\"}  out y", all, {1, 2, 3, 4, 5, 6});
  check_all(
      in + "y = index_put(x, slice(x){dim = 1, start = 1, end = 3}, i, j){wrap = true}  out y", all,
      {6, 2, 5, 3, 5, 2});
}

TEST_CASE("engines: indices outside, and elements joined by no known name, are diagnosed",
          "[backends]") {
  const Tensor x = tensor(DType::f32, {3}, {1, 2, 3});
  const auto code = [&](const std::string& text, double at) {
    std::string codes;
    const Graph graph = graph_of("in x: f32[3], i: i64[1]  " + text + "  out y");
    for (const auto& engine : engines()) {
      Tensor out(DType::f32, graph.context().types[graph.type(graph.outputs()[0])].shape.size() == 1
                                 ? Extents{text.find("put") == std::string::npos ? 1 : 3}
                                 : Extents{});
      const Tensor i = tensor(DType::i64, {1}, {at});
      const std::vector<TensorView> in = {x.view(), i.view()}, to = {out.view()};
      const auto done = engine->compile(graph).value()->run(in, to, {});
      codes += done ? "ok " : done.error()[0].code + " ";
    }
    return codes.substr(0, codes.find(' '));
  };
  CHECK(code("y = index(x, i)", 2) == "ok");
  CHECK(code("y = index(x, i)", 3) == "PW1204");
  CHECK(code("y = index(x, i)", -1) == "PW1204");
  CHECK(code("y = index(x, i){wrap = true}", -3) == "ok");
  CHECK(code("y = index(x, i){wrap = true}", -4) == "PW1204");
  CHECK(code("y = index_put(x, 1.0, i)", 3) == "PW1204");
  CHECK(code("y = index_put(x, 1.0, i){reduce = \"mean\"}", 0) == "PW1203");
}

TEST_CASE("engines: running sums, orders and places along any axis", "[backends]") {
  const Tensor x = tensor(DType::f32, {2, 3}, {3, 1, 2, kNaN, 5, 5});
  const std::string in = "in x: f32[2, 3]  ";
  check_all(in + "y = cumsum(x)  out y", {x}, {3, 4, 6, kNaN, kNaN, kNaN});
  check_all(in + "y = cumprod(x){dim = 0}  out y", {x}, {3, 1, 2, kNaN, 5, 10});
  check_all(in + "y, i = sort(x)  out y", {x}, {1, 2, 3, 5, 5, kNaN});
  check_all(in + "y, i = sort(x){descending = true}  out i", {x}, {0, 2, 1, 0, 1, 2});
  check_all(in + "y, i = sort(x){dim = 0}  out i", {x}, {0, 0, 0, 1, 1, 1});
  check_all(in + "y, i = topk(x){k = 2}  out y", {x}, {3, 2, kNaN, 5});
  check_all(in + "y, i = topk(x){k = 1, dim = 0, largest = false}  out y", {x}, {3, 1, 2});
  check_all(in + "y = argmax(x)  out y", {x}, {0, 0});
  check_all(in + "y = argmin(x){dim = 0, keepdim = true}  out y", {x}, {1, 0, 0});
  check_all(in + "y = prod(x)  out y", {x}, {6, kNaN});
  check_all("in b: b8[3]  y = any(b)  out y", {tensor(DType::b8, {3}, {0, 1, 0})}, {1});
  check_all("in b: b8[3]  y = all(b)  out y", {tensor(DType::b8, {3}, {0, 1, 0})}, {0});
  const Tensor many = tensor(DType::i64, {2}, {4611686018427387904.0, 4611686018427387904.0});
  check_all("in i: i64[2]  y = slice(cumsum(i)){dim = 0, start = 1, end = 2}  out y", {many},
            {-9223372036854775808.0});
}

TEST_CASE("engines: matrix products with bias, scales and transposed weights", "[backends]") {
  const Tensor a = tensor(DType::f32, {2, 3}, {1, 2, 3, 4, 5, 6}),
               b = tensor(DType::f32, {3, 2}, {1, 0, 0, 1, 1, 1});
  check_all("in a: f32[2, 3], b: f32[3, 2]  y = mm(a, b)  out y", {a, b}, {4, 5, 10, 11});
  check_all("in a: f32[2, 3], w: f32[2, 3]  y = mm(a, transpose(w){dim0 = 0, dim1 = 1})  out y",
            {a, a}, {14, 32, 32, 77});
  check_all("in c: f32[2], a: f32[2, 3], b: f32[3, 2]  y = addmm(c, a, b)  out y",
            {tensor(DType::f32, {2}, {100, 200}), a, b}, {104, 205, 110, 211});
  const Tensor qa = tensor(DType::f8e4m3, {2, 3}, {1, 2, 3, 4, 5, 6}),
               qb = tensor(DType::f8e4m3, {3, 2}, {1, 0, 0, 1, 1, 1});
  const std::string scaled =
      "in a: f8e4m3[2, 3], b: f8e4m3[3, 2], s: f32[2, 1], t: f32[1]  y = scaled_mm(a, b, s, t){out "
      "= bf16}  out y";
  check_all(scaled, {qa, qb, tensor(DType::f32, {2, 1}, {0.5, 2}), tensor(DType::f32, {1}, {4})},
            {8, 10, 80, 88});
  const std::string columns =
      "in a: f8e4m3[2, 3], b: f8e4m3[3, 2], s: f32[1], t: f32[1, 2]  y = scaled_mm(a, b, s, t){out "
      "= f32}  out y";
  check_all(columns, {qa, qb, tensor(DType::f32, {1}, {0.5}), tensor(DType::f32, {1, 2}, {2, 4})},
            {4, 10, 10, 22});
}

TEST_CASE("engines: a large product agrees with the sum over k", "[backends]") {
  // Wider than a block in every direction, and odd.
  const std::int64_t n = 5, k = 1100, m = 301;
  std::vector<double> a, b, expected(static_cast<std::size_t>(n * m), 0.0);
  for (std::int64_t i = 0; i < n * k; ++i) a.push_back(static_cast<double>(i * 7 % 9) - 4);
  for (std::int64_t i = 0; i < k * m; ++i) b.push_back(static_cast<double>(i * 5 % 7) - 3);
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < m; ++j) {
      for (std::int64_t x = 0; x < k; ++x)
        expected[static_cast<std::size_t>(i * m + j)] +=
            a[static_cast<std::size_t>(i * k + x)] * b[static_cast<std::size_t>(x * m + j)];
    }
  }
  const std::vector<Tensor> inputs = {tensor(DType::bf16, {n, k}, a),
                                      tensor(DType::bf16, {k, m}, b)};
  check_all("in a: bf16[5, 1100], b: bf16[1100, 301]  y = mm(f32(a), f32(b))  out y", inputs,
            expected);
}

TEST_CASE("engines: attention is causal inside each sequence and shares key heads", "[backends]") {
  const std::string text =
      "symbol n in 1..64 tokens  in q: f32[n, 2, 2], k: f32[n, 1, 2], v: f32[n, 1, 2]  y = "
      "unified_attention(q, k, v, none){layer = \"a\"}  out y";
  const Graph graph = graph_of(text);
  const Step step{{{0, 2, 0}, {1, 1, 0}}};
  const Tensor q =
      tensor(DType::f32, {4, 2, 2}, {1, 0, 0, 1, 2, 0, 0, 2, 1, 1, 1, 1, kNaN, kNaN, kNaN, kNaN});
  const Tensor k = tensor(DType::f32, {4, 1, 2}, {1, 0, 0, 1, 5, 5, kNaN, kNaN});
  const Tensor v = tensor(DType::f32, {4, 1, 2}, {1, 2, 3, 4, 5, 6, kNaN, kNaN});
  const double high = std::exp(2 / std::sqrt(2.0)),
               weight = high / (high + 1);  // of the key that fits
  const std::vector<double> expected = {
      1, 2, 1, 2, 3 - 2 * weight, 4 - 2 * weight, 1 + 2 * weight, 2 + 2 * weight, 5, 6, 5, 6};
  for (const auto& engine : engines()) {
    INFO(engine->name());
    std::vector<double> got = values(run(*engine, graph, {q, k, v}, {{{"n", 4}}, &step, 3})[0]);
    got.resize(12);  // the fourth row is padding
    check(got, expected, 1e-6);
  }
}

TEST_CASE("engines: long sequences agree between eager and the reference", "[backends]") {
  const Graph graph = graph_of(
      "symbol n in 1..512 tokens  in q: f32[n, 4, 16], k: f32[n, 2, 16], v: f32[n, 2, 16]  y = "
      "unified_attention(q, k, v, none){layer = \"a\"}  out y");
  const Step step{{{0, 100, 0}, {1, 1, 0}, {2, 70, 0}}};
  Weights weights(graph, 3);
  const auto eager = make_eager();
  const auto got = run_whole(graph, *eager, weights, step),
             expected = run_reference(graph, weights, step);
  REQUIRE(got);
  REQUIRE(expected);
  check(values((*got)[0]), values((*expected)[0]), 1e-5);
}

TEST_CASE("engines: the reference keeps doubles but rounds to fp8", "[backends]") {
  const Graph graph =
      graph_of("in x: bf16[1]  y = x / 3.0  q = f8e4m3(y)  z = f32(q) * 3.0  out y, z");
  const Tensor x = tensor(DType::bf16, {1}, {1});
  const std::vector<TensorView> in = {x.view()};
  const auto exact = interpret(graph, in, {});
  REQUIRE(exact);
  CHECK(values((*exact)[0])[0] == 1.0 / 3.0);
  CHECK(values((*exact)[1])[0] == 0.34375 * 3);
  const auto single = interpret(graph, in, {}, Precision::single);
  REQUIRE(single);
  CHECK(values((*single)[0])[0] == rounded(DType::bf16, 1.0 / 3.0));
}

TEST_CASE("engines: an op without kernel and body is a missing capability, named", "[backends]") {
  const ContextPtr context = library();
  Op op;
  op.name = "mystery";
  op.imported = true;
  const OpId id = *context->ops.declare(op);
  Graph graph(context, "g");
  const TypeId type = context->types.get(DType::f32, {context->dims.constant(2)});
  const ValueId x = graph.add_input("x", type, InputKind::input);
  NodeSpec spec;
  spec.op = id;
  spec.operands = {x};
  spec.results.push_back({type, "y"});
  graph.add_output(graph.result(graph.add_node(spec)));
  for (const auto& engine : engines()) {
    const auto compiled = engine->compile(graph);
    REQUIRE(!compiled);
    CHECK(compiled.error()[0].code == "PW1201");
    CHECK(compiled.error()[0].message.find("mystery") != std::string::npos);
  }
}

TEST_CASE("engines: wrong tensors and missing symbols are diagnosed", "[backends]") {
  const Graph graph = graph_of("in x: f32[n, 2]  y = neg(x)  out y");
  const auto executable = make_eager()->compile(graph).value();
  Tensor x(DType::f32, {3, 2}), y(DType::f32, {3, 2});
  const std::vector<TensorView> in = {x.view()}, out = {y.view()};
  CHECK(executable->run(in, out, {}).error()[0].code == "PW1202");
  CHECK(executable->run(in, out, {{{"n", 4}}}).error()[0].code == "PW1203");
  CHECK(executable->run(in, out, {{{"n", 3}}}));
}

TEST_CASE("engines: a collective runs on one rank only when its group has one", "[backends]") {
  const Tensor x = tensor(DType::f32, {2}, {1, 2});
  check_all("in x: f32[2]  y = all_reduce(x){group = \"tp\"}  out y", {x}, {1, 2});
  check_all("in x: f32[2]  y = all_gather(x){dim = 0, world = 1, group = \"tp\"}  out y", {x},
            {1, 2});
  const Graph graph =
      graph_of("in x: f32[2]  y = all_gather(x){dim = 0, world = 2, group = \"tp\"}  out y");
  Tensor y(DType::f32, {4});
  const std::vector<TensorView> in = {x.view()}, out = {y.view()};
  CHECK(make_eager()->compile(graph).value()->run(in, out, {}).error()[0].code == "PW1201");
}

TEST_CASE("engines: keep_topk keeps the first of equal elements, and a NaN before any number",
          "[backends]") {
  const std::string text = "in p: f32[4, 4]  w = keep_topk(p) {k = 2}  out w";
  check_all(text,
            {tensor(DType::f32, {4, 4},
                    {0.5, 0.25, 0.125, 0.125, 0.25, 0.25, 0.25, 0.25, 0.125, 0.375, 0.25, 0.375, 1,
                     kNaN, 2, 3})},
            {2.0f / 3, 1.0f / 3, 0, 0, 0.5, 0.5, 0, 0, 0, 0.5, 0, 0.5, 0, kNaN, 0, kNaN}, 1e-7);
  const Tensor row = tensor(DType::bf16, {3}, {1, 2, 5});
  check_all("in p: bf16[3]  w = keep_topk(p) {k = 7}  out w", {row}, {0.125, 0.25, 0.625});
  check_all("in p: bf16[3]  w = keep_topk(p) {k = 0}  out w", {row}, {0, 0, 0});
}
