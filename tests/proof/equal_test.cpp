// Graphs of one device against graphs of two ranks, and what is claimed of them.
#include "proof/equal/equal.hpp"

#include <string>
#include <vector>

#include "base/io/file.hpp"
#include "dsl/dsl.hpp"
#include "dsl/graph_formats.hpp"
#include "models/families.hpp"
#include "proof/equal/relation_text.hpp"
#include "tests/catch.hpp"
#include "tests/shared_dump.hpp"

namespace {

using namespace pw;
using proof::Equality;

ContextPtr library() {
  auto context = std::make_shared<Context>();
  if (auto loaded = load_op_library(context); !loaded)
    FAIL(render(loaded.error(), context->sources));
  return context;
}

Graph graph_of(const ContextPtr& context, const std::string& text) {
  auto read = read_graph(context, text, {});
  if (!read) FAIL(render(read.error(), context->sources));
  return std::move(read->graph);
}

proof::Relation relation_of(const std::string& text) {
  auto relation = parse_relation(text, "relation");
  if (!relation) FAIL(relation.error().front().message);
  return *relation;
}

Equality compare(const std::string& single, const std::vector<std::string>& ranks,
                 const std::string& relation) {
  const ContextPtr context = library();
  const Graph first = graph_of(context, single);
  std::vector<Graph> graphs;
  for (const std::string& text : ranks) graphs.push_back(graph_of(context, text));
  std::vector<const Graph*> pointers;
  for (const Graph& graph : graphs) pointers.push_back(&graph);
  return prove_equal(first, pointers, relation_of(relation));
}
/// Two ranks of one text.
Equality twice(const std::string& single, const std::string& rank, const std::string& relation) {
  return compare(single, {rank, rank}, relation);
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

const std::string kMlp =
    "graph { symbol n in 1..64 in x: f32[n, 8], w: f32[8, 16], v: f32[16, 8]"
    " h = relu(mm(x, w)) m = mm(h, v) y = m + x out y }";
const std::string kMlpRank =
    "graph { symbol n in 1..64 in x: f32[n, 8], w: f32[8, 8], v: f32[8, 8]"
    " h = relu(mm(x, w)) p = mm(h, v) m = all_reduce(p){group = \"tp\"} y = m + x out y }";
const std::string kMlpRelation = "w = gathered(w){dim = 1}\nv = gathered(v){dim = 0}\n";

}  // namespace

TEST_CASE("equal: columns, then rows, then a sum over the ranks", "[equal]") {
  const Equality seen = twice(kMlp, kMlpRank, kMlpRelation);
  CHECK(seen.problem == "");
  CHECK(seen.proved());
  CHECK(seen.rounds);
  CHECK(seen.assumed == std::vector<std::string>{"x"});
}

TEST_CASE("equal: a sum that is not joined is reported where it is read", "[equal]") {
  const std::string wrong =
      replaced(kMlpRank, "m = all_reduce(p){group = \"tp\"} y = m + x", "y = p + x");
  const Equality seen = twice(kMlp, wrong, kMlpRelation);
  REQUIRE(seen.claims.size() == 1);
  CHECK_FALSE(seen.proved());
  CHECK(seen.claims[0].node == "y");
  CHECK(seen.claims[0].reason.find("an all_reduce is missing") != std::string::npos);

  const Equality twice_joined =
      twice(kMlp, replaced(kMlpRank, "y = m + x", "t = all_reduce(m){group = \"tp\"} y = t + x"),
            kMlpRelation);
  CHECK_FALSE(twice_joined.proved());
  CHECK(twice_joined.claims[0].node == "t");
}

TEST_CASE("equal: what is claimed of an output must be so", "[equal]") {
  const std::string single = "graph { in x: f32[4, 8], w: f32[8, 6] y = mm(x, w) out y }";
  const std::string rank = "graph { in x: f32[4, 8], w: f32[8, 3] y = mm(x, w) out y }";
  const std::string relation = "w = gathered(w){dim = 1}\n";
  CHECK(twice(single, rank, relation + "claim y = gathered(y){dim = 1}").proved());
  CHECK_FALSE(twice(single, rank, relation + "claim y = gathered(y){dim = 0}").proved());
  const Equality whole = twice(single, rank, relation);
  CHECK_FALSE(whole.proved());
  CHECK(whole.claims[0].reason.find("all_gather is missing") != std::string::npos);
  const std::string rows = "graph { in x: f32[4, 4], w: f32[4, 6] y = mm(x, w) out y }";
  CHECK(twice(single, rows,
              "x = gathered(x){dim = 1}\nw = gathered(w){dim = 0}\nclaim y = partial(y)")
            .proved());
  CHECK_FALSE(twice(single, rows, "x = gathered(x){dim = 1}\nw = gathered(w){dim = 0}").proved());
}

TEST_CASE("equal: a residual that each rank cuts as its own, and one that it does not", "[equal]") {
  const std::string single =
      "graph { in x: f32[8, 4], w: f32[4, 6], v: f32[6, 4]"
      " r = mm(mm(x, w), v) + x y = relu(r) out y }";
  const std::string right =
      "graph { in x: f32[8, 4], w: f32[4, 3], v: f32[3, 4]"
      " m = reduce_scatter(mm(mm(x, w), v)){dim = 0, world = 2, group = \"tp\"}"
      " r = m + shard(x){dim = 0, world = 2, group = \"tp\"}"
      " y = all_gather(relu(r)){dim = 0, world = 2, group = \"tp\"} out y }";
  const std::string wrong = replaced(right, "shard(x){dim = 0, world = 2, group = \"tp\"}",
                                     "slice(x){dim = 0, start = 0, end = 4}");
  const std::string relation = "w = gathered(w){dim = 1}\nv = gathered(v){dim = 0}\n";
  CHECK(twice(single, right, relation).proved());
  const Equality seen = twice(single, wrong, relation);
  CHECK_FALSE(seen.proved());
  CHECK(seen.claims[0].node == "r");
}

TEST_CASE("equal: a weight of several parts is cut part by part", "[equal]") {
  const std::string single =
      "graph { in x: f32[4, 8], w: f32[8, 12]"
      " a, b = split(mm(x, w)){dim = 1, sizes = [8, 4]} p = relu(a) q = sin(b) out p, q }";
  const std::string rank =
      "graph { in x: f32[4, 8], w: f32[8, 6]"
      " a, b = split(mm(x, w)){dim = 1, sizes = [4, 2]} p = relu(a) q = sin(b) out p, q }";
  const std::string claims = "claim p = gathered(p){dim = 1}\nclaim q = gathered(q){dim = 1}\n";
  CHECK(twice(single, rank, "w = blocks(w){dim = 1, sizes = [8, 4]}\n" + claims).proved());
  CHECK_FALSE(twice(single, rank, "w = gathered(w){dim = 1}\n" + claims).proved());
}

TEST_CASE("equal: heads that lie between other axes go through views", "[equal]") {
  const auto text = [](int heads) {
    const std::string h = std::to_string(heads), rows = std::to_string(3 * heads),
                      width = std::to_string(heads * 2);
    return "graph { in x: f32[5, 3, " + width + "] t = reshape(x){shape = [5, " + rows +
           ", 2]} u = transpose(t){dim0 = 0, dim1 = 1} b = bmm(u, transpose(u){dim0 = 1, dim1 = 2})"
           " z = reshape(b){shape = [3, " +
           h + ", 5, 5]} out z }";
  };
  CHECK(
      twice(text(4), text(2), "x = gathered(x){dim = 2}\nclaim z = gathered(z){dim = 1}").proved());
  CHECK_FALSE(
      twice(text(4), text(2), "x = gathered(x){dim = 2}\nclaim z = gathered(z){dim = 0}").proved());
}

TEST_CASE("equal: each rank looks up its own rows", "[equal]") {
  const std::string single =
      "graph { symbol n in 1..64 in t: f32[16, 4], ids: i64[n] y = embedding(t, ids) out y }";
  const auto rank = [](int first, int last) {
    const std::string a = std::to_string(first), b = std::to_string(last);
    return "graph { symbol n in 1..64 in t: f32[8, 4], ids: i64[n]"
           " out_of = bitwise_or(lt(ids, " +
           a + "), ge(ids, " + b +
           "))"
           " at = select(out_of, 0, ids - " +
           a +
           ") e = embedding(t, at)"
           " m = select(reshape(out_of){shape = [n, 1]}, 0.0, e)"
           " y = all_reduce(m){group = \"tp\"} out y }";
  };
  const std::string relation = "t = gathered(t){dim = 0}";
  const Equality seen = compare(single, {rank(0, 8), rank(8, 16)}, relation);
  CHECK(seen.proved());
  CHECK_FALSE(seen.granted.empty());
  CHECK_FALSE(compare(single, {rank(0, 8), rank(0, 8)}, relation).proved());
  CHECK_FALSE(compare(single, {rank(0, 8), rank(9, 16)}, relation).proved());
  CHECK_FALSE(compare(single, {rank(0, 9), rank(8, 16)}, relation).proved());
  CHECK_FALSE(compare(single, {rank(8, 16), rank(0, 8)}, relation).proved());
}

TEST_CASE("equal: a relation that does not fit is a problem, with its line", "[equal]") {
  CHECK(twice(kMlp, kMlpRank, "q = gathered(w){dim = 1}").problem.find("line 1") == 0);
  CHECK(twice(kMlp, kMlpRank, "\nw = gathered(w){dim = 0}").problem.find("line 2") == 0);
  CHECK(twice(kMlp, kMlpRank, "w = gathered(w){dim = 7}").problem.find("the axis does not exist") !=
        std::string::npos);
  for (const std::string text : {"w", "w =", "w = gathered", "w = gathered(w)", "w = cat()",
                                 "w = gathered(w){dim = }", "w = blocks(w){dim = 0, sizes = [0]}",
                                 "granted", "claim = replicated(y)", "w = gathered(w){dim = 1"}) {
    INFO(text);
    const auto relation = parse_relation(text, "r.txt");
    REQUIRE_FALSE(relation.has_value());
    CHECK(relation.error().front().code == "PW1419");
    CHECK(relation.error().front().place.find("r.txt:1:") == 0);
  }
}

TEST_CASE("equal: graphs of ranks that are not alike are not compared", "[equal]") {
  const Equality seen = compare(kMlp, {kMlpRank, replaced(kMlpRank, "relu", "sin")}, kMlpRelation);
  CHECK(seen.problem.find("rank 1 differs from rank 0 at") == 0);
}

TEST_CASE("equal: decoders of one device and of two", "[equal]") {
  for (const std::int64_t layers : {1, 8}) {
    const ContextPtr context = library();
    std::vector<Graph> graphs;
    for (const std::int64_t rank : {-1, 0, 1}) {
      FamilyOptions options;
      options.family = "qwen2";
      options.layers = layers;
      if (rank >= 0) {
        options.tp = 2;
        options.rank = rank;
      }
      auto made = generate_family(context, options);
      REQUIRE(made.has_value());
      graphs.push_back(std::move(*made));
    }
    const std::string relation =
        "embed_w = gathered(embed_w){dim = 0}\n"
        "*_qkv_w = blocks(*_qkv_w){dim = 0, sizes = [3584, 512, 512]}\n"
        "*_qkv_b = blocks(*_qkv_b){dim = 0, sizes = [3584, 512, 512]}\n"
        "*_o_w = gathered(*_o_w){dim = 1}\n"
        "*_gate_up_w = blocks(*_gate_up_w){dim = 0, sizes = [18944, 18944]}\n"
        "*_down_w = gathered(*_down_w){dim = 1}\n";
    const std::string granted =
        "granted unified_attention along 1\ngranted unified_kv_cache_update along 1\n";
    const Equality seen =
        prove_equal(graphs[0], {&graphs[1], &graphs[2]}, relation_of(relation + granted));
    CHECK(seen.problem == "");
    for (const auto& claim : seen.claims) {
      INFO(claim.node << ": " << claim.reason);
      CHECK(claim.proved);
    }
    // Without the word for it, nothing states that attention takes heads by themselves.
    CHECK_FALSE(prove_equal(graphs[0], {&graphs[1], &graphs[2]}, relation_of(relation)).proved());
    // Both ranks the first one.
    CHECK_FALSE(
        prove_equal(graphs[0], {&graphs[1], &graphs[1]}, relation_of(relation + granted)).proved());
  }
}

namespace {

/// Of dumps beside the checkout; nothing where they are not.
std::optional<Equality> of_dumps(const std::vector<std::string>& names,
                                 const std::string& relation) {
  std::vector<std::string> texts;
  for (const std::string& name : names) {
    const std::string path = test::shared_dump(name);
    if (path.empty()) return std::nullopt;
    texts.push_back(*read_file(path));
  }
  return compare(texts[0], {texts.begin() + 1, texts.end()}, relation);
}

}  // namespace

TEST_CASE("equal: a Qwen2 layer that was traced on one device and on two", "[equal]") {
  const auto seen = of_dumps({"qwen2-1.5b.tp1.layer1.fx.txt", "qwen2-1.5b.tp2.rank0.layer1.fx.txt",
                              "pairs/qwen2-1.5b.tp2.rank1.layer1.fx.txt"},
                             "arg1_1 = gathered(arg1_1){dim = 0}\n"
                             "arg3_1 = blocks(arg3_1){dim = 0, sizes = [1536, 256, 256]}\n"
                             "arg4_1 = blocks(arg4_1){dim = 0, sizes = [1536, 256, 256]}\n"
                             "arg7_1 = gathered(arg7_1){dim = 1}\n"
                             "arg9_1 = blocks(arg9_1){dim = 0, sizes = [8960, 8960]}\n"
                             "arg10_1 = gathered(arg10_1){dim = 1}\n"
                             "granted unified_attention along 1\n"
                             "claim getitem_34 = replicated(getitem_34)\n");
  if (!seen) return;
  INFO(seen->claims[0].node << ": " << seen->claims[0].reason);
  CHECK(seen->proved());
}

TEST_CASE("equal: a layer of GPT with its loss, sequences cut between the layers", "[equal]") {
  std::string relation;
  for (const char* n : {"1", "4", "5", "10", "11", "16"})
    relation += std::string("primals_") + n + " = gathered(primals_" + n + "){dim = 0}\n";
  for (const char* n : {"6", "12"})
    relation += std::string("primals_") + n + " = gathered(primals_" + n + "){dim = 1}\n";
  for (const char* n : {"0", "1", "2", "3"})
    relation += std::string("_tensor_constant") + n + " = 0.0\n";
  const auto seen = of_dumps({"pairs/gpt.tp1.layer1.fx.txt", "pairs/gpt.tp2.rank0.layer1.fx.txt",
                              "pairs/gpt.tp2.rank1.layer1.fx.txt"},
                             relation +
                                 "granted aten.native_dropout.default along 0, 1, 2\n"
                                 "granted apex.fused_layer_norm_affine_fwd.default along 0, 1\n"
                                 "claim div_2 = replicated(div_2)\n");
  if (!seen) return;
  INFO(seen->claims[0].node << ": " << seen->claims[0].reason);
  CHECK(seen->proved());
}

TEST_CASE("equal: a gradient that is summed up on each rank alone", "[equal]") {
  std::string relation;
  for (const char* n : {"6", "12", "13", "20", "21"})
    relation += std::string("primals_") + n + " = gathered(primals_" + n + "){dim = 0}\n";
  for (const char* n : {"10", "22"})
    relation += std::string("primals_") + n + " = gathered(primals_" + n + "){dim = 1}\n";
  for (const char* n : {"0", "1", "2", "3"})
    relation += std::string("_tensor_constant") + n + " = 0.0\n";
  for (const char* op :
       {"tg.inplace_log_tensor.default", "tg.log_tensor.default",
        "apex.fused_layer_norm_affine_fwd.default", "apex.fused_layer_norm_affine_bwd.default"})
    relation += std::string("granted ") + op + " along 0, 1, 2\n";
  const auto seen = of_dumps(
      {"pairs/missing-all-reduce.tp1.fx.txt", "pairs/missing-all-reduce.tp2.rank0.wrong.fx.txt",
       "pairs/missing-all-reduce.tp2.rank1.wrong.fx.txt"},
      relation + "claim mm_7 = replicated(mm_7)\n");
  if (!seen) return;
  CHECK_FALSE(seen->proved());
  CHECK(seen->claims[0].node == "mm_7");
  CHECK(seen->claims[0].reason.find("an all_reduce is missing") != std::string::npos);
}

TEST_CASE("equal: steps whose losses are added up without division", "[equal]") {
  const auto seen = of_dumps(
      {"pairs/grad-accumulation.one-step.fx.txt", "pairs/grad-accumulation.two-steps.wrong.fx.txt"},
      "arg2_1 = cat(arg2_1, arg5_1){dim = 0}\n"
      "arg3_1 = cat(arg3_1, arg6_1){dim = 0}\n"
      "claim add_1 = replicated(add_3)\n");
  if (!seen) return;
  CHECK_FALSE(seen->proved());
  CHECK(seen->claims[0].op == "mean");
}
