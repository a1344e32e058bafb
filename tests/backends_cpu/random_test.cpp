// Random row programs: strict code gives the interpreter's bits, the default agrees with eager
// within the dtype's tolerance, rows of padding never reach others. A default run takes 30,
// `[slow]` takes 400.
#include <algorithm>

#include "backends/eager/eager.hpp"
#include "backends/interpreter/interpreter.hpp"
#include "tests/backends/graphs.hpp"
#include "tests/backends_cpu/running.hpp"
#include "tests/random_rows.hpp"
#include "verify/numeric.hpp"

namespace {

using namespace pw;
using namespace pw::test;

/// Returns the number of elements that differ by more than rounding explains. A cast on the way may
/// turn a difference in the last bit of f32 into a step of a narrow type, so a few may.
std::size_t far_apart(const Tensor& a, const Tensor& b) {
  std::size_t far = 0;
  for (std::int64_t i = 0; i < a.view().count(); ++i) {
    const double x = load(a.dtype(), a.data(), i), y = load(b.dtype(), b.data(), i);
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    far += std::abs(x - y) <= 1e-3 + 0.02 * std::max(std::abs(x), std::abs(y)) ? 0 : 1;
  }
  return far;
}

/// With rows of NaN (ids: 0) behind those that are valid.
std::vector<Tensor> padded(const Graph& graph, const std::vector<Tensor>& inputs,
                           const Symbols& longer) {
  std::vector<Tensor> out;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    Tensor t(inputs[i].dtype(), extents_of(graph, graph.inputs()[i], longer).value());
    for (std::int64_t e = inputs[i].view().count(); e < t.view().count(); ++e)
      store(t.dtype(), t.data(), e, is_float(t.dtype()) ? std::nan("") : 0);
    std::memcpy(t.data(), inputs[i].data(), inputs[i].view().bytes());
    out.push_back(std::move(t));
  }
  return out;
}

struct Backends {
  CpuBackend fast, strict{{.strict = true}};
  std::unique_ptr<Backend> eager = make_eager(), oracle = make_interpreter(Precision::single);
};

void check(Backends& on, const ContextPtr& context, std::uint64_t seed) {
  const RandomRows rows = random_rows(seed);
  INFO("seed " << seed << ", " << rows.rows << " rows\n" << rows.text);
  auto graph = parse_graph(context, rows.text, "random");
  if (!graph) FAIL(render(graph.error(), context->sources));
  const RunContext run{{{"n", rows.rows}}, nullptr, rows.rows},
      longer{{{"n", rows.rows + 3}}, nullptr, rows.rows};
  const auto inputs = random_inputs(*graph, run.symbols, seed);
  const auto bits = outputs_of(on.strict, *graph, views_of(inputs), run),
             wanted = outputs_of(*on.oracle, *graph, views_of(inputs), run),
             more = outputs_of(on.strict, *graph, views_of(padded(*graph, inputs, longer.symbols)),
                               longer),
             got = outputs_of(on.fast, *graph, views_of(inputs), run),
             eager = outputs_of(*on.eager, *graph, views_of(inputs), run);
  const auto exact = interpret(*graph, views_of(inputs), run);
  REQUIRE(exact);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    CHECK(bit_difference(bits[i], wanted[i]) == "");
    // Without the round trips that strict code keeps, it may be nearer to the truth than eager is.
    const bool near =
        far_apart(got[i], eager[i]) <= static_cast<std::size_t>(got[i].view().count()) / 50;
    const OutputCheck measured =
        check_output("", (*exact)[i].view(), eager[i].view(), got[i].view(), {1.5, 1, 0.02});
    INFO("output " << i << ": " << measured.reason);
    CHECK((near || measured.passed));
    CHECK(std::memcmp(more[i].data(), bits[i].data(), bits[i].view().bytes()) == 0);
  }
}

void check_all(std::uint64_t first, std::uint64_t count) {
  if (!have_compiler()) return;
  Backends on;
  const ContextPtr context = library();
  for (std::uint64_t seed = first; seed < first + count; ++seed) check(on, context, seed);
  CHECK(on.strict.report().kernels.size() >= count / 2);
}

}  // namespace

// The number is another one when the generator changes, but not with the compiler.
TEST_CASE("cpu: a seed stands for the same row program with every compiler", "[cpu]") {
  std::uint64_t texts = 0;
  for (std::uint64_t seed = 1; seed <= 1000; ++seed)
    texts = combine(texts, hash_text(random_rows(seed).text));
  CHECK(texts == 0x3d84b8f93520f12a);
}

TEST_CASE("cpu: random row programs", "[cpu][diff]") { check_all(1, 16); }
TEST_CASE("cpu: many random row programs", "[.][slow][cpu]") { check_all(1000, 400); }
