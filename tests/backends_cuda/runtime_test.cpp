// Steps on the host driver: captured ≡ launched ≡ the whole graph, with all padding poisoned; what
// is done before the first step; and every failure.
#include "cuda/runtime.hpp"

#include <functional>
#include <set>

#include <fmt/format.h>

#include "backends/program.hpp"
#include "base/hash.hpp"
#include "cuda/device/host_driver.hpp"
#include "splitter/plan_text.hpp"
#include "tensor/kv_cache.hpp"
#include "tests/backends_cuda/kernel_run.hpp"
#include "tests/backends_cuda/runtime_cases.hpp"
#include "tests/catch.hpp"

using namespace pw;
using namespace pw::test;

namespace {

/// Sequences that begin with some tokens and go on one at a time, several in a step.
std::vector<Step> traffic(std::uint64_t seed, std::size_t steps) {
  Random random(seed);
  std::vector<Sequence> running;
  std::vector<Step> out;
  std::int64_t next = 0;
  while (out.size() < steps) {
    Step step;
    for (Sequence& s : running) {
      s.past += s.new_tokens;
      s.new_tokens = 1;
    }
    std::erase_if(running, [&](const Sequence& s) { return s.past > 12 || random.below(5) == 0; });
    if (running.empty() || (running.size() < 4 && random.below(2) == 0))
      running.push_back({next++, 1 + static_cast<std::int64_t>(random.below(6)), 0});
    step.sequences = running;
    out.push_back(step);
  }
  return out;
}

void check_traffic(const ModelCase& model, std::uint64_t first, std::uint64_t count,
                   std::size_t steps) {
  if (no_host_compiler()) return;
  ReadyRuntime ready(model);
  const cuda::RuntimeCounters before = ready.runtime->counters();
  const std::int64_t allocated = ready.driver.allocated();
  std::size_t captured = 0, padded = 0;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    for (const Step& step : traffic(seed, steps)) {
      INFO("seed " << seed << ", " << step.tokens() << " tokens");
      const auto replayed = need(ready.run(step), *ready.planned.context);
      const auto launched = need(ready.run(step, false), *ready.planned.context);
      const auto whole = ready.whole(step);
      captured += replayed.report.mode == StepMode::captured ? 1 : 0;
      padded += replayed.report.padded > step.tokens() ? 1 : 0;
      CHECK(launched.report.mode == StepMode::eager);
      CHECK(bits_apart(replayed.outputs, whole) == "");
      CHECK(bits_apart(launched.outputs, whole) == "");
    }
    for (KvCache* cache : {&ready.replayed, &ready.launched, &ready.unsplit}) *cache = KvCache();
  }
  const cuda::RuntimeCounters& after = ready.runtime->counters();
  CHECK(captured > 0);
  CHECK(padded > 0);
  CHECK(after.replays == captured * ready.planned.pieces.capturable());
  // After warm-up nothing is compiled, allocated or captured.
  CHECK(after.compilations == before.compilations);
  CHECK(after.allocations == before.allocations);
  CHECK(after.executables == before.executables);
  CHECK(after.stale == 0);
  CHECK(ready.driver.allocated() == allocated);
}

std::string code(const Diagnostics& diagnostics) { return diagnostics.front().code; }

const ModelCase kLlama[] = {{"none", ""}, {"none", "o2"}, {"fp8", ""}, {"fp8", "o2"}};

/// Each with the seeds from `seed` on that are its own.
template <class Check>
void for_each_llama(std::uint64_t seed, std::uint64_t seeds, const Check& check) {
  for (const ModelCase& model : kLlama) {
    INFO(model.quant << " " << model.pipeline);
    check(model, seed);
    seed += seeds;
  }
}

/// The same with a mixture of experts in each layer: routing is captured with the rest.
ModelCase moe(ModelCase model) {
  model.experts = 5;
  return model;
}

}  // namespace

TEST_CASE("runtime: captured, launched and whole give the same bits", "[cuda][diff]") {
  for_each_llama(1, 2, [](const ModelCase& model, std::uint64_t seed) {
    check_traffic(model, seed, 1, 5);
    INFO("moe");
    check_traffic(moe(model), seed + 1, 1, 3);
  });
}

TEST_CASE("runtime: 200 sequences of steps of llama", "[.][slow][cuda][diff]") {
  for_each_llama(100, 50, [](const ModelCase& model, std::uint64_t seed) {
    check_traffic(model, seed, 50, 6);
  });
}

TEST_CASE("runtime: 200 sequences of steps of moe", "[.][slow][cuda][diff]") {
  for_each_llama(300, 50, [](const ModelCase& model, std::uint64_t seed) {
    check_traffic(moe(model), seed, 50, 6);
  });
}

namespace {

/// Every step that has a captured size is one graph, whatever its sequences are.
void check_whole_steps(const ModelCase& model, std::uint64_t first, std::uint64_t count,
                       std::size_t steps) {
  if (no_host_compiler()) return;
  ReadyRuntime ready(whole(model));
  CHECK(ready.runtime->notes().empty());
  const cuda::RuntimeCounters before = ready.runtime->counters();
  CHECK(before.graphs_captured == model.sizes.size());
  CHECK(before.executables == model.sizes.size());
  std::size_t captured = 0, padded = 0, mixed = 0;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    for (const Step& step : traffic(seed, steps)) {
      INFO("seed " << seed << ", " << step.tokens() << " tokens");
      const auto replayed = need(ready.run(step), *ready.planned.context);
      const auto launched = need(ready.run(step, false), *ready.planned.context);
      const auto unsplit = ready.whole(step);
      CHECK(replayed.report.whole == (step.tokens() <= 8));
      CHECK(replayed.report.launches.graphs == (step.tokens() <= 8 ? 1 : 0));
      std::vector<std::int64_t> tokens;
      for (const Sequence& s : step.sequences) tokens.push_back(s.new_tokens);
      captured += replayed.report.whole ? 1 : 0;
      padded += replayed.report.padded > step.tokens() ? 1 : 0;
      mixed += replayed.report.whole && shape_of(tokens).query == 0 ? 1 : 0;
      CHECK(bits_apart(replayed.outputs, unsplit) == "");
      CHECK(bits_apart(launched.outputs, unsplit) == "");
    }
    for (KvCache* cache : {&ready.replayed, &ready.launched, &ready.unsplit}) *cache = KvCache();
  }
  CHECK(captured > 0);
  CHECK(padded > 0);
  CHECK(mixed > 0);
  const cuda::RuntimeCounters& after = ready.runtime->counters();
  CHECK(after.replays == captured);
  CHECK(after.allocations == before.allocations);
  CHECK(after.executables == before.executables);
  CHECK(after.stale == 0);
}

}  // namespace

TEST_CASE("runtime: whole steps as one graph give the same bits", "[cuda][diff]") {
  for_each_llama(40, 1, [](const ModelCase& model, std::uint64_t seed) {
    check_whole_steps(model, seed, 1, 16);
  });
  INFO("moe");
  check_whole_steps(moe({"none", "o2"}), 44, 1, 16);
}

TEST_CASE("runtime: 200 sequences of whole steps", "[.][slow][cuda][diff]") {
  for_each_llama(500, 50, [](const ModelCase& model, std::uint64_t seed) {
    check_whole_steps(model, seed, 50, 6);
  });
}

TEST_CASE("runtime: decodes are one graph, other steps their pieces", "[cuda][diff]") {
  if (no_host_compiler()) return;
  ReadyRuntime ready(whole({"none", "o2"}, "full_and_piecewise"));
  const cuda::RuntimeCounters& c = ready.runtime->counters();
  const std::size_t pieces = ready.planned.pieces.capturable();
  CHECK(c.executables == 4 * pieces + 4);
  // Two sequences begin, go on together, and one of them goes on with two tokens at once.
  const Step begin{{{0, 3, 0}, {1, 2, 0}}}, decode{{{0, 1, 3}, {1, 1, 2}}},
      mixed{{{0, 2, 4}, {1, 1, 3}}};
  std::size_t replays = 0;
  for (const auto& [step, whole] : {std::pair(begin, false), {decode, true}, {mixed, false}}) {
    const auto result = need(ready.run(step), *ready.planned.context);
    CHECK(result.report.whole == whole);
    CHECK(result.report.mode == StepMode::captured);
    CHECK(bits_apart(result.outputs, ready.whole(step)) == "");
    replays += whole ? 1 : pieces;
    CHECK(c.replays == replays);
  }
  CHECK(c.stale == 0);
}

TEST_CASE(
    "runtime: more tokens than there are pages for make whole steps stale, and no number wrong",
    "[cuda][diff]") {
  if (no_host_compiler()) return;
  ModelCase model = whole({});
  model.max_requests = 2;  // 24 tokens and a page for each of 2: 4 pages
  ReadyRuntime ready(model);
  const std::size_t allocations = ready.runtime->counters().allocations;
  Step step{{{0, 8, 0}}};
  for (std::int64_t id = 0; id < 6; ++id) {
    step.sequences = {{id, 8, 0}};
    const auto result = need(ready.run(step), *ready.planned.context);
    CHECK(result.report.whole == (id < 4));
    CHECK(bits_apart(result.outputs, ready.whole(step)) == "");
  }
  // What the first ones had is still there.
  step.sequences = {{0, 1, 8}, {3, 1, 8}};
  CHECK(bits_apart(need(ready.run(step), *ready.planned.context).outputs, ready.whole(step)) == "");
  CHECK(ready.runtime->counters().allocations > allocations);
  CHECK(ready.runtime->counters().stale == 3);
  REQUIRE(ready.runtime->notes().size() == 1);
  CHECK(ready.runtime->notes()[0].find("the whole step is not replayed") == 0);
}

TEST_CASE("runtime: each edge of a whole step is needed", "[cuda]") {
  if (no_host_compiler()) return;
  ReadyRuntime ready(whole({"none", "o2"}));
  const cuda::RecordedGraph graph = need(ready.runtime->record_step(4), *ready.planned.context);
  std::size_t pieces = 0, edges = 0;
  for (std::size_t p = 0; p < ready.planned.pieces.pieces.size(); ++p)
    if (!ready.planned.pieces.pieces[PieceId(p)].splitting)
      pieces += need(ready.runtime->record(PieceId(p), 4), *ready.planned.context).nodes.size();
  CHECK(graph.nodes.size() == pieces + 2 * 2);  // two layers of attention
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    for (std::size_t e = 0; e < graph.nodes[n].after.size(); ++e, ++edges) {
      cuda::RecordedGraph without = graph;
      without.nodes[n].after.erase(without.nodes[n].after.begin() + static_cast<std::ptrdiff_t>(e));
      const auto found = ready.driver.instantiate(without);
      REQUIRE(!found);
      CHECK(code(found.error()) == "PW1251");
    }
  }
  CHECK(edges + 1 >= graph.nodes.size());
}

TEST_CASE("runtime: a whole step with programmatic edges gives the same bits", "[cuda][diff]") {
  if (no_host_compiler()) return;
  for (const std::uint64_t seed : {1, 2, 3, 4, 5}) {
    INFO("seed " << seed);
    cuda::RuntimeOptions options = strict_options();
    options.programmatic_edges = options.early_at_a_loss = true;
    ReadyRuntime ready(whole({"none", "o2"}), {.seed = seed}, options);
    const cuda::RecordedGraph graph = need(ready.runtime->record_step(4), *ready.planned.context);
    std::size_t early = 0, chained = 0;
    for (const cuda::LaunchNode& node : graph.nodes) {
      early += node.early ? 1 : 0;
      chained += node.kind == cuda::LaunchNode::Kind::kernel && node.after.size() == 1 &&
                         graph.nodes[node.after[0]].kind == cuda::LaunchNode::Kind::kernel
                     ? 1
                     : 0;
    }
    CHECK(early == chained);
    CHECK(early > 0);
    CHECK(ready.runtime->counters().early_starts > 0);
    const auto& notes = ready.runtime->notes();
    CHECK(std::any_of(notes.begin(), notes.end(), [](const std::string& note) {
      return note.find("programmatic edges: ") == 0;
    }));
    for (std::int64_t tokens : {1, 2, 4, 8}) {
      const Step step = one_sequence(tokens);
      CHECK(bits_apart(need(ready.run(step), *ready.planned.context).outputs, ready.whole(step)) ==
            "");
      for (KvCache* cache : {&ready.replayed, &ready.unsplit}) *cache = KvCache();
    }
  }
}

TEST_CASE("runtime: a step that could be whole runs piece by piece by hand", "[cuda][diff]") {
  if (no_host_compiler()) return;
  ReadyRuntime ready(whole({}));
  const Step step = one_sequence(3);
  need(ready.runtime->begin_step(step, ready.weights), *ready.planned.context);
  for (const Plan::Step& planned : ready.planned.plan.steps)
    need(ready.runtime->run_piece(planned.piece), *ready.planned.context);
  CHECK(bits_apart(need(ready.runtime->end_step(), *ready.planned.context), ready.whole(step)) ==
        "");
}

TEST_CASE("runtime: a whole step that cannot be recorded, and why", "[cuda][diff]") {
  if (no_host_compiler()) return;
  cuda::HostDriverOptions refusing;
  refusing.refuse_graph = 0;  // the largest
  ReadyRuntime ready(whole({}), refusing);
  CHECK(ready.runtime->counters().failed_captures == 1);
  const auto result = need(ready.run(one_sequence(8)), *ready.planned.context);
  CHECK(result.report.mode == StepMode::eager);
  CHECK(!result.report.whole);
  CHECK(bits_apart(result.outputs, ready.whole(one_sequence(8))) == "");
  CHECK(need(ready.run(one_sequence(4)), *ready.planned.context).report.whole);
}

TEST_CASE("runtime: the routing of experts is a kernel of the piece it stands in", "[cuda]") {
  if (no_host_compiler()) return;
  ReadyRuntime ready(moe({"none", "o2"}));
  CHECK(ready.runtime->notes().empty());
  const StitchedGraph& pieces = ready.planned.pieces;
  CHECK(ready.runtime->counters().capturable_pieces == pieces.capturable());
  std::size_t routed = 0;
  for (const Piece& piece : pieces.pieces)
    for (NodeId n = piece.graph.first(); n.valid(); n = piece.graph.next(n))
      routed += piece.graph.op_of(n).name == "keep_topk" && !piece.splitting ? 1 : 0;
  CHECK(routed == 2);
}

/// Sizes share executables, in pieces and in whole steps, and keep their bits in any order.
TEST_CASE("runtime: graphs of several sizes share an executable", "[cuda][diff]") {
  if (no_host_compiler()) return;
  cuda::RuntimeOptions options = strict_options();
  options.share_executables = true;
  for (const ModelCase& model : {ModelCase{}, whole(ModelCase{"fp8", "o2"})}) {
    INFO(model.mode);
    ReadyRuntime own(model), shared(model, {}, options);
    const cuda::RuntimeCounters &c = own.runtime->counters(), &u = shared.runtime->counters();
    CHECK(u.graphs_captured == c.graphs_captured);
    CHECK(4 * u.executables == c.executables);
    CHECK(4 * u.graph_nodes == c.graph_nodes);
    std::size_t sizes = 0;
    std::int64_t last = 0;
    for (const Step& step : traffic(11, 10)) {
      INFO(step.tokens() << " tokens");
      const auto replayed = need(shared.run(step), *shared.planned.context);
      CHECK(bits_apart(replayed.outputs, shared.whole(step)) == "");
      if (replayed.report.mode != StepMode::captured) continue;
      sizes += replayed.report.padded != last ? 1 : 0;
      last = replayed.report.padded;
    }
    CHECK(sizes > 2);
    // The last captured size is current at the start.
    CHECK(u.updates % u.executables == 0);
    CHECK(u.updates / u.executables >= sizes - 1);
    CHECK(u.updates / u.executables <= sizes);
    CHECK(c.updates == 0);
  }
}

TEST_CASE("runtime: as many graphs as classes and sizes, as many executables as pieces and sizes",
          "[cuda]") {
  if (no_host_compiler()) return;
  ModelCase model;
  model.layers = 12;
  model.sizes = {1, 2};
  ReadyRuntime folded(model);
  const cuda::RuntimeCounters& c = folded.runtime->counters();
  CHECK(c.pieces == 25);
  CHECK(c.capturable_pieces == 13);
  CHECK(c.compilations == 3);
  CHECK(c.graphs_captured == 6);
  CHECK(c.executables == 26);
  model.fold = false;
  ReadyRuntime unfolded(model);
  const cuda::RuntimeCounters& u = unfolded.runtime->counters();
  CHECK(u.pieces == 25);
  CHECK(u.compilations == 13);
  CHECK(u.graphs_captured == 26);
  CHECK(u.graph_nodes == c.graph_nodes);
}

TEST_CASE("runtime: the memory it takes is the plan's", "[cuda]") {
  if (no_host_compiler()) return;
  ReadyRuntime ready({"fp8", "o2"});
  const MemoryPlan& memory = ready.runtime->memory();
  const auto aligned = [](std::int64_t bytes) { return (bytes + 255) / 256 * 256; };
  std::int64_t inputs = 0;
  for (ValueId v : ready.planned.graph.inputs()) {
    const auto extents = extents_of(ready.planned.graph, v, {{ready.planned.plan.tokens, 24}});
    const DType dtype = ready.planned.context->types[ready.planned.graph.type(v)].dtype;
    inputs += aligned(static_cast<std::int64_t>(TensorView{dtype, *extents, nullptr}.bytes()));
  }
  const std::int64_t rest = ready.driver.allocated() - aligned(memory.arena_bytes) - inputs;
  CHECK(rest >= 0);
  CHECK(rest * 20 <= ready.driver.allocated());  // literals, and values outside of the arena
  CHECK(memory.arena_bytes >= memory.live_bytes);
  CHECK(10 * memory.arena_bytes <= 11 * memory.live_bytes);
}

TEST_CASE("runtime: an edge that is taken out is found, each of them", "[cuda]") {
  if (no_host_compiler()) return;
  ReadyRuntime ready({"none", "o2"});
  std::size_t edges = 0;
  for (std::size_t p = 0; p < ready.planned.pieces.pieces.size(); ++p) {
    const PieceId piece(p);
    if (ready.planned.pieces.pieces[piece].splitting) continue;
    cuda::RecordedGraph graph = need(ready.runtime->record(piece, 4), *ready.planned.context);
    CHECK(ready.driver.instantiate(graph));
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
      for (std::size_t e = 0; e < graph.nodes[n].after.size(); ++e) {
        cuda::RecordedGraph without = graph;
        without.nodes[n].after.erase(without.nodes[n].after.begin() +
                                     static_cast<std::ptrdiff_t>(e));
        const auto found = ready.driver.instantiate(without);
        REQUIRE(!found);
        CHECK(code(found.error()) == "PW1251");
        ++edges;
      }
    }
  }
  CHECK(edges >= 8);
}

TEST_CASE("runtime: memory that has moved is not replayed", "[cuda][diff]") {
  if (no_host_compiler()) return;
  ReadyRuntime ready({});
  const Step step = one_sequence(3);
  const auto expected = ready.whole(step);
  CHECK(bits_apart(need(ready.run(step), *ready.planned.context).outputs, expected) == "");
  CHECK(ready.runtime->counters().stale == 0);
  need(ready.runtime->load(ready.weights), *ready.planned.context);
  CHECK(bits_apart(need(ready.run(step), *ready.planned.context).outputs, expected) == "");
  CHECK(ready.runtime->counters().stale == ready.planned.pieces.capturable());
  REQUIRE(!ready.runtime->notes().empty());
  CHECK(ready.runtime->notes().back().find("has moved") != std::string::npos);
}

TEST_CASE("runtime: a plan with its memory gives the same bits and places, read back from its text",
          "[cuda][diff]") {
  if (no_host_compiler()) return;
  ReadyRuntime ready({"none", "o2"});
  PlannedModel& planned = ready.planned;
  planned.plan.memory = ready.runtime->memory();
  const std::string text = plan_to_json(planned.plan, planned.pieces);
  const PlanDocument document = need(plan_from_json(text, "plan.json"), *planned.context);
  const Plan bound = need(bind_plan(document, planned.pieces, planned.graph), *planned.context);
  cuda::HostDriver driver(cached());
  auto again =
      need(cuda::Runtime::make(planned.pieces, planned.graph, bound, driver, strict_options()),
           *planned.context);
  need(again->load(ready.weights), *planned.context);
  need(again->capture(), *planned.context);
  for (std::size_t i = 0; i < ready.runtime->memory().slots.size(); ++i)
    CHECK(again->memory().slots[i].offset == ready.runtime->memory().slots[i].offset);
  RunOptions options;
  options.poison = true;
  const auto result = need(again->run(one_sequence(3), ready.weights, options), *planned.context);
  CHECK(bits_apart(result.outputs, ready.whole(one_sequence(3))) == "");
  CHECK(again->counters().replays > 0);
}

TEST_CASE("runtime: a wrong place is refused by what the graph and its launches need", "[cuda]") {
  if (no_host_compiler()) return;
  ReadyRuntime ready({"none", "o2"});
  PlannedModel& planned = ready.planned;
  const auto refused = [&](const std::function<void(MemoryPlan&)>& change) {
    Plan plan = planned.plan;
    plan.memory = ready.runtime->memory();
    change(plan.memory);
    cuda::HostDriver driver(cached());
    const auto made =
        cuda::Runtime::make(planned.pieces, planned.graph, plan, driver, strict_options());
    REQUIRE(!made);
    CHECK(driver.allocated() == 0);
    return code(made.error());
  };
  const auto lasting = [](MemoryPlan& memory) -> Slot& {
    for (Slot& slot : memory.slots)
      if (slot.last > slot.first + 1 && slot.storage == slot.value) return slot;
    FAIL("no value is alive over several pieces");
    return memory.slots.front();
  };
  // Slots of two values that are alive together, swapped for those of others.
  CHECK(refused([&](MemoryPlan& memory) {
          Slot& slot = lasting(memory);
          for (Slot& other : memory.slots)
            if (other.first > slot.last && other.storage == other.value) {
              std::swap(slot.offset, other.offset);
              std::swap(slot.first, other.first);
              std::swap(slot.last, other.last);
              return;
            }
        }) == "PW0745");
  // A lifetime that is too short, so that another value may have the bytes.
  CHECK(refused([&](MemoryPlan& memory) {
          Slot& slot = lasting(memory);
          slot.last -= 1;
          for (Slot& other : memory.slots)
            if (other.first > slot.last && other.storage == other.value &&
                other.bytes <= slot.bytes)
              other.offset = slot.offset;
        }) == "PW0745");
  // The same between the launches of a piece.
  const auto between = [](MemoryPlan& memory) -> Scratch& {
    for (std::vector<Scratch>& piece : memory.scratch)
      for (Scratch& s : piece)
        if (s.last > s.first) return s;
    FAIL("no value is handed from launch to launch");
    return memory.scratch[0][0];
  };
  CHECK(refused([&](MemoryPlan& memory) { between(memory).last -= 1; }) == "PW1256");
  CHECK(refused([&](MemoryPlan& memory) { between(memory).bytes -= 256; }) == "PW1256");
  CHECK(refused([&](MemoryPlan& memory) {
          for (std::vector<Scratch>& piece : memory.scratch)
            if (!piece.empty()) return piece.pop_back();
        }) == "PW1256");
  CHECK(refused([&](MemoryPlan& memory) {
          for (std::vector<Scratch>& piece : memory.scratch)
            if (piece.size() > 1) piece[1].offset = piece[0].offset;
        }) == "PW0745");
}

TEST_CASE("runtime: pieces run in the plan's order", "[cuda]") {
  if (no_host_compiler()) return;
  ReadyRuntime ready({});
  const auto none = ready.runtime->run_piece(PieceId(0));
  REQUIRE(!none);
  CHECK(code(none.error()) == "PW1254");
  need(ready.runtime->begin_step(one_sequence(2), ready.weights), *ready.planned.context);
  const auto early = ready.runtime->run_piece(PieceId(2));
  REQUIRE(!early);
  CHECK(code(early.error()) == "PW1254");
  CHECK(early.error().front().message.find("piece_0") != std::string::npos);
  need(ready.runtime->run_piece(PieceId(0)), *ready.planned.context);
  CHECK(!ready.runtime->run_piece(PieceId(0)));
  const auto unfinished = ready.runtime->end_step();
  REQUIRE(!unfinished);
  CHECK(code(unfinished.error()) == "PW1254");
}

TEST_CASE("runtime: sizes beyond the captured ones, and steps beyond the plan", "[cuda][diff]") {
  if (no_host_compiler()) return;
  ReadyRuntime ready({});
  const auto result = need(ready.run(one_sequence(20)), *ready.planned.context);
  CHECK(result.report.mode == StepMode::eager);
  CHECK(result.report.reason == "above the largest captured size, 8");
  CHECK(bits_apart(result.outputs, ready.whole(one_sequence(20))) == "");
  const auto beyond = ready.run(one_sequence(25));
  REQUIRE(!beyond);
  CHECK(code(beyond.error()) == "PW1207");
}

TEST_CASE("runtime: too little memory is reported before any capture", "[cuda]") {
  if (no_host_compiler()) return;
  cuda::HostDriverOptions small;
  small.capacity = 40'000;
  cuda::HostDriver driver(cached(small));
  PlannedModel planned({});
  auto made =
      cuda::Runtime::make(planned.pieces, planned.graph, planned.plan, driver, strict_options());
  Weights weights(planned.graph, 7);
  Diagnostics why;
  if (!made) {
    why = made.error();
  } else {
    const auto loaded = (*made)->load(weights);
    REQUIRE(!loaded);
    why = loaded.error();
    CHECK((*made)->counters().graphs_captured == 0);
    made->reset();
  }
  CHECK(code(why) == "PW1250");
  CHECK(why.front().help.find("arena: ") != std::string::npos);
  CHECK(why.front().help.find("weights: ") != std::string::npos);
  CHECK(driver.allocated() == 0);
}

TEST_CASE("runtime: a graph that cannot be captured is launched node by node", "[cuda][diff]") {
  if (no_host_compiler()) return;
  cuda::HostDriverOptions refusing;
  refusing.refuse_graph = 4;
  ReadyRuntime ready({}, refusing);
  CHECK(ready.runtime->counters().failed_captures == 1);
  CHECK(ready.runtime->counters().executables == 4 * ready.planned.pieces.capturable() - 1);
  REQUIRE(ready.runtime->notes().size() == 1);
  for (std::int64_t tokens : {1, 2, 4, 8})
    CHECK(bits_apart(need(ready.run(one_sequence(tokens)), *ready.planned.context).outputs,
                     ready.whole(one_sequence(tokens))) == "");
  CHECK(ready.runtime->counters().launches > 0);
}

TEST_CASE("runtime: a device that fails stays failed, and names the place", "[cuda]") {
  if (no_host_compiler()) return;
  cuda::HostDriverOptions breaking;
  breaking.break_replay = 2;
  ReadyRuntime ready({}, breaking);
  const auto failed = ready.run(one_sequence(4));
  REQUIRE(!failed);
  CHECK(code(failed.error()) == "PW1253");
  CHECK(failed.error().front().place.find("piece_") != std::string::npos);
  const auto again = ready.run(one_sequence(4));
  REQUIRE(!again);
  CHECK(code(again.error()) == "PW1253");
}

TEST_CASE("runtime: nothing is captured after the first step", "[cuda]") {
  if (no_host_compiler()) return;
  ReadyRuntime ready({});
  need(ready.run(one_sequence(1)), *ready.planned.context);
  const auto late = ready.runtime->capture();
  REQUIRE(!late);
  CHECK(code(late.error()) == "PW1255");
}
