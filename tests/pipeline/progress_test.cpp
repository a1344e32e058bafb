// The progress that reading and drawing report to a listener, however fast they are.
#include <map>

#include <fmt/format.h>

#include "pipeline/report/pictures.hpp"
#include "tests/catch.hpp"
#include "tests/pipeline/written.hpp"

namespace pw {
namespace {

constexpr std::size_t kManyNodes = 10'000;

/// A chain, as graph.json.
std::string long_chain() {
  std::string nodes;
  for (std::size_t i = 0; i < kManyNodes; ++i)
    nodes += fmt::format(R"({}{{"name": "y{}", "op": "relu", "operands": ["{}"]}})",
                         i == 0 ? "" : ",\n", i, i == 0 ? "x" : fmt::format("y{}", i - 1));
  return fmt::format(
      R"({{"format": "piecewise.graph/1", "name": "g", "inputs": [{{"name": "x", "type": "f32[8]"}}],
"nodes": [{}], "outputs": ["y{}"]}})",
      nodes, kManyNodes - 1);
}

/// All reports, by activity.
struct ProgressRecord {
  std::map<std::string, std::vector<Progress>> by_what;
  Log log;
  ProgressRecord() {
    log.progress = [this](const Progress& progress) { by_what[progress.what].push_back(progress); };
  }
  /// Increases from report to report, stays within its total, and names what it counts.
  void check_counts(const std::string& what, const std::string& unit, std::size_t total) const {
    INFO(what);
    REQUIRE(by_what.contains(what));
    std::size_t words = 0, last = 0;
    for (const Progress& progress : by_what.at(what)) {
      if (progress.total == 0) continue;  // the first word: nothing is counted yet
      ++words;
      CHECK(progress.unit == unit);
      CHECK(progress.done >= last);
      CHECK(progress.done <= progress.total);
      CHECK(progress.total == total);
      last = progress.done;
    }
    CHECK(words >= 2);
    CHECK(last > 0);
  }
};

}  // namespace

TEST_CASE("progress: reading counts the bytes, then the nodes", "[pipeline]") {
  const std::string text = long_chain();
  GraphSource source;
  source.path = test::written("progress.json", text);
  ProgressRecord record;
  const Graph graph = load_logged_graph(std::make_shared<Context>(), source, record.log).value();
  CHECK(graph.node_count() == kManyNodes);
  record.check_counts("reading " + source.path, "kB", text.size() / 1000);
  record.check_counts("building " + source.path, "nodes", kManyNodes);
}

TEST_CASE("progress: drawing counts nodes, stage by stage", "[pipeline]") {
  PictureRequest request;
  request.files = {test::written("progress.json", long_chain())};
  request.output = "build/progress.html";
  ProgressRecord record;
  const std::string page = draw_picture(std::make_shared<Context>(), request, record.log).value();
  CHECK(page.starts_with("<!doctype html>"));
  record.check_counts("linking the picture", "nodes", kManyNodes);
  record.check_counts("laying out the picture", "nodes", kManyNodes);
  record.check_counts("writing the picture", "nodes", kManyNodes);
}

TEST_CASE("progress: a caller without a listener gets the same", "[pipeline]") {
  GraphSource source;
  source.path = test::written("progress.json", long_chain());
  const ContextPtr context = std::make_shared<Context>();
  CHECK(load_graph(context, source).value().graph.node_count() == kManyNodes);
}

}  // namespace pw
