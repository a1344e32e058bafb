// Ties: a decision that rounding settles is excused, as the reference is run again with it; an
// error beside it is not, nor is a decision whose operands are further apart.
#include "verify/ties.hpp"

#include <cmath>

#include "backends/eager/eager.hpp"
#include "tests/backends/graphs.hpp"
#include "verify/samples/sample.hpp"

namespace {

using namespace pw;
using namespace pw::test;

/// A graph, contents, and the outputs of its run on eager.
struct TieCase {
  Graph graph;
  std::vector<Weights> weights;
  Step step = one_sequence(1);
  std::unique_ptr<Backend> eager = make_eager();
  Yardstick yardstick;

  TieCase(const std::string& text, const std::vector<std::pair<std::string, Tensor>>& inputs)
      : graph(graph_of(text)) {
    weights = weights_of_ranks(graph, 1, 1);
    for (const auto& [name, contents] : inputs) weights.front().give(name, contents);
    auto made = run_yardstick(graph, *eager, weights, step);
    INFO((made ? std::string() : render(made.error(), graph.context().sources)));
    REQUIRE(made);
    yardstick = std::move(*made);
  }

  /// The ties of a run with these outputs.
  NumericReport check(const std::vector<Tensor>& outputs) {
    auto reports = check_but_for_ties({graph, weights, step}, yardstick, {outputs});
    INFO((reports ? std::string() : render(reports.error(), graph.context().sources)));
    REQUIRE(reports);
    return reports->front();
  }
};

constexpr double kTiny = 0x1p-26;  // a quarter of an ulp of 1 in f32

/// Scores of two rows: in the first, columns 0 and 1 are a tie; in the second, nothing is.
std::vector<std::pair<std::string, Tensor>> scores() {
  return {{"x", tensor(DType::f32, {2, 4}, {2 * kTiny, kTiny, -1, -2, 0, 3, 1, -1})},
          {"u", tensor(DType::f32, {4}, {1, 1, 1, 1})}};
}

}  // namespace

TEST_CASE("ties: the two largest of a topk may change places where rounding settles it",
          "[verify]") {
  TieCase c("in x: f32[2, 4], u: f32[4]  s = x + u  v, i = topk(s){k = 1}  out v, i", scores());
  const Tensor v = tensor(DType::f32, {2, 1}, {1, 4});
  const auto places = [](double first, double second) {
    return tensor(DType::i64, {2, 1}, {first, second});
  };
  CHECK(c.check({v, places(0, 1)}).ties.empty());
  const NumericReport tie = c.check({v, places(1, 1)});
  CHECK(tie.passed());
  REQUIRE(tie.ties.size() == 1);
  CHECK(tie.ties[0].op == "topk");
  CHECK(tie.ties[0].place == 0);
  CHECK(tie.ties[0].margin == kTiny);
  CHECK(tie.ties[0].margin < tie.ties[0].rounding);
  CHECK(tie.outputs[1].tied);
  CHECK(!c.check({v, places(2, 1)}).passed());  // no tie
  CHECK(!c.check({v, places(1, 2)}).passed());  // a tie, and an error in another row
  CHECK(!c.check({tensor(DType::f32, {2, 1}, {1, 4.1}), places(1, 1)}).passed());
}

TEST_CASE("ties: what follows from a tie is checked too", "[verify]") {
  auto inputs = scores();
  inputs.emplace_back("w", tensor(DType::f32, {4, 3}, {1, 2, 3, 40, 50, 60, 7, 8, 9, 10, 11, 12}));
  TieCase c(
      "in x: f32[2, 4], u: f32[4], w: f32[4, 3]\n"
      "y = mm(keep_topk(exp(x + u)){k = 1}, w)\nout y",
      inputs);
  const auto rows = [](const std::vector<double>& first) {
    std::vector<double> all = first;
    all.insert(all.end(), {40, 50, 60});
    return tensor(DType::f32, {2, 3}, all);
  };
  CHECK(c.check({rows({1, 2, 3})}).ties.empty());
  const NumericReport tie = c.check({rows({40, 50, 60})});  // expert 1 instead of 0
  CHECK(tie.passed());
  REQUIRE(tie.ties.size() == 1);
  CHECK(tie.ties[0].op == "keep_topk");
  CHECK(!c.check({rows({40, 50, 61})}).passed());
  CHECK(!c.check({rows({7, 8, 9})}).passed());
}

TEST_CASE("ties: comparisons, steps, casts to integers, and the places of extremes", "[verify]") {
  TieCase c(
      "in x: f32[2, 4], u: f32[4]\n"
      "s = x + u\n"
      "a = gt(s, 1.0)\n"
      "b = floor(s - u)\n"
      "d = argmax(s)\n"
      "out a, b, d",
      scores());
  const Tensor d = tensor(DType::i64, {2}, {0, 1});
  const auto above = [](double first, double second) {
    return tensor(DType::b8, {2, 4}, {first, second, 0, 0, 0, 1, 1, 0});
  };
  const Tensor b = tensor(DType::f32, {2, 4}, {0, 0, -1, -2, 0, 3, 1, -1});
  CHECK(c.check({above(1, 1), b, d}).passed());
  CHECK(c.check({above(0, 1), b, d}).passed());
  CHECK(c.check({above(0, 0), b, tensor(DType::i64, {2}, {1, 1})}).passed());
  CHECK(!c.check({above(1, 1), b, tensor(DType::i64, {2}, {0, 2})}).passed());
  CHECK(!c.check({tensor(DType::b8, {2, 4}, {1, 1, 1, 0, 0, 1, 1, 0}), b, d}).passed());
}

TEST_CASE("ties: a cast at the middle of two numbers rounds either way", "[verify]") {
  // Element 5 is next to the middle of two numbers of bf16; element 0 is rounded by more than that.
  std::vector<double> x(64, 0.5), u(64, 1), y(64, 1.5);
  x[5] = 0x1p-8 + 0x1p-23;
  x[0] = y[0] = 1000;
  u[0] = 0x1p-16;
  TieCase c("in x: f32[64], u: f32[64]  y = f32(bf16(x + u))  out y",
            {{"x", tensor(DType::f32, {64}, x)}, {"u", tensor(DType::f32, {64}, u)}});
  y[5] = 1 + 0x1p-7;
  CHECK(c.check({tensor(DType::f32, {64}, y)}).ties.empty());
  y[5] = 1;
  const NumericReport tie = c.check({tensor(DType::f32, {64}, y)});
  CHECK(tie.passed());
  REQUIRE(tie.ties.size() == 1);
  CHECK(tie.ties[0].op == "cast");
  CHECK(tie.ties[0].place == 5);
  y[6] = 1.5 + 0x1p-6;  // nowhere near the middle
  CHECK(!c.check({tensor(DType::f32, {64}, y)}).passed());
}

TEST_CASE("numeric: a cast that the rewritten graph drops is an error", "[verify]") {
  TieCase c("in x: f32[4]  y = f32(f16(x))  out y",
            {{"x", tensor(DType::f32, {4}, {2049, 0.1, -3.3, 7})}});
  const Tensor right = c.yardstick.before.front().front();
  CHECK(c.check({right}).passed());
  CHECK(c.check({right}).outputs[0].before_error == 0);
  CHECK(!c.check({tensor(DType::f32, {4}, {2049, 0.1, -3.3, 7})}).passed());
}

TEST_CASE("ties: integers that nothing rounds are the reference's in the unrewritten run, too",
          "[verify]") {
  TieCase c("in x: i8[4], f: f32[4]  y = x + x  z = i8(f * 3.0)  out y, z",
            {{"x", tensor(DType::i8, {4}, {-7, 0, 3, 9})},
             {"f", tensor(DType::f32, {4}, {0.1, 1.0 / 3, 2, 5})}});
  Tensor& y = c.yardstick.before.front()[0];
  Tensor& z = c.yardstick.before.front()[1];
  CHECK(c.check({y, z}).passed());
  z = tensor(DType::i8, {4}, {0, 0, 6, 15});  // 1/3 · 3 may be just below 1
  CHECK(c.check({y, z}).passed());
  y = tensor(DType::i8, {4}, {-14, 0, 127, 18});
  const NumericReport wrong = c.check({y, z});
  CHECK_FALSE(wrong.outputs[0].passed);
  CHECK(wrong.outputs[0].reason.find("1 of 4 elements") != std::string::npos);
  CHECK(wrong.outputs[1].passed);
}
