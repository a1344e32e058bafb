// Attention of the cpu backend against the reference and eager: blocks of queries and keys, several
// sequences, padding, shared key heads, NaN.
#include "backends/eager/eager.hpp"
#include "exec/runner.hpp"
#include "tests/backends/graphs.hpp"
#include "tests/backends_cpu/running.hpp"

namespace {

using namespace pw;
using namespace pw::test;

constexpr const char* kText =
    "symbol n in 1..2048 tokens  in q: f32[n, 4, 16], k: f32[n, 2, 16], v: f32[n, 2, 16]  y = "
    "unified_attention(q, k, v, none){layer = \"a\"}  out y";

double worst(const Tensor& got, const Tensor& wanted) {
  double most = 0;
  for (std::int64_t i = 0; i < got.view().count(); ++i)
    most = std::max(
        most, std::fabs(load(got.dtype(), got.data(), i) - load(wanted.dtype(), wanted.data(), i)));
  return most;
}

}  // namespace

TEST_CASE("cpu: attention in blocks is the reference's", "[cpu][diff]") {
  const Graph graph = graph_of(kText);
  CpuBackend cpu;
  // Less than a block, exactly one, one more, several blocks of keys; sequences side by side.
  const std::vector<Step> steps = {{{{0, 1, 0}}},
                                   {{{0, 64, 0}}},
                                   {{{0, 65, 0}}},
                                   {{{0, 256, 0}}},
                                   {{{0, 257, 0}}},
                                   {{{0, 700, 0}}},
                                   {{{0, 100, 0}, {1, 1, 0}, {2, 300, 0}, {3, 64, 0}}}};
  for (const Step& step : steps) {
    INFO(step.tokens() << " tokens in " << step.sequences.size() << " sequences");
    Weights weights(graph, 3);
    const auto got = run_whole(graph, cpu, weights, step),
               wanted = run_reference(graph, weights, step);
    REQUIRE(got);
    REQUIRE(wanted);
    CHECK(worst((*got)[0], (*wanted)[0]) < 2e-6);
  }
  if (have_compiler()) CHECK(cpu.report().fallbacks.empty());
}

TEST_CASE("cpu: attention's padding gives zero, and a NaN stays in the rows that see it", "[cpu]") {
  if (!have_compiler()) return;
  const Graph graph = graph_of(kText);
  CpuBackend cpu;
  const Step step{{{0, 300, 0}, {1, 10, 0}}};
  auto inputs = random_inputs(graph, {{"n", 320}}, 5);
  for (Tensor& t : inputs) {
    for (std::int64_t i = 310 * t.view().count() / 320; i < t.view().count(); ++i)
      store(DType::f32, t.data(), i, std::nan(""));
  }
  store(DType::f32, inputs[1].data(), 280 * 32 + 3,
        std::nan(""));  // the key of row 280, first head
  const auto got = outputs_of(cpu, graph, views_of(inputs), {{{"n", 320}}, &step, 310});
  for (std::int64_t row = 0; row < 320; ++row) {
    for (std::int64_t i = 0; i < 64; ++i) {
      const double y = load(DType::f32, got[0].data(), row * 64 + i);
      const bool sees = row >= 280 && row < 300 && i < 32;  // two query heads share that key head
      if (std::isnan(y) != sees) FAIL("row " << row << " element " << i << ": " << y);
      if (row >= 310 && y != 0) FAIL("row " << row << " is padding, and not zero");
    }
  }
}

TEST_CASE("attention: a NaN among the values stays in the rows that see it", "[cpu]") {
  const Graph graph = graph_of(kText);
  const auto engines = all_backends();
  const Step step{{{0, 300, 0}, {1, 10, 0}}};
  auto inputs = random_inputs(graph, {{"n", 310}}, 5);
  for (const std::int64_t row : {std::int64_t{20}, std::int64_t{280}})
    store(DType::f32, inputs[2].data(), row * 32 + 3, std::nan(""));  // of the first head
  for (const auto& engine : engines) {
    const auto got = outputs_of(*engine, graph, views_of(inputs), {{{"n", 310}}, &step, 310});
    for (std::int64_t row = 0; row < 310; ++row) {
      for (std::int64_t i = 0; i < 64; ++i) {
        const bool sees = row >= 20 && row < 300 && (i == 3 || i == 16 + 3);
        INFO(engine->name() << ": row " << row << " element " << i);
        REQUIRE(std::isnan(load(DType::f32, got[0].data(), row * 64 + i)) == sees);
      }
    }
  }
}

TEST_CASE("cpu: large scores do not overflow the softmax", "[cpu]") {
  const Graph graph = graph_of(kText);
  CpuBackend cpu;
  const auto eager = make_eager();
  auto inputs = random_inputs(graph, {{"n", 530}}, 6);
  for (std::int64_t i = 0; i < inputs[0].view().count(); ++i)
    store(DType::f32, inputs[0].data(), i, 300 * load(DType::f32, inputs[0].data(), i));
  const RunContext run{{{"n", 530}}, nullptr, 530};
  const auto got = outputs_of(cpu, graph, views_of(inputs), run),
             wanted = outputs_of(*eager, graph, views_of(inputs), run);
  CHECK(worst(got[0], wanted[0]) < 1e-3);
}
