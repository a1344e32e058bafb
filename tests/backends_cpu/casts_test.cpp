// Casts that a graph states round on every engine: chains of casts among all dtypes have the same
// bits on the interpreter, eager and cpu. Integers are divided by quotient and rest.
#include <cmath>
#include <random>

#include <fmt/format.h>

#include "backends/eager/eager.hpp"
#include "backends/interpreter/interpreter.hpp"
#include "tests/backends/graphs.hpp"
#include "tests/backends_cpu/cast_chains.hpp"
#include "tests/backends_cpu/running.hpp"

namespace {

using namespace pw;
using namespace pw::test;

struct Engines {
  std::vector<std::pair<std::string, std::unique_ptr<Backend>>> all;
  Engines() {
    all.emplace_back("interpreter, single", make_interpreter(Precision::single));
    all.emplace_back("interpreter", make_interpreter(Precision::stated));
    all.emplace_back("eager", make_eager());
    if (!have_compiler()) return;
    all.emplace_back("cpu", std::make_unique<CpuBackend>());
    all.emplace_back("cpu, strict", std::make_unique<CpuBackend>(BackendOptions{.strict = true}));
  }
};

void check_all(const Graph& graph, const std::vector<Tensor>& inputs,
               const std::vector<std::vector<double>>& wanted) {
  Engines engines;
  for (auto& [name, engine] : engines.all) {
    const auto outputs = outputs_of(*engine, graph, views_of(inputs), {});
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      INFO(name << ", output " << graph.value_name(graph.outputs()[i]));
      CHECK(values(outputs[i]) == wanted[i]);
    }
  }
}

std::int64_t floored(std::int64_t a, std::int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return static_cast<std::int64_t>(-static_cast<std::uint64_t>(a));
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

}  // namespace

TEST_CASE("casts: chains among all dtypes have the same bits on every engine", "[cpu]") {
  const ContextPtr context = library();
  for (const std::uint64_t seed : {1, 2, 3}) {
    const CastChains chains = cast_chains(seed);
    INFO("seed " << seed << "\n" << chains.text);
    const Graph graph = graph_of(chains.text, context);
    Engines engines;
    const auto wanted = outputs_of(*engines.all[0].second, graph, views_of(chains.inputs), {});
    for (auto& [name, engine] : engines.all) {
      const auto outputs = outputs_of(*engine, graph, views_of(chains.inputs), {});
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        INFO(name << ": " << chains.chains[i]);
        CHECK(different(outputs[i], wanted[i]) == "");
      }
    }
  }
}

TEST_CASE("casts: a narrow type in the middle of a kernel is kept", "[cpu]") {
  const Graph graph = graph_of(
      "in x: f32[4], h: bf16[4]\n"
      "a = f32(f16(x))\n"
      "b = f32(bf16(x))\n"
      "c = f32(f16(x * 3.0)) + 1.0\n"
      "d = f32(bf16(f32(h) * f32(h))) - 1.0\n"
      "out a, b, c, d");
  const std::vector<double> h{1.0078125, 3, 0.5, 1.5};
  const std::vector<Tensor> inputs{tensor(DType::f32, {4}, {2049, 0.1, 70000, -5.0009765625}),
                                   tensor(DType::bf16, {4}, h)};
  std::vector<double> squares;
  for (const double x : h) squares.push_back(rounded(DType::bf16, x * x) - 1);
  const double third = rounded(DType::f16, rounded(DType::f32, 0.1) * 3) + 1;
  check_all(
      graph, inputs,
      {{2048, rounded(DType::f16, rounded(DType::f32, 0.1)), INFINITY, -5},
       {2048, rounded(DType::bf16, rounded(DType::f32, 0.1)), rounded(DType::bf16, 70000), -5},
       {6149, rounded(DType::f32, third), INFINITY,
        rounded(DType::f32, rounded(DType::f16, 3 * -5.0009765625) + 1)},
       squares});
}

TEST_CASE("integers: floor division of all bytes, and at the ends of the wider types", "[cpu]") {
  for (const bool is_signed : {true, false}) {
    const DType dtype = is_signed ? DType::i8 : DType::u8;
    const int first = is_signed ? -128 : 0;
    std::vector<double> all, quotients, rests;
    for (int i = 0; i < 256; ++i) all.push_back(first + i);
    for (int a = first; a < first + 256; ++a)
      for (int b = first; b < first + 256; ++b) {
        const std::int64_t q = floored(a, b);
        quotients.push_back(is_signed ? static_cast<std::int8_t>(q) : static_cast<double>(q));
        rests.push_back(b == 0 ? 0 : static_cast<double>(a - q * b));
      }
    const Graph graph =
        graph_of(fmt::format("in x: {0}[256, 1], y: {0}[256]\nq = integer_div_floor(x, y)\n"
                             "r = remainder(x, y)\nout q, r",
                             name(dtype)));
    check_all(graph, {tensor(dtype, {256, 1}, all), tensor(dtype, {256}, all)}, {quotients, rests});
  }
  const auto check_wide = [](DType dtype, const std::vector<std::int64_t>& values) {
    const auto n = static_cast<std::int64_t>(values.size());
    Tensor x(dtype, {n, 1}), y(dtype, {n}), wanted(dtype, {n, n});
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t a = values[static_cast<std::size_t>(i)];
      store_run(dtype, x.data() + i * size_of(dtype), 1, 1, &a);
      store_run(dtype, y.data() + i * size_of(dtype), 1, 1, &a);
      for (std::int64_t j = 0; j < n; ++j) {
        const std::int64_t q = floored(a, values[static_cast<std::size_t>(j)]);
        store_run(dtype, wanted.data() + (i * n + j) * size_of(dtype), 1, 1, &q);
      }
    }
    const Graph graph = graph_of(fmt::format(
        "in x: {0}[{1}, 1], y: {0}[{1}]\nq = integer_div_floor(x, y)\nout q", name(dtype), n));
    Engines engines;
    for (auto& [name, engine] : engines.all) {
      INFO(name);
      const auto outputs = outputs_of(*engine, graph, views_of({x, y}), {});
      CHECK(std::memcmp(outputs[0].data(), wanted.data(), wanted.view().bytes()) == 0);
    }
  };
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min(),
                         kMost = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t kLeast32 = std::numeric_limits<std::int32_t>::min(),
                         kMost32 = std::numeric_limits<std::int32_t>::max();
  check_wide(DType::i64, {kLeast, kLeast + 1, -7, -3, -1, 0, 1, 2, 3, 10, kMost - 1, kMost});
  check_wide(DType::i32, {kLeast32, kLeast32 + 1, -7, -3, -1, 0, 1, 2, 3, 10, kMost32});
}

TEST_CASE("integers: shifts of all bytes by all bytes, and of the wider types by any number",
          "[cpu]") {
  for (const bool is_signed : {true, false}) {
    const DType dtype = is_signed ? DType::i8 : DType::u8;
    const int first = is_signed ? -128 : 0;
    std::vector<double> all, left, right;
    for (int i = 0; i < 256; ++i) all.push_back(first + i);
    for (int a = first; a < first + 256; ++a)
      for (int b = first; b < first + 256; ++b) {
        const bool within = b >= 0 && b < 8;
        const int shifted = within ? a * (1 << b) : 0;
        left.push_back(is_signed ? static_cast<std::int8_t>(shifted)
                                 : static_cast<std::uint8_t>(shifted));
        right.push_back(within ? std::floor(a / std::pow(2.0, b)) : a < 0 ? -1 : 0);
      }
    const Graph graph =
        graph_of(fmt::format("in x: {0}[256, 1], y: {0}[256]\nl = shift_left(x, y)\n"
                             "r = shift_right(x, y)\nout l, r",
                             name(dtype)));
    check_all(graph, {tensor(dtype, {256, 1}, all), tensor(dtype, {256}, all)}, {left, right});
  }
  const std::vector<double> by{0, 1, 31, 32, 63, 64, -1}, x{-7, 5};
  const double end = -2147483648.0;
  const Graph graph = graph_of(
      "in x: i32[2, 1], y: i32[7]\nl = shift_left(x, y)\nr = shift_right(x, y)\n"
      "w = shift_right(i64(x), i64(y))\nout l, r, w");
  const std::vector<double> right{-7, -4, -1, -1, -1, -1, -1, 5, 2, 0, 0, 0, 0, 0};
  check_all(graph, {tensor(DType::i32, {2, 1}, x), tensor(DType::i32, {7}, by)},
            {{-7, -14, end, 0, 0, 0, 0, 5, 10, end, 0, 0, 0, 0}, right, right});
}

TEST_CASE("casts: bounds that exclude each other are kept before a cast to integers", "[cpu]") {
  const Graph graph = graph_of(
      "in x: i8[64], f: f32[64]\n"
      "a = clamp(x){min = 5.0, max = 2.0}\n"
      "b = i8(maximum(minimum(f, 2.0), 5.0))\n"
      "big = select(gt(f, 5.0), f, 5.0)\n"
      "c = i8(select(lt(big, 2.0), big, 2.0))\n"
      "out a, b, c");
  std::vector<double> numbers;
  for (int i = 0; i < 64; ++i) numbers.push_back(i * 4 - 128);
  const std::vector<Tensor> inputs{tensor(DType::i8, {64}, numbers),
                                   tensor(DType::f32, {64}, numbers)};
  check_all(graph, inputs,
            {std::vector<double>(64, 2), std::vector<double>(64, 5), std::vector<double>(64, 2)});
}
