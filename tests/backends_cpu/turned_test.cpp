// Operands that rows read across memory, and elements that they read by index. The interpreter is
// the reference: all numbers are exact in any order.
#include <cmath>
#include <memory>
#include <utility>

#include "backends/cpu/emitter.hpp"
#include "backends/interpreter/interpreter.hpp"
#include "codegen/rowprogram/grouping.hpp"
#include "tests/backends/graphs.hpp"
#include "tests/backends_cpu/running.hpp"

namespace {

using namespace pw;
using namespace pw::test;

struct Turning {
  ContextPtr context = library();
  CpuBackend fast, strict{{.strict = true}};
  std::unique_ptr<Backend> interpreter = make_interpreter(Precision::single);

  Graph graph(const std::string& text) {
    auto parsed = parse_graph(context, "graph g {\n" + text + "\n}\n", "test");
    if (!parsed) FAIL(render(parsed.error(), context->sources));
    return std::move(*parsed);
  }
  void run(const Graph& g, const Symbols& symbols = {}) {
    std::vector<Tensor> inputs = random_inputs(g, symbols, 11);
    for (Tensor& t : inputs) {
      for (std::int64_t i = 0; is_float(t.dtype()) && i < t.view().count(); ++i)
        store(t.dtype(), t.data(), i, std::trunc(3 * load(t.dtype(), t.data(), i)) + 0.0);  // no -0
    }
    const RunContext context_of_run{symbols, nullptr, 5};
    const auto wanted = outputs_of(*interpreter, g, views_of(inputs), context_of_run);
    for (CpuBackend* backend : {&fast, &strict}) {
      const auto got = outputs_of(*backend, g, views_of(inputs), context_of_run);
      for (std::size_t i = 0; i < got.size(); ++i) {
        INFO(backend << ", output " << i);
        CHECK(bit_difference(got[i], wanted[i]) == "");
      }
    }
  }
};

std::size_t units_with(const char* text, const Graph& graph) {
  std::size_t count = 0;
  rows::GroupingOptions grouping;
  grouping.automatic = true;
  for (const rows::RunUnit& unit : rows::group_rows(graph, grouping))
    if (unit.kind == rows::RunUnit::Kind::rows)
      count += cpu::emit(unit.program, {}).find(text) != std::string::npos ? 1 : 0;
  return count;
}

std::size_t panels_in(const Graph& graph) { return units_with("pw_turn(", graph); }

/// A sum with a transpose, as a tile of some columns, and rows that are read twice.
constexpr const char* kTransposes =
    "in x: f32[{0}, {1}], y: f32[{1}, {0}], h: bf16[{0}, {1}], k: i64[{0}, {1}]\n"
    "t = transpose(x){{dim0 = 0, dim1 = 1}}  a = t + y\n"
    "u = t * 0.5  b = u - amax(u){{dim = 1, keepdim = true}}\n"
    "c = abs(transpose(h){{dim0 = 0, dim1 = 1}})\n"
    "d = y + f32(transpose(k){{dim0 = 0, dim1 = 1}}) * abs(t)\n"
    "out a, b, c, d";

}  // namespace

TEST_CASE("cpu: kernels read elements by index, and report one that is outside", "[cpu]") {
  if (!have_compiler()) return;
  Turning on;
  const std::string in = "in x: f32[7, 9, 11], i: i64[5, 3], j: i64[3]\n";
  for (const char* text :
       {"y = index(x, i)  out y", "y = exp(index(x, i, j)) * 0 + index(x, i, j)  out y",
        "y = index(x, i){dim = 1} + 1  out y", "y = index(x, i, j){dim = 1}  out y",
        "k = sub(0, j) - 1  y = index(x, k){dim = 2, wrap = true} * 2  out y",
        "y = sum(index(x, i, j)){dim = -1}  out y"}) {
    INFO(text);
    const Graph g = on.graph(in + text);
    on.run(g);
  }
  const Graph g = on.graph(in + "y = index(x, i){dim = 1} + 1  out y");
  std::vector<Tensor> inputs = random_inputs(g, {}, 3);
  Tensor y(DType::f32, {7, 5, 3, 11});
  const std::vector<TensorView> results{y.view()};
  for (const double bad : {9.0, -1.0}) {
    store(DType::i64, inputs[1].data(), 4, bad);
    for (CpuBackend* backend : {&on.fast, &on.strict}) {
      auto executable = backend->compile(g);
      REQUIRE(executable);
      const auto done = (*executable)->run(views_of(inputs), results, {});
      REQUIRE_FALSE(done);
      CHECK(done.error().front().code == "PW1204");
    }
  }
}

TEST_CASE("cpu: rows read a transpose from panels", "[cpu]") {
  if (!have_compiler()) return;
  Turning on;
  CHECK(panels_in(on.graph(fmt::format(fmt::runtime(kTransposes), 300, 200))) >= 2);
  for (const auto& [rows, columns] :
       {std::pair(300, 200), {8, 8}, {9, 17}, {64, 64}, {65, 127}, {1, 40}, {40, 1}, {7, 100}}) {
    INFO(rows << " rows, " << columns << " columns");
    on.run(on.graph(fmt::format(fmt::runtime(kTransposes), rows, columns)));
  }
  const Graph g = on.graph("symbol n in 1..4096\nsymbol m in 1..4096\n" +
                           fmt::format(fmt::runtime(kTransposes), "n", "m"));
  for (const auto& [rows, columns] : {std::pair(1, 1), {70, 150}, {150, 70}, {9, 8}}) {
    INFO("n = " << rows << ", m = " << columns);
    on.run(g, {{"n", rows}, {"m", columns}});
  }
}

TEST_CASE("cpu: what a column shares with others does not keep it from strips", "[cpu]") {
  if (!have_compiler()) return;
  Turning on;
  const Graph g = on.graph(
      "in x: f32[40, 70], y: f32[40, 70], m: f32[40, 1], r: f32[40, 1]\n"
      "z = sum(y * m - x * r){dim = 0}\nout z");
  on.run(g);
  CHECK(units_with("const long long n", g) == 1);
}

TEST_CASE("cpu: neighbours of a panel may be any dims of the rows", "[cpu]") {
  if (!have_compiler()) return;
  Turning on;
  const auto panels = [&](const std::string& text) {
    const Graph g = on.graph(text);
    on.run(g);
    return panels_in(g);
  };
  // Batches; channels last to first, where other rows lie between neighbours, and back.
  CHECK(panels("in x: f32[3, 40, 70], y: f32[3, 70, 40]\n"
               "z = transpose(x){dim0 = 1, dim1 = 2} * 2 + y\nout z") == 1);
  CHECK(panels("in x: f32[2, 5, 9, 24], y: f32[2, 24, 5, 9]\n"
               "t = transpose(reshape(x){shape = [2, 45, 24]}){dim0 = 1, dim1 = 2}\n"
               "z = reshape(t){shape = [2, 24, 5, 9]} - y\nout z") == 1);
  CHECK(panels("in x: f32[2, 24, 5, 9], y: f32[2, 5, 9, 24]\n"
               "s = transpose(reshape(x){shape = [2, 24, 45]}){dim0 = 1, dim1 = 2}\n"
               "t = reshape(s){shape = [2, 5, 9, 24]}\n"
               "z = t * y - sum(t){dim = -1, keepdim = true}\nout z") == 1);
  // A width for which whole rows do not fit: read in place.
  CHECK(
      panels("in x: f32[20000, 16]\n"
             "t = transpose(x){dim0 = 0, dim1 = 1} * 2  z = t - amax(t){dim = 1, keepdim = true}\n"
             "out z") == 0);
}
