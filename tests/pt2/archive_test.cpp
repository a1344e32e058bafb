// PT2 archives: which of their entries are read, and what others are called.
#include "base/io/zip.hpp"
#include "dsl/graph_formats.hpp"
#include "import/pt2/pt2.hpp"
#include "tests/graph/library.hpp"
#include "tests/pt2/archives.hpp"

using namespace pw;
using namespace pw::test;

namespace {

Result<ReadGraph> read_bytes(const ContextPtr& context, const std::string& bytes,
                             std::size_t number = 0) {
  FxOptions options;
  options.file = "m.pt2";
  options.graph = number;
  return read_graph(context, bytes, options);
}

std::string refused_archive(const std::string& bytes, std::size_t number = 0) {
  const ContextPtr context = library();
  const auto graph = read_bytes(context, bytes, number);
  REQUIRE(!graph);
  return graph.error()[0].code + ": " + graph.error()[0].message;
}

}  // namespace

TEST_CASE("pt2: an archive is read as a graph by its content", "[pt2]") {
  const ContextPtr context = library();
  auto entries = with_entry(small_archive(), "m/data/sample_inputs/model.pt", "\x80\x02 a pickle");
  const auto graph = read_bytes(context, zip_of(entries));
  if (!graph) FAIL(messages(graph.error(), *context));
  CHECK(kinds(graph->graph) == "p_w:weight b_n:buffer x:input");
  CHECK(graph->graph.name == "m");
  REQUIRE(graph->dump);
  CHECK(graph->dump->form == "a PT2 archive of torch.export, PyTorch 2.15.0");
  CHECK(graph->dump->guessed.empty());
  CHECK(graph->dump->notes ==
        std::vector<std::string>{
            "the archive has the contents of 2 inputs: pass --weights m.pt2 to run with them",
            "not read: data/sample_inputs/model.pt"});
}

TEST_CASE("pt2: of several models one is chosen", "[pt2]") {
  ProgramText other = small_program();
  other.outputs = tensor("next") + "," + tensor("relu");
  const auto two = zip_of(with_entry(small_archive(), "m/models/zweites.json", other.json()));
  CHECK(refused_archive(two) == "PW0504: this archive has 2 models; choose one with --graph N");
  CHECK(refused_archive(two, 3) == "PW0506: this archive has 2 models");
  const ContextPtr context = library();
  const auto graph = read_bytes(context, two, 2);
  REQUIRE(graph);
  CHECK(graph->graph.value_name(graph->graph.outputs()[0]) == "relu");
}

TEST_CASE("pt2: zips that are something else are called what they are", "[pt2]") {
  CHECK(refused_archive(zip_of({{"readme", "x"}})) == "PW0530: this zip file is not a PT2 archive");
  CHECK(refused_archive(zip_of({{"m/data.pkl", "x"}})) ==
        "PW0530: this is a pickle from torch.save or torch.jit.save");
  CHECK(refused_archive(zip_of({{"serialized_exported_program.json", "{}"}, {"version", "5.1"}})) ==
        "PW0530: this .pt2 is from PyTorch before 2.8 and has pickled weights");
  CHECK(refused_archive(zip_of(without_entry(small_archive(), "m/models/model.json"))) ==
        "PW0530: this PT2 archive has no exported program (models/*.json)");
  CHECK(refused_archive(zip_of(with_entry(small_archive(), "m/archive_version", "9"))) ==
        "PW0530: the archive states `9`, but only `0` is supported");
  CHECK(refused_archive(zip_of(with_entry(small_archive(), "m/archive_format", "\x1b[2J"))) ==
        "PW0530: the archive states `\\x1b[2J`, but only `pt2` is supported");
}
