// An element of a matrix product, and a row's sum, have the same bits wherever they are computed:
// whatever other rows and columns there are, in one product or in several, with any strides.
#include <cstring>

#include <fmt/format.h>

#include "backends/eager/eager.hpp"
#include "backends/interpreter/interpreter.hpp"
#include "backends/program.hpp"
#include "base/hash.hpp"
#include "tensor/linalg/gemm.hpp"
#include "tensor/parallel.hpp"
#include "tests/backends/graphs.hpp"

namespace {

using namespace pw;
using namespace pw::test;

std::int64_t drawn_size(Random& random, std::int64_t most) {
  const auto below = [&](std::int64_t n) {
    return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(n)));
  };
  switch (below(4)) {
    case 0: return 1;
    case 1: return 1 + below(9);
    default: return 1 + below(most);
  }
}

template <class T>
std::vector<T> drawn(Random& random, std::int64_t count) {
  std::vector<T> out(static_cast<std::size_t>(count));
  for (T& x : out) x = static_cast<T>(random.normal());
  return out;
}

template <class T>
Matrix matrix(const std::vector<T>& values, std::int64_t first, std::int64_t rows,
              std::int64_t columns, std::int64_t row_step, std::int64_t column_step) {
  const DType dtype = sizeof(T) == 4 ? DType::f32 : DType::f64;
  return {dtype,    reinterpret_cast<const std::byte*>(values.data() + first),
          rows,     columns,
          row_step, column_step};
}

/// A product whole, and in four parts whose right operands are stored by columns or by rows.
template <class T>
std::size_t apart(Random& random, std::int64_t most_depth) {
  const std::int64_t m = drawn_size(random, 70), k = drawn_size(random, most_depth),
                     n = 1 + drawn_size(random, 300);
  const std::vector<T> a = drawn<T>(random, m * k), b = drawn<T>(random, k * n);
  std::vector<T> turned(b.size()), whole(static_cast<std::size_t>(m * n));
  for (std::int64_t i = 0; i < k; ++i)
    for (std::int64_t j = 0; j < n; ++j)
      turned[static_cast<std::size_t>(j * k + i)] = b[static_cast<std::size_t>(i * n + j)];
  gemm(matrix(a, 0, m, k, k, 1), matrix(b, 0, k, n, n, 1), whole.data());
  const auto row = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(m))),
             column = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(n)));
  std::size_t wrong = 0;
  for (const auto& [i, rows] : {std::pair(std::int64_t{0}, row), {row, m - row}})
    for (const auto& [j, columns] : {std::pair(std::int64_t{0}, column), {column, n - column}})
      for (const bool by_column : {false, true}) {
        std::vector<T> part(static_cast<std::size_t>(rows * columns));
        gemm(matrix(a, i * k, rows, k, k, 1),
             by_column ? matrix(turned, j * k, k, columns, 1, k) : matrix(b, j, k, columns, n, 1),
             part.data());
        for (std::int64_t r = 0; r < rows; ++r)
          for (std::int64_t c = 0; c < columns; ++c)
            wrong +=
                std::memcmp(&part[static_cast<std::size_t>(r * columns + c)],
                            &whole[static_cast<std::size_t>((i + r) * n + j + c)], sizeof(T)) != 0;
      }
  return wrong;
}

Tensor drawn_tensor(Random& random, DType dtype, const Extents& extents) {
  Tensor out(dtype, extents);
  for (std::int64_t i = 0; i < out.view().count(); ++i)
    store(dtype, out.data(), i, random.normal());
  return out;
}

/// Outputs 0 and 1 of a graph have the same bits.
void check_same(Backend& engine, const std::string& text, const std::vector<Tensor>& inputs) {
  const Graph graph = graph_of(text);
  auto executable = engine.compile(graph);
  REQUIRE(executable);
  std::vector<Tensor> outputs;
  for (ValueId output : graph.outputs())
    outputs.emplace_back(graph.context().types[graph.type(output)].dtype,
                         extents_of(graph, output, {}).value());
  REQUIRE((*executable)->run(views(inputs), views(outputs), {}));
  INFO(engine.name() << ": " << text);
  CHECK(std::memcmp(outputs[0].data(), outputs[1].data(), outputs[0].view().bytes()) == 0);
}

}  // namespace

TEST_CASE("products: an element depends on its row, its column and their length", "[backends]") {
  Random random(20261127);
  std::size_t f32 = 0, f64 = 0;
  for (int i = 0; i < 60; ++i) {
    f32 += apart<float>(random, i % 10 == 0 ? 3000 : 300);
    f64 += apart<double>(random, i % 10 == 0 ? 3000 : 300);
  }
  CHECK(f32 == 0);
  CHECK(f64 == 0);
}

TEST_CASE("products: threads change no bit", "[backends]") {
  Random random(7);
  const std::vector<float> a = drawn<float>(random, 300 * 700), b = drawn<float>(random, 700 * 500);
  std::vector<float> one(300 * 500), several(300 * 500);
  use_threads(1);
  gemm(matrix(a, 0, 300, 700, 700, 1), matrix(b, 0, 700, 500, 500, 1), one.data());
  use_threads(5);
  gemm(matrix(a, 0, 300, 700, 700, 1), matrix(b, 0, 700, 500, 500, 1), several.data());
  use_threads(1 << 10);
  CHECK(one == several);
}

TEST_CASE("products: what is merged has the bits of what is separate, on every strict engine",
          "[backends]") {
  Random random(3);
  std::vector<std::unique_ptr<Backend>> engines;
  engines.push_back(make_eager());
  engines.push_back(make_interpreter());
  engines.push_back(make_interpreter(Precision::single));
  for (const auto& engine : engines)
    for (const DType dtype : {DType::f32, DType::bf16})
      for (int turn = 0; turn < 6; ++turn) {
        const std::int64_t n = drawn_size(random, 40), k = drawn_size(random, 700),
                           m = drawn_size(random, 90), p = drawn_size(random, 90);
        const std::string t(name(dtype));
        const Tensor x = drawn_tensor(random, dtype, {n, k}),
                     z = drawn_tensor(random, dtype, {p, k}),
                     v = drawn_tensor(random, dtype, {k, m}),
                     w = drawn_tensor(random, dtype, {k, p});
        check_same(*engine,
                   fmt::format("in x: {0}[{1}, {2}], v: {0}[{2}, {3}], w: {0}[{2}, {4}]\n"
                               "a = mm(x, cat(v, w){{dim = 1}})\n"
                               "b = cat(mm(x, v), mm(x, w)){{dim = 1}}\nout a, b",
                               t, n, k, m, p),
                   {x, v, w});
        check_same(*engine,
                   fmt::format("in x: {0}[{1}, {2}], z: {0}[{4}, {2}], v: {0}[{2}, {3}]\n"
                               "a = mm(cat(x, z){{dim = 0}}, v)\n"
                               "b = cat(mm(x, v), mm(z, v)){{dim = 0}}\nout a, b",
                               t, n, k, m, p),
                   {x, z, v});
        check_same(*engine,
                   fmt::format("in x: {0}[{1}, {2}], v: {0}[{2}, {3}], w: {0}[{2}, {3}]\n"
                               "y = reshape(x){{shape = [1, {1}, {2}]}}\n"
                               "a = bmm(cat(y, y){{dim = 0}}, cat(reshape(v){{shape = [1, {2}, "
                               "{3}]}}, reshape(w){{shape = [1, {2}, {3}]}}){{dim = 0}})\n"
                               "b = cat(reshape(mm(x, v)){{shape = [1, {1}, {3}]}}, reshape(mm(x, "
                               "w)){{shape = [1, {1}, {3}]}}){{dim = 0}}\nout a, b",
                               t, n, k, m),
                   {x, v, drawn_tensor(random, dtype, {k, m})});
        for (const char* op : {"sum", "mean"})
          check_same(*engine,
                     fmt::format("in x: {0}[{1}, {2}], z: {0}[{3}, {2}]\n"
                                 "a = {4}(cat(x, z){{dim = 0}}){{dim = 1}}\n"
                                 "b = cat({4}(x){{dim = 1}}, {4}(z){{dim = 1}}){{dim = 0}}\n"
                                 "out a, b",
                                 t, n, k, p, op),
                     {x, z});
      }
}
