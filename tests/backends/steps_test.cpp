// Continued sequences: one token at a time gives the result of all tokens at once, on every engine;
// the pages of the cache; and the text of steps.
#include "exec/steps.hpp"

#include <cstring>

#include <fmt/format.h>

#include "backends/cpu/cpu.hpp"
#include "backends/eager/eager.hpp"
#include "backends/interpreter/interpreter.hpp"
#include "base/hash.hpp"
#include "exec/runner.hpp"
#include "tensor/kv_cache.hpp"
#include "tests/backends/graphs.hpp"

using namespace pw;
using namespace pw::test;

namespace {

const char kTwoLayers[] = R"(
  symbol n in 1..64 tokens
  in ids: i64[n], positions: i64[n]
  in weight table: bf16[50, 32], cs: bf16[64, 8], wq: bf16[32, 64], wo: bf16[32, 32]
  x = embedding(table, ids)
  q, k, v = split(mm(x, wq)){dim = -1, sizes = [32, 16, 16]}
  qr, kr = rotary_embedding(positions, q, k, cs){head = 8}
  o = unified_attention(reshape(qr){shape = [n, 4, 8]}, reshape(kr){shape = [n, 2, 8]}, reshape(v){shape = [n, 2, 8]}, none){layer = "a"}
  h = mm(reshape(o){shape = [n, 32]}, wo)
  q2, k2, v2 = split(mm(h, wq)){dim = -1, sizes = [32, 16, 16]}
  p = unified_attention(reshape(q2){shape = [n, 4, 8]}, reshape(k2){shape = [n, 2, 8]}, reshape(v2){shape = [n, 2, 8]}, none){layer = "b"}
  y = mm(reshape(p){shape = [n, 32]}, wo)
  out y
)";

/// The rows of `y` by sequence and position.
using Rows = std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::byte>>;

void keep(Rows& rows, const Step& step, const Tensor& y) {
  const std::size_t width = y.view().bytes() / static_cast<std::size_t>(y.extents()[0]);
  std::size_t row = 0;
  for (const Sequence& s : step.sequences) {
    for (std::int64_t i = 0; i < s.new_tokens; ++i, ++row)
      rows[{s.id, s.past + i}].assign(y.data() + row * width, y.data() + (row + 1) * width);
  }
}

Rows run_all(const Graph& graph, Backend& backend, const char* text) {
  KvCache cache(4);
  Weights weights(graph, 5);
  Rows rows;
  const auto steps = parse_steps(text, "steps");
  REQUIRE(steps);
  for (const PlannedStep& planned : *steps) {
    Step step = planned.step;
    step.cache = &cache;
    const auto outputs = run_whole(graph, backend, weights, step);
    if (!outputs) FAIL(outputs.error().front().message);
    keep(rows, step, outputs->front());
  }
  return rows;
}

std::string problem(const char* text) {
  const auto steps = parse_steps(text, "s");
  return steps ? "" : steps.error().front().place + " " + steps.error().front().message;
}

}  // namespace

TEST_CASE("steps: token by token gives the bits of all tokens at once", "[backends]") {
  const Graph graph = graph_of(kTwoLayers);
  const char* at_once = "0:9 1:6";
  const char* in_parts[] = {"0:5 1:6\n0:1\n0:1\n0:2", "0:1\n1:1 0:3\n0:1 1:1\n1:4 0:4",
                            "1:2\n0:9\n1:3\n1:1"};
  std::vector<std::unique_ptr<Backend>> engines;
  engines.push_back(make_interpreter(Precision::single));
  BackendOptions strict;
  strict.strict = true;
  engines.push_back(std::make_unique<CpuBackend>(strict));
  for (const std::unique_ptr<Backend>& engine : engines) {
    const Rows whole = run_all(graph, *engine, at_once);
    CHECK(whole.size() == 15);
    for (const char* text : in_parts) {
      INFO(engine->name() << "\n" << text);
      CHECK(run_all(graph, *engine, text) == whole);
    }
  }
}

TEST_CASE("steps: without a cache earlier tokens are not seen", "[backends]") {
  const Graph graph = graph_of(kTwoLayers);
  Weights weights(graph, 5);
  const auto eager = make_eager();
  const Rows whole = run_all(graph, *eager, "0:4");
  Rows rows;
  const std::vector<PlannedStep> steps = parse_steps("0:3\n0:1", "steps").value();
  for (const PlannedStep& planned : steps)
    keep(rows, planned.step, run_whole(graph, *eager, weights, planned.step)->front());
  CHECK(rows.at({0, 3}) != whole.at({0, 3}));
}

TEST_CASE("steps: a step may be run again, and a sequence may begin again", "[backends]") {
  const Graph graph = graph_of(kTwoLayers);
  Weights weights(graph, 5);
  const auto engine = make_interpreter(Precision::single);
  KvCache cache(4);
  const auto steps = parse_steps("0:6\n0:2\n0:1 0.\n0:6", "steps").value();
  Rows rows;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    Step step = steps[i].step;
    step.cache = &cache;
    const auto first = run_whole(graph, *engine, weights, step);
    const auto again = run_whole(graph, *engine, weights, step);
    REQUIRE((first && again));
    CHECK(std::memcmp(first->front().data(), again->front().data(),
                      first->front().view().bytes()) == 0);
    for (std::int64_t id : steps[i].ended) cache.end(id);
  }
  CHECK(steps[3].step.sequences[0].past == 0);
  Step later{{{0, 1, 9}}, &cache};  // it has 6
  const auto missing = run_whole(graph, *engine, weights, later);
  REQUIRE(!missing);
  CHECK(missing.error().front().code == "PW1209");
}

TEST_CASE("cache: pages go from one sequence to the next", "[backends]") {
  KvCache cache(4);
  const KvCache::Layer layer{0, "a"};
  const auto put = [&](std::int64_t sequence, std::int64_t past, std::int64_t rows, float value) {
    Array x = make_array(DType::f32, {rows, 2, 3});
    for (std::int64_t i = 0; i < x.count(); ++i)
      reinterpret_cast<float*>(x.data)[i] = value + static_cast<float>(i);
    return cache.put(layer, sequence, past, x, x);
  };
  REQUIRE(put(1, 0, 9, 100));
  CHECK(cache.pages() == 3);
  REQUIRE(put(2, 0, 4, 500));
  CHECK(cache.pages() == 4);
  cache.end(1);
  CHECK(cache.free_pages() == 3);
  REQUIRE(put(2, 4, 5, 700));
  REQUIRE(put(3, 0, 3, 900));
  CHECK(cache.pages() == 4);
  CHECK(cache.free_pages() == 0);
  std::vector<float> k(9 * 6), v(9 * 6);
  cache.get(layer, 2, 9, reinterpret_cast<std::byte*>(k.data()),
            reinterpret_cast<std::byte*>(v.data()));
  CHECK(k == v);
  for (std::size_t i = 0; i < 24; ++i) CHECK(k[i] == 500 + static_cast<float>(i));
  for (std::size_t i = 24; i < 54; ++i) CHECK(k[i] == 700 + static_cast<float>(i - 24));
  REQUIRE(put(2, 2, 1, 0));  // what came behind is forgotten
  CHECK(cache.tokens(layer, 2) == 3);
  CHECK(cache.free_pages() == 2);
  CHECK(!put(4, 1, 1, 0));
}

TEST_CASE("steps: the text, and what is wrong with it", "[backends]") {
  const auto steps = parse_steps("# traffic\n0:5 7:3\r\n\n\t0:1 7. # one goes\n7:2\n", "s");
  REQUIRE(steps);
  REQUIRE(steps->size() == 3);
  CHECK((*steps)[0].step.tokens() == 8);
  CHECK((*steps)[1].step.sequences[0].past == 5);
  CHECK((*steps)[1].ended == std::vector<std::int64_t>{7});
  CHECK((*steps)[2].step.sequences[0].past == 0);
  CHECK(problem("") == "s the file has no steps");
  CHECK(problem("# none\n") == "s the file has no steps");
  CHECK(problem("0:5\n1:x").starts_with("s:2:1 `1:x` is neither"));
  CHECK(problem("0:5 0:1").starts_with("s:1:5 sequence 0 occurs twice in this step"));
  CHECK(problem("0:0").starts_with("s:1:1 "));
  CHECK(problem("-1:4").starts_with("s:1:1 "));
  CHECK(problem("0:99999999999999999999").starts_with("s:1:1 "));
  CHECK(problem("0:16777216\n0:1").starts_with("s:2:1 sequence 0 has more than"));
  CHECK(problem("9999999:1").starts_with("s:1:1 "));
  CHECK(problem("1.").starts_with("s:1:1 a step needs"));
  Random random(3);
  const std::string letters = "0123456789:. #\n-x";
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (std::size_t i = random.below(30); i > 0; --i)
      text += letters[random.below(letters.size())];
    const auto parsed = parse_steps(text, "fuzz");
    if (!parsed) continue;
    for (const PlannedStep& planned : *parsed) CHECK(planned.step.tokens() > 0);
  }
}
