// Orders of unions and of groups: whatever the versions are, edges go forwards.
#include "viz/layered/acyclic.hpp"

#include <algorithm>

#include "base/hash.hpp"
#include "tests/catch.hpp"
#include "tests/viz/decoder.hpp"
#include "viz/fold.hpp"
#include "viz/formats/sheet.hpp"

using namespace pw;
using pw::test::Builder;
using pw::test::Decoder;
using viz::Arrow;

namespace {

std::vector<Arrow> random_arrows(std::uint32_t vertices, std::size_t count, std::uint64_t seed) {
  Random random(seed);
  std::vector<Arrow> out;
  for (std::size_t i = 0; i < count; ++i)
    out.push_back({static_cast<std::uint32_t>(random.below(vertices)),
                   static_cast<std::uint32_t>(random.below(vertices))});
  return out;
}

/// By definition: each reaches the other.
std::vector<std::vector<bool>> reachable(std::uint32_t vertices, const std::vector<Arrow>& arrows) {
  std::vector<std::vector<bool>> out(vertices, std::vector<bool>(vertices, false));
  for (std::uint32_t v = 0; v < vertices; ++v) out[v][v] = true;
  for (const Arrow& arrow : arrows) out[arrow.from][arrow.to] = true;
  for (std::uint32_t k = 0; k < vertices; ++k)
    for (std::uint32_t i = 0; i < vertices; ++i)
      for (std::uint32_t j = 0; j < vertices; ++j)
        if (out[i][k] && out[k][j]) out[i][j] = true;
  return out;
}

/// Every edge of every version goes forwards, between nodes and between what they are drawn in.
void check_order(const VizInput& input, Collapse collapse = Collapse::automatic) {
  std::vector<const Version*> versions;
  for (const Version& version : input.versions) versions.push_back(&version);
  const viz::UnionGraph graph = viz::unite(versions, input.related);
  const viz::Links links = viz::link(graph, input.related);
  const viz::Folding folding = viz::fold(graph, links, input, collapse);
  std::vector<std::size_t> unit(graph.nodes.size(), 0);
  std::size_t placed = 0;
  for (std::size_t i = 0; i < folding.sequence.size(); ++i) {
    const viz::Unit& one = folding.sequence[i];
    const std::vector<std::uint32_t> alone{one.index};
    for (const std::uint32_t at : one.group ? folding.groups[one.index].nodes : alone) {
      unit[at] = i;
      ++placed;
      CHECK(folding.group_of[at] == (one.group ? one.index : viz::kNobody));
    }
  }
  CHECK(placed == graph.nodes.size());
  for (std::uint32_t at = 0; at < graph.nodes.size(); ++at)
    for (const viz::Link& link : links.of(at)) {
      if (link.source.kind != viz::Source::Kind::node) continue;
      CHECK(link.source.index < at);
      CHECK(unit[link.source.index] <= unit[at]);
    }
}

}  // namespace

TEST_CASE("acyclic: components are what reaches each other, and orders go forwards", "[viz]") {
  std::size_t ordered = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    INFO("seed " << seed);
    constexpr std::uint32_t kVertices = 14;
    const std::vector<Arrow> arrows = random_arrows(kVertices, 4 + seed % 20, seed);
    const auto reach = reachable(kVertices, arrows);
    const std::vector<std::uint32_t> component = viz::components(kVertices, arrows);
    bool cyclic = false;
    for (std::uint32_t a = 0; a < kVertices; ++a)
      for (std::uint32_t b = 0; b < kVertices; ++b) {
        REQUIRE((component[a] == component[b]) == (reach[a][b] && reach[b][a]));
        cyclic = cyclic || (a != b && component[a] == component[b]);
      }
    const auto order = viz::stable_order(kVertices, arrows);
    REQUIRE(order.has_value() == !cyclic);
    if (!order) continue;
    ++ordered;
    std::vector<std::size_t> rank(kVertices);
    for (std::size_t i = 0; i < kVertices; ++i) rank[(*order)[i]] = i;
    for (const Arrow& arrow : arrows)
      if (arrow.from != arrow.to) REQUIRE(rank[arrow.from] < rank[arrow.to]);
  }
  CHECK(ordered > 5);
  CHECK(ordered < 60);
}

TEST_CASE("union: versions that order two nodes differently", "[viz]") {
  Builder b;
  const ValueId x = b.input("x");
  const ValueId p = b.one("exp", {x}), q = b.one("neg", {p});
  b.graph.add_output(q);
  const Graph before = b.graph;
  // exp(neg(x)) of the same two nodes.
  b.graph.set_operand(b.graph.producer(q), 0, x);
  b.graph.set_operand(b.graph.producer(p), 0, q);
  b.graph.move_before(b.graph.producer(q), b.graph.producer(p));
  const VizInput input{{{"input", before}, {"swap", b.graph}}};
  check_order(input);
}

TEST_CASE("fold: a path that leaves a layer and comes back cuts it into parts", "[viz]") {
  Builder b;
  ValueId x = b.input("x");
  for (int i = 0; i < 6; ++i) {
    x = b.one("exp", {x});
    b.graph.set_group(b.graph.producer(x), "layers." + std::to_string(i % 2));
  }
  b.graph.add_output(x);
  const VizInput input{{{"input", b.graph}}};
  check_order(input);
  const viz::UnionGraph graph = viz::unite({&input.versions[0]}, true);
  const viz::Folding folding = viz::fold(graph, viz::link(graph, true), input, Collapse::none);
  CHECK(folding.groups.size() == 6);
  CHECK(std::any_of(folding.groups.begin(), folding.groups.end(),
                    [](const viz::Group& group) { return group.name == "layers.0 (part 2)"; }));
}

TEST_CASE("fold: what a pass removed stands in the piece of its own version", "[viz]") {
  Decoder d(4);
  const Graph before = d.graph;
  d.fuse();
  const StitchedGraph pieces = d.cut({"attention"});
  const VizInput input{{{"input", before}, {"fuse", d.graph}}, &pieces};
  check_order(input);
  const viz::UnionGraph graph = viz::unite({&input.versions[0], &input.versions[1]}, true);
  const viz::Folding folding = viz::fold(graph, viz::link(graph, true), input, Collapse::automatic);
  // The sums were removed; each stood behind the attention of its layer, where its successor is.
  std::size_t removed = 0;
  for (std::uint32_t at = 0; at < graph.nodes.size(); ++at) {
    if (graph.nodes[at].last > 0) continue;
    ++removed;
    CHECK(folding.groups[folding.group_of[at]].kind == viz::GroupKind::captured);
  }
  CHECK(removed == 2 * d.sums.size());
}

TEST_CASE("sheet: an edge leaves a group as long as it is read outside, in no other version",
          "[viz]") {
  Decoder d(3);
  const Graph before = d.graph;
  d.fuse();
  const StitchedGraph pieces = d.cut({"attention"});
  const VizInput input{{{"input", before}, {"fuse", d.graph}}, &pieces};
  const viz::UnionGraph graph = viz::unite({&input.versions[0], &input.versions[1]}, true);
  const viz::Links links = viz::link(graph, true);
  const viz::Folding folding = viz::fold(graph, links, input, Collapse::automatic);
  const viz::Placement placement = viz::place(graph, links, folding);
  std::size_t ended = 0;
  for (const viz::Shape& shape : placement.shapes) {
    const viz::Group& group = folding.groups[shape.group];
    for (const viz::SheetEdge& edge : shape.level.folded.edges) {
      for (const std::uint32_t end : {edge.from, edge.to}) {
        const viz::Item& item = shape.level.items[end];
        if (item.kind != viz::Item::Kind::node) continue;
        CHECK(graph.nodes[group.nodes[item.index]].first <= edge.first);
        CHECK(graph.nodes[group.nodes[item.index]].last >= edge.last);
      }
      ended += shape.level.items[edge.to].kind == viz::Item::Kind::leaf && edge.last == 0 ? 1 : 0;
    }
  }
  CHECK(ended > 0);
}

TEST_CASE("layered: a fan-out of 400 is as wide as a screen or two", "[viz]") {
  std::vector<viz::LayeredNode> nodes(402, {150, 40});
  std::vector<viz::LayeredEdge> edges;
  for (std::uint32_t i = 1; i <= 400; ++i) {
    edges.push_back({0, i});
    edges.push_back({i, 401});
  }
  const viz::Layered wide = viz::lay_out_layers(nodes, edges, {});
  const viz::Layered folded = viz::lay_out_layers(nodes, edges, {.wide = 2400});
  CHECK(wide.width > 60000);
  CHECK(folded.width < 4800);
  for (const viz::LayeredEdge& edge : edges) CHECK(folded.rank[edge.from] < folded.rank[edge.to]);
  for (std::size_t a = 0; a < nodes.size(); ++a)
    for (std::size_t b = a + 1; b < nodes.size(); ++b)
      REQUIRE((folded.rank[a] != folded.rank[b] ||
               std::abs(folded.x[a] - folded.x[b]) >= nodes[a].width));
}
