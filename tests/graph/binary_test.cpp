#include "base/hash.hpp"
#include "graph/text/binary_layout.hpp"
#include "graph/text/graph_binary.hpp"
#include "graph/text/text.hpp"
#include "graph/verify.hpp"
#include "models/generate.hpp"
#include "tests/graph/library.hpp"

using namespace pw;
using namespace pw::test;

namespace {

Result<Graph> read_back(const ContextPtr& context, std::string_view bytes) {
  return graph_from_binary(context, bytes, "g.pwb", parse_op);
}

/// With the checksum that its bytes have.
std::string sealed(std::string bytes) {
  const std::uint64_t sum = checksum(std::string_view(bytes).substr(binary::kBody));
  for (int i = 0; i < 8; ++i)
    bytes[binary::kMagic.size() + 4 + i] = static_cast<char>(sum >> (8 * i) & 0xff);
  return bytes;
}

std::string code_of(const ContextPtr& context, std::string_view bytes) {
  const auto graph = read_back(context, bytes);
  return graph ? "" : graph.error().front().code;
}

Graph graph_of(const ContextPtr& context, const std::string& text) {
  auto graph = parse_graph(context, text, "g.pwg");
  if (!graph) FAIL(messages(graph.error(), *context));
  return std::move(*graph);
}

/// What a graph can hold: symbols, kinds of inputs, replication, absent operands, lists of results,
/// groups, sources, odd names, outputs twice, unknown ops.
const std::string kAll = R"({
  "format": "piecewise.graph/1",
  "name": "all \"of\" it",
  "symbols": {"n": {"min": 1, "max": 8192, "role": "tokens"}, "k": {"min": 8, "max": 64, "multiple": 8}},
  "ops": [{"imported": "lib::unknown", "effect": true}, "op mine(x: T[*s]) -> y: T[*s]"],
  "inputs": [
    {"name": "x", "type": "bf16[n, 64]", "kind": "input"},
    {"name": "w", "type": "bf16[64]", "kind": "weight", "replicated": ["tp", "tp:0"]},
    {"name": "v_007", "type": "bf16[64]", "kind": "weight"},
    {"name": "table", "type": "bf16[k, 64]", "kind": "buffer"}
  ],
  "nodes": [
    {"name": "y", "op": "rms_norm", "operands": ["x", "w"], "attributes": {"eps": 1e-05}, "group": "layers.0", "source": "model.py:88"},
    {"name": "relu__17_", "op": "rms_norm", "operands": ["x", "v_007"], "attributes": {"eps": 1e-05}, "group": "layers.1"},
    {"name": "parts", "op": "split", "operands": ["y"], "attributes": {"sizes": [16, 48]}, "results": [{"name": "a"}, {"name": "b 2\n"}]},
    {"name": "h12q", "op": "mine", "operands": ["relu__17_"]},
    {"name": "heads", "op": "reshape", "operands": ["h12q"], "attributes": {"shape": [{"dim": "n"}, 4, 16]}},
    {"name": "q", "op": "unified_attention", "operands": ["heads", "heads", "heads", null], "attributes": {"layer": "l"}},
    {"name": "nothing", "op": "lib::unknown", "operands": ["a", "table"], "results": []}
  ],
  "outputs": ["a", "q", "x", "a"]
})";

Graph all_of_it(const ContextPtr& context) {
  auto graph = graph_from_json(context, kAll, "all.json", parse_op);
  if (!graph) FAIL(messages(graph.error(), *context));
  return std::move(*graph);
}

}  // namespace

TEST_CASE("binary: what is read back is the same graph, and the same bytes", "[graph][binary]") {
  const ContextPtr context = library();
  std::vector<Graph> graphs;
  graphs.push_back(all_of_it(context));
  graphs.push_back(graph_of(context, "graph {\n  in x: f32[4]\n  out x, x\n}\n"));
  graphs.push_back(graph_of(context,
                            "graph {\n  in x: f32[4]\n  in buffer c: f32[4]\n  y = relu(x)\n  out "
                            "y\n  write c = y\n}\n"));
  LlamaOptions options;
  options.layers = 7;
  graphs.push_back(std::move(*generate_llama(context, options)));
  for (const Graph& graph : graphs) {
    const std::string bytes = graph_to_binary(graph);
    CHECK(looks_like_binary_graph(bytes));
    const auto same = read_back(context, bytes);
    if (!same) FAIL(messages(same.error(), *context));
    CHECK(graph_to_json(*same) == graph_to_json(graph));
    CHECK(verify(*same).empty());
    CHECK(graph_to_binary(*same) == bytes);
    // In a context that has no notion of it.
    const ContextPtr other = library();
    const auto there = read_back(other, bytes);
    if (!there) FAIL(messages(there.error(), *other));
    CHECK(graph_to_json(*there) == graph_to_json(graph));
  }
}

TEST_CASE("binary: a file that is cut off, changed, or of another version is reported",
          "[graph][binary]") {
  const ContextPtr context = library();
  const std::string bytes = graph_to_binary(all_of_it(context));
  for (std::size_t size = 0; size < bytes.size(); size += 7)
    CHECK(code_of(context, bytes.substr(0, size)) == "PW1040");
  CHECK(code_of(context, bytes + "x") == "PW1040");
  Random random(3);
  for (int i = 0; i < 300; ++i) {
    std::string changed = bytes;
    changed[random.below(bytes.size() - binary::kMagic.size()) + binary::kMagic.size()] ^=
        static_cast<char>(1 << random.below(8));
    CHECK(code_of(context, changed) == "PW1040");
  }
}

TEST_CASE("binary: layers that differ in a number of an attribute are variants of one kind",
          "[graph][binary]") {
  const ContextPtr context = library();
  std::string text = "graph {\n  in q: f32[4, 2, 8]\n";
  for (int layer = 0; layer < 3; ++layer)
    text += "  a_" + std::to_string(layer) + " = unified_attention(q, q, q, none){layer = \"l." +
            std::to_string(layer) + ".attn\"}\n";
  const Graph graph = graph_of(context, text + "  out a_0, a_1, a_2\n}\n");
  const std::string bytes = graph_to_binary(graph);
  const auto count = [&](std::size_t i) { return number_at(bytes, binary::kBody + 4 * i); };
  CHECK(count(binary::Counts::variants) == 2);
  const auto same = read_back(context, bytes);
  REQUIRE(same);
  CHECK(graph_to_json(*same) == graph_to_json(graph));
  // The locations are followed by rows of a kind, an attribute and its words.
  std::size_t row = binary::kHeader;
  for (std::size_t i = 0; i < binary::Counts::variants; ++i)
    row += std::size_t{count(i)} * (i < 2 ? 1 : 4 * binary::kWidths[i]);
  const auto with = [&](std::size_t at, char byte) {
    std::string changed = bytes;
    changed[at] = byte;
    return sealed(changed);
  };
  CHECK(code_of(context, with(row, 99)) == "PW1041");      // no such kind
  CHECK(code_of(context, with(row + 4, 99)) == "PW1041");  // no such text
  CHECK(code_of(context, with(row + 11, 0)) == "PW1041");  // a text instead of a pattern
  const auto other = read_back(context, with(row + 8, 99));
  REQUIRE(other);
  CHECK(graph_to_json(*other).find("l.99.attn") != std::string::npos);
}

TEST_CASE("binary: two values of one name, types and order are refused", "[graph][binary]") {
  const ContextPtr context = library();
  const std::string bytes = graph_to_binary(graph_of(
      context, "graph {\n  in x: f32[4], z: f32[5]\n  a = exp(x)\n  b = exp(a)\n  out b\n}\n"));
  const auto count = [&](std::size_t i) {
    return std::size_t{number_at(bytes, binary::kBody + 4 * i)};
  };
  const auto begin = [&](std::size_t column) {
    std::size_t at = binary::kHeader;
    for (std::size_t i = 0; i < column; ++i)
      at += count(i) * (binary::kWidths[i] ? 4 * binary::kWidths[i] : i < 2 ? 1 : 0);
    return at;
  };
  const auto with = [&](std::size_t at, std::uint32_t number) {
    std::string out = bytes;
    for (int i = 0; i < 4; ++i) out[at + i] = static_cast<char>(number >> (8 * i) & 0xff);
    return sealed(out);
  };
  const std::size_t operands = begin(binary::Counts::operands);
  const std::size_t results = begin(binary::Counts::results);
  CHECK(number_at(bytes, operands + 4) == 2);
  CHECK(code_of(context, with(operands + 4, 0)) == "");        // b = exp(x)
  CHECK(code_of(context, with(operands + 4, 1)) == "PW1041");  // of another type
  CHECK(code_of(context, with(operands + 4, 3)) == "PW1041");  // itself
  CHECK(code_of(context, with(operands + 4, binary::kNone)) == "PW1041");
  CHECK(code_of(context, with(results + 4, number_at(bytes, results))) == "PW1041");
  CHECK(code_of(context, with(results + 4, 0x7fffffff)) == "PW1041");
  CHECK(code_of(context, with(results + 4, 0xfffffffe)) == "PW1041");
  CHECK(code_of(context, with(begin(binary::Counts::outputs), 99)) == "PW1041");
  CHECK(code_of(context, with(begin(binary::Counts::nodes), 99)) == "PW1041");
}

TEST_CASE("binary: 10 000 mutants are read or refused, and what is read holds together",
          "[graph][binary]") {
  const ContextPtr context = library();
  const std::string bytes = graph_to_binary(all_of_it(context));
  const std::uint64_t seed = 20261124;
  INFO("seed " << seed);
  Random random(seed);
  std::size_t whole = 0;
  for (int i = 0; i < 10'000; ++i) {
    std::string changed = bytes;
    for (std::uint64_t k = 1 + random.below(4); k > 0; --k) {
      const std::size_t at = binary::kBody + random.below(bytes.size() - binary::kBody);
      switch (random.below(3)) {
        case 0: changed[at] ^= static_cast<char>(1 << random.below(8)); break;
        case 1: changed[at] = static_cast<char>(random.below(256)); break;
        default: changed[at] = static_cast<char>(random.below(4)); break;
      }
    }
    const auto graph = read_back(context, sealed(changed));
    if (!graph) {
      CHECK_FALSE(graph.error().empty());
      continue;
    }
    ++whole;
    const Diagnostics wrong = verify(*graph);
    CHECK(wrong.empty());
    const auto again = read_back(context, graph_to_binary(*graph));
    REQUIRE(again);
    CHECK(graph_to_json(*again) == graph_to_json(*graph));
  }
  CHECK(whole > 100);
}
