#include <algorithm>
#include <numeric>

#include "base/hash.hpp"
#include "dsl/dsl.hpp"
#include "models/generate.hpp"
#include "splitter/offsets.hpp"
#include "splitter/plan.hpp"
#include "tests/catch.hpp"
#include "tests/splitter/graphs.hpp"

using namespace pw;

namespace {

bool meet(const Lifetime& a, const Lifetime& b) { return a.begin <= b.end && b.begin <= a.end; }

/// The least arena, by trying all orders: in order of its offsets, the blocks of a best arrangement
/// can each sink to the lowest free place.
class Exact {
 public:
  explicit Exact(const std::vector<Lifetime>& intervals)
      : intervals_(intervals), offsets_(intervals.size(), -1), least_(peak(intervals)) {}
  std::int64_t total() {
    best_ = std::accumulate(intervals_.begin(), intervals_.end(), std::int64_t{0},
                            [](std::int64_t sum, const Lifetime& i) { return sum + i.bytes; });
    search(0, 0);
    return best_;
  }

 private:
  void search(std::size_t placed, std::int64_t total) {
    if (total >= best_ || best_ == least_) return;
    if (placed == intervals_.size()) {
      best_ = total;
      return;
    }
    for (std::size_t i = 0; i < intervals_.size(); ++i) {
      if (offsets_[i] >= 0) continue;
      offsets_[i] = lowest(i);
      search(placed + 1, std::max(total, offsets_[i] + intervals_[i].bytes));
      offsets_[i] = -1;
    }
  }
  [[nodiscard]] std::int64_t lowest(std::size_t i) const {
    std::vector<std::pair<std::int64_t, std::int64_t>> taken;
    for (std::size_t j = 0; j < intervals_.size(); ++j)
      if (offsets_[j] >= 0 && meet(intervals_[i], intervals_[j]))
        taken.emplace_back(offsets_[j], offsets_[j] + intervals_[j].bytes);
    std::sort(taken.begin(), taken.end());
    std::int64_t at = 0;
    for (const auto& [begin, end] : taken) {
      if (begin - at >= intervals_[i].bytes) break;
      at = std::max(at, end);
    }
    return at;
  }

  const std::vector<Lifetime>& intervals_;
  std::vector<std::int64_t> offsets_;
  std::int64_t least_, best_ = 0;
};

/// A generated decoder of this family, split and planned.
MemoryPlan planned(LlamaOptions options) {
  auto context = std::make_shared<Context>();
  REQUIRE(load_op_library(context).has_value());
  const Graph graph = *generate_llama(context, options);
  const auto pieces = split(graph, *splitting_ops(context, nullptr, {}, {}));
  return *plan_memory(*pieces, graph, 512);
}

}  // namespace

TEST_CASE("memory: small arenas are at most a twentieth above the least", "[splitter]") {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    std::vector<Lifetime> intervals;
    const std::size_t n = 3 + random.below(6);
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t begin = random.below(9);
      intervals.push_back({begin, begin + random.below(5),
                           kAlignment * static_cast<std::int64_t>(1 + random.below(9))});
    }
    const std::int64_t exact = Exact(intervals).total();
    const std::int64_t found = place_intervals(intervals).total;
    CHECK(found >= exact);
    CHECK(static_cast<double>(found) <= 1.05 * static_cast<double>(exact));
  }
}

TEST_CASE("memory: arenas of decoders are at most a tenth above what is alive", "[splitter]") {
  const LlamaOptions llama{.layers = 32, .hidden = 512, .heads = 8, .kv_heads = 2, .ffn = 1024};
  LlamaOptions quantised = llama, moe = llama, large = llama;
  quantised.quant = "fp8";
  quantised.tp = 2;
  moe.experts = 16;
  moe.layers = 8;
  large.experts = 64;
  large.layers = 64;
  for (const LlamaOptions& options : {llama, quantised, moe, large}) {
    const MemoryPlan memory = planned(options);
    INFO(memory.slots.size() << " slots");
    CHECK(static_cast<double>(memory.arena_bytes) <= 1.10 * static_cast<double>(memory.live_bytes));
  }
}

TEST_CASE("memory: arenas of random graphs are at most a tenth above what is alive", "[splitter]") {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    pw::test::Builder b;
    std::vector<ValueId> values{b.input("x")};
    const int nodes = seed <= 4 ? 1500 : 6000;
    for (int i = 0; i < nodes; ++i) {
      // Mostly what was made lately, sometimes what is old.
      const auto recent = [&] {
        const std::size_t window = random.below(20) == 0 ? values.size() : 8;
        return values[values.size() - 1 - random.below(std::min(window, values.size()))];
      };
      const std::int64_t widths[] = {8, 8, 64, 256, 1000};
      values.push_back(b.call("mix", {recent(), recent()}, 1, {}, widths[random.below(5)]).front());
      if (i % 60 == 59) values.push_back(b.attention(values.back(), i));
    }
    b.graph.add_output(values.back());
    const auto memory = plan_memory(b.cut({"attention"}), b.graph, 64);
    REQUIRE(memory.has_value());
    CHECK(static_cast<double>(memory->arena_bytes) <=
          1.10 * static_cast<double>(memory->live_bytes));
  }
}

TEST_CASE("memory: library calls share one workspace, beside what lives meanwhile", "[splitter]") {
  auto context = std::make_shared<Context>();
  REQUIRE(load_op_library(context).has_value());
  const Graph graph = *parse_graph(context, R"(graph {
    symbol n in 1..8192 tokens
    in x: f32[n, 64], w: f32[64, 64]
    a = mm(x, w)
    b = -a
    c = mm(b, w)
    out c
  })",
                                   "g");
  const auto pieces = split(graph, {});
  const auto without = plan_memory(*pieces, graph, 16);
  const auto with = plan_memory(*pieces, graph, 16, {}, 1000);
  REQUIRE((without.has_value() && with.has_value()));
  CHECK(without->workspace_bytes == 0);
  CHECK(with->workspace_bytes == 1000);
  CHECK(with->arena_bytes == without->arena_bytes + 1024);
  for (const Slot& slot : with->slots)
    CHECK((slot.offset + slot.bytes <= with->workspace_offset ||
           slot.offset >= with->workspace_offset + 1024));
}
