#include "tests/catch.hpp"
#include "tests/viz/decoder.hpp"
#include "viz/formats/dot.hpp"
#include "viz/formats/graphviz.hpp"
#include "viz/viz.hpp"

using namespace pw;
using pw::test::Decoder;

TEST_CASE("dot: strings hold any text", "[viz]") {
  CHECK(viz::dot_string("a\"b\\N\nc&amp;<d>") == "\"a\\\"b\\\\N\\nc&amp;amp;&lt;d&gt;\"");
}

TEST_CASE("render: hostile names stay text", "[viz]") {
  Decoder d(1);
  const std::string evil = "\"];</title><script>alert(1)</script>&quot;\\N\xff";
  d.graph.add_output(d.in_group(evil, d.one("relu", {d.input(evil)})));
  d.graph.name = evil;
  const auto svg = render_svg({{{"input", d.graph}}});
  REQUIRE(svg.has_value());
  CHECK(svg->find("<script") == std::string::npos);
  CHECK(svg->find("&lt;script&gt;alert(1)") != std::string::npos);
}

TEST_CASE("render: every format", "[viz]") {
  Decoder d(12);
  const Graph before = d.graph;
  d.fuse();
  const StitchedGraph pieces = d.cut({"attention"});
  const VizInput input{{{"input", before}, {"fuse", d.graph}}, &pieces};
  const VizOptions difference{.against = 0};
  const auto svg = render_svg(input, difference);
  REQUIRE(svg.has_value());
  CHECK(svg->find("<svg") != std::string::npos);
  CHECK(svg->find("+ fused_add_rms_norm") != std::string::npos);
  CHECK(svg->find("− rms_norm") != std::string::npos);
  CHECK(svg->find("stroke-dasharray") != std::string::npos);
  CHECK(*render_svg(input, difference) == *svg);
  const auto png = render_png(input, difference);
  REQUIRE(png.has_value());
  CHECK(png->substr(1, 3) == "PNG");
  const auto pdf = render_pdf(input, difference);
  REQUIRE(pdf.has_value());
  CHECK(pdf->substr(0, 4) == "%PDF");
}

TEST_CASE("render: the outline reads as text", "[viz]") {
  Decoder d(12);
  const StitchedGraph pieces = d.cut({"attention"});
  const auto text = render_outline({{{"input", d.graph}}, &pieces});
  REQUIRE(text.has_value());
  CHECK(text->find("decoder: 146 nodes, 1 input, 74 weights, 1 output\n") == 0);
  CHECK(text->find(
            "\nsymbol n 1..8192 (tokens)\nshowing 23 of 134 nodes; equal pieces drawn once\n") !=
        std::string::npos);
  CHECK(text->find("\n×12 piece_1, piece_3 … piece_23 · eager\n") != std::string::npos);
  CHECK(text->find("mul = mul(silu, 0.5)") != std::string::npos);
  CHECK(text->find('\x1b') == std::string::npos);
}

TEST_CASE("render: a layout that takes too long is ended", "[viz]") {
  std::string dot = "digraph {";
  for (int i = 0; i < 2000; ++i)
    dot += "n" + std::to_string(i) + " -> n" + std::to_string(i * 7 % 2000) + ";";
  const auto svg = viz::lay_out(dot + "}", "svg", 1);
  REQUIRE_FALSE(svg.has_value());
  CHECK(svg.error().front().code == viz::kTooSlow);
  CHECK(svg.error().front().message.find("longer than 1 ms") != std::string::npos);
}

TEST_CASE("render: what dot does not lay out in time, or is too large for it, is laid out here",
          "[viz]") {
  Decoder d(2);
  VizOptions options;
  options.collapse = Collapse::none;
  options.deadline_ms = 1;
  const auto late = render_svg({{{"input", d.graph}}}, options);
  REQUIRE(late.has_value());
  CHECK(late->find("dot took longer than 1 ms") != std::string::npos);
  Decoder many(60);
  options.most_boxes = 1000;
  for (const auto& svg : {late, render_svg({{{"input", many.graph}}}, options)}) {
    REQUIRE(svg.has_value());
    CHECK(svg->find("laid out in ") != std::string::npos);
    CHECK(svg->find("used by rms_norm") != std::string::npos);  // titles
    CHECK(svg->find("layers.1") != std::string::npos);          // clusters
    CHECK(svg->find("nan") == std::string::npos);
  }
  const auto svg = render_svg({{{"input", many.graph}}}, options);
  CHECK(svg->find("laid out in columns") != std::string::npos);
  std::size_t boxes = 0;
  for (std::size_t at = svg->find("class=\"node"); at != std::string::npos;
       at = svg->find("class=\"node", at + 1))
    ++boxes;
  CHECK(boxes == 662 + 2);
  CHECK(*render_svg({{{"input", many.graph}}}, options) == *svg);
}

TEST_CASE("render: wrong requests are diagnosed", "[viz]") {
  CHECK_FALSE(render_dot({}).has_value());
  Decoder d(1);
  CHECK_FALSE(render_dot({{{"input", d.graph}}}, {.version = 3}).has_value());
  CHECK_FALSE(viz::lay_out("digraph {", "svg", 10'000).has_value());
  CHECK(collapse_named("layers") == Collapse::layers);
  CHECK_FALSE(collapse_named("sideways").has_value());
}
