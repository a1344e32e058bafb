// An element's value depends neither on its place nor on its neighbours, so that a row determines
// the same wherever it stands in a step: the first of a vector, what is left over behind whole
// vectors, or next to rows of padding.
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "backends/eager/eager.hpp"
#include "backends/interpreter/interpreter.hpp"
#include "backends/program.hpp"
#include "tests/backends/graphs.hpp"
#include "tests/backends/primitive_forms.hpp"

namespace {

using namespace pw;
using namespace pw::test;

constexpr std::int64_t kRows = 67;  // whole vectors of any machine, and a rest

Tensor first_of(Backend& backend, const Graph& graph, const std::vector<Tensor>& inputs) {
  auto executable = backend.compile(graph);
  REQUIRE(executable);
  const ValueId y = graph.outputs()[0];
  const std::vector<Tensor> outputs{
      Tensor(graph.context().types[graph.type(y)].dtype, extents_of(graph, y, {}).value())};
  REQUIRE((*executable)->run(views(inputs), views(outputs), {}));
  return outputs[0];
}

std::string bits(const Tensor& t, std::int64_t begin, std::int64_t count) {
  const std::int64_t size = size_of(t.dtype());
  return {reinterpret_cast<const char*>(t.data() + begin * size),
          static_cast<std::size_t>(count * size)};
}

/// The first row of a tensor whose bits are not those of row 0, or -1.
std::int64_t odd_row(const Tensor& t) {
  const std::int64_t width = t.view().count() / kRows;
  for (std::int64_t row = 1; row < kRows; ++row)
    if (bits(t, row * width, width) != bits(t, 0, width)) return row;
  return -1;
}

const double kEndless = std::numeric_limits<double>::infinity();
const double kHard[] = {0.0,      -0.0,     1.0,       -1.0,        0.3,     -0.3,  2.0,
                        -2.5,     9.1,      -9.1,      88.9,        104.5,   -88.9, 1e-40,
                        -1e-40,   1e-310,   3.4e38,    1e300,       -3.4e38, 1e9,   0.624,
                        0x1p-149, kEndless, -kEndless, std::nan("")};

std::vector<std::string> with(std::vector<std::string> forms,
                              std::initializer_list<const char*> more) {
  forms.insert(forms.end(), more.begin(), more.end());
  return forms;
}

/// `form` of rows that all are the same has the same rows; the text names x and perhaps z.
void check_rows(const std::string& form, DType dtype, const std::vector<double>& x,
                const std::vector<double>& z) {
  const auto wide = static_cast<std::int64_t>(x.size());
  std::vector<double> left, right;
  for (std::int64_t row = 0; row < kRows; ++row) {
    left.insert(left.end(), x.begin(), x.end());
    right.insert(right.end(), z.begin(), z.end());
  }
  static const ContextPtr context = library();  // which all forms share: thousands are made
  const Graph graph = graph_of(fmt::format("in x: {0}[{1}, {2}], z: {0}[{1}, {2}]  y = {3}  out y",
                                           name(dtype), kRows, wide, form),
                               context);
  const auto engine = make_eager();
  const Tensor y = first_of(
      *engine, graph, {tensor(dtype, {kRows, wide}, left), tensor(dtype, {kRows, wide}, right)});
  INFO(form << " of " << name(dtype) << " " << x[0] << ", " << z[0]);
  CHECK(odd_row(y) == -1);
}

}  // namespace

TEST_CASE("places: functions of one operand", "[backends]") {
  for (const std::string& form :
       with(primitive_forms(1), {"erf(x)", "gelu(x)", "silu(x)", "relu(x)", "sigmoid(x)"}))
    for (DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16}) {
      if (form == "erf(x)" && dtype != DType::f32) continue;
      for (double x : kHard) check_rows(form, dtype, {x}, {0});
    }
}

TEST_CASE("places: functions of two operands", "[backends]") {
  for (const std::string& form :
       with(primitive_forms(2), {"maximum(z, x)", "select(lt(x, z), x, z)"}))
    for (DType dtype : {DType::f32, DType::f64})
      for (double x : kHard)
        for (double z : {0.0, -0.0, 2.0, 3.0, -1.5, kEndless, std::nan("")})
          check_rows(form, dtype, {x}, {z});
}

TEST_CASE("places: a power does not depend on the exponents beside it", "[backends]") {
  const Graph graph = graph_of("in x: f32[2], z: f32[2]  y = pow(x, z)  out y");
  const auto engine = make_eager();
  for (int i = 1; i < 200; ++i) {
    const double x = i * 0.37 + 1;
    const Tensor among =
                     first_of(*engine, graph,
                              {tensor(DType::f32, {2}, {x, x}), tensor(DType::f32, {2}, {2, 3})}),
                 alone =
                     first_of(*engine, graph,
                              {tensor(DType::f32, {2}, {x, x}), tensor(DType::f32, {2}, {2, 2})});
    CHECK(bits(among, 0, 1) == bits(alone, 0, 1));
  }
}

TEST_CASE("places: rows that are reduced, whatever their width and address", "[backends]") {
  for (const char* form : {"sum(x)", "mean(x)", "amax(x)", "amin(x)", "rms_norm(x, w)"})
    for (std::int64_t wide : {1, 3, 5, 7, 13, 31, 67}) {
      std::vector<double> x, w(static_cast<std::size_t>(wide), 1);
      for (std::int64_t row = 0; row < kRows; ++row)
        for (std::int64_t i = 0; i < wide; ++i)
          x.push_back(std::sin(0.7 * static_cast<double>(i)) * 1e3 + 0.1);
      const Graph graph = graph_of(
          fmt::format("in x: f32[{0}, {1}], w: f32[{1}]  y = {2}  out y", kRows, wide, form));
      const auto engine = make_eager();
      INFO(form << " of " << wide << " columns");
      CHECK(odd_row(first_of(
                *engine, graph,
                {tensor(DType::f32, {kRows, wide}, x), tensor(DType::f32, {wide}, w)})) == -1);
    }
}

TEST_CASE("places: eager's functions of single precision have the interpreter's bits",
          "[backends][diff]") {
  for (const std::string& form :
       with(primitive_forms(1), {"pow(x, 1.7)", "maximum(x, 0)", "minimum(x, -0.0)"})) {
    std::vector<double> x(std::begin(kHard), std::end(kHard));
    for (int i = -500; i < 500; ++i) x.push_back(i * 0.173);
    const auto n = static_cast<std::int64_t>(x.size());
    const Graph graph = graph_of(fmt::format("in x: f32[{}]  y = {}  out y", n, form));
    const std::vector<Tensor> inputs{tensor(DType::f32, {n}, x)};
    const auto eager = make_eager(), interpreter = make_interpreter(Precision::single);
    const std::vector<double> got = values(first_of(*eager, graph, inputs)),
                              wanted = values(first_of(*interpreter, graph, inputs));
    for (std::size_t i = 0; i < got.size(); ++i) {
      INFO(form << " of " << x[i]);
      const bool nan = std::isnan(got[i]) && std::isnan(wanted[i]);
      CHECK(
          (nan || std::bit_cast<std::uint64_t>(got[i]) == std::bit_cast<std::uint64_t>(wanted[i])));
    }
  }
}
