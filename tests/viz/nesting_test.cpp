// Groups within groups: from module paths, in order at every level, equal ones drawn once, and
// clusters of pictures inside each other.
#include <algorithm>
#include <map>

#include "base/hash.hpp"
#include "tests/catch.hpp"
#include "tests/splitter/graphs.hpp"
#include "viz/formats/sheet.hpp"
#include "viz/layered/scene_places.hpp"

using namespace pw;
using pw::test::Builder;

namespace {

struct Nested {
  VizInput input;
  viz::UnionGraph graph;
  viz::Links links;
  viz::Folding folding;

  explicit Nested(std::vector<Version> versions, Collapse collapse = Collapse::automatic)
      : input{std::move(versions)} {
    std::vector<const Version*> all;
    for (const Version& version : input.versions) all.push_back(&version);
    graph = viz::unite(all, true);
    links = viz::link(graph, true);
    folding = viz::fold(graph, links, input, collapse);
  }

  [[nodiscard]] std::vector<std::string> names(const std::vector<viz::Unit>& sequence) const {
    std::vector<std::string> out;
    for (const viz::Unit& unit : sequence)
      out.push_back(unit.group ? folding.groups[unit.index].name : "·");
    return out;
  }
};

/// Two stages of three blocks of a norm, four experts of two nodes, and their sum.
Graph stages() {
  Builder b;
  ValueId x = b.input("x");
  const auto put = [&](const std::string& op, std::vector<ValueId> reads, const std::string& path) {
    const ValueId v = b.one(op, std::move(reads));
    b.graph.set_group(b.graph.producer(v), path);
    return v;
  };
  for (int s = 0; s < 2; ++s)
    for (int k = 0; k < 3; ++k) {
      const std::string block = "stages." + std::to_string(s) + ".blocks." + std::to_string(k);
      const ValueId norm = put("rms_norm", {x}, block);
      std::vector<ValueId> parts;
      for (int e = 0; e < 4; ++e) {
        const std::string expert = block + ".experts." + std::to_string(e);
        parts.push_back(put("silu", {put("mm", {norm}, expert)}, expert));
      }
      x = put("sum", parts, block);
    }
  b.graph.add_output(x);
  return b.graph;
}

/// Nodes that read two of the last twelve values, with paths from a small tree.
std::vector<Version> random_versions(std::uint64_t seed) {
  Random random(seed);
  Builder b;
  std::vector<ValueId> values{b.input("x"), b.input("y")};
  const std::vector<std::string> paths{"a.0",   "a.0.b",   "a.0.b.c", "a.0.b.c.1",   "a.0.d",
                                       "a.1.b", "a.1.b.c", "a.1.d",   "a.1.d.e.0.f", "a.1.d.e.1.f",
                                       "",      "g",       "a.2"};
  const auto any = [&] {
    return values[values.size() - 1 - random.below(std::min<std::size_t>(values.size(), 12))];
  };
  std::size_t path = 0;
  for (int i = 0; i < 60; ++i) {
    if (random.below(3) == 0) path = random.below(paths.size());
    values.push_back(b.one(random.below(2) == 0 ? "exp" : "add", {any(), any()}));
    b.graph.set_group(b.graph.producer(values.back()), paths[path]);
  }
  b.graph.add_output(values.back());
  const Graph before = b.graph;
  // Some nodes read something earlier, as after a pass.
  for (std::size_t i = 6; i < values.size(); i += 1 + random.below(6))
    b.graph.set_operand(b.graph.producer(values[i]), 0, values[random.below(i)]);
  return {{"input", before}, {"pass", b.graph}};
}

bool holds(const viz::Place& outer, const viz::Place& inner) {
  constexpr double kSlack = 0.01;
  return inner.x >= outer.x - kSlack && inner.y >= outer.y - kSlack &&
         inner.x + inner.width <= outer.x + outer.width + kSlack &&
         inner.y + inner.height <= outer.y + outer.height + kSlack;
}
bool overlap(const viz::Place& a, const viz::Place& b) {
  constexpr double kSlack = 0.01;
  return a.x < b.x + b.width - kSlack && b.x < a.x + a.width - kSlack &&
         a.y < b.y + b.height - kSlack && b.y < a.y + a.height - kSlack;
}

/// Boxes and clusters lie in what they stand in and not over each other, and edges go down but
/// those to a further copy.
void check_places(const viz::Scene& scene) {
  const viz::ScenePlaces places = viz::place_scene(scene);
  const viz::Place whole{0, 0, places.width, places.height};
  std::map<std::uint32_t, std::vector<viz::Place>> placed;  // by cluster
  for (std::size_t i = 0; i < scene.boxes.size(); ++i)
    placed[scene.boxes[i].cluster].push_back(places.boxes[i]);
  for (std::size_t c = 0; c < scene.clusters.size(); ++c)
    if (places.clusters[c].width > 0)
      placed[scene.clusters[c].parent].push_back(places.clusters[c]);
  for (const auto& [cluster, list] : placed)
    for (std::size_t i = 0; i < list.size(); ++i) {
      REQUIRE(holds(cluster == viz::kNobody ? whole : places.clusters[cluster], list[i]));
      for (std::size_t k = 0; k < i; ++k) REQUIRE_FALSE(overlap(list[i], list[k]));
    }
  for (std::size_t e = 0; e < scene.edges.size(); ++e) {
    const std::vector<double>& points = places.edges[e];
    REQUIRE(points.size() >= 8);
    if (scene.edges[e].back) continue;
    for (std::size_t i = 3; i < points.size(); i += 2) REQUIRE(points[i] >= points[i - 2] - 0.01);
    REQUIRE(points[points.size() - 1] == Approx(places.boxes[scene.edges[e].to].y));
  }
}

}  // namespace

TEST_CASE("nesting: module paths are groups in groups, equal ones are drawn once at every level",
          "[viz]") {
  const Nested drawn({{"input", stages()}});
  const viz::Folding& f = drawn.folding;
  CHECK(drawn.names(f.sequence) == std::vector<std::string>{"stages.0", "stages.1"});
  const viz::Group& stage = f.groups[f.sequence[0].index];
  CHECK(stage.siblings.size() == 2);
  CHECK(drawn.names(stage.sequence) ==
        std::vector<std::string>{"stages.0.blocks.0", "stages.0.blocks.1", "stages.0.blocks.2"});
  const viz::Group& block = f.groups[stage.sequence[1].index];
  CHECK(block.parent == f.sequence[0].index);
  CHECK(block.drawn_as == stage.sequence[0].index);
  CHECK(f.groups[block.drawn_as].siblings.size() == 3);
  CHECK(f.groups[block.same_as].copies.size() == 6);
  CHECK(drawn.names(block.sequence).size() == 6);  // norm, four experts, sum
  const viz::Group& expert = f.groups[block.sequence[1].index];
  CHECK(expert.name == "stages.0.blocks.1.experts.0");
  CHECK(expert.siblings.size() == 4);
  CHECK(expert.nodes.size() == 2);
  // Of 60 nodes a norm, an expert and a sum are drawn.
  std::size_t boxes = 0;
  for (std::uint32_t at = 0; at < f.drawn_as.size(); ++at) boxes += f.drawn_as[at] == at ? 1 : 0;
  CHECK(boxes == 4);
  const viz::Scene scene = viz::make_scene(drawn.graph, f, 600);
  CHECK(scene.clusters.size() == 3);
  CHECK(scene.clusters[2].title == "×4 experts.0, experts.1 … experts.3");
  CHECK(scene.clusters[2].parent == 1);
  check_places(scene);
  // If there is no room for the nodes, the innermost groups are boxes.
  const viz::Scene closed = viz::make_scene(drawn.graph, f, 3);
  CHECK(closed.caption.find("boxes are whole modules") != std::string::npos);
  CHECK(closed.boxes.size() == 3 + 2);  // norm, experts, sum; an input and an output
}

TEST_CASE("nesting: calls of one module are a group each", "[viz]") {
  Builder b;
  ValueId x = b.input("x");
  for (const char* path : {"group.0.layer", "group.0@1.layer", "group.0@2.layer"})
    for (const char* op : {"exp", "relu"}) {
      x = b.one(op, {x});
      b.graph.set_group(b.graph.producer(x), path);
    }
  b.graph.add_output(x);
  const Nested drawn({{"input", b.graph}});
  const viz::Folding& f = drawn.folding;
  CHECK(drawn.names(f.sequence) == std::vector<std::string>{"group.0", "group.0@1", "group.0@2"});
  CHECK(f.groups[f.sequence[0].index].copies.size() == 3);
}

TEST_CASE("nesting: a group is no smaller than two nodes and smaller than what it stands in",
          "[viz]") {
  Builder b;
  ValueId x = b.input("x");
  for (const char* path : {"m.0.a.b", "m.0.a.b", "m.0.a.c", "m.0.a.c.d", "m.0.a.e"}) {
    x = b.one("exp", {x});
    b.graph.set_group(b.graph.producer(x), path);
  }
  b.graph.add_output(x);
  const Nested drawn({{"input", b.graph}}, Collapse::none);
  // All of m.0 is in m.0.a, which is not a separate group; m.0.a.c.d has one node.
  CHECK(drawn.folding.groups.size() == 3);
  CHECK(drawn.names(drawn.folding.groups[0].sequence) ==
        std::vector<std::string>{"m.0.a.b", "m.0.a.c", "·"});
}

TEST_CASE("nesting: edges go forwards at every level, whatever the paths and versions", "[viz]") {
  std::size_t deepest = 0, parts = 0;
  for (std::uint64_t seed = 1; seed <= 80; ++seed) {
    INFO("seed " << seed);
    const Collapse collapse = seed % 2 == 0 ? Collapse::automatic : Collapse::none;
    const Nested drawn(random_versions(seed), collapse);
    const viz::Folding& f = drawn.folding;
    for (std::uint32_t g = 0; g < f.groups.size(); ++g) {
      const viz::Group& group = f.groups[g];
      if (group.nodes.empty()) continue;
      std::size_t depth = 0;
      for (std::uint32_t p = group.parent; p != viz::kNobody; p = f.groups[p].parent) {
        REQUIRE(p < g);
        ++depth;
      }
      deepest = std::max(deepest, depth);
      parts += depth > 0 && group.name.find("(part ") != std::string::npos ? 1 : 0;
      // Every item of a group occurs once in its sequence, and reads only earlier items.
      std::map<std::uint32_t, std::size_t> rank;
      for (std::size_t i = 0; i < group.sequence.size(); ++i) {
        const viz::Unit& unit = group.sequence[i];
        const std::vector<std::uint32_t> alone{unit.index};
        for (const std::uint32_t at : unit.group ? f.groups[unit.index].nodes : alone) {
          REQUIRE(rank.emplace(at, i).second);
          if (!unit.group) REQUIRE(f.inner_of[at] == g);
        }
      }
      REQUIRE(rank.size() == group.nodes.size());
      for (const std::uint32_t at : group.nodes)
        for (const viz::Link& link : drawn.links.of(at))
          if (link.source.kind == viz::Source::Kind::node && rank.contains(link.source.index))
            REQUIRE(rank[link.source.index] <= rank[at]);
    }
    check_places(viz::make_scene(drawn.graph, f, 600, {.marks = true}));
    check_places(viz::make_scene(drawn.graph, f, 20, {.marks = true}));
    const viz::Placement placement = viz::place(drawn.graph, drawn.links, f);
    for (const viz::Shape& shape : placement.shapes)
      for (const viz::Sheet* sheet :
           {&shape.level.folded, &shape.level.opened, &shape.level.unfolded})
        for (const viz::SheetEdge& edge : sheet->edges)
          REQUIRE(sheet->layout.rank[edge.from] < sheet->layout.rank[edge.to]);
  }
  CHECK(deepest >= 3);
  CHECK(parts > 0);
}

TEST_CASE("columns: what is much taller than wide stands in columns, and nothing lies over another",
          "[viz]") {
  const auto picture = [](const Graph& graph) {
    const Nested drawn({{"input", graph}}, Collapse::none);
    const viz::Scene scene = viz::make_scene(drawn.graph, drawn.folding, 5000);
    check_places(scene);
    return viz::place_scene(scene);
  };
  for (const char* path : {"", "model"}) {  // placed each other in the whole, or in a group
    INFO("path '" << path << "'");
    Builder b;
    const ValueId far = b.input("x");
    ValueId x = far;
    for (int i = 0; i < 400; ++i) {
      x = i % 97 == 0 ? b.one("add", {x, far}) : b.one("exp", {x});
      b.graph.set_group(b.graph.producer(x), path);
    }
    b.graph.add_output(x);
    const viz::ScenePlaces places = picture(b.graph);
    CHECK(places.columns);
    CHECK(places.width < 4 * places.height);
    CHECK(places.height < 4 * places.width);
    CHECK(places.stubs > 0);
    CHECK(places.stubs < 20);
  }
  Builder two;  // two long groups: the second column would be as high as the first, or nearly empty
  ValueId x = two.input("x");
  for (int i = 0; i < 160; ++i) {
    x = two.one("exp", {x});
    two.graph.set_group(two.graph.producer(x), i < 10 ? "layers.0" : "layers.1");
  }
  two.graph.add_output(x);
  const viz::ScenePlaces both = picture(two.graph);
  CHECK(both.height < 4 * both.width);  // the long one stands in columns inside
  Builder fan;                          // a rank of 400 is a block
  const ValueId source = fan.one("exp", {fan.input("x")});
  for (int i = 0; i < 400; ++i) fan.graph.add_output(fan.one("relu", {source}));
  const viz::ScenePlaces block = picture(fan.graph);
  CHECK(block.folded);
  CHECK(block.width < 5400);  // the widest rank, and 80 edges placed it
  CHECK(block.height < block.width);
  Builder small;
  small.graph.add_output(small.one("exp", {small.input("x")}));
  const viz::ScenePlaces plain = picture(small.graph);
  CHECK_FALSE(plain.columns);
  CHECK_FALSE(plain.folded);
}
