#include "base/hash.hpp"
#include "graph/text/graph_json.hpp"
#include "graph/text/text.hpp"
#include "graph/verify.hpp"
#include "tests/graph/library.hpp"

using namespace pw;
using namespace pw::test;

namespace {

const std::string kSmall = R"({
  "format": "piecewise.graph/1",
  "name": "small",
  "symbols": {
    "n": {"min": 1, "max": 8192, "role": "tokens"},
    "k": {"min": 8, "max": 64, "multiple": 8}
  },
  "inputs": [
    {"name": "x", "type": "bf16[n, 64]", "kind": "input"},
    {"name": "w", "type": "bf16[64]", "kind": "weight", "replicated": ["tp", "tp:0"]},
    {"name": "table", "type": "bf16[k, 64]", "kind": "buffer"}
  ],
  "nodes": [
    {"name": "y", "op": "rms_norm", "operands": ["x", "w"], "attributes": {"eps": 1e-05}, "group": "layers.0", "source": "model.py:88"},
    {"name": "parts", "op": "split", "operands": ["y"], "attributes": {"sizes": [16, 48]}, "results": [{"name": "a"}, {"name": "b", "type": "bf16[n, 48]"}]},
    {"name": "c", "op": "reshape", "operands": ["b"], "attributes": {"shape": [{"dim": "3*n"}, 16]}},
    {"name": "q", "op": "unified_attention", "operands": ["h", "h", "h", null], "attributes": {"layer": "l"}}
  ],
  "outputs": ["a", "c", "x"]
})";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}
std::string small() {  // the attention node is only for the tests of absent operands
  return replaced(kSmall,
                  ",\n    {\"name\": \"q\", \"op\": \"unified_attention\", \"operands\": [\"h\", "
                  "\"h\", \"h\", null], \"attributes\": {\"layer\": \"l\"}}",
                  "");
}

Result<Graph> read(const ContextPtr& context, const std::string& text) {
  return graph_from_json(context, text, "g.json", parse_op);
}

struct Bad {
  std::string from, to, code, place, message;
};

}  // namespace

TEST_CASE("json: a graph reads, infers what is not stated, and prints the same bytes ever after",
          "[graph][json]") {
  ContextPtr context = library();
  Result<Graph> graph = read(context, small());
  if (!graph) FAIL(messages(graph.error(), *context));
  CHECK(graph->name == "small");
  CHECK(line_of(*graph, "y") == "y: bf16[n, 64] = rms_norm(x, w){eps = 1e-05}");
  CHECK(line_of(*graph, "b") ==
        "a: bf16[n, 16], b: bf16[n, 48] = split(y){dim = 1, sizes = [16, 48]}");
  CHECK(line_of(*graph, "c") == "c: bf16[3*n, 16] = reshape(b){shape = [3*n, 16]}");
  CHECK(graph->node_name(graph->producer(graph->find_value("a"))) == "parts");
  CHECK(graph->group(graph->first()) == "layers.0");
  CHECK(graph->source(graph->first()) == "model.py:88");
  CHECK(graph->input_kind(graph->find_value("table")) == InputKind::buffer);
  CHECK(graph->facts.tokens() == "n");
  CHECK(graph->facts.find("k")->multiple == 8);
  CHECK(graph->outputs().size() == 3);
  CHECK(verify(*graph).empty());

  std::string once = graph_to_json(*graph);
  ContextPtr other = library();
  Result<Graph> again = read(other, once);
  if (!again) FAIL(messages(again.error(), *other));
  CHECK(graph_to_json(*again) == once);
  CHECK(structural_hash(*again) == structural_hash(*graph));
}

TEST_CASE("json: every kind of attribute comes back as it was", "[graph][json]") {
  std::string text = R"j({"format": "piecewise.graph/1", "symbols": {"n": {}},
    "ops": ["op probe(x: T[*s], y: T[*s]?) {a: int, b: float, c: bool, d: str, e: dtype, f: ints, g: floats, h: strs, i: int? = none, j: axis} -> z: T[*s]",
            {"imported": "aten.strange.default", "effect": true}],
    "inputs": [{"name": "x", "type": "f32[n, 2]"}],
    "nodes": [{"name": "z", "op": "probe", "operands": ["x", null], "attributes":
                {"a": 3, "b": -2.5, "c": true, "d": "q\"\\\n\u00e9", "e": {"dtype": "f8e4m3"}, "f": [1, {"dim": "n"}], "g": [0.5, {"float": "-inf"}], "h": [], "j": -1}},
              {"name": "u", "op": "aten.strange.default", "operands": ["z"], "attributes": {"p": {"floats": []}, "r": {"strs": []}, "s": [], "t": {"float": "nan"}},
               "results": [{"name": "u", "type": "i64[n]"}, {"name": "v"}]}],
    "outputs": ["z", "u"]})j";
  ContextPtr context = library();
  Result<Graph> graph = read(context, text);
  if (!graph) FAIL(messages(graph.error(), *context));
  CHECK(line_of(*graph, "z") ==
        "z: f32[n, 2] = probe(x, none){a = 3, b = -2.5, c = true, d = \"q\\\"\\\\\\n\u00e9\", e = "
        "f8e4m3, f = [1, n], g = [0.5, -inf], h = [], i = none, j = 1}");
  CHECK(line_of(*graph, "u") ==
        "u: i64[n], v: ? = aten.strange.default(z){p = [], r = [], s = [], t = nan}");
  std::string once = graph_to_json(*graph);
  CHECK(once.find("\"p\": {\"floats\": []}") != std::string::npos);
  ContextPtr other = library();
  Result<Graph> again = read(other, once);
  if (!again) FAIL(messages(again.error(), *other));
  CHECK(graph_to_json(*again) == once);
  CHECK(again->op_of(again->producer(again->find_value("u"))).traits.effect);
}

TEST_CASE("json: writes come back after the outputs, and are checked", "[graph][json]") {
  const std::string text = R"j({"format": "piecewise.graph/1",
  "inputs": [{"name": "x", "type": "f32[2]"}, {"name": "cache", "type": "f32[2]", "kind": "buffer"},
             {"name": "k", "type": "f32[3]"}],
  "nodes": [{"name": "y", "op": "add", "operands": ["x", "cache"]}],
  "outputs": ["x"], "writes": {"cache": "y"}})j";
  ContextPtr context = library();
  Result<Graph> graph = read(context, text);
  if (!graph) FAIL(messages(graph.error(), *context));
  CHECK(graph->returned_count() == 1);
  REQUIRE(graph->outputs().size() == 2);
  CHECK(graph->outputs()[1] == graph->find_value("y"));
  CHECK(graph->written_inputs() == std::vector<ValueId>{graph->find_value("cache")});
  CHECK(verify(*graph).empty());
  const std::string once = graph_to_json(*graph);
  CHECK(once.find("\"outputs\": [\"x\"],\n  \"writes\": {\"cache\": \"y\"}\n}") !=
        std::string::npos);
  ContextPtr other = library();
  CHECK(graph_to_json(read(other, once).value()) == once);
  const auto code = [&](const std::string& from, const std::string& to) {
    Result<Graph> bad = read(library(), replaced(text, from, to));
    return bad ? "" : bad.error()[0].code + " " + bad.error()[0].place;
  };
  const std::string writes = "{\"cache\": \"y\"}";
  CHECK(code(writes, "{\"y\": \"y\"}").find("PW1013") == 0);
  CHECK(code(writes, "{\"cache\": \"z\"}").find("PW1013") == 0);
  CHECK(code(writes, "{\"k\": \"y\"}").find("PW1016") == 0);
  CHECK(code(writes, "{\"cache\": 3}").find("/writes/cache") != std::string::npos);
  CHECK(code(writes, "[]").find("/writes") != std::string::npos);
}

TEST_CASE("json: strings are decoded, and small numbers are accepted", "[graph][json]") {
  ContextPtr context = library();
  const std::string text = replaced(
      replaced(small(), "\"small\"", R"("\"\\\/\b\f\n\r\t\u00e9\u20ac\ud83d\ude00\u0041é")"),
      "1e-05", "1e-999");
  Result<Graph> graph = read(context, "\xef\xbb\xbf" + text + " \n");
  if (!graph) FAIL(messages(graph.error(), *context));
  CHECK(graph->name == "\"\\/\b\f\n\r\té€😀Aé");
  CHECK(line_of(*graph, "y") == "y: bf16[n, 64] = rms_norm(x, w){eps = 0.0}");
}

TEST_CASE("json: odd characters are seen wherever they stand in a string", "[graph][json]") {
  ContextPtr context = library();
  const auto named = [&](const std::string& name) {
    return read(context, replaced(small(), "\"small\"", "\"" + name + "\""));
  };
  struct Odd {
    std::string written, meant;
  };
  const Odd odd[] = {{"é", "é"},           {"\U0001F600", "\U0001F600"},
                     {"\\\"", "\""},       {"\\\\", "\\"},
                     {"\\n", "\n"},        {"\\u0041", "A"},
                     {" !#[]~", " !#[]~"}, {"\x7f", "\x7f"}};
  const std::string bad[] = {"\n", "\x1f", "\x80", "\xff", "\xc3", "\\x", "\"q"};
  for (std::size_t before = 0; before < 18; ++before)
    for (const std::size_t after : {0, 1, 7, 8, 9}) {
      const std::string left(before, 'l'), right(after, 'r');
      for (const Odd& o : odd) {
        Result<Graph> graph = named(left + o.written + right);
        if (!graph) FAIL(messages(graph.error(), *context));
        CHECK(graph->name == left + o.meant + right);
      }
      for (const std::string& b : bad) {
        INFO(before << " before one of " << b.size() << " bytes");
        const Result<Graph> graph = named(left + b + right);
        REQUIRE_FALSE(graph);
        CHECK(graph.error().front().code == "PW1001");
      }
    }
}

TEST_CASE("json: bad input is diagnosed with its pointer", "[graph][json]") {
  const Bad cases[] = {
      {"\"op\": \"rms_norm\"", "\"op\": \"rms_nrom\"", "PW1014", "/nodes/0/op",
       "did you mean `rms_norm`"},
      {"[\"x\", \"w\"]", "[\"x\"]", "PW0312", "/nodes/0/operands", "takes 2 operands, not 1"},
      {"[\"x\", \"w\"]", "[\"x\", null]", "PW0305", "/nodes/0/operands", "must not be none"},
      {"[\"x\", \"w\"]", "[\"x\", \"ww\"]", "PW1010", "/nodes/0/operands/1", "did you mean `w`"},
      {"[\"x\", \"w\"]", "[\"x\", \"x\"]", "PW0306", "/nodes/0/operands", "operand `w`"},
      {"[\"x\", \"w\"]", "[\"x\", 3]", "PW1005", "/nodes/0/operands/1", "expected a string"},
      {"\"b\", \"type\": \"bf16[n, 48]\"", "\"b\", \"type\": \"bf16[n, 49]\"", "PW1016",
       "/nodes/1/results/1/type", "gives bf16[n, 48]"},
      {"\"b\", \"type\": \"bf16[n, 48]\"", "\"b\", \"type\": \"bf16[m, 48]\"", "PW1007",
       "/nodes/1/results/1/type", "unknown symbol `m`"},
      {"{\"name\": \"a\"}, ", "{\"name\": \"a\"}, {\"name\": \"more\"}, ", "PW1015",
       "/nodes/1/results", "has 2 results, not 3"},
      {"{\"name\": \"a\"}", "{\"name\": \"y\"}", "PW1009", "/nodes/1/results/0/name",
       "already taken by /nodes/0"},
      {"{\"name\": \"w\", \"type\"", "{\"name\": \"x\", \"type\"", "PW1009", "/inputs/1/name",
       "already taken by an input"},
      {"\"operands\": [\"y\"]", "\"operands\": [\"c\"]", "PW1012", "/nodes/1", "parts ← c ← parts"},
      {"\"operands\": [\"x\", \"w\"]", "\"operands\": [\"x\", \"y\"]", "PW1012", "/nodes/0",
       "y ← y"},
      {"[\"a\", \"c\", \"x\"]", "[\"a\", \"cc\"]", "PW1013", "/outputs/1", "did you mean `c`"},
      {"\"eps\": 1e-05", "\"epsilon\": 1e-05", "PW0307", "/nodes/0/attributes",
       "no attribute `epsilon`"},
      {"\"eps\": 1e-05", "\"eps\": \"small\"", "PW0309", "/nodes/0/attributes",
       "not of kind float"},
      {"\"eps\": 1e-05", "\"eps\": 1e999", "PW1003", "/nodes/0/attributes/eps", "out of range"},
      {"\"eps\": 1e-05", "\"eps\": 99999999999999999999", "PW1003", "/nodes/0/attributes/eps",
       "out of range"},
      {"\"eps\": 1e-05", "\"eps\": 18446744073709551615", "PW1003", "/nodes/0/attributes/eps",
       "out of range"},
      {"\"eps\": 1e-05", "\"eps\": 1e-05, \"eps\": 1", "PW1004", "/nodes/0/attributes/eps",
       "is duplicated"},
      {"\"sizes\": [16, 48]", "\"sizes\": [16, 47]", "PW0310", "/nodes/1/attributes", "sum to 63"},
      {"{\"dim\": \"3*n\"}", "{\"dim\": \"3*\"}", "PW1007", "/nodes/2/attributes/shape/0/dim",
       "expected a number or a symbol"},
      {"{\"dim\": \"3*n\"}", "{\"dim\": \"3*m\"}", "PW1008", "/nodes/2/attributes/shape/0/dim",
       "not declared"},
      {"{\"dim\": \"3*n\"}", "{\"dimension\": \"n\"}", "PW1006",
       "/nodes/2/attributes/shape/0/dimension", "known are dim"},
      {"bf16[n, 64]", "bf17[n, 64]", "PW1007", "/inputs/0/type", "did you mean `bf16`"},
      {"bf16[n, 64]", "bf16[n, 64", "PW1007", "/inputs/0/type", "expected `]`"},
      {"bf16[n, 64]", "bf16[n, 99999999999999]", "PW1007", "/inputs/0/type", "out of range"},
      {"bf16[n, 64]", "bf16[1099511627776, 1099511627776]", "PW1007", "/inputs/0/type",
       "more than 2^60 elements"},
      {"bf16[n, 64]", "bf16[n * n * n * n * 1099511627776 * 1099511627776, 1]", "PW1007",
       "/inputs/0/type", "does not fit in 64 bits"},
      {"bf16[n, 64]", "bf16[n // 0, 64]", "PW1007", "/inputs/0/type", "divides by zero"},
      {"\"kind\": \"buffer\"", "\"kind\": \"puffer\"", "PW1005", "/inputs/2/kind",
       "input, weight or buffer"},
      {"\"min\": 8, \"max\": 64", "\"min\": 80, \"max\": 64", "PW1008", "/symbols/k",
       "exceeds the maximum"},
      {"\"min\": 8", "\"min\": -8", "PW1003", "/symbols/k/min", "from 0 to 2^40"},
      {"\"min\": 8", "\"min\": \"8\"", "PW1005", "/symbols/k/min", "expected an integer"},
      {"\"multiple\": 8", "\"multiple\": 0", "PW1003", "/symbols/k/multiple", "from 1"},
      {"\"multiple\": 8", "\"role\": \"tokens\"", "PW1008", "/symbols/", "duplicate role"},
      {"\"multiple\": 8", "\"role\": \"token\"", "PW1008", "/symbols/k/role", "the only role"},
      {"\"multiple\": 8", "\"multipel\": 8", "PW1006", "/symbols/k/multipel",
       "did you mean `multiple`"},
      {"\"k\": {\"min\"", "\"f32\": {\"min\"", "PW1008", "/symbols/f32", "cannot name a symbol"},
      {"\"group\":", "\"groop\":", "PW1006", "/nodes/0/groop", "did you mean `group`"},
      {"\"outputs\"", "\"output\"", "PW1006", "/output", "did you mean `outputs`"},
      {"\"format\": \"piecewise.graph/1\",", "", "PW1005", "/", "`format` is missing"},
      {"piecewise.graph/1", "piecewise.graph/7", "PW1005", "/format", "unknown format"},
      {"\"nodes\": [", "\"nodes\": 3, \"inputs\": [", "PW1005", "/nodes", "expected a list"},
      {"\"name\": \"y\", ", "", "PW1005", "/nodes/0", "`name` is missing"},
      {"\"name\": \"small\"", "\"ops\": [\"op (x\"], \"name\": \"small\"", "PW", "/ops/0", ""},
      {"\"name\": \"small\"", "\"ops\": [\"op mm(a: T[n]) -> y: T[n]\"], \"name\": \"small\"",
       "PW0203", "/ops/0", "already declared"},
      {"\"outputs\": [", "\"outputs\": [[", "PW1001", "g.json:", "not JSON"},
      {"\"small\"", "\"sm\\xall\"", "PW1001", "g.json:3:15 at /name", "an escape"},
      {"\"small\"", "\"sm\nall\"", "PW1001", "g.json:3:14 at /name", "a control character"},
      {"\"small\"", "\"\xc3(\"", "PW1001", "g.json:3:12 at /name", "not UTF-8"},
      {"\"small\"", "\"\xed\xa0\x80\"", "PW1001", "at /name", "not UTF-8"},
      {"\"small\"", "\"\\ud83dx\"", "PW1001", "at /name", "half of a surrogate pair"},
      {"\"small\"", "\"\\udc00\"", "PW1001", "at /name", "half of a surrogate pair"},
      {"\"small\"", "nul", "PW1001", "at /name", "a value is expected"},
      {"\"min\": 8", "\"min\": 08", "PW1001", "at /symbols/k/min", "leading zeros"},
      {"\"min\": 8", "\"min\": 8.", "PW1001", "at /symbols/k/min", "a digit is expected"},
      {"\"min\": 8", "\"min\": 8e+", "PW1001", "at /symbols/k/min", "a digit is expected"},
      {"\"min\": 8", "\"min\" 8", "PW1001", "at /symbols/k/min", "`:` is expected"},
      {"\"min\": 8", "min: 8", "PW1001", "at /symbols/k", "a key is expected"},
      {"\"c\", \"x\"]", "\"c\" \"x\"]", "PW1001", "at /outputs", "`,` or `]` is expected"},
      {"\"c\", \"x\"]\n}", "\"c\", \"x\"]\n} {", "PW1001", "g.json:", "follows its end"},
  };
  for (const Bad& bad : cases) {
    CAPTURE(bad.from, bad.to);
    ContextPtr context = library();
    Result<Graph> graph = read(context, replaced(small(), bad.from, bad.to));
    REQUIRE_FALSE(graph);
    bool found = false;
    for (const Diagnostic& d : graph.error())
      found =
          found || (d.code.starts_with(bad.code) && d.place.find(bad.place) != std::string::npos &&
                    (d.message + " " + d.help).find(bad.message) != std::string::npos);
    INFO(messages(graph.error(), *context));
    CHECK(found);
  }
}

TEST_CASE("json: a value used above its definition is not taken for a cycle", "[graph][json]") {
  ContextPtr context = library();
  std::string text = R"({"format": "piecewise.graph/1", "inputs": [{"name": "x", "type": "f32[4]"}],
    "nodes": [{"name": "a", "op": "relu", "operands": ["b"]}, {"name": "b", "op": "relu", "operands": ["x"]}], "outputs": ["a"]})";
  Result<Graph> graph = read(context, text);
  REQUIRE_FALSE(graph);
  REQUIRE(graph.error().size() == 1);
  CHECK(graph.error()[0].code == "PW1011");
  CHECK(graph.error()[0].place == "g.json at /nodes/0/operands/0");
}

TEST_CASE("json: texts that end early, and deep ones, have a place", "[graph][json]") {
  ContextPtr context = library();
  std::string whole = small();
  for (std::size_t size = 0; size < whole.size(); size += 7) {
    Result<Graph> graph = read(context, whole.substr(0, size));
    REQUIRE_FALSE(graph);
    CHECK(graph.error()[0].place.starts_with("g.json"));
  }
  for (const std::string& open :
       {std::string(200000, '['), "{\"nodes\": [{\"attributes\": " + std::string(200000, '[')}) {
    Result<Graph> graph = read(context, open);
    REQUIRE_FALSE(graph);
    CHECK((graph.error()[0].code == "PW1002" || graph.error()[0].code == "PW1005"));
  }
  std::string deep;
  for (int i = 0; i < 1000; ++i) deep += "{\"a\":";
  Result<Graph> graph = read(context, deep);
  REQUIRE_FALSE(graph);
  CHECK(graph.error()[0].message == "nested deeper than 64");
}

TEST_CASE("json: mutated texts give a graph or a diagnostic, never more", "[graph][json][fuzz]") {
  const std::uint64_t seed = 20240611;
  INFO("seed " << seed);
  Random random(seed);
  ContextPtr context = library();
  const std::string base =
      replaced(small(), "\"outputs\":", "\"writes\": {\"x\": \"y\"}, \"outputs\":");
  const std::string pieces[] = {"[",    "]",  "{",     "}",       "\"",           ",", ":",
                                "null", "-1", "1e308", "\\u0000", "\xff",         "n", "*",
                                "//",   "(",  "dim",   "true",    "9999999999999"};
  int good = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string text = base;
    for (std::uint64_t k = 0, n = 1 + random.below(4); k < n; ++k) {
      std::size_t at = random.below(text.size());
      switch (random.below(4)) {
        case 0: text[at] = static_cast<char>(random.below(256)); break;
        case 1: text.erase(at, random.below(12)); break;
        case 2: text.insert(at, pieces[random.below(std::size(pieces))]); break;
        default: {
          const std::size_t from = random.below(text.size());
          text.insert(at, text.substr(from, random.below(40)));
        }
      }
      if (text.empty()) text = " ";
    }
    Result<Graph> graph = read(context, text);
    if (graph) {
      ++good;
      CHECK(verify(*graph).empty());
    } else {
      CHECK_FALSE(graph.error().empty());
      CHECK_FALSE(graph.error()[0].place.empty());
    }
  }
  CHECK(good > 0);
}

TEST_CASE("json: a regular graph of many nodes reads in a moment", "[graph][json]") {
  ContextPtr context = library();
  std::string text =
      R"({"format": "piecewise.graph/1", "symbols": {"n": {"role": "tokens"}}, "inputs": [{"name": "v0", "type": "bf16[n, 64]"}], "nodes": [)";
  constexpr int kNodes = 50000;
  for (int i = 1; i <= kNodes; ++i)
    text += (i > 1 ? ",\n" : "\n") + std::string("{\"name\": \"v") + std::to_string(i) +
            "\", \"op\": \"" + (i % 2 ? "relu" : "silu") + "\", \"operands\": [\"v" +
            std::to_string(i - 1) + "\"]}";
  text += "], \"outputs\": [\"v" + std::to_string(kNodes) + "\"]}";
  Result<Graph> graph = read(context, text);
  if (!graph) FAIL(messages(graph.error(), *context));
  CHECK(graph->node_count() == kNodes);
  std::string once = graph_to_json(*graph);
  Result<Graph> again = read(context, once);
  REQUIRE(again);
  CHECK(graph_to_json(*again) == once);
}
