// A picture states what it leaves out, or it is an error: one test for each limit.
#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/viz/decoder.hpp"
#include "viz/formats/graphviz.hpp"
#include "viz/label.hpp"
#include "viz/scene.hpp"
#include "viz/viz.hpp"

using namespace pw;
using pw::test::Decoder;

namespace {

std::string message(const Result<std::string>& result) {
  return result ? std::string() : result.error().front().message;
}

}  // namespace

TEST_CASE("limits: a long name is shortened with a mark, and whole in the title and the page",
          "[viz]") {
  Decoder d(1);
  const std::string name = "start_" + std::string(100, 'x') + "_end";
  d.graph.add_output(d.one("relu", {d.input(name)}));
  const VizInput input{{{"input", d.graph}}};
  const auto svg = render_svg(input);
  REQUIRE(svg.has_value());
  CHECK(svg->find("…xx") != std::string::npos);
  CHECK(svg->find("<title>input " + name) != std::string::npos);
  const auto html = render_html(input);
  REQUIRE(html.has_value());
  CHECK(html->find(name) != std::string::npos);
}

TEST_CASE("limits: a long tooltip states how many bytes it leaves out", "[viz]") {
  Decoder d(1);
  std::vector<ValueId> many;
  for (int i = 0; i < 400; ++i)
    many.push_back(d.input("input_with_a_long_name_" + std::to_string(i)));
  const ValueId y = d.one("gather_all", many);
  CHECK(viz::node_tooltip(d.graph, d.graph.producer(y)).find(" more bytes)") != std::string::npos);
}

TEST_CASE("limits: many readers are counted", "[viz]") {
  Decoder d(1);
  const ValueId x = d.one("relu", {d.input("x")});
  for (int i = 0; i < 20; ++i) d.graph.add_output(d.one("relu", {x}));
  CHECK(viz::node_tooltip(d.graph, d.graph.producer(x)).find(" and 8 more") != std::string::npos);
}

TEST_CASE("limits: the copies of a group that are not named are counted", "[viz]") {
  Decoder d(80);
  const VizInput input{{{"input", d.graph}}};
  const auto dot = render_dot(input);
  REQUIRE(dot.has_value());
  CHECK(dot->find(" and 15 more") != std::string::npos);
}

TEST_CASE("limits: boxes beyond the maximum become one box with a label", "[viz]") {
  Decoder d(12);
  VizOptions options{.collapse = Collapse::none};
  options.most_boxes = 5;
  const auto dot = render_dot({{{"input", d.graph}}}, options);
  REQUIRE(dot.has_value());
  CHECK(dot->find("all other nodes") != std::string::npos);
  CHECK(dot->find("too many to draw singly") != std::string::npos);
}

TEST_CASE("limits: an overview states that its boxes are whole groups", "[viz]") {
  Decoder d(12);
  const auto dot = render_dot({{{"input", d.graph}}}, {.view = View::overview});
  REQUIRE(dot.has_value());
  CHECK(dot->find("showing 3 of 134 nodes; equal layers drawn once; boxes are whole layers") !=
        std::string::npos);
}

TEST_CASE("limits: a PNG of more pixels than can be drawn is an error, whoever laid it out",
          "[viz]") {
  // Chains in columns are bounded by their area, a graph that dot lays out by its width.
  Decoder chain(1000);
  VizOptions options{.collapse = Collapse::none};
  options.most_boxes = 20'000;
  CHECK(message(render_png({{{"input", chain.graph}}}, options)).find("100 million in all") !=
        std::string::npos);
  CHECK(render_png({{{"input", Decoder(80).graph}}}, options).has_value());
  std::string wide = "digraph {";
  for (int i = 0; i < 600; ++i) wide += "a -> n" + std::to_string(i) + ";";
  const auto png = viz::lay_out(wide + "}", "png", 60'000);
  CHECK(message(png).find("32 767 pixels a side") != std::string::npos);
  CHECK(viz::lay_out(wide + "}", "svg", 60'000).has_value());
}

TEST_CASE("limits: a page of too many nodes is an error", "[viz]") {
  Decoder d(12);
  VizOptions options;
  options.most_page_nodes = 100;
  CHECK(message(render_html({{{"input", d.graph}}}, options)) ==
        "a page of 134 nodes exceeds the limit of a browser: at most 100");
}

TEST_CASE("limits: a page counts the numbers of an overlay that it has no node for", "[viz]") {
  Decoder d(1);
  const Overlay overlay{"ms", {{"mm", 1.5}, {"no_such_node", 2}}};
  const auto html = render_html({{{"input", d.graph}}}, {.overlay = &overlay});
  REQUIRE(html.has_value());
  CHECK(html->find("\"overlay\":{\"title\":\"ms\",\"given\":2,\"nodes\":[") != std::string::npos);
}
