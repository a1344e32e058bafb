// Elements at places that the graph alone determines. The interpreter is the reference.
#include "backends/cpu/known_places.hpp"

#include <memory>

#include "backends/interpreter/interpreter.hpp"
#include "tests/backends/graphs.hpp"
#include "tests/backends_cpu/running.hpp"

namespace {

using namespace pw;
using namespace pw::test;

Graph graph_of(const ContextPtr& context, const std::string& text) {
  auto parsed = parse_graph(context, "graph g {\n" + text + "\n}\n", "test");
  if (!parsed) FAIL(render(parsed.error(), context->sources));
  return std::move(*parsed);
}

/// The places of a row of n elements with a reflected border of `before` and `after` elements.
std::string reflected(const std::string& name, int n, int before, int after) {
  return fmt::format(
      "k{0} = iota(){{shape = [{1}]}}\n"
      "r{0} = abs(k{0} - {2})\n"
      "{0} = {3} - abs({3} - r{0})\n",
      name, n + before + after, before, n - 1);
}
/// The same with a repeated border.
std::string repeated(const std::string& name, int n, int before, int after) {
  return fmt::format(
      "k{0} = iota(){{shape = [{1}]}}\n"
      "{0} = minimum(maximum(k{0} - {2}, 0), {3})\n",
      name, n + before + after, before, n - 1);
}

/// Checks the numbers and the count of kernels: one for the indices of each axis except the last,
/// and one that moves elements.
void check_equal(const ContextPtr& context, const std::string& text, std::size_t kernels) {
  const Graph g = graph_of(context, text);
  const std::vector<Tensor> inputs = random_inputs(g, {}, 3);
  const auto interpreter = make_interpreter(Precision::single);
  const RunContext how{{}, nullptr, 5};
  const auto wanted = outputs_of(*interpreter, g, views_of(inputs), how);
  for (const bool strict : {false, true}) {
    CpuBackend backend({.strict = strict});
    const auto got = outputs_of(backend, g, views_of(inputs), how);
    for (std::size_t i = 0; i < got.size(); ++i) CHECK(bit_difference(got[i], wanted[i]) == "");
    CHECK(backend.report().nodes_on_eager() == 0);
    CHECK(backend.report().kernels.size() == kernels);
  }
}

}  // namespace

TEST_CASE("known places: borders become slices") {
  if (!have_compiler()) return;
  const ContextPtr context = library();
  for (const auto& places : {reflected("i", 48, 3, 2), repeated("i", 48, 1, 2)}) {
    Graph g = graph_of(context, "in x: f32[5, 48]\n" + places + "y = index(x, i){dim = 1}\nout y");
    CHECK(cpu::slice_known_places(g));
    g.erase_dead();
    for (NodeId n = g.first(); n.valid(); n = g.next(n))
      CHECK((g.op_of(n).name == "slice" || g.op_of(n).name == "cat"));
    check_equal(context, "in x: f32[5, 48]\n" + places + "y = index(x, i){dim = 1}\nout y", 1);
  }
}

TEST_CASE("known places: borders of several axes are moved at once") {
  if (!have_compiler()) return;
  const ContextPtr context = library();
  for (const char* dtype : {"f32", "bf16", "i64"}) {
    const std::string x = fmt::format("in x: {}[3, 17, 48]\n", dtype);
    check_equal(context,
                x + reflected("i", 17, 2, 1) + reflected("j", 48, 1, 2) +
                    "a = index(x, i){dim = 1, wrap = true}\n"
                    "y = index(a, j){dim = 2, wrap = true}\nout y",
                2);
    check_equal(context,
                x + repeated("h", 3, 1, 1) + repeated("i", 17, 2, 1) + repeated("j", 48, 1, 2) +
                    "a = index(x, h){dim = 0}\nb = index(a, i){dim = 1}\n"
                    "y = index(b, j){dim = 2}\nz = y + y\nout y, z",
                3);
  }
}

TEST_CASE("known places: others stay as they are") {
  const ContextPtr context = library();
  const auto changed = [&](const std::string& text) {
    Graph g = graph_of(context, text);
    return cpu::slice_known_places(g);
  };
  const std::string iota = "in x: f32[5, 40]\nk = iota(){shape = [40]}\n";
  CHECK(changed(iota + "y = index(x, k){dim = 1}\nout y"));
  CHECK(changed(iota + "i = k - 20\ny = index(x, i){dim = 1, wrap = true}\nout y"));
  CHECK_FALSE(changed(iota + "i = k - 20\ny = index(x, i){dim = 1}\nout y"));  // outside
  CHECK_FALSE(changed(iota + "i = k + 1\ny = index(x, i){dim = 1}\nout y"));   // outside
  CHECK_FALSE(changed(iota + "i = 39 - k\ny = index(x, i){dim = 1}\nout y"));  // short runs
  CHECK_FALSE(changed("in x: f32[5, 40], i: i64[40]\ny = index(x, i){dim = 1}\nout y"));
  CHECK_FALSE(changed("in x: f32[40, 5]\n" + reflected("i", 48, 3, 2) +
                      "y = index(x, i){dim = 0}\nout y"));  // whole rows
}
