// What is found to mix rows of tokens, and what is not.
#include "splitter/row_mixing.hpp"

#include "dsl/dsl.hpp"
#include "models/generate.hpp"
#include "splitter/plan.hpp"
#include "tests/catch.hpp"

using namespace pw;

namespace {

ContextPtr library() {
  auto context = std::make_shared<Context>();
  REQUIRE(load_op_library(context));
  return context;
}

Graph graph_of(const ContextPtr& context, const std::string& text) {
  auto graph = parse_graph(context, "graph g { symbol n in 1..64 tokens  " + text + " }", "test");
  INFO(text << (graph ? std::string() : ": " + graph.error()[0].message));
  REQUIRE(graph);
  return std::move(*graph);
}

std::string found(const std::string& text) {
  const auto context = std::make_shared<Context>();
  REQUIRE(load_rule_texts(context, {{"ops.pwr", R"(
op opposite(x: T[*b, d]) -> (y: T[*b, d], s: T[*b]) { y = keep_topk(x){k = 1}  s = sum(y) }
op shares() {count: int} -> y: f32[count] { y = f32(iota(){shape = [count]}) / f32(extent(){value = count}) }
op widened(x: T[*b, d]) {width: int} -> y: T[*b, width] { y = upsample_linear(x){size = [width]} }
)"}}));
  return row_mixing(graph_of(context, text)).value_or("");
}

}  // namespace

TEST_CASE("row mixing: what lets one row act on another is named", "[splitter]") {
  CHECK(found("in a: f32[4, n], b: f32[n, 8]  y = mm(a, b)  out y") ==
        "node y (mm) mixes rows: it sums over dim n");
  CHECK(found("in p: f32[4, n]  y = keep_topk(p){k = 2}  out y") ==
        "node y (keep_topk) mixes rows: it sorts dim n");
  CHECK(found("in x: f32[n, 4]  y = slice(x){dim = 0, start = n - 1, end = n}  out y") ==
        "node y (slice) mixes rows: it starts at row n - 1");
  CHECK(found("in x: f32[n, 4]  y = slice(x){dim = 0, start = -2, end = n}  out y") ==
        "node y (slice) mixes rows: it starts at row n - 2");
  CHECK(found("in x: f32[n, 4], y: f32[2, 4]  z = cat(x, y){dim = 0}  out z") ==
        "node z (cat) mixes rows: it appends to dim n");
  CHECK(found("in x: f32[n, 4]  y = transpose(x){dim0 = 0, dim1 = 1}  z = reshape(y){shape = [4 * "
              "n]}  out z") == "node z (reshape) mixes rows: it forms other rows from dim n");
  CHECK(found("in a: f32[4, 2, n], b: f32[4, n, 8]  y = bmm(a, b)  out y") ==
        "node y (bmm) mixes rows: it sums over dim n");
  CHECK(found("in a: f32[n, 2, 3], b: f32[n, 3, 8]  y = bmm(a, b)  out y") == "");
  const std::string window = "{kernel = [2], stride = [1], padding = [0]}  out y";
  const std::string square = "{kernel = [2, 2], stride = [1, 1], padding = [0, 0]}  out y";
  CHECK(found("in x: f32[4, n]  y = avg_pool(x)" + window) ==
        "node y (avg_pool) mixes rows: it combines positions of dim n");
  CHECK(found("in x: f32[n, 4]  y = avg_pool(x)" + window) == "");
  CHECK(found("in x: f32[n, 4]  y = avg_pool(x)" + square) ==
        "node y (avg_pool) mixes rows: it combines positions of dim n");
  CHECK(found("in x: f32[3, n, 4]  y = avg_pool(x)" + window) == "");
  CHECK(found("in x: f32[n, 4, 4]  y = avg_pool(x)" + square) == "");
  CHECK(found("in x: f32[n, 4]  y = upsample_linear(x){size = [n, 4]}  out y") ==
        "node y (upsample_linear) mixes rows: it combines positions of dim n");
  CHECK(found("in x: f32[n, 4]  y = upsample_nearest(x){scales = [2.0, 1.0]}  out y") ==
        "node y (upsample_nearest) mixes rows: it combines positions of dim n");
  CHECK(found("in q: f32[1, 2, n, 4]  y, l = scaled_attention(q, q, q, none)  out y") ==
        "node y (scaled_attention) mixes rows: it combines positions of dim n");
  CHECK(found("in y: f32[4, n]  q, s = opposite(y)  out q, s") ==
        "node q (opposite) mixes rows: keep_topk sorts dim n");
}

TEST_CASE("row mixing: an attribute may say how many tokens there are", "[splitter]") {
  CHECK(found("in x: f32[4, 8]  y = upsample_linear(x){size = [8 * n], align = true}  out y") ==
        "node y (upsample_linear) mixes rows: it sizes an axis by dim 8*n");
  CHECK(found("in x: f32[4, 8, 8]  y = upsample_nearest(x){size = [3, n]}  out y") ==
        "node y (upsample_nearest) mixes rows: it sizes an axis by dim n");
  CHECK(found("in x: f32[n, 8]  y = adaptive_avg_pool(x){size = [n]}  out y") ==
        "node y (adaptive_avg_pool) mixes rows: it sizes an axis by dim n");
  CHECK(found("in x: f32[n, 8]  y = upsample_linear(x){size = [16]}  out y") == "");
  CHECK(found("in x: f32[4, 8]  y = widened(x){width = n}  out y") ==
        "node y (widened) mixes rows: upsample_linear sizes an axis by dim n");
  CHECK(found("in x: f32[n]  y = shares(){count = n}  z = x * y  out z") ==
        "node y (shares) mixes rows: extent counts the rows of dim n");
  CHECK(found("in x: f32[n]  y = iota(){shape = [n]}  z = x * f32(y)  out z") == "");
}

TEST_CASE("row mixing: a reduction leaves out the padding at the end of a dim", "[splitter]") {
  CHECK(found("in x: f32[n, 4]  s = sum(x){dim = 0}  out s") == "");
  CHECK(found("in x: f32[n, 4]  s = amax(x){dim = -2}  out s") == "");
  CHECK(found("in x: f32[4, n]  s = mean(x)  out s") == "");
  CHECK(found("in x: f32[4, n], w: f32[n]  y = rms_norm(x, w)  out y") == "");
  CHECK(found("in x: f32[n, 6]  s = amin(reshape(x){shape = [3 * n, 2]}){dim = 0}  out s") == "");
  CHECK(found("in x: f32[n, 4], y: f32[2, 4]  s = amin(cat(y, x){dim = 0}){dim = 0}  out s") == "");
  // Every other row: as many as half of the padded ones, rounded up. Squares: not by whole rows.
  const std::string anywhere = ", whose padding may be anywhere";
  CHECK(
      found("in x: f32[n, 4]  y = slice(x){dim = 0, start = 0, end = n, step = 2}  s = sum(y){dim "
            "= 0}  out s") ==
      "node s (sum) mixes rows: it reduces over dim ((n + 1) / (2))" + anywhere);
  CHECK(found("in x: f32[n * n, 4]  s = sum(x){dim = 0}  out s") ==
        "node s (sum) mixes rows: it reduces over dim n*n" + anywhere);
}

TEST_CASE("row mixing: a kernel that reduces all rows mixes them", "[splitter]") {
  const auto strict = [](const std::string& text) {
    return row_mixing(graph_of(library(), text), Reductions::all_rows).value_or("");
  };
  CHECK(strict("in x: f32[n, 4]  s = sum(x){dim = 0}  out s") ==
        "node s (sum) mixes rows: it reduces over dim n");
  CHECK(strict("in x: f32[4, n]  s = argmax(x)  out s") ==
        "node s (argmax) mixes rows: it reduces over dim n");
  CHECK(strict("in x: f32[4, n]  s = any(x)  out s") ==
        "node s (any) mixes rows: sum reduces over dim n");
  CHECK(strict("in x: f32[n, 4], w: f32[4]  y = rms_norm(x, w)  out y") == "");
}

TEST_CASE("row mixing: ranks have parts of the padded rows", "[splitter]") {
  const std::string part = "in x: f32[n, 4]  p = shard(x){dim = 0, world = 2, group = \"g\"}  ";
  CHECK(found(part + "y = all_gather(p){dim = 0, world = 2, group = \"g\"}  out y") == "");
  CHECK(found(part + "y = all_gather(p / amax(x){dim = 0}){dim = 0, world = 2, group = \"g\"}  "
                     "out y") == "");
  CHECK(found(part + "s = sum(p){dim = 0}  out s") ==
        "node s (sum) mixes rows: it reduces over dim ((n) / (2)), whose padding may be anywhere");
  CHECK(
      found(part + "y = all_gather(p){dim = 0, world = 2, group = \"g\"}  s = amax(y){dim = 0}  "
                   "out s") ==
      "node s (amax) mixes rows: it reduces over dim 2*((n) / (2)), whose padding may be anywhere");
  // Each rank has its own n rows, so the padding is between the rows of one rank and of the next.
  CHECK(found("in x: f32[n, 4]  y = all_gather(x){dim = 0, world = 2, group = \"g\"}  out y") ==
        "node y (all_gather) mixes rows: it has parts of dim n that are padded separately");
  CHECK(found("in x: f32[2 * n, 4]  y = reduce_scatter(x){dim = 0, world = 2, group = \"g\"}  out "
              "y") ==
        "node y (reduce_scatter) mixes rows: it has parts of dim n that are padded separately");
}

TEST_CASE("row mixing: a rank's part of padded rows is other rows than of those that are valid",
          "[splitter]") {
  const std::string part = "in x: f32[n, 4]  p = shard(x){dim = 0, world = 2, group = \"g\"}  ",
                    gathered = "){dim = 0, world = 2, group = \"g\"}  out y",
                    returned =
                        " is a rank's part of dim ((n) / (2)), whose rows differ if it is padded";
  CHECK(found(part + "out p") == "output p" + returned);
  CHECK(found(part + "y = p / amax(x){dim = 0}  out y") == "output y" + returned);
  CHECK(found(part + "s = sum(p)  out s") == "output s" + returned);
  CHECK(found("in x: f32[n, 8], w: f32[8, 4]  y = fused_matmul_reduce_scatter(x, w){scatter_dim = "
              "0, world = 2, group = \"g\"}  out y") == "output y" + returned);
  // Rows that came as such are not the part of any rank.
  CHECK(found("in r: f32[n / 2, 4], " + part.substr(3) + "y = all_gather(p + r" + gathered) ==
        "node v (add) mixes rows: its operand r is not a rank's part of dim ((n) / (2))");
  CHECK(
      found("in r: f32[n / 2, 4]  y = all_gather(r" + gathered) ==
      "node y (all_gather) mixes rows: it has parts of dim ((n) / (2)) that are padded separately");
  // Without ranks they are the first rows.
  CHECK(found("in r: f32[n / 2, 4]  y = neg(r)  out y") == "");
  CHECK(found(part + "q = neg(p)  y = all_gather(p * q" + gathered) == "");
}

TEST_CASE("row mixing: indices of rows", "[splitter]") {
  const std::string in = "in x: f32[n, 4], i: i64[n], t: f32[9, 4]  ";
  CHECK(found(in + "y = index(x, i)  out y") == "");
  CHECK(found(in + "y = index(x, i){wrap = true}  out y") ==
        "node y (index) mixes rows: it counts from the end of dim n");
  CHECK(found(in + "y = index(t, i){wrap = true}  out y") == "");
  CHECK(found(in + "y = index_put(t, x, i)  out y") ==
        "node y (index_put) mixes rows: it moves rows of dim n to others");
  CHECK(found(in + "v, y = sort(x){dim = 0}  out v") == "node v (sort) mixes rows: it sorts dim n");
  CHECK(found(in + "v, y = sort(x)  out v") == "");
  CHECK(found(in + "y = x / extent(){value = n}  out y") ==
        "node v (extent) mixes rows: it counts the rows of dim n");
  CHECK(found(in + "y = cumsum(x){dim = 0}  out y") == "");
  CHECK(found(in + "y = argmax(x){dim = 0}  out y") == "");
}

TEST_CASE("row mixing: rows that stay apart are not", "[splitter]") {
  CHECK(found("in x: f32[n, 4]  s = sum(x)  out s") == "");
  CHECK(found("in x: f32[n, 4], w: f32[4, 8]  y = mm(x, w)  out y") == "");
  CHECK(found("in x: f32[n, 8]  y = reshape(x){shape = [n, 2, 4]}  z = reshape(y){shape = [2 * n, "
              "4]}  out z") == "");
  CHECK(found("in x: f32[n, 4]  y = transpose(x){dim0 = 0, dim1 = 1}  out y") == "");
  CHECK(found("in x: f32[n, 4]  y = slice(x){dim = 0, start = 0, end = n}  out y") == "");
  CHECK(found("in x: f32[n, 4], y: f32[2, 4]  z = cat(y, x){dim = 0}  out z") == "");
  CHECK(found("in x: f32[n, 4], y: f32[n, 2]  z = cat(x, y){dim = 1}  out z") == "");
  CHECK(found("in t: f32[9, 4], i: i64[n]  y = embedding(t, i)  out y") == "");
  CHECK(found("in x: f32[n, 8], w: f32[8]  y = rms_norm(x, w)  q, s = "
              "dynamic_per_token_fp8_quant(y)  out q, s") == "");
  // Without a tokens symbol there is no padding.
  const auto context = library();
  const auto graph =
      parse_graph(context, "graph { in x: f32[7, 4]  s = sum(x){dim = 0}  out s }", "test");
  REQUIRE(graph);
  CHECK(!row_mixing(*graph));
}

TEST_CASE("row mixing: decoders with and without experts keep rows apart", "[splitter]") {
  for (std::int64_t experts : {0, 4}) {
    for (const char* quant : {"none", "fp8"}) {
      LlamaOptions options;
      options.layers = 1;
      options.quant = quant;
      options.experts = experts;
      options.tp = 2;
      const auto graph = generate_llama(library(), options);
      REQUIRE(graph);
      CHECK(row_mixing(*graph).value_or("") == "");
    }
  }
}

TEST_CASE("row mixing: what mixes is not captured, and no step of it is padded", "[splitter]") {
  const Graph graph =
      graph_of(library(), "in x: f32[n, 4]  y = slice(x){dim = 0, start = n - 1, end = n}  out y");
  const StitchedGraph pieces = split(graph, {}).value();
  for (const char* mode : {"piecewise", "full", "full_and_piecewise"}) {
    const Plan plan = make_plan(pieces, graph, {.mode = mode}).value();
    CHECK(plan.mode == "none");
    CHECK(plan.mode_reason == std::string(mode) +
                                  " is not possible: node y (slice) mixes rows: it starts at row n "
                                  "- 1, so no step may be "
                                  "padded");
    CHECK(plan.capture.sizes.empty());
    CHECK(plan.captures.empty());
  }
  CHECK(make_plan(pieces, graph, {.mode = "none"}).value().mode_reason == "");
  const auto ranks = make_plan(pieces, graph, {.sequence_parallel = 2});
  REQUIRE(!ranks);
  CHECK(ranks.error()[0].code == "PW0727");
}

TEST_CASE("row mixing: reductions over the tokens are captured, but for those of a rank's part",
          "[splitter]") {
  const Graph graph =
      graph_of(library(), "in x: f32[n, 4]  m = amax(x){dim = 0}  y = x / m  out y");
  const StitchedGraph pieces = split(graph, {}).value();
  const Plan plan = make_plan(pieces, graph, {.mode = "piecewise"}).value();
  CHECK(plan.mode == "piecewise");
  CHECK(plan.mode_reason == "");
  CHECK(!plan.captures.empty());
  CHECK(make_plan(pieces, graph, {.sequence_parallel = 2}));

  const Graph part = graph_of(library(),
                              "in x: f32[n, 4]  p = shard(x){dim = 0, world = 2, group = \"g\"}  m "
                              "= amax(p){dim = 0}  out m");
  const auto ranks = make_plan(split(part, {}).value(), part, {.sequence_parallel = 2});
  REQUIRE(!ranks);
  CHECK(ranks.error()[0].code == "PW0727");
}
