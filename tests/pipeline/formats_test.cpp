// Every form of graph is recognised by its content, and one function reads all forms.
#include "graph/text/graph_json.hpp"
#include "graph/text/text.hpp"
#include "pipeline/load.hpp"
#include "tests/catch.hpp"

using namespace pw;

namespace {

constexpr const char* kPwg = "graph g {\n  in x: f32[4, 8]\n  y = neg(x)\n  out y\n}\n";
constexpr const char* kFx =
    "def forward(self, arg0_1: \"f32[4, 8]\"):\n"
    "    neg: \"f32[4, 8]\" = torch.ops.aten.neg.default(arg0_1);  arg0_1 = None\n"
    "    return (neg,)\n";

Result<ReadGraph> read(const std::string& text, std::vector<std::string> symbols = {}) {
  GraphSource source;
  source.path = "given";
  source.symbols = std::move(symbols);
  return read_graph(std::make_shared<Context>(), text, source);
}

}  // namespace

TEST_CASE("formats: one graph in each of them", "[pipeline]") {
  const auto pwg = read(kPwg);
  REQUIRE(pwg);
  const auto json = read("\n  " + graph_to_json(pwg->graph));
  REQUIRE(json);
  CHECK(print_pwg(json->graph) == print_pwg(pwg->graph));
  const auto fx = read(kFx);
  REQUIRE(fx);
  REQUIRE(fx->dump);
  CHECK(fx->graph.op_of(fx->graph.first()).name == "neg");
  CHECK_FALSE(pwg->dump);
}

TEST_CASE("formats: symbols are a dump's", "[pipeline]") {
  CHECK(read(kFx, {"n=arg0_1.0"})->graph.facts.tokens() == "n");
  CHECK(read(kPwg, {"n=x.0"}).error().front().code == "PW1401");
  CHECK(read(kFx, {"n=arg0_1"}).error().front().code == "PW1401");
}

TEST_CASE("formats: what is known to be no graph is named", "[pipeline]") {
  const auto pickle = read("\x80\x02}q\x01.");
  REQUIRE_FALSE(pickle);
  CHECK(pickle.error().front().code == "PW0481");
  CHECK(pickle.error().front().message.find("pickle") != std::string::npos);
}

TEST_CASE("formats: a damaged archive is reported as one", "[pipeline]") {
  const auto zip = read(std::string("PK\x03\x04", 4) + "rest");
  REQUIRE_FALSE(zip);
  CHECK(zip.error().front().code == "PW0004");
}
