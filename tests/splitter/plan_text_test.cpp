#include "splitter/plan_text.hpp"

#include <algorithm>
#include <functional>

#include "base/hash.hpp"
#include "dsl/dsl.hpp"
#include "models/generate.hpp"
#include "splitter/check_plan.hpp"
#include "tests/catch.hpp"
#include "tests/splitter/graphs.hpp"

using namespace pw;
using pw::test::Builder;
using pw::test::static_graph;

namespace {

struct Planned {
  ContextPtr context = std::make_shared<Context>();
  Graph graph{context};
  StitchedGraph pieces{Graph(context), {}, {}};
  Plan plan;

  explicit Planned(PlanOptions options = {}, std::int64_t layers = 2) {
    REQUIRE(load_op_library(context).has_value());
    graph = *generate_llama(context, {.layers = layers,
                                      .hidden = 128,
                                      .heads = 8,
                                      .kv_heads = 2,
                                      .ffn = 256,
                                      .vocab = 512,
                                      .positions = 256});
    pieces = *split(graph, *splitting_ops(context, nullptr, {}, {}));
    plan = *make_plan(pieces, graph, options);
  }
  std::string text() const { return plan_to_json(plan, pieces); }
};

PlanDocument read(const std::string& text) {
  auto document = plan_from_json(text, "plan.json");
  if (!document) FAIL(render(document.error(), SourceMap()));
  return std::move(*document);
}

struct Refusal {
  std::string code, place;
  friend bool operator==(const Refusal&, const Refusal&) = default;
};
Refusal refusal(const std::string& text) {
  const auto document = plan_from_json(text, "plan.json");
  if (document) return {};
  return {document.error().front().code, document.error().front().place};
}

/// The text with the first occurrence of `what` replaced.
std::string with(std::string text, const std::string& what, const std::string& by) {
  const std::size_t at = text.find(what);
  REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), by);
}

}  // namespace

TEST_CASE("plan.json: what is written reads back and is written again", "[splitter]") {
  const PlanOptions options[] = {
      {},
      {.mode = "none"},
      {.range_ends = {8, 32}, .mode = "full", .compile_sizes = {16}, .workspace_bytes = 4096},
      {.capture_sizes = {3, 6, 7}, .speculative_tokens = 2, .sequence_parallel = 3, .loras = {2}}};
  for (const PlanOptions& o : options) {
    const Planned p(o);
    const PlanDocument document = read(p.text());
    CHECK(to_json(document) == p.text());
    CHECK(differences(document, describe(p.plan, p.pieces)).empty());
    const auto bound = bind_plan(document, p.pieces, p.graph);
    REQUIRE(bound.has_value());
    CHECK(plan_to_json(*bound, p.pieces) == p.text());
    REQUIRE(bound->memory.slots.size() == p.plan.memory.slots.size());
    for (std::size_t i = 0; i < bound->memory.slots.size(); ++i) {
      CHECK(bound->memory.slots[i].value == p.plan.memory.slots[i].value);
      CHECK(bound->memory.slots[i].storage == p.plan.memory.slots[i].storage);
    }
    CHECK(bound->capture.padding == p.plan.capture.padding);
  }
}

TEST_CASE("plan.json: a static graph", "[splitter]") {
  Builder b = static_graph();
  const StitchedGraph pieces = b.cut({});
  const std::string text = plan_to_json(*make_plan(pieces, b.graph, {}), pieces);
  CHECK(to_json(read(text)) == text);
}

TEST_CASE("plan.json: a plan is bound to its own graph only", "[splitter]") {
  const Planned two, three({}, 3);
  const auto other = bind_plan(read(two.text()), three.pieces, three.graph);
  REQUIRE_FALSE(other.has_value());
  CHECK(other.error().front().code == "PW0744");
  const std::string renamed = with(two.text(), "\"value\":\"", "\"value\":\"another_");
  const auto unnamed = bind_plan(read(renamed), two.pieces, two.graph);
  CHECK_FALSE(unnamed.has_value());
}

TEST_CASE("plan.json: bad members are named with their place", "[splitter]") {
  const std::string text = Planned({.range_ends = {8}}).text();
  const auto refused = [&](const std::string& what, const std::string& by) {
    return refusal(with(text, what, by));
  };
  CHECK(refused("piecewise.plan/1", "piecewise.plan/9") ==
        Refusal{"PW0741", "plan.json at /format"});
  CHECK(refused("\"mode\": \"piecewise\"", "\"mode\": \"sideways\"") ==
        Refusal{"PW0743", "plan.json at /mode"});
  CHECK(refused("\"ranges\"", "\"rangs\"") == Refusal{"PW0742", "plan.json at /rangs"});
  CHECK(refused("[9,", "[10,") == Refusal{"PW0743", "plan.json at /ranges/1"});
  CHECK(refused("\"capture_sizes\": [1,2", "\"capture_sizes\": [2,2") ==
        Refusal{"PW0743", "plan.json at /capture_sizes/1"});
  CHECK(refused("\"capture_sizes\": [1,2", "\"capture_sizes\": [1,3").code == "PW0743");
  CHECK(refused("\"max_requests\": 256", "\"max_requests\": \"256\"") ==
        Refusal{"PW0741", "plan.json at /max_requests"});
  CHECK(refused("\"class\":\"class_0\"", "\"class\":\"class_9\"") ==
        Refusal{"PW0743", "plan.json at /steps/0/class"});
  const Refusal moved = refused("\"offset\":0", "\"offset\":1");
  CHECK(moved.code == "PW0743");
  CHECK(moved.place.ends_with("/offset"));
  CHECK(refused("\"graph\": \"llama\",", "") == Refusal{"PW0741", "plan.json at /"});
  CHECK(refusal("{}").code == "PW0741");
  CHECK(refusal("[1]").code != "");
  CHECK(refusal("").code != "");
}

TEST_CASE("plan.json: values that share bytes while both are alive are refused", "[splitter]") {
  const Planned p;
  Plan plan = p.plan;
  std::vector<Slot>& slots = plan.memory.slots;
  // Two separate slots that are alive at the same node.
  for (std::size_t i = 0; i < slots.size(); ++i)
    for (std::size_t j = i + 1; j < slots.size(); ++j) {
      if (slots[i].storage != slots[i].value || slots[j].storage != slots[j].value ||
          slots[i].begin > slots[j].end || slots[j].begin > slots[i].end ||
          slots[i].offset + slots[j].bytes > plan.memory.arena_bytes)
        continue;
      const bool shared = std::any_of(slots.begin(), slots.end(), [&](const Slot& s) {
        return s.storage == slots[j].value && s.value != slots[j].value;
      });
      if (shared) continue;
      slots[j].offset = slots[i].offset;
      const Refusal found = refusal(plan_to_json(plan, p.pieces));
      CHECK(found.code == "PW0743");
      return;
    }
  FAIL("no two slots meet");
}

TEST_CASE("plan.json: a place that ends before its value does is refused, whatever took its bytes",
          "[splitter]") {
  const Planned p;
  const auto refused = [&](const std::function<void(Plan&)>& change) {
    Plan plan = p.plan;
    change(plan);
    const auto bound = bind_plan(read(plan_to_json(plan, p.pieces)), p.pieces, p.graph);
    REQUIRE(!bound);
    CHECK(bound.error()[0].code == "PW0745");
    return bound.error()[0].place + " " + bound.error()[0].message;
  };
  const auto crossing = [](Plan& plan) -> Slot& {
    for (Slot& slot : plan.memory.slots)
      if (slot.crossing && slot.last > slot.first + 1 && slot.storage == slot.value) return slot;
    FAIL("no value is alive over several pieces");
    return plan.memory.slots.front();
  };
  CHECK(refused([&](Plan& plan) { crossing(plan).last -= 1; }).find("it is alive in steps") !=
        std::string::npos);
  CHECK(refused([&](Plan& plan) { crossing(plan).end -= 1; }).find("it is alive in nodes") !=
        std::string::npos);
  // Its end moved forward, its bytes given to what comes after: the file's own numbers agree.
  std::size_t reused = 0;
  for (std::size_t later = 0; later < p.plan.memory.slots.size(); ++later) {
    Plan plan = p.plan;
    Slot &slot = crossing(plan), &other = plan.memory.slots[later];
    const bool follows = other.storage == other.value && other.first > slot.first &&
                         other.first <= slot.last && other.bytes <= slot.bytes;
    if (!follows || &slot == &other) continue;
    slot.last = other.first - 1;
    slot.end = other.begin - 1;
    for (Slot& shares : plan.memory.slots)
      if (shares.storage == other.value) shares.offset = slot.offset;
    if (!contradictions(plan).empty()) continue;
    ++reused;
    CHECK(refused([&](Plan& changed) { changed = plan; }).find("it is alive in") !=
          std::string::npos);
  }
  CHECK(reused > 0);
  CHECK(refused([&](Plan& plan) { crossing(plan).bytes -= 256; }).find("but it needs") !=
        std::string::npos);
  CHECK(refused([&](Plan& plan) { plan.memory.slots.pop_back(); }).find("of the graph need one") !=
        std::string::npos);
  // Two values changed places with everything stated about them.
  CHECK(refused([&](Plan& plan) {
          Slot& slot = crossing(plan);
          for (Slot& other : plan.memory.slots)
            if (other.storage == other.value && other.first > slot.last) {
              std::swap(slot.name, other.name);
              return;
            }
        }).find("the plan") != std::string::npos);
}

TEST_CASE("plan.json: what a runtime needs between launches reads back", "[splitter]") {
  Planned p;
  std::vector<PieceSchedule> schedules(p.pieces.pieces.size());
  for (PieceSchedule& schedule : schedules) {
    schedule.launches = 3;
    schedule.scratch = {{"a", 0, 1, 512, 0}, {"b", 1, 2, 300, 0}};
  }
  p.plan.memory = plan_memory(p.pieces, p.graph, p.plan.max_tokens, schedules).value();
  const PlanDocument document = read(p.text());
  CHECK(to_json(document) == p.text());
  CHECK(document.plan.memory.scratch.size() == schedules.size());
  const auto bound = bind_plan(document, p.pieces, p.graph);
  if (!bound) FAIL(render(bound.error(), SourceMap()));
  CHECK(plan_to_json(*bound, p.pieces) == p.text());
  Plan other = p.plan;
  other.memory.scratch[1][0].bytes = 500;
  CHECK(differences(describe(p.plan, p.pieces), describe(other, p.pieces)) ==
        std::vector<std::string>{"scratch 0 of step 1, bytes: 512 → 500"});
  // Two that are alive in the same launch on the same bytes; and on those of a value.
  other = p.plan;
  other.memory.scratch[2][1].offset = other.memory.scratch[2][0].offset;
  CHECK(refusal(plan_to_json(other, p.pieces)) ==
        Refusal{"PW0743", "plan.json at /memory/scratch/2/1"});
  other = p.plan;
  for (const Slot& slot : other.memory.slots)
    if (slot.first <= 3 && slot.last >= 3) other.memory.scratch[3][0].offset = slot.offset;
  CHECK(refusal(plan_to_json(other, p.pieces)).code == "PW0743");
  other = p.plan;
  other.memory.scratch.pop_back();
  CHECK(refusal(plan_to_json(other, p.pieces)) ==
        Refusal{"PW0743", "plan.json at /memory/scratch"});
}

TEST_CASE("plan.json: differences are lines; equal plans have none", "[splitter]") {
  const PlanOptions four{.capture_sizes = {1, 2, 4, 8}};
  const Planned a(four), b(four),
      c({.range_ends = {8}, .capture_sizes = {1, 2, 4}, .mode = "full"});
  CHECK(differences(describe(a.plan, a.pieces), describe(b.plan, b.pieces)).empty());
  const auto lines = differences(describe(a.plan, a.pieces), describe(c.plan, c.pieces));
  const auto has = [&](const std::string& line) {
    return std::find(lines.begin(), lines.end(), line) != lines.end();
  };
  CHECK(has("ranges: [1..8192] → [1..8, 9..8192]"));
  CHECK(has("capture piecewise 8 tokens: only in the first"));
  CHECK(has("mode: piecewise → full"));
  for (const std::string& line : lines) CHECK(line.find("value ") != 0);
}

TEST_CASE("plan.json: damaged text never crashes", "[splitter]") {
  const std::string text = Planned({.range_ends = {8}, .capture_sizes = {1, 2, 4}}, 1).text();
  std::size_t accepted = 0;
  for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
    Random random(seed);
    std::string damaged = text;
    for (std::uint64_t edits = 1 + random.below(3); edits > 0; --edits) {
      const std::size_t at = random.below(damaged.size());
      switch (random.below(4)) {
        case 0: damaged.erase(at, 1 + random.below(8)); break;
        case 1: damaged.insert(at, 1, static_cast<char>(random.below(256))); break;
        case 2: damaged[at] = "0123456789-,:.e{}[]\"tn"[random.below(22)]; break;
        default: damaged.insert(at, damaged.substr(random.below(damaged.size()), 20));
      }
    }
    INFO("seed " << seed);
    const auto document = plan_from_json(damaged, "plan.json");
    if (!document) {
      CHECK_FALSE(document.error().empty());
      continue;
    }
    ++accepted;  // a changed name or count, say: then it is read as what it states
    CHECK(to_json(read(to_json(*document))) == to_json(*document));
  }
  CHECK(accepted < 1500);
}
