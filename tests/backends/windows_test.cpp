// Batched products, attention, convolutions and pools: against numbers worked out by hand, and
// eager against the interpreter where places, padding and groups differ.
#include <cmath>
#include <limits>
#include <random>

#include "backends/eager/eager.hpp"
#include "backends/interpreter/interpreter.hpp"
#include "backends/program.hpp"
#include "base/try.hpp"
#include "tests/backends/graphs.hpp"

namespace {

using namespace pw;
using namespace pw::test;

Result<std::vector<Tensor>> try_on(Backend& backend, const Graph& graph,
                                   const std::vector<Tensor>& inputs) {
  auto executable = PW_TRY(backend.compile(graph));
  std::vector<Tensor> outputs;
  for (ValueId output : graph.outputs())
    outputs.emplace_back(graph.context().types[graph.type(output)].dtype,
                         extents_of(graph, output, {}).value());
  PW_TRY(executable->run(views(inputs), views(outputs), {}));
  return outputs;
}

void near(const std::vector<double>& got, const std::vector<double>& expected, double tolerance) {
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    INFO("element " << i << ": " << got[i] << ", expected " << expected[i]);
    CHECK((got[i] == expected[i] || (std::isnan(got[i]) && std::isnan(expected[i])) ||
           std::fabs(got[i] - expected[i]) <= tolerance * std::max(1.0, std::fabs(expected[i]))));
  }
}

/// All outputs of eager and of the interpreter in single precision, compared with those in double
/// precision.
std::vector<Tensor> agreed(const std::string& text, const std::vector<Tensor>& inputs,
                           double tolerance = 1e-5) {
  INFO(text);
  const Graph graph = graph_of(text);
  auto wanted = try_on(*make_interpreter(), graph, inputs);
  REQUIRE(wanted);
  for (const auto& engine : {make_eager(), make_interpreter(Precision::single)}) {
    INFO(engine->name());
    const auto got = try_on(*engine, graph, inputs);
    REQUIRE(got);
    for (std::size_t i = 0; i < got->size(); ++i)
      near(values((*got)[i]), values((*wanted)[i]), tolerance);
  }
  return std::move(*wanted);
}

Tensor drawn(DType dtype, const Extents& extents, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> draw(-1, 1);
  std::vector<double> numbers(static_cast<std::size_t>(element_count(extents)));
  for (double& x : numbers) x = draw(random);
  return tensor(dtype, extents, numbers);
}

std::string refusal(const std::string& text) {
  const auto context = library();
  const auto graph = parse_graph(context, "graph g {\n" + text + "\n}\n", "test.pwg");
  return graph ? "" : graph.error().front().message;
}

}  // namespace

TEST_CASE("windows: a product for each of the dims in front", "[backends]") {
  const auto y = agreed(
      "in a: f32[2, 1, 2], b: f32[2, 2, 1]  y = bmm(a, b)  out y",
      {tensor(DType::f32, {2, 1, 2}, {1, 2, 3, 4}), tensor(DType::f32, {2, 2, 1}, {5, 6, 7, 8})});
  near(values(y[0]), {17, 53}, 0);
  agreed(
      "in a: f32[12, 9, 20], b: f32[12, 7, 20]  y = bmm(a, transpose(b){dim0 = 1, dim1 = 2})  out "
      "y",
      {drawn(DType::f32, {12, 9, 20}, 1), drawn(DType::f32, {12, 7, 20}, 2)});
  agreed("in a: bf16[3, 9, 20], b: bf16[3, 20, 5]  y = bmm(a, b)  out y",
         {drawn(DType::bf16, {3, 9, 20}, 1), drawn(DType::bf16, {3, 20, 5}, 2)}, 1e-2);
  const auto wrapped = agreed("in a: i8[2, 1, 2], b: i8[2, 2, 1]  y = bmm(a, b)  out y",
                              {tensor(DType::i8, {2, 1, 2}, {100, 2, -3, 4}),
                               tensor(DType::i8, {2, 2, 1}, {2, 50, 7, -8})});
  near(values(wrapped[0]), {44, -53}, 0);  // 300 and -53, modulo 256
}

TEST_CASE("windows: groups of rows have a matrix each, and rows behind them are 0", "[backends]") {
  const std::string text =
      "in x: f32[4, 1], w: f32[3, 1, 1], e: i32[3]  y = grouped_mm(x, w, e)  out y";
  const Tensor x = tensor(DType::f32, {4, 1}, {1, 2, 3, 4}),
               w = tensor(DType::f32, {3, 1, 1}, {10, 20, 30});
  near(values(agreed(text, {x, w, tensor(DType::i32, {3}, {1, 1, 3})})[0]), {10, 60, 90, 0}, 0);
  for (const std::vector<double>& ends : {std::vector<double>{1, 0, 3}, {0, 1, 5}, {-1, 0, 1}}) {
    for (const auto& engine : {make_eager(), make_interpreter()}) {
      const auto done = try_on(*engine, graph_of(text), {x, w, tensor(DType::i32, {3}, ends)});
      REQUIRE(!done);
      CHECK(done.error().front().code == "PW1204");
    }
  }
}

TEST_CASE("windows: attention over blocks of keys, masked, causal and with shared heads",
          "[backends]") {
  const Tensor q = drawn(DType::f32, {1, 4, 70, 6}, 1), k = drawn(DType::f32, {1, 2, 300, 6}, 2),
               v = drawn(DType::f32, {1, 2, 300, 5}, 3);
  const std::string inputs = "in q: f32[1, 4, 70, 6], k: f32[1, 2, 300, 6], v: f32[1, 2, 300, 5]";
  agreed(inputs + "  y, l = scaled_attention(q, k, v, none)  out y, l", {q, k, v});
  agreed(inputs + "  y, l = scaled_attention(q, k, v, none){causal = true, scale = 0.7}  out y, l",
         {q, k, v});
  for (const DType dtype : {DType::f32, DType::f64}) {
    const std::string one = std::string(name(dtype)) + "[1, 1, 2, 1]";
    const auto y = agreed(
        "in q: " + one + ", k: " + one + ", v: " + one +
            ", m: b8[1, 1, 2, 2]  y, l = scaled_attention(q, k, v, m)  out y, l",
        {tensor(dtype, {1, 1, 2, 1}, {1, 1}), tensor(dtype, {1, 1, 2, 1}, {2, 5}),
         tensor(dtype, {1, 1, 2, 1}, {3, 4}), tensor(DType::b8, {1, 1, 2, 2}, {1, 0, 0, 0})});
    near(values(y[0]), {3, 0}, 1e-6);  // the second row sees nothing
    near(values(y[1]), {2, 0}, 1e-6);
  }
  const auto heads = try_on(
      *make_eager(),
      graph_of(
          "in q: f32[3, 2, 4], k: f32[2, 2, 4]  y, l = scaled_attention(q, k, k, none)  out y"),
      {drawn(DType::f32, {3, 2, 4}, 1), drawn(DType::f32, {2, 2, 4}, 1)});
  REQUIRE(!heads);
  CHECK(heads.error().front().code == "PW1203");
}

TEST_CASE("windows: gradients of attention", "[backends]") {
  agreed(
      "in g: f32[1, 4, 70, 5], q: f32[1, 4, 70, 6], k: f32[1, 2, 300, 6], v: f32[1, 2, 300, 5]"
      "  y, l = scaled_attention(q, k, v, none){causal = true}"
      "  a, b, c = scaled_attention_gradient(g, q, k, v, y, l, none){causal = true}  out a, b, c",
      {drawn(DType::f32, {1, 4, 70, 5}, 4), drawn(DType::f32, {1, 4, 70, 6}, 1),
       drawn(DType::f32, {1, 2, 300, 6}, 2), drawn(DType::f32, {1, 2, 300, 5}, 3)},
      1e-4);
}

TEST_CASE("windows: convolutions of one, two and three axes", "[backends]") {
  const auto y = agreed(
      "in x: f32[1, 1, 4], w: f32[1, 1, 2], b: f32[1]"
      "  y = convolution(x, w, b){stride = [1], padding = [1], dilation = [2]}  out y",
      {tensor(DType::f32, {1, 1, 4}, {1, 2, 3, 4}), tensor(DType::f32, {1, 1, 2}, {10, 1}),
       tensor(DType::f32, {1}, {0.5})});
  near(values(y[0]), {2.5, 13.5, 24.5, 30.5}, 0);
  agreed(
      "in x: f32[2, 4, 9, 8], w: f32[6, 2, 3, 2]"
      "  y = convolution(x, w, none){stride = [2, 1], padding = [1, 2], dilation = [1, 3], groups "
      "= 2}"
      "  out y",
      {drawn(DType::f32, {2, 4, 9, 8}, 1), drawn(DType::f32, {6, 2, 3, 2}, 2)});
  agreed(
      "in x: f32[1, 2, 4, 5, 6], w: f32[4, 1, 2, 3, 3]"
      "  y = convolution(x, w, none){stride = [1, 2, 1], padding = [0, 1, 1], dilation = [1, 1, "
      "1], groups = 2}"
      "  out y",
      {drawn(DType::f32, {1, 2, 4, 5, 6}, 1), drawn(DType::f32, {4, 1, 2, 3, 3}, 2)});
}

TEST_CASE("windows: a convolution's transpose and the gradient of its weight", "[backends]") {
  const std::string steps = "stride = [2, 1], padding = [1, 0], dilation = [1, 2], groups = 2";
  agreed(
      "in y: f32[2, 6, 4, 6], w: f32[6, 2, 3, 2]  x = transposed_convolution(y, w, none){size = "
      "[8, 8], " +
          steps + "}  out x",
      {drawn(DType::f32, {2, 6, 4, 6}, 1), drawn(DType::f32, {6, 2, 3, 2}, 2)});
  agreed(
      "in y: f32[2, 6, 4, 6], x: f32[2, 4, 8, 8]  w = convolution_weight_gradient(y, x){kernel = "
      "[3, 2], " +
          steps + "}  out w",
      {drawn(DType::f32, {2, 6, 4, 6}, 1), drawn(DType::f32, {2, 4, 8, 8}, 2)});
}

TEST_CASE("windows: what does not fit is refused with its numbers", "[backends]") {
  const std::string rest = "stride = [1], padding = [0], dilation = [1]}  out y";
  CHECK(refusal("in x: f32[1, 1, 2], w: f32[1, 1, 3]  y = convolution(x, w, none){" + rest)
            .find("larger than 2") != std::string::npos);
  CHECK(refusal("in x: f32[1, 3, 2], w: f32[1, 1, 1]  y = convolution(x, w, none){" + rest)
            .find("3 channels in 1 groups") != std::string::npos);
  CHECK(refusal("in x: f32[1, 1, 4], w: f32[1, 1, 1]  y = convolution(x, w, none){stride = [0], "
                "padding = [0], dilation = [1]}  out y")
            .find("stride") != std::string::npos);
  CHECK(refusal("in x: f32[1, 1, 4], w: f32[1, 1, 2]  y = transposed_convolution(x, w, none){size "
                "= [9], " +
                rest)
            .find("makes") != std::string::npos);
  CHECK(refusal("in x: f32[1, 2, 4], w: f32[2, 1, 1], b: f32[2]"
                "  y = transposed_convolution(x, w, b){size = [4], " +
                rest)
            .find("bias of [2] for 1") != std::string::npos);
  CHECK(refusal("in x: f32[1, 4]  y = avg_unpool(x){size = [9], kernel = [2], stride = [2], "
                "padding = [0, 0]}  out y")
            .find("padding has 2") != std::string::npos);
  CHECK(refusal("in x: f32[1, 4]  y = avg_unpool(x){size = [11], kernel = [2], stride = [2], "
                "padding = [0]}  out y")
            .find("5 places, not 4") != std::string::npos);
  CHECK(refusal("in x: f32[4]  y = upsample_nearest(x){size = [2], scales = [1.0, 1.0]}  out y")
            .find("2 scales for 1") != std::string::npos);
  CHECK(refusal("in x: f32[4]  y = upsample_nearest(x)  out y").find("neither") !=
        std::string::npos);
}

TEST_CASE("windows: the largest of a window and where it is, the first of equals, a NaN before all",
          "[backends]") {
  const double nan = std::nan("");
  const auto y = agreed(
      "in x: f32[1, 6]  y, i = max_pool(x){kernel = [3], stride = [2], padding = [1], dilation = "
      "[1], ceil = true}"
      "  out y, i",
      {tensor(DType::f32, {1, 6}, {-1, -1, 5, 5, nan, 2})});
  near(values(y[0]), {-1, 5, nan, 2}, 0);
  near(values(y[1]), {0, 2, 4, 5}, 0);
  const double inf = std::numeric_limits<double>::infinity();
  near(values(agreed("in x: f32[1, 2, 4]  y, i = max_pool(x){kernel = [2, 2], stride = [3, 2], "
                     "padding = [1, 0], dilation = [1, 1]}  out y, i",
                     {tensor(DType::f32, {1, 2, 4}, {-inf, -inf, nan, 1, 7, 8, 2, nan})})[1]),
       {0, 2}, 0);
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::i32})
    for (const std::string stride : {"1", "2", "3"})
      agreed(fmt::format("in x: {}[2, 3, 9, 11]  y, i = max_pool(x){{kernel = [3, 2], stride = [2, "
                         "{}], padding = [1, 1], dilation = [2, 3], ceil = true}}  out y, i",
                         name(dtype), stride),
             {drawn(dtype, {2, 3, 9, 11}, 3)});
  const std::string text = "in y: f32[1, 2], i: i64[1, 2]  x = max_unpool(y, i){size = [3]}  out x";
  const Tensor two = tensor(DType::f32, {1, 2}, {1, 2});
  near(values(agreed(text, {two, tensor(DType::i64, {1, 2}, {2, 2})})[0]), {0, 0, 3}, 0);
  for (const auto& engine : {make_eager(), make_interpreter()}) {
    const auto done = try_on(*engine, graph_of(text), {two, tensor(DType::i64, {1, 2}, {0, 3})});
    REQUIRE(!done);
    CHECK(done.error().front().code == "PW1204");
  }
}

TEST_CASE("windows: a window of padding alone has no largest element", "[backends]") {
  const Graph graph = graph_of(
      "in x: f32[1, 4]  y, i = max_pool(x){kernel = [2], stride = [1], padding = [1], dilation = "
      "[5]}  out y, i");
  for (const auto& engine : {make_eager(), make_interpreter()}) {
    const auto done = try_on(*engine, graph, {tensor(DType::f32, {1, 4}, {1, 2, 3, 4})});
    REQUIRE(!done);
    CHECK(done.error().front().code == "PW1203");
  }
}

TEST_CASE("windows: means count padding or do not, and adapt to a size", "[backends]") {
  const Tensor x = tensor(DType::f32, {1, 4}, {1, 2, 3, 6});
  const std::string pool =
      "in x: f32[1, 4]  y = avg_pool(x){kernel = [3], stride = [2], padding = [1]";
  near(values(agreed(pool + "}  out y", {x})[0]), {1, 11.0 / 3}, 1e-6);
  near(values(agreed(pool + ", include_padding = false}  out y", {x})[0]), {1.5, 11.0 / 3}, 1e-6);
  near(values(agreed(pool + ", divisor = 2}  out y", {x})[0]), {1.5, 5.5}, 1e-6);
  near(values(agreed("in x: f32[1, 4]  y = adaptive_avg_pool(x){size = [3]}  out y", {x})[0]),
       {1.5, 2.5, 4.5}, 1e-6);
  agreed("in y: f32[2, 3, 4]  x = adaptive_avg_unpool(y){size = [5, 7]}  out x",
         {drawn(DType::f32, {2, 3, 4}, 1)});
}

TEST_CASE("windows: images of other sizes", "[backends]") {
  const Tensor x = tensor(DType::f32, {1, 2}, {1, 3});
  near(values(agreed("in x: f32[1, 2]  y = upsample_nearest(x){scales = [2.0]}  out y", {x})[0]),
       {1, 1, 3, 3}, 0);
  near(values(agreed("in x: f32[1, 2]  y = upsample_linear(x){size = [4]}  out y", {x})[0]),
       {1, 1.5, 2.5, 3}, 1e-6);
  near(values(agreed("in x: f32[1, 2]  y = upsample_linear(x){size = [3], align = true}  out y",
                     {x})[0]),
       {1, 2, 3}, 1e-6);
}
