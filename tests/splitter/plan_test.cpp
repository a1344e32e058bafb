#include "splitter/plan.hpp"

#include <numeric>

#include "base/hash.hpp"
#include "splitter/offsets.hpp"
#include "tests/catch.hpp"
#include "tests/splitter/graphs.hpp"

using namespace pw;
using pw::test::Builder;

namespace {

/// Byte by byte and position by position, in units of the alignment: an oracle that shares nothing
/// with the planner.
void check_no_overlap(const std::vector<Lifetime>& intervals, const Placement& placement) {
  std::size_t positions = 0;
  for (const Lifetime& i : intervals) positions = std::max(positions, i.end + 1);
  const auto units = static_cast<std::size_t>(placement.total / kAlignment);
  std::vector<int> taken(positions * units, 0);
  bool clash = false;
  for (std::size_t k = 0; k < intervals.size(); ++k) {
    const auto from = static_cast<std::size_t>(placement.offsets[k] / kAlignment);
    const auto count = static_cast<std::size_t>(intervals[k].bytes / kAlignment);
    REQUIRE(placement.offsets[k] % kAlignment == 0);
    REQUIRE(from + count <= units);
    for (std::size_t p = intervals[k].begin; p <= intervals[k].end; ++p)
      for (std::size_t u = from; u < from + count; ++u) clash |= ++taken[p * units + u] > 1;
  }
  CHECK_FALSE(clash);
}

}  // namespace

TEST_CASE("offsets: random intervals never overlap and are near the lower bound", "[splitter]") {
  const auto seed = static_cast<std::uint64_t>(GENERATE(range(1, 40)));
  INFO("seed " << seed);
  Random random(seed);
  std::vector<Lifetime> intervals;
  const std::size_t n = 1 + random.below(60);
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t begin = random.below(40);
    intervals.push_back(
        {begin, begin + random.below(12), kAlignment * static_cast<std::int64_t>(random.below(9))});
  }
  std::vector<std::size_t> order(intervals.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (const Placement& placement :
       {place_by_time(intervals), place_in_order(intervals, order), place_intervals(intervals)}) {
    check_no_overlap(intervals, placement);
    CHECK(placement.total >= peak(intervals));
  }
  CHECK(place_intervals(intervals).total <= 2 * peak(intervals));
}

namespace {

/// The same for a whole plan, from its slots.
void check_plan(const MemoryPlan& memory) {
  std::vector<Lifetime> intervals;
  Placement placement;
  placement.total = memory.arena_bytes;
  for (const Slot& slot : memory.slots) {
    if (slot.storage != slot.value) continue;
    intervals.push_back({slot.begin, slot.end, align(slot.bytes)});
    placement.offsets.push_back(slot.offset);
  }
  check_no_overlap(intervals, placement);
  CHECK(memory.arena_bytes >= memory.live_bytes);
  CHECK(memory.arena_bytes % kAlignment == 0);
}

}  // namespace

TEST_CASE("plan: the toy model", "[splitter]") {
  Builder b = pw::test::toy();
  const StitchedGraph s = b.cut({"attention"});
  auto plan =
      make_plan(s, b.graph, {.max_tokens = 64, .range_ends = {8, 32}, .capture_sizes = {1, 2}});
  REQUIRE(plan.has_value());
  CHECK(plan->tokens == "n");
  CHECK(plan->ranges.size() == 3);
  CHECK(plan->capture.sizes == std::vector<std::int64_t>{1, 2});
  REQUIRE(plan->steps.size() == 5);
  CHECK(plan->steps[0].captured);
  CHECK_FALSE(plan->steps[1].captured);
  CHECK(plan->steps[1].reason == "contains splitting op attention");
  check_plan(plan->memory);
  CHECK(plan->memory.slots.size() == 7);
  CHECK(plan->memory.live_bytes == 3 * 64 * 8 * 4);  // inputs, inner values and outputs of a piece
  CHECK(plan->memory.input_bytes == 64 * 8 * 4);
  CHECK(plan_to_json(*plan, s) == plan_to_json(*plan, s));
  CHECK(plan_to_json(*plan, s).find("\"arena_bytes\"") != std::string::npos);
}

TEST_CASE("plan: a mode that no backend has is lowered, with the reason", "[splitter]") {
  Builder b = pw::test::toy();
  const auto plan = make_plan(b.cut({"attention"}), b.graph, {.mode = "full_and_piecewise"});
  REQUIRE(plan.has_value());
  CHECK(plan->mode == "piecewise");
  CHECK_FALSE(plan->mode_reason.empty());
  const auto none = make_plan(b.cut({"attention"}), b.graph, {.mode = "none"});
  REQUIRE(none.has_value());
  CHECK(none->capture.sizes.empty());
  CHECK_FALSE(none->steps[0].captured);
}

TEST_CASE("plan: a value that crosses keeps its place in every piece between", "[splitter]") {
  Builder b;
  const ValueId x = b.input("x");
  const ValueId kept = b.one("relu", {x});
  ValueId y = kept;
  for (int i = 0; i < 4; ++i) {
    y = b.attention(y, i);
    for (int k = 0; k < 3; ++k) y = b.one("relu", {y});
  }
  b.graph.add_output(b.one("add", {y, kept}));
  const StitchedGraph s = b.cut({"attention"});
  const auto memory = plan_memory(s, b.graph, 16);
  REQUIRE(memory.has_value());
  check_plan(*memory);
  const Slot& slot = memory->slots.front();
  CHECK(slot.value == kept);
  CHECK(slot.crossing);
  CHECK(slot.first == 0);
  CHECK(slot.last == 8);
}

TEST_CASE("plan: a view and an in-place result share their operand's place", "[splitter]") {
  Builder b;
  Op write;
  write.name = "write";
  write.operands.resize(2);
  write.results.resize(1);
  write.results[0].from = 0;
  REQUIRE(b.context->ops.declare(write).has_value());
  Traits view;
  view.view = true;
  b.op("alias", view);
  const ValueId x = b.input("x");
  const ValueId cache = b.input("cache", InputKind::buffer);
  const ValueId a = b.one("relu", {x});
  const ValueId v = b.one("alias", {a});
  const ValueId w = b.one("write", {v, x});
  const ValueId c = b.one("write", {cache, x});
  const ValueId z = b.one("relu", {x});
  b.graph.add_output(b.one("add", {w, z}));
  b.graph.add_output(c);
  const StitchedGraph s = b.cut({});
  const auto memory = plan_memory(s, b.graph, 16);
  REQUIRE(memory.has_value());
  check_plan(*memory);
  CHECK(memory->buffer_bytes == 16 * 8 * 4);
  REQUIRE(memory->slots.size() == 5);  // the written buffer is outside
  CHECK(memory->slots[1].storage == a);
  CHECK(memory->slots[2].storage == a);
  CHECK(memory->slots[2].offset == memory->slots[0].offset);
  CHECK(memory->slots[3].offset != memory->slots[0].offset);
}

TEST_CASE("plan: a view of a weight has no place in the arena; a view of a value has its own",
          "[splitter]") {
  Builder b;
  Traits view;
  view.view = true;
  b.op("transpose", view);
  const AttributeList axes{{b.context->strings.intern("dim0"), std::int64_t{0}}};
  const ValueId x = b.input("x");
  const ValueId w =
      b.one("transpose", {b.one("transpose", {b.input("w", InputKind::weight)}, axes)}, axes);
  const ValueId t = b.one("transpose", {b.one("mm", {x, w})}, axes);
  b.graph.add_output(t);
  const auto memory = plan_memory(b.cut({}), b.graph, 16);
  REQUIRE(memory.has_value());
  check_plan(*memory);
  REQUIRE(memory->slots.size() == 2);
  CHECK(memory->slots[0].offset != memory->slots[1].offset);
}

TEST_CASE("plan: bad symbols and sizes are diagnosed", "[splitter]") {
  Builder b = pw::test::toy();
  const StitchedGraph s = b.cut({"attention"});
  const auto code = [&](const PlanOptions& options = {}) {
    const auto plan = make_plan(s, b.graph, options);
    return plan.has_value() ? std::string("none") : plan.error().front().code;
  };
  CHECK(code() == "none");
  CHECK(code({.range_ends = {0}}) == "PW0724");
  CHECK(code({.capture_sizes = {9000}}) == "PW0724");
  CHECK(code({.max_tokens = 0}) == "PW0724");
  CHECK(code({.mode = "sideways"}) == "PW0725");
  CHECK(code({.mode = "full_and_piecewise"}) == "none");
  b.graph.facts.symbols["m"] = {1, 100, 1, "tokens"};
  CHECK(code() == "PW0721");
  b.graph.facts.symbols.clear();
  CHECK(code() == "PW0722");
  b.graph.facts.symbols["m"] = {1, 100, 1, "tokens"};
  CHECK(code() == "PW0723");
  b.graph.facts.symbols["n"] = {1, std::int64_t{1} << 39, 1, ""};
  CHECK(code() == "none");  // planned at its maximum
}

TEST_CASE("plan: a size beyond the machine is refused", "[splitter]") {
  Builder b;
  b.graph.facts.symbols["n"] = {1, std::int64_t{1} << 62, 1, "tokens"};
  const ValueId x = b.input("x");
  b.graph.add_output(b.one("relu", {x}));
  const StitchedGraph s = b.cut({});
  const auto plan = make_plan(s, b.graph, {.max_tokens = std::int64_t{1} << 62});
  REQUIRE_FALSE(plan.has_value());
  CHECK(plan.error().front().code == "PW0711");
}
