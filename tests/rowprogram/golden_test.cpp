// Each file of golden/ is a graph, a line of dashes, and the units it is grouped into, with their
// row programs as text. PW_UPDATE_GOLDEN=1 rewrites them.
#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/io/file.hpp"
#include "codegen/rowprogram/grouping.hpp"
#include "dsl/dsl.hpp"
#include "tests/catch.hpp"

using namespace pw;

namespace {

constexpr const char* kFolder = "tests/rowprogram/golden";
constexpr const char* kLine = "----\n";

template <class T>
T need(Result<T> result, const Context& context) {
  if (!result) FAIL(render(result.error(), context.sources));
  return std::move(*result);
}

std::string units_of(const std::string& text) {
  auto context = std::make_shared<Context>();
  need(load_op_library(context), *context);
  const Graph graph = need(parse_graph(context, text, "golden"), *context);
  std::string out;
  for (const rows::RunUnit& unit : rows::group_rows(graph)) {
    std::vector<std::string_view> names;
    for (NodeId n : unit.nodes) names.push_back(graph.node_name(n));
    const std::string nodes = fmt::format("{}", fmt::join(names, ", "));
    switch (unit.kind) {
      case rows::RunUnit::Kind::literal: break;
      case rows::RunUnit::Kind::view: out += nodes + ": a view\n"; break;
      case rows::RunUnit::Kind::opaque: out += nodes + ": opaque, " + unit.why.reason + "\n"; break;
      case rows::RunUnit::Kind::rows: out += nodes + ": " + rows::print(unit.program); break;
    }
  }
  return out;
}

}  // namespace

TEST_CASE("row program: graphs and their text forms", "[rowprogram][golden]") {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  CHECK(files.size() >= 14);
  const char* update = std::getenv("PW_UPDATE_GOLDEN");
  for (const auto& path : files) {
    INFO(path);
    const auto text = read_file(path.string());
    REQUIRE(text);
    const std::size_t line = text->find(kLine);
    const std::string graph = text->substr(0, line);
    const std::string units = units_of(graph);
    const std::string wanted =
        line == std::string::npos ? "" : text->substr(line + std::string(kLine).size());
    if (update && *update)
      REQUIRE(write_file(path.string(), graph + kLine + units));
    else
      CHECK(units == wanted);
  }
}
