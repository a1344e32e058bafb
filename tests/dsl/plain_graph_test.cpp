#include "dsl/syntax/plain_graph.hpp"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "dsl/syntax/graph_header.hpp"
#include "graph/text/graph_json.hpp"
#include "graph/text/text.hpp"
#include "models/families.hpp"
#include "models/generate.hpp"
#include "tests/catch.hpp"
#include "tests/dsl/mutants.hpp"
#include "tests/dsl/parsed.hpp"

namespace {

using namespace pw;
using namespace pw::test;

ContextPtr library() {
  auto context = std::make_shared<Context>();
  REQUIRE(load_op_library(context));
  return context;
}

/// Everything observable about a graph.
std::string seen(const Graph& graph) {
  std::string out = print_pwg(graph) + graph_to_json(graph);
  for (NodeId n = graph.first(); n.valid(); n = graph.next(n))
    out += std::string(graph.node_name(n)) + "\n";
  return out;
}
std::string seen(const Result<Graph>& graph, const Context& context) {
  return graph ? seen(*graph) : render(graph.error(), context.sources);
}

/// Both ways give one graph, or the fast one none; together they give what the grammar alone does,
/// also where that is an error. Whether the fast one read it.
bool check_same(const std::string& text) {
  INFO(text.substr(0, 4000));
  const ContextPtr slow = library(), fast = library(), both = library();
  const SourceId source = slow->sources.add("g.pwg", text);
  const std::string wanted = seen(parse_graph(slow, source), *slow);
  CHECK(seen(parse_graph(both, text, "g.pwg"), *both) == wanted);
  const SourceId same = fast->sources.add("g.pwg", text);
  const auto read = read_plain_graph(fast, fast->sources.text(same), same);
  if (read) CHECK(seen(*read) == wanted);
  return read.has_value();
}

std::string read_text(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

/// What a graph of plain statements can say.
const std::vector<std::string> kPlain = {
    R"(// a graph
graph `a "b"` {
  symbol n in 1..8192 tokens
  symbol k in 8..64 by 8
  op mine(x: T[*s]) {by: int = 2, how: str = "x"} -> y: T[*s]
  op lib.unknown(...) effect
  in x: bf16[n, 64], z: bf16[n, k*2]
  in weight w: bf16[64] replicated "tp" "tp:0"
  in buffer `cache-0`: bf16[k + 1, 64]
  in weight weight: f32[64] in buffer: f32[64]
  y = rms_norm(x, w){eps = 1e-05} @ "layers.0" "model.py:88"
  y2 = rms_norm(x, w){eps = 1e-05} @ "layers.1"
  y3 = rms_norm(x, w){eps = 1e-05} @ "" "model.py:89"  // the third
  a, b = split(y){dim = -1, sizes = [16, 48]}
  heads = reshape(y2){shape = [n, 4, 16]}
  half = reshape(y3){shape = [n, -1, 2*4]}
  `odd name` = mine(heads) `again` = mine(`odd name`){how = "a \"b\" }", by = 3}
  q = unified_attention(heads, heads, heads, none){layer = "l.1"}
  q1 = unified_attention(heads, heads, heads, none){layer = "l.2"}
  c = cast(q){dtype = f32}
  u: f32[n, 8] = lib.unknown(a, x){mode = none, dims = [n, 2], on = true}
  v: f32[n, 8] = lib.unknown(b, x){mode = none, dims = [n, 2], on = true}
  out a, q, x, a
})",
    "graph {\n in x: f32[4]\n in buffer c: f32[4]\n y = relu(x) out y\n write c = y\n}\n",
    "graph {\n in x: f32[4]\n in buffer c: f32[4]\n y = relu(x) out write c = y\n}\n",
    "graph g {\nin x: f32[2, 3]\nc0 = constant(){value = 1.5, dtype = f32}\ny = mul(x, c0,)\nout y "
    "}",
};

/// What the grammar takes or refuses, and the fast way leaves to it.
const std::vector<std::string> kOthers = {
    "graph {\n in x: f32[4]\n y = relu(x) + 1\n out y\n}\n",
    "graph {\n in x: f32[4]\n y = add(x, 1)\n out y\n}\n",
    "graph {\n in x: f32[4]\n y = f32(x)\n out y\n}\n",
    "graph {\n in x: f32[4]\n y = bf16(x)\n out y\n}\n",
    "graph {\n in x: f32[4]\n _ = relu(x)\n y = relu(x)\n out y\n}\n",
    "graph {\n in x: f32[n]\n y = relu(n)\n out y\n}\n",
    "graph {\n in x: f32[n]\n n = relu(x)\n out n\n}\n",
    "graph {\n in x: f32[4]\n in x: f32[4]\n out x\n}\n",
    "graph {\n in x: f32[4]\n x = relu(x)\n out x\n}\n",
    "graph {\n in x: f32[4]\n f32 = relu(x)\n y = cast(x){dtype = f32}\n out y\n}\n",
    "graph {\n in x: f32[4]\n in = relu(x)\n out in\n}\n",
    "graph {\n in x: f32[4]\n `in` = relu(x)\n out `in`\n}\n",
    "graph {\n in `none`: f32[4]\n y = relu(none)\n out y\n}\n",
    "graph {\n in `none`: f32[4]\n y = relu(`none`)\n out y\n}\n",
    "graph {\n in x: f32[4]\n y = none(x)\n out y\n}\n",
    "graph {\n in x: f32[4]\n y = relu(x) = x\n out y\n}\n",
    "graph {\n in x: f32[4]\n y == relu(x)\n out y\n}\n",
    "graph {\n in x: f32[4]\n y: f32[5] = relu(x)\n out y\n}\n",
    "graph {\n in x: f32[4]\n y: bf16 = relu(x)\n out y\n}\n",
    "graph {\n in x: f32[4]\n y: f32[m] = relu(x)\n out y\n}\n",
    "graph {\n in x: f32[4]\n a, b = relu(x)\n out a\n}\n",
    "graph {\n in x: f32[4]\n relu(x)\n out x\n}\n",
    "graph {\n in x: f32[4]\n y = relu(x){k = size(x, 0)}\n out y\n}\n",
    "graph {\n in x: f32[4]\n y = reshape(x){shape = x.shape}\n out y\n}\n",
    "graph {\n in x: f32[4]\n y = softmax(x){dim}\n out y\n}\n",
    "graph {\n in x: f32[4]\n y = softmax(x){dim = 0, dim = 7}\n out y\n}\n",
    "graph {\n in x: f32[4]\n y = softmax(x){dim = 0\n out y\n}\n",
    "graph {\n in x: f32[4]\n y = relu(x)\n out y,\n write = x\n}\n",
    "graph {\n in x: f32[4]\n y = relu(x)\n out z\n}\n",
    "graph {\n in x: f32[4]\n y = relu(x)\n out y\n write y = x\n}\n",
    "graph {\n in x: f32[4]\n y = relu(x)\n out\n}\n",
    "graph {\n in x: f32[4]\n y = relu(x)\n out y\n}\ngraph { in x: f32[4] out x }",
    "graph {\n in x: f32[4] y = nothing(x)\n out y\n}\n",
    "graph {\n in x: f32[4]\n op f(x: T[*s]) -> y: T[*s]\n y = f(x)\n out y\n}\n",
    "graph {\n op f(x: T[*s]) -> y: T[*s] {\n y = relu(x)\n }\n in x: f32[4]\n y = f(x)\n out "
    "y\n}\n",
    "graph {\n op relu(...)\n in x: f32[4]\n y = relu(x)\n out y\n}\n",
    "graph {\n symbol n in 2..1\n in x: f32[n]\n y = relu(x)\n out y\n}\n",
};

}  // namespace

TEST_CASE("plain graph: statements of one form are read without a tree, to the same graph",
          "[dsl][plain]") {
  for (const std::string& text : kPlain) CHECK(check_same(text));
}

TEST_CASE("plain graph: what else there may be is the grammar's", "[dsl][plain]") {
  for (const std::string& text : kOthers) check_same(text);
}

TEST_CASE("plain graph: generated graphs as they are printed", "[dsl][plain]") {
  const ContextPtr context = library();
  LlamaOptions options;
  options.layers = 3;
  for (const std::string quant : {"none", "fp8"}) {
    options.quant = quant;
    CHECK(check_same(print_pwg(*generate_llama(context, options))));
  }
}

TEST_CASE("plain graph: graphs of the repository", "[dsl][plain]") {
  std::size_t read = 0;
  for (const char* folder : {"examples", "tests"})
    for (const auto& file : std::filesystem::recursive_directory_iterator(folder))
      if (file.path().extension() == ".pwg") {
        const std::string text = read_text(file.path());
        check_same(text);
        // As it is printed, it is plain, but for what refining or a constant makes.
        const ContextPtr context = library();
        const auto graph = parse_graph(context, text, "g.pwg");
        if (graph) read += check_same(print_pwg(*graph));
      }
  CHECK(read > 0);
}

TEST_CASE("plain graph: texts made wrong at random", "[dsl][plain]") {
  const std::vector<std::string> foreign = pieces_of(kNewer);
  std::size_t read = 0;
  const std::uint64_t seed = 20261124, count = 1500;
  INFO("seed " << seed);
  Random random(seed);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::vector<std::string>& texts = random.below(3) == 0 ? kOthers : kPlain;
    read += check_same(mutated(pieces_of(texts[random.below(texts.size())]), foreign, random));
  }
  CHECK(read > 20);
  CHECK(read < count);
}
