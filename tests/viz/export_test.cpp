#include <algorithm>
#include <set>

#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/viz/decoder.hpp"
#include "viz/named_journal.hpp"

using namespace pw;
using pw::test::Decoder;

TEST_CASE("model explorer: every edge has its source, and groups are paths", "[viz]") {
  Decoder d(3);
  const Graph before = d.graph;
  d.fuse();
  const auto text = render_model_explorer({{{"input", before}, {"fuse", d.graph}}});
  REQUIRE(text.has_value());
  const nlohmann::json json = nlohmann::json::parse(*text);
  REQUIRE(json["graphs"].size() == 2);
  CHECK(json["graphs"][0]["id"] == "input");
  for (const auto& graph : json["graphs"]) {
    std::set<std::string> ids;
    for (const auto& node : graph["nodes"]) CHECK(ids.insert(node["id"]).second);
    std::size_t edges = 0;
    for (const auto& node : graph["nodes"])
      for (const auto& edge : node["incomingEdges"]) {
        CHECK(ids.count(edge["sourceNodeId"]) == 1);
        ++edges;
      }
    CHECK(edges > 40);
  }
  std::set<std::string> namespaces;
  for (const auto& node : json["graphs"][0]["nodes"]) namespaces.insert(node["namespace"]);
  CHECK(std::any_of(namespaces.begin(), namespaces.end(),
                    [](const std::string& path) { return path.starts_with("layers/1"); }));
  CHECK(namespaces.count("weights") == 1);
}

TEST_CASE("model explorer: the mapping leads from what is gone to what stands there", "[viz]") {
  Decoder d(2);
  const Graph before = d.graph;
  d.fuse();
  Journal journal;
  journal.add(PassBegin{"fuse", 0, 0});
  d.record_fusions(journal);
  journal.add(PassEnd{"fuse", 0, 0, 0});
  const auto text = render_model_explorer_sync(
      {{{"input", before}, {"fuse", d.graph}}, nullptr, nullptr, &journal});
  REQUIRE(text.has_value());
  const nlohmann::json json = nlohmann::json::parse(*text);
  CHECK(json["type"] == "sync_navigation");
  const auto& mapping = json["mapping"];
  std::set<std::string> there;
  for (NodeId n = d.graph.first(); n.valid(); n = d.graph.next(n))
    there.emplace(d.graph.node_name(n));
  for (const auto& [from, to] : mapping.items()) CHECK(there.count(to) == 1);
  for (const NodeId gone : d.sums) CHECK(mapping.contains(before.node_name(gone)));
  CHECK_FALSE(render_model_explorer_sync({{{"input", before}}}).has_value());
}

TEST_CASE("markdown: a table of nodes, in which names stay text", "[viz]") {
  Decoder d(2);
  const std::string evil = "a|b</td><script>*x*`";
  d.graph.add_output(d.one("relu", {d.input(evil)}));
  const auto text = render_markdown({{{"input", d.graph}}});
  REQUIRE(text.has_value());
  CHECK(text->find("# decoder\n\nshowing ") == 0);
  CHECK(text->find("| in | a\\|b&lt;/td&gt;&lt;script&gt;\\*x\\*\\` | ") != std::string::npos);
  CHECK(text->find("\n## layers.1\n") != std::string::npos);
  for (std::size_t at = text->find("\n| "); at != std::string::npos;
       at = text->find("\n| ", at + 1)) {
    std::size_t bars = 0;
    for (std::size_t i = at + 1; i < text->size() && (*text)[i] != '\n'; ++i)
      bars += (*text)[i] == '|' && (*text)[i - 1] != '\\' ? 1 : 0;
    CHECK((bars == 6 || bars == 4));
  }
}

TEST_CASE("files: other files are refused as journals and overlays", "[viz]") {
  const auto journal = named_journal_from_json(
      "{\"event\":\"pass_begin\",\"pass\":\"a\",\"nodes\":2}\n"
      "{\"event\":\"match\",\"rule\":\"r\",\"matched\":[{\"id\":1,\"name\":\"x\",\"op\":\"mm\"}],"
      "\"bindings\":{\"v\":{\"id\":3,\"name\":\"y\"}},\"created\":[],\"erased\":[]}\n"
      "{\"event\":\"pass_end\",\"pass\":\"a\",\"nodes\":2}\n",
      "j");
  REQUIRE(journal.has_value());
  REQUIRE(journal->size() == 1);
  CHECK(journal->front().rule == "r");
  CHECK(journal->front().pass == 1);
  CHECK(journal->front().matched == std::vector<std::string>{"x"});
  for (const char* bad : {"{", "[]", "7", "{\"event\":\"other\"}", "\"x\"", "{\"event\":1}"}) {
    const auto wrong = named_journal_from_json(std::string("\n") + bad, "j");
    REQUIRE_FALSE(wrong.has_value());
    CHECK(wrong.error().front().place == "j:2");
  }
  CHECK(
      named_journal_from_json("{\"event\":\"match\",\"matched\":[1,null,{}],\"bindings\":[]}", "j")
          .has_value());
  CHECK(overlay_from_json("{\"a\":1,\"b\":-2.5}", "o")->numbers.size() == 2);
  for (const char* bad : {"", "[1]", "{\"a\":\"x\"}", "{\"a\":1e999}", "{\"a\":null}"})
    CHECK_FALSE(overlay_from_json(bad, "o").has_value());
}

TEST_CASE("formats: an unknown extension lists the known ones", "[viz]") {
  Decoder d(1);
  const VizInput input{{{"input", d.graph}}};
  const auto wrong = render_as("x.bmp", input);
  REQUIRE_FALSE(wrong.has_value());
  CHECK(wrong.error().front().help.find(".me.json") != std::string::npos);
  CHECK(render_as("x.md", input).has_value());
  CHECK(render_as("x.me.json", input).has_value());
  CHECK(view_named("rewrites") == View::rewrites);
  CHECK_FALSE(view_named("sideways").has_value());
}
