#include "viz/scene.hpp"

#include <algorithm>

#include "tests/catch.hpp"
#include "tests/viz/decoder.hpp"
#include "viz/label.hpp"

using namespace pw;
using pw::test::Decoder;

namespace {

struct Drawn {
  viz::UnionGraph graph;
  viz::Folding folding;
  viz::Scene scene;
};

Drawn draw(const VizInput& input, Collapse collapse = Collapse::automatic, std::size_t most = 600,
           bool cropped = false) {
  Drawn out;
  std::vector<const Version*> versions;
  for (const Version& v : input.versions) versions.push_back(&v);
  out.graph = viz::unite(versions, input.related);
  out.folding = viz::fold(out.graph, viz::link(out.graph, input.related), input, collapse);
  out.scene = viz::make_scene(out.graph, out.folding, most,
                              {.marks = versions.size() > 1, .cropped = cropped});
  return out;
}

std::size_t count(const viz::Scene& scene, viz::Mark mark) {
  return static_cast<std::size_t>(
      std::count_if(scene.boxes.begin(), scene.boxes.end(),
                    [&](const viz::Box& box) { return box.mark == mark; }));
}

std::size_t stands_for(const viz::Scene& scene) {
  std::size_t total = 0;
  for (const viz::Box& box : scene.boxes) total += box.stands_for;
  return total;
}

/// Clusters outside all others.
std::size_t outermost(const viz::Scene& scene) {
  return static_cast<std::size_t>(
      std::count_if(scene.clusters.begin(), scene.clusters.end(),
                    [](const viz::Cluster& cluster) { return cluster.parent == viz::kNobody; }));
}

}  // namespace

TEST_CASE("scene: equal pieces are drawn once, and the caption states it", "[viz]") {
  Decoder d(12);
  const StitchedGraph pieces = d.cut({"attention"});
  const Drawn drawn = draw({{{"input", d.graph}}, &pieces});
  CHECK(outermost(drawn.scene) == 4);  // first, attention, middle, last
  CHECK(drawn.scene.caption == "showing 23 of 134 nodes; equal pieces drawn once");
  CHECK(stands_for(drawn.scene) == 134);
  CHECK(drawn.scene.clusters[1].copies == 12);
  CHECK(drawn.scene.clusters[1].kind == viz::GroupKind::eager);
  CHECK(drawn.scene.clusters[2].copies == 11);
  CHECK(drawn.scene.clusters[2].kind == viz::GroupKind::captured);
  for (const viz::Edge& edge : drawn.scene.edges) {
    CHECK(edge.from < drawn.scene.boxes.size());
    CHECK((edge.back || edge.from < edge.to));
  }
}

TEST_CASE("scene: without pieces, layers are folded, then runs", "[viz]") {
  Decoder d(6);
  const Drawn layers = draw({{{"input", d.graph}}});
  CHECK(layers.folding.reason == "layers");
  CHECK(outermost(layers.scene) == 2);
  CHECK(layers.scene.clusters.size() == 2 + 2 * 2);  // attn and mlp in each
  CHECK(layers.scene.clusters[1].copies == 5);
  for (NodeId n = d.graph.first(); n.valid(); n = d.graph.next(n)) d.graph.set_group(n, "");
  const Drawn runs = draw({{{"input", d.graph}}});
  CHECK(runs.folding.reason == "runs between splitting ops");
  CHECK(runs.scene.clusters.size() == 4);
}

TEST_CASE("scene: nothing is folded on request", "[viz]") {
  Decoder d(6);
  const Drawn drawn = draw({{{"input", d.graph}}}, Collapse::none);
  CHECK(drawn.scene.caption == "showing 68 of 68 nodes");
  CHECK(outermost(drawn.scene) == 6);
}

TEST_CASE("scene: too many nodes become whole boxes, and none is lost", "[viz]") {
  Decoder d(12);
  const StitchedGraph pieces = d.cut({"attention"});
  const VizInput input{{{"input", d.graph}}, &pieces};
  const Drawn wholes = draw(input, Collapse::automatic, 4);
  CHECK(wholes.scene.caption.find("showing 0 of 134 nodes") == 0);
  CHECK(wholes.scene.caption.find("whole pieces") != std::string::npos);
  CHECK(stands_for(wholes.scene) == 134);
  const Drawn few = draw(input, Collapse::none, 4);
  CHECK(stands_for(few.scene) == 134);
  const auto rest =
      std::count_if(few.scene.boxes.begin(), few.scene.boxes.end(),
                    [](const viz::Box& box) { return box.lines.front() == "all other nodes"; });
  CHECK(rest == 1);
}

TEST_CASE("scene: versions are united and marked", "[viz]") {
  Decoder d(3);
  const Graph before = d.graph;
  d.fuse();
  const StitchedGraph pieces = d.cut({"attention"});
  const VizInput input{{{"input", before}, {"fuse", d.graph}}, &pieces};
  const Drawn all = draw(input, Collapse::none);
  CHECK(count(all.scene, viz::Mark::added) == 6);
  CHECK(count(all.scene, viz::Mark::removed) == 12);
  CHECK(count(all.scene, viz::Mark::changed) == 0);
  const Drawn folded = draw(input);
  CHECK(count(folded.scene, viz::Mark::added) == 4);  // two in the middle piece, two in the last
  CHECK(count(folded.scene, viz::Mark::removed) == 8);
}

TEST_CASE("scene: cropping keeps what changed and what that touches", "[viz]") {
  Decoder d(12);
  const Graph before = d.graph;
  d.graph.set_attributes(d.norms[5],
                         d.context->attributes.intern({{d.context->strings.intern("eps"), 1e-5}}));
  const VizInput input{{{"input", before}, {"tune", d.graph}}};
  const Drawn whole = draw(input, Collapse::none);
  const viz::Scene cropped = draw(input, Collapse::none, 600, true).scene;
  REQUIRE(count(cropped, viz::Mark::changed) == 1);
  const auto changed = static_cast<std::uint32_t>(
      std::find_if(cropped.boxes.begin(), cropped.boxes.end(),
                   [](const viz::Box& box) { return box.mark == viz::Mark::changed; }) -
      cropped.boxes.begin());
  for (std::uint32_t i = 0; i < cropped.boxes.size(); ++i) {
    const bool touches =
        std::any_of(cropped.edges.begin(), cropped.edges.end(), [&](const viz::Edge& edge) {
          return (edge.from == i && edge.to == changed) || (edge.to == i && edge.from == changed);
        });
    CHECK((i == changed || touches));
  }
  // Every edge of the changed box is still there, and nothing else is.
  const auto degree = [](const viz::Scene& scene, std::uint32_t box) {
    return std::count_if(scene.edges.begin(), scene.edges.end(),
                         [&](const viz::Edge& edge) { return edge.from == box || edge.to == box; });
  };
  const std::uint32_t node = cropped.boxes[changed].node;
  CHECK(degree(cropped, changed) == degree(whole.scene, whole.scene.box_of[node]));
  CHECK(cropped.box_of[node] == changed);
  const std::size_t left_out = whole.scene.boxes.size() - cropped.boxes.size();
  CHECK(cropped.caption.ends_with("cropped to what changed: " + std::to_string(left_out) +
                                  " boxes are left out"));
}

TEST_CASE("scene: a small change of a graph that is too large to draw is drawn singly", "[viz]") {
  Decoder d(12);
  const Graph before = d.graph;
  d.graph.set_attributes(d.norms[5],
                         d.context->attributes.intern({{d.context->strings.intern("eps"), 1e-5}}));
  const VizInput input{{{"input", before}, {"tune", d.graph}}};
  CHECK(draw(input, Collapse::none, 20).scene.caption.find("too many") != std::string::npos);
  const viz::Scene cropped = draw(input, Collapse::none, 20, true).scene;
  CHECK(count(cropped, viz::Mark::changed) == 1);
  CHECK(cropped.caption.find("too many") == std::string::npos);
}

TEST_CASE("scene: cropping where nothing changed keeps all", "[viz]") {
  Decoder d(2);
  const VizInput input{{{"input", d.graph}, {"idle", d.graph}}};
  CHECK(draw(input, Collapse::none, 600, true).scene.boxes.size() ==
        draw(input, Collapse::none).scene.boxes.size());
}

TEST_CASE("scene: another attribute is a change; a redirected operand is not", "[viz]") {
  Decoder d(1);
  const Graph before = d.graph;
  d.graph.set_attributes(d.norms[0],
                         d.context->attributes.intern({{d.context->strings.intern("eps"), 1e-5}}));
  const Drawn drawn = draw({{{"input", before}, {"tune", d.graph}}});
  CHECK(count(drawn.scene, viz::Mark::changed) == 1);
}

TEST_CASE("scene: graphs that are not related are matched by name", "[viz]") {
  Decoder a(2);
  Graph other(a.context, "other");
  const ValueId x = other.add_input("ids", a.type(), InputKind::input);
  NodeSpec spec;
  spec.op = a.op("mm");
  spec.operands = {x};
  spec.results = {{a.type(), "mm"}};
  other.add_output(other.result(other.add_node(spec)));
  VizInput input{{{"a", a.graph}, {"b", other}}};
  input.related = false;
  const Drawn drawn = draw(input, Collapse::none);
  CHECK(count(drawn.scene, viz::Mark::added) == 0);
  CHECK(count(drawn.scene, viz::Mark::removed) ==
        a.graph.node_count() - 2 - 1);  // two literals are inlined
}

TEST_CASE("label: lines have at most 40 characters, whatever the bytes", "[viz]") {
  CHECK(viz::shorten("short") == "short");
  const std::string wide = "αβγδεζηθικλμνξοπρστυφχψωαβγδεζηθικλμνξοπρστυφχψω";
  CHECK(count_characters(wide) == 48);
  CHECK(count_characters(viz::shorten(wide)) == 40);
  CHECK(viz::clean("a\xff\x01"
                   "b\xc3") == "a? b?");
  CHECK(viz::clean("é\n") == "é\n");
  CHECK(viz::clean("\xed\xa0\x80").find('\xed') == std::string::npos);
  Decoder d(1);
  const ValueId y = d.one("op_with_a_name_that_is_much_longer_than_a_box_is_wide",
                          {d.weight(std::string(300, 'w'))});
  for (const std::string& line : viz::node_lines(d.graph, d.graph.producer(y)))
    CHECK(count_characters(line) <= 40);
}
