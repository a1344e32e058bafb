// Which nodes become one kernel, and the order of kernels.
#include "codegen/rowprogram/grouping.hpp"

#include <map>

#include <fmt/format.h>

#include "base/hash.hpp"
#include "dsl/dsl.hpp"
#include "tests/catch.hpp"
#include "tests/drawn_text.hpp"

using namespace pw;
using namespace pw::test;

namespace {

struct Grouped {
  ContextPtr context;
  Graph graph;
  std::vector<rows::RunUnit> units;
  /// The names of nodes, a unit in brackets.
  [[nodiscard]] std::string text() const {
    std::string out;
    for (const auto& unit : units) {
      out += out.empty() ? "[" : " [";
      for (NodeId n : unit.nodes)
        out += (out.back() == '[' ? "" : " ") + std::string(graph.node_name(n));
      out += ']';
    }
    return out;
  }
};

Grouped grouped(const std::string& text, rows::GroupingOptions options = {}) {
  auto context = std::make_shared<Context>();
  REQUIRE(load_op_library(context));
  auto graph = parse_graph(context, "graph { " + text + " }", "g");
  if (!graph) FAIL(render(graph.error(), context->sources));
  auto units = rows::group_rows(*graph, options);
  return {context, std::move(*graph), std::move(units)};
}

/// Every node occurs once, after the nodes that it reads.
void check_order(const Grouped& g) {
  std::map<NodeId, std::size_t> unit_of;
  for (std::size_t i = 0; i < g.units.size(); ++i) {
    for (NodeId n : g.units[i].nodes) CHECK(unit_of.emplace(n, i).second);
  }
  CHECK(unit_of.size() == g.graph.node_count());
  for (NodeId n : g.graph.order()) {
    for (ValueId v : g.graph.operands(n)) {
      if (v.valid() && !g.graph.is_input(v))
        CHECK(unit_of.at(g.graph.producer(v)) <= unit_of.at(n));
    }
  }
}

}  // namespace

TEST_CASE("grouping: neighbours become one, and an option leaves them apart", "[rowprogram]") {
  const std::string text =
      "in x: bf16[n, 64], w: bf16[64], s: f32[1]  a = silu(x)  b = rms_norm(a, w)  q = "
      "static_scaled_fp8_quant(b, s)  out q";
  CHECK(grouped(text).text() == "[a b q]");
  rows::GroupingOptions alone;
  alone.automatic = false;
  CHECK(grouped(text, alone).text() == "[a] [b] [q]");
  rows::GroupingOptions pairs;
  pairs.max_nodes = 2;
  CHECK(grouped(text, pairs).text() == "[a b] [q]");
}

TEST_CASE("grouping: a path through another op keeps a group apart", "[rowprogram]") {
  const Grouped g =
      grouped("in x: bf16[n, 64], w: bf16[64, 64]  a = silu(x)  m = mm(a, w)  y = a + m  out y");
  CHECK(g.text() == "[a] [m] [y]");
  check_order(g);
}

TEST_CASE("grouping: two groups never wait for each other", "[rowprogram]") {
  // b and c are one group; a and d cannot be another, because d waits for b, which would wait for
  // a.
  const Grouped g = grouped(
      "in x: bf16[n, 64], y: bf16[n, 64], w: bf16[64, 64]  a = silu(x)  b = silu(y)  p = mm(a, w)  "
      "q = mm(b, w)  c = b + p  d = a + q  out c, d");
  check_order(g);
  CHECK(g.text() == "[a] [p] [b c] [q] [d]");
}

TEST_CASE("grouping: views at the rim of a group stay views", "[rowprogram]") {
  const Grouped g = grouped(
      "in x: bf16[n, 2, 32]  f = reshape(x){shape = [n, 64]}  a = silu(f)  h = reshape(a){shape = "
      "[n, 4, 16]}  out h");
  CHECK(g.text() == "[f] [a] [h]");
  CHECK(g.units[0].kind == rows::RunUnit::Kind::view);
  CHECK(g.units[1].kind == rows::RunUnit::Kind::rows);
  CHECK(g.units[2].kind == rows::RunUnit::Kind::view);
  const Grouped inside = grouped(
      "in x: bf16[n, 64]  a = silu(x)  h = reshape(a){shape = [n, 4, 16]}  m = h / "
      "(amax(abs(h)){dim "
      "= -1, keepdim = true} + 1.0)  out m");
  CHECK(inside.text() == "[c] [a h v v_1 v_2 m]");
}

TEST_CASE("grouping: a reduction along another axis is not drawn in", "[rowprogram]") {
  const Grouped g = grouped("in x: f32[n, 64]  a = neg(x)  c = sum(a){dim = 0}  y = a * c  out y");
  check_order(g);
  for (const auto& unit : g.units) CHECK(unit.nodes.size() == 1);
}

TEST_CASE("grouping: random graphs keep their order, each node once", "[rowprogram]") {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    std::string text = "in v0: bf16[n, 32], v1: bf16[n, 32], w: bf16[32, 32]";
    std::string out;
    for (int i = 2; i < 20; ++i) {
      const auto any = [&] {
        return fmt::format("v{}", random.below(static_cast<std::uint64_t>(i)));
      };
      switch (random.below(5)) {
        case 0: text += fmt::format("  v{} = mm({}, w)", i, any()); break;
        case 1: text += fmt::format("  v{} = silu({})", i, any()); break;
        case 2:
          text += Text{fmt::format("  v{} = ", i), any(), " - mean(", any(), "){keepdim = true}"};
          break;
        default: text += Text{fmt::format("  v{} = ", i), any(), " + ", any()};
      }
      out += (out.empty() ? "v" : ", v") + std::to_string(i);
    }
    check_order(grouped(text + "  out " + out));
  }
}

TEST_CASE("grouping: rows of a few elements are joined where addresses stay simple",
          "[rowprogram]") {
  rows::GroupingOptions options;
  options.wide_rows = true;
  const auto domain = [&](const std::string& text) {
    const Grouped g = grouped(text, options);
    REQUIRE(g.units.size() == 1);
    return g.context->dims.print(g.units[0].program.params[0]);
  };
  CHECK(domain("in x: f32[2, 48, 7, 7], s: f32[48, 1, 1]  y = mul(x, s)  out y") == "96");
  CHECK(domain("in x: f32[n, 48, 7, 7]  y = relu(x)  out y") == "48*n");
  CHECK(domain("in x: f32[2, 48, 2, 3, 4]  y = relu(x)  out y") == "96");
  CHECK(domain("in x: f32[2, 48, 7, 64]  y = relu(x)  out y") == "672");  // wide enough
  CHECK(domain("in x: f32[4, 7, 7]  y = relu(x)  out y") == "28");        // few rows would be left
  CHECK(domain("in x: f32[96, m, 7]  y = relu(x)  out y") == "96*m");     // of unknown extent
  // Each element of a joined row would need a remainder.
  CHECK(domain("in x: f32[96, 7, 7], s: f32[7]  y = mul(x, s)  out y") == "672");
}
