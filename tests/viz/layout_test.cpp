#include <algorithm>
#include <set>

#include "base/hash.hpp"
#include "tests/catch.hpp"
#include "tests/viz/decoder.hpp"
#include "viz/formats/sheet.hpp"
#include "viz/formats/text_table.hpp"

using namespace pw;
using pw::test::Decoder;
using viz::LayeredEdge;
using viz::LayeredNode;

namespace {

struct Problem {
  std::vector<LayeredNode> nodes;
  std::vector<LayeredEdge> edges;
};

Problem random_problem(std::size_t count, std::uint64_t seed) {
  Random random(seed);
  Problem out;
  for (std::uint32_t i = 0; i < count; ++i) {
    out.nodes.push_back({20.0 + static_cast<double>(random.below(200)),
                         10.0 + static_cast<double>(random.below(60))});
    for (std::size_t k = random.below(3); i > 0 && k > 0; --k) {
      const std::uint32_t back = 1 + static_cast<std::uint32_t>(random.below(12));
      out.edges.push_back({i > back ? i - back : 0, i});
    }
  }
  return out;
}

bool apart(const Problem& p, const viz::Layered& l, std::size_t a, std::size_t b) {
  return std::abs(l.x[a] - l.x[b]) >= (p.nodes[a].width + p.nodes[b].width) / 2 - 0.01 ||
         std::abs(l.y[a] - l.y[b]) >= (p.nodes[a].height + p.nodes[b].height) / 2 - 0.01;
}

}  // namespace

TEST_CASE("layered: edges go down and boxes do not overlap", "[viz]") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    INFO("seed " << seed);
    const Problem p = random_problem(120, seed);
    const viz::Layered l = viz::lay_out_layers(p.nodes, p.edges);
    for (std::size_t e = 0; e < p.edges.size(); ++e) {
      const LayeredEdge& edge = p.edges[e];
      REQUIRE(l.rank[edge.from] < l.rank[edge.to]);
      REQUIRE(l.lanes[e].size() == l.rank[edge.to] - l.rank[edge.from] - 1);
    }
    for (std::size_t a = 0; a < p.nodes.size(); ++a) {
      REQUIRE(l.x[a] - p.nodes[a].width / 2 >= -0.01);
      REQUIRE(l.x[a] + p.nodes[a].width / 2 <= l.width + 0.01);
      for (std::size_t b = a + 1; b < p.nodes.size(); ++b) REQUIRE(apart(p, l, a, b));
    }
  }
}

TEST_CASE("layered: edges go down through ranks that are folded", "[viz]") {
  std::size_t folded = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    INFO("seed " << seed);
    const Problem p = random_problem(20 + 5 * seed, seed);
    viz::LayeredOptions options;
    options.wide = seed % 2 == 0 ? 500 : 900;
    const viz::Layered l = viz::lay_out_layers(p.nodes, p.edges, options);
    folded += l.folded ? 1 : 0;
    std::vector<double> width(l.top.size(), 0);
    std::vector<std::size_t> count(l.top.size(), 0);
    for (std::size_t i = 0; i < p.nodes.size(); ++i)
      width[l.rank[i]] += p.nodes[i].width, ++count[l.rank[i]];
    for (std::size_t r = 0; r < width.size(); ++r)
      REQUIRE((count[r] == 1 || width[r] <= options.wide));
    for (const LayeredEdge& edge : p.edges) REQUIRE(l.rank[edge.from] < l.rank[edge.to]);
    for (std::size_t a = 0; a < p.nodes.size(); ++a)
      for (std::size_t b = a + 1; b < p.nodes.size(); ++b) REQUIRE(apart(p, l, a, b));
  }
  CHECK(folded >= 30);
}

TEST_CASE("layered: a lane does not run through a box", "[viz]") {
  const Problem p = random_problem(150, 7);
  const viz::Layered l = viz::lay_out_layers(p.nodes, p.edges);
  for (std::size_t e = 0; e < p.edges.size(); ++e)
    for (std::size_t k = 0; k < l.lanes[e].size(); ++k)
      for (std::size_t i = 0; i < p.nodes.size(); ++i)
        if (l.rank[i] == l.rank[p.edges[e].from] + 1 + k)
          REQUIRE(std::abs(l.x[i] - l.lanes[e][k]) >= p.nodes[i].width / 2);
}

TEST_CASE("layered: a chain is straight, pins hold, and far edges have no lane", "[viz]") {
  std::vector<LayeredNode> nodes(100, {50, 20});
  nodes.front().pin = LayeredNode::Pin::top;
  nodes[40].pin = LayeredNode::Pin::bottom;
  std::vector<LayeredEdge> edges;
  for (std::uint32_t i = 1; i < 40; ++i) edges.push_back({i - 1, i});
  for (std::uint32_t i = 42; i < 100; ++i) edges.push_back({i - 1, i});
  edges.push_back({39, 40});
  edges.push_back({41, 99});
  const viz::Layered l = viz::lay_out_layers(nodes, edges);
  for (std::uint32_t i = 1; i < 40; ++i) CHECK(l.x[i] == l.x[0]);
  CHECK(l.rank[0] == 0);
  CHECK(l.rank[40] + 1 == l.top.size());
  CHECK(l.rank[99] - l.rank[41] == 58);
  CHECK(l.lanes.back().empty());
}

TEST_CASE("layered: nothing, one node, and edges that go backwards", "[viz]") {
  CHECK(viz::lay_out_layers({}, {}).top.empty());
  const viz::Layered one = viz::lay_out_layers({{30, 10}}, {});
  CHECK(one.width == 30);
  CHECK(one.total == 10);
  const viz::Layered back = viz::lay_out_layers({{30, 10}, {30, 10}}, {{1, 0}, {1, 1}});
  CHECK(back.rank[0] == back.rank[1]);
}

TEST_CASE("sheet: each shape is laid out once and stands for all its copies", "[viz]") {
  Decoder d(12);
  const StitchedGraph pieces = d.cut({"attention"});
  const VizInput input{{{"input", d.graph}}, &pieces};
  const viz::UnionGraph graph = viz::unite({&input.versions[0]}, true);
  const viz::Links links = viz::link(graph, true);
  const viz::Folding folding = viz::fold(graph, links, input, Collapse::automatic);
  const viz::Placement placement = viz::place(graph, links, folding);
  std::size_t outermost = 0;
  CHECK(placement.whole.items.size() == 4 + 2);  // an input and an output
  CHECK(placement.whole.unfolded_items.size() == 25 + 2);
  for (const viz::Shape& shape : placement.shapes) {
    const viz::Group& group = folding.groups[shape.group];
    outermost += group.parent == viz::kNobody ? 1 : 0;
    const viz::Sheet& sheet = shape.level.folded;
    if (!shape.level.any_group())
      CHECK(sheet.nodes.size() == group.nodes.size() + shape.sources + shape.leaves.size());
    for (const viz::SheetEdge& edge : sheet.edges)
      CHECK(sheet.layout.rank[edge.from] < sheet.layout.rank[edge.to]);
  }
  CHECK(outermost == 4);
}

TEST_CASE("links: each operand with the versions in which it is read", "[viz]") {
  Decoder d(2);
  const Graph before = d.graph;
  d.fuse();
  const VizInput input{{{"input", before}, {"fuse", d.graph}}};
  const viz::UnionGraph graph = viz::unite({&input.versions[0], &input.versions[1]}, true);
  const viz::Links links = viz::link(graph, true);
  std::size_t redirected = 0;
  for (std::uint32_t at = 0; at < graph.nodes.size(); ++at) {
    const viz::UnionNode& node = graph.nodes[at];
    for (const viz::Link& link : links.of(at)) {
      CHECK(link.first >= node.first);
      CHECK(link.last <= node.last);
      redirected += link.first > node.first ? 1 : 0;
      if (link.source.kind != viz::Source::Kind::node) continue;
      CHECK(graph.nodes[link.source.index].first <= link.first);
      CHECK(graph.nodes[link.source.index].last >= link.last);
    }
  }
  CHECK(redirected > 0);
}

TEST_CASE("texts: a template and its numbers", "[viz]") {
  viz::TextTable texts;
  CHECK(texts.add("") == 0);
  CHECK(texts.add("layers.12.w0") == 1);
  CHECK(texts.add("layers.7.w3") == 2);
  CHECK(texts.add("layers.12.w0") == 1);
  CHECK(texts.add("007 12345678901") == 3);
  CHECK(texts.add("a\x01") == 4);
  REQUIRE(texts.templates().size() == 4);
  CHECK(texts.templates()[1] == "layers.\x01.w\x01");
  CHECK(texts.templates()[2] == "007 12345678901");
  CHECK(texts.templates()[3] == "a ");
  CHECK(texts.codes() == std::vector<std::int64_t>{0, 1, 12, 0, 1, 7, 3, 2, 3});
}
