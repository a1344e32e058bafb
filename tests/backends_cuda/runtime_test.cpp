// Steps on the host driver: captured ≡ launched ≡ the whole graph, with all padding poisoned; what
// is done before the first step; and every failure.
#include "cuda/runtime.hpp"

#include <functional>
#include <set>

#include <fmt/format.h>

#include "backends/cpu/cpu.hpp"
#include "backends/program.hpp"
#include "base/hash.hpp"
#include "codegen/toolchain.hpp"
#include "cuda/device/graph_reader.hpp"
#include "cuda/device/host_driver.hpp"
#include "cuda/device/nvrtc.hpp"
#include "cuda/many_steps.hpp"
#include "dsl/dsl.hpp"
#include "models/generate.hpp"
#include "rewriter/rewriter.hpp"
#include "splitter/plan_text.hpp"
#include "tensor/kv_cache.hpp"
#include "tests/backends_cuda/kernel_run.hpp"
#include "tests/backends_cuda/stand_in.hpp"
#include "tests/catch.hpp"

using namespace pw;
using namespace pw::test;

namespace {

struct Model {
  std::string quant = "none", pipeline;
  std::int64_t layers = 2, experts = 0;
  bool fold = true;
  std::vector<std::int64_t> sizes{1, 2, 4, 8};
  std::string mode = "piecewise";
  std::int64_t max_requests = 256;
  std::string lm_head = "none";
};

/// A graph, cut and planned.
struct Planned {
  explicit Planned(const Model& model)
      : context(library()), graph(make(model)), pieces(cut(model)), plan(decide(model)) {}
  Planned(const Planned&) = delete;

  Graph make(const Model& model) const {
    LlamaOptions options;
    options.layers = model.layers;
    options.hidden = 64;
    options.heads = 4;
    options.kv_heads = 2;
    options.ffn = 96;
    options.vocab = 64;
    options.positions = 128;
    options.max_tokens = 24;
    options.quant = model.quant;
    options.lm_head = model.lm_head;
    options.experts = model.experts;
    return need(generate_llama(context, options), *context);
  }

  /// Rewritten first.
  StitchedGraph cut(const Model& model) {
    RuleSet rules = need(load_rules(context, {"llm"}), *context);
    const Env params = need(bind_params(rules, {}), *context);
    if (!model.pipeline.empty()) need(run_pipeline(graph, rules, model.pipeline, params), *context);
    SplitOptions options;
    options.fold = model.fold;
    return need(
        split(graph, need(splitting_ops(context, &rules, params, options), *context), options),
        *context);
  }
  Plan decide(const Model& model) const {
    PlanOptions options;
    options.max_tokens = 24;
    options.capture_sizes = model.sizes;
    options.mode = model.mode;
    options.max_requests = model.max_requests;
    return need(make_plan(pieces, graph, options), *context);
  }

  ContextPtr context;
  Graph graph;
  StitchedGraph pieces;
  Plan plan;
};

cuda::RuntimeOptions strict(std::int64_t cached_tokens = 0) {
  cuda::RuntimeOptions options;
  options.strict = true;
  options.cached_tokens = cached_tokens;
  return options;
}

/// A runtime that is ready, and what it needs.
struct Ready {
  explicit Ready(const Model& model, const cuda::HostDriverOptions& how = {},
                 const cuda::RuntimeOptions& options = strict())
      : planned(model),
        driver(cached(how)),
        weights(planned.graph, 7),
        runtime(
            need(cuda::Runtime::make(planned.pieces, planned.graph, planned.plan, driver, options),
                 *planned.context)) {
    need(runtime->load(weights), *planned.context);
    need(runtime->capture(), *planned.context);
  }
  Result<StepResult> run(Step step, bool pad = true) {
    step.cache = pad ? &replayed : &launched;
    RunOptions options;
    options.pad = pad;
    options.poison = true;
    return runtime->run(step, weights, options);
  }
  /// The graph whole, at its own size, with the interpreter's bits.
  std::vector<Tensor> whole(Step step) {
    step.cache = &unsplit;
    BackendOptions options;
    options.strict = true;
    CpuBackend backend(options);
    return need(run_whole(planned.graph, backend, weights, step), *planned.context);
  }

  Planned planned;
  cuda::HostDriver driver;
  Weights weights;
  KvCache replayed, launched, unsplit;  ///< what attention remembers, each run its own
  std::unique_ptr<cuda::Runtime> runtime;
};

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

bool no_compiler() {
  if (!host_compiler().empty()) return false;
  WARN("SKIPPED: no C++ compiler on PATH, so the host run is not tested");
  return true;
}

void check_traffic(const Model& model, std::uint64_t first, std::uint64_t count,
                   std::size_t steps) {
  if (no_compiler()) return;
  Ready ready(model);
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

const Model kLlama[] = {{"none", ""}, {"none", "o2"}, {"fp8", ""}, {"fp8", "o2"}};

/// Each with the seeds from `seed` on that are its own.
template <class Check>
void for_each_llama(std::uint64_t seed, std::uint64_t seeds, const Check& check) {
  for (const Model& model : kLlama) {
    INFO(model.quant << " " << model.pipeline);
    check(model, seed);
    seed += seeds;
  }
}

/// The same with a mixture of experts in each layer: routing is captured with the rest.
Model moe(Model model) {
  model.experts = 5;
  return model;
}

}  // namespace

TEST_CASE("runtime: captured, launched and whole give the same bits", "[cuda][diff]") {
  for_each_llama(1, 2, [](const Model& model, std::uint64_t seed) {
    check_traffic(model, seed, 1, 5);
    INFO("moe");
    check_traffic(moe(model), seed + 1, 1, 3);
  });
}

TEST_CASE("runtime: 200 sequences of steps of llama", "[.][slow][cuda][diff]") {
  for_each_llama(100, 50,
                 [](const Model& model, std::uint64_t seed) { check_traffic(model, seed, 50, 6); });
}

TEST_CASE("runtime: 200 sequences of steps of moe", "[.][slow][cuda][diff]") {
  for_each_llama(300, 50, [](const Model& model, std::uint64_t seed) {
    check_traffic(moe(model), seed, 50, 6);
  });
}

namespace {

Model whole(Model model, const std::string& mode = "full") {
  model.mode = mode;
  return model;
}

/// Every step that has a captured size is one graph, whatever its sequences are.
void check_whole_steps(const Model& model, std::uint64_t first, std::uint64_t count,
                       std::size_t steps) {
  if (no_compiler()) return;
  Ready ready(whole(model));
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
  for_each_llama(
      40, 1, [](const Model& model, std::uint64_t seed) { check_whole_steps(model, seed, 1, 16); });
  INFO("moe");
  check_whole_steps(moe({"none", "o2"}), 44, 1, 16);
}

TEST_CASE("runtime: 200 sequences of whole steps", "[.][slow][cuda][diff]") {
  for_each_llama(500, 50, [](const Model& model, std::uint64_t seed) {
    check_whole_steps(model, seed, 50, 6);
  });
}

TEST_CASE("runtime: decodes are one graph, other steps their pieces", "[cuda][diff]") {
  if (no_compiler()) return;
  Ready ready(whole({"none", "o2"}, "full_and_piecewise"));
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
  if (no_compiler()) return;
  Model model = whole({});
  model.max_requests = 2;  // 24 tokens and a page for each of 2: 4 pages
  Ready ready(model);
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
  if (no_compiler()) return;
  Ready ready(whole({"none", "o2"}));
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
  if (no_compiler()) return;
  for (const std::uint64_t seed : {1, 2, 3, 4, 5}) {
    INFO("seed " << seed);
    cuda::RuntimeOptions options = strict();
    options.programmatic_edges = options.early_at_a_loss = true;
    Ready ready(whole({"none", "o2"}), {.seed = seed}, options);
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
  if (no_compiler()) return;
  Ready ready(whole({}));
  const Step step = one_sequence(3);
  need(ready.runtime->begin_step(step, ready.weights), *ready.planned.context);
  for (const Plan::Step& planned : ready.planned.plan.steps)
    need(ready.runtime->run_piece(planned.piece), *ready.planned.context);
  CHECK(bits_apart(need(ready.runtime->end_step(), *ready.planned.context), ready.whole(step)) ==
        "");
}

TEST_CASE("runtime: a whole step that cannot be recorded, and why", "[cuda][diff]") {
  if (no_compiler()) return;
  cuda::HostDriverOptions refusing;
  refusing.refuse_graph = 0;  // the largest
  Ready ready(whole({}), refusing);
  CHECK(ready.runtime->counters().failed_captures == 1);
  const auto result = need(ready.run(one_sequence(8)), *ready.planned.context);
  CHECK(result.report.mode == StepMode::eager);
  CHECK(!result.report.whole);
  CHECK(bits_apart(result.outputs, ready.whole(one_sequence(8))) == "");
  CHECK(need(ready.run(one_sequence(4)), *ready.planned.context).report.whole);
}

TEST_CASE("runtime: the routing of experts is a kernel of the piece it stands in", "[cuda]") {
  if (no_compiler()) return;
  Ready ready(moe({"none", "o2"}));
  CHECK(ready.runtime->notes().empty());
  const StitchedGraph& pieces = ready.planned.pieces;
  CHECK(ready.runtime->counters().capturable_pieces == pieces.capturable());
  std::size_t routed = 0;
  for (const Piece& piece : pieces.pieces)
    for (NodeId n = piece.graph.first(); n.valid(); n = piece.graph.next(n))
      routed += piece.graph.op_of(n).name == "keep_topk" && !piece.splitting ? 1 : 0;
  CHECK(routed == 2);
}

TEST_CASE("runtime: as many graphs as classes and sizes, as many executables as pieces and sizes",
          "[cuda]") {
  if (no_compiler()) return;
  Model model;
  model.layers = 12;
  model.sizes = {1, 2};
  Ready folded(model);
  const cuda::RuntimeCounters& c = folded.runtime->counters();
  CHECK(c.pieces == 25);
  CHECK(c.capturable_pieces == 13);
  CHECK(c.compilations == 3);
  CHECK(c.graphs_captured == 6);
  CHECK(c.executables == 26);
  model.fold = false;
  Ready unfolded(model);
  const cuda::RuntimeCounters& u = unfolded.runtime->counters();
  CHECK(u.pieces == 25);
  CHECK(u.compilations == 13);
  CHECK(u.graphs_captured == 26);
  CHECK(u.graph_nodes == c.graph_nodes);
}

TEST_CASE("runtime: the memory it takes is the plan's", "[cuda]") {
  if (no_compiler()) return;
  Ready ready({"fp8", "o2"});
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
  if (no_compiler()) return;
  Ready ready({"none", "o2"});
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
  if (no_compiler()) return;
  Ready ready({});
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
  if (no_compiler()) return;
  Ready ready({"none", "o2"});
  Planned& planned = ready.planned;
  planned.plan.memory = ready.runtime->memory();
  const std::string text = plan_to_json(planned.plan, planned.pieces);
  const PlanDocument document = need(plan_from_json(text, "plan.json"), *planned.context);
  const Plan bound = need(bind_plan(document, planned.pieces, planned.graph), *planned.context);
  cuda::HostDriver driver(cached());
  auto again = need(cuda::Runtime::make(planned.pieces, planned.graph, bound, driver, strict()),
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
  if (no_compiler()) return;
  Ready ready({"none", "o2"});
  Planned& planned = ready.planned;
  const auto refused = [&](const std::function<void(MemoryPlan&)>& change) {
    Plan plan = planned.plan;
    plan.memory = ready.runtime->memory();
    change(plan.memory);
    cuda::HostDriver driver(cached());
    const auto made = cuda::Runtime::make(planned.pieces, planned.graph, plan, driver, strict());
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
  if (no_compiler()) return;
  Ready ready({});
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
  if (no_compiler()) return;
  Ready ready({});
  const auto result = need(ready.run(one_sequence(20)), *ready.planned.context);
  CHECK(result.report.mode == StepMode::eager);
  CHECK(result.report.reason == "above the largest captured size, 8");
  CHECK(bits_apart(result.outputs, ready.whole(one_sequence(20))) == "");
  const auto beyond = ready.run(one_sequence(25));
  REQUIRE(!beyond);
  CHECK(code(beyond.error()) == "PW1207");
}

TEST_CASE("runtime: too little memory is reported before any capture", "[cuda]") {
  if (no_compiler()) return;
  cuda::HostDriverOptions small;
  small.capacity = 40'000;
  cuda::HostDriver driver(cached(small));
  Planned planned({});
  auto made = cuda::Runtime::make(planned.pieces, planned.graph, planned.plan, driver, strict());
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
  if (no_compiler()) return;
  cuda::HostDriverOptions refusing;
  refusing.refuse_graph = 4;
  Ready ready({}, refusing);
  CHECK(ready.runtime->counters().failed_captures == 1);
  CHECK(ready.runtime->counters().executables == 4 * ready.planned.pieces.capturable() - 1);
  REQUIRE(ready.runtime->notes().size() == 1);
  for (std::int64_t tokens : {1, 2, 4, 8})
    CHECK(bits_apart(need(ready.run(one_sequence(tokens)), *ready.planned.context).outputs,
                     ready.whole(one_sequence(tokens))) == "");
  CHECK(ready.runtime->counters().launches > 0);
}

TEST_CASE("runtime: a device that fails stays failed, and names the place", "[cuda]") {
  if (no_compiler()) return;
  cuda::HostDriverOptions breaking;
  breaking.break_replay = 2;
  Ready ready({}, breaking);
  const auto failed = ready.run(one_sequence(4));
  REQUIRE(!failed);
  CHECK(code(failed.error()) == "PW1253");
  CHECK(failed.error().front().place.find("piece_") != std::string::npos);
  const auto again = ready.run(one_sequence(4));
  REQUIRE(!again);
  CHECK(code(again.error()) == "PW1253");
}

TEST_CASE("runtime: nothing is captured after the first step", "[cuda]") {
  if (no_compiler()) return;
  Ready ready({});
  need(ready.run(one_sequence(1)), *ready.planned.context);
  const auto late = ready.runtime->capture();
  REQUIRE(!late);
  CHECK(code(late.error()) == "PW1255");
}

namespace {

/// The token after the last row, and the inputs of the next step.
double chosen(Ready& ready, const Step& step, const std::vector<Tensor>& outputs) {
  ready.weights.write_back(ready.planned.graph, outputs, step);
  return values_of(outputs[0].view()).back();
}

/// Generates tokens after a prompt: by replayed graphs of whole steps, launch by launch, and by the
/// CPU backend on the whole graph.
void check_decode(const std::string& lm_head, std::size_t inputs_a_step, std::int64_t count) {
  if (no_compiler()) return;
  constexpr std::int64_t kPrompt = 5;
  Model model = whole({"none", "o2"});
  model.lm_head = lm_head;
  const cuda::RuntimeOptions options = strict(2 * count);
  Ready replayed(model, {}, options), launched(model, {}, options), on_cpu(model, {}, options);
  CHECK(replayed.runtime->notes().empty());
  std::vector<double> tokens;
  Step step{{{0, kPrompt, 0}}};
  const std::vector<double> prompt = values_of(
      need(on_cpu.weights.tensor("ids", {{"n", kPrompt}}, step), *on_cpu.planned.context).view());
  for (std::int64_t i = 0; i < count; ++i) {
    INFO("token " << i);
    const auto graph = need(replayed.run(step), *replayed.planned.context);
    const auto launches = need(launched.run(step, false), *launched.planned.context);
    CHECK(graph.report.whole);
    CHECK(launches.report.mode == StepMode::eager);
    tokens.push_back(chosen(replayed, step, graph.outputs));
    CHECK(chosen(launched, step, launches.outputs) == tokens.back());
    CHECK(chosen(on_cpu, step, on_cpu.whole(step)) == tokens.back());
    step = {{{0, 1, kPrompt + i}}};
  }
  // Ids and positions are uploaded only for the prompt, and for the first token in the other size.
  const std::size_t others = (inputs_a_step - 2) * static_cast<std::size_t>(count);
  CHECK(replayed.runtime->counters().uploads == 4 + others);
  CHECK(launched.runtime->counters().uploads == 4 + others);
  CHECK(std::set<double>(tokens.begin(), tokens.end()).size() > 1);

  // The same tokens as a prompt: each row has the token that follows it.
  constexpr std::int64_t kRows = 20;
  std::vector<double> ids = prompt;
  ids.insert(ids.end(), tokens.begin(), tokens.begin() + kRows - kPrompt);
  Ready forced(model, {}, options);
  const Tensor given(DType::i64, {kRows});
  std::copy(ids.begin(), ids.end(), reinterpret_cast<std::int64_t*>(given.data()));
  forced.weights.give("ids", given);
  const std::vector<double> rows = values_of(forced.whole({{{0, kRows, 0}}})[0].view());
  CHECK(std::vector<double>(rows.begin() + kPrompt - 1, rows.end()) ==
        std::vector<double>(tokens.begin(), tokens.begin() + kRows - kPrompt + 1));
}

}  // namespace

TEST_CASE("runtime: tokens by graphs of whole steps equal those by launches", "[cuda][diff]") {
  check_decode("greedy", 2, 20);
  check_decode("temperature=1.5,top_k=20,top_p=0.9", 3, 20);
}

TEST_CASE("runtime: 64 tokens by graphs of whole steps equal those by launches",
          "[.][slow][cuda][diff]") {
  check_decode("greedy", 2, 64);
  check_decode("temperature=1.5,top_k=20,top_p=0.9", 3, 64);
}

namespace {

cuda::HostDriverOptions plain_attention() { return {.libraries = false, .arch = "sm_70"}; }

cuda::RuntimeOptions early(std::int64_t steps_in_launch = 0) {
  cuda::RuntimeOptions options;
  options.cached_tokens = 256;
  options.programmatic_edges = options.early_at_a_loss = true;
  options.steps_in_launch = steps_in_launch;
  return options;
}

Model decoder(const std::string& lm_head) {
  Model model = whole({"none", "o2"});
  model.lm_head = lm_head;
  model.layers = 1;
  model.max_requests = 8;
  model.sizes = {1, 4, 8};
  return model;
}

constexpr const char* kSampled = "temperature=1.5,top_k=20,top_p=0.9";

/// Generates tokens with programmatic edges: by replayed graphs, in random orders, and launch by
/// launch.
void check_early_decode(const std::string& lm_head, std::int64_t count) {
  if (no_compiler()) return;
  const Model model = decoder(lm_head);
  Ready replayed(model, {}, early()), launched(model, {.seed = 5}, early());
  CHECK(replayed.runtime->counters().early_starts > 0);
  Step step{{{0, 5, 0}}};
  std::set<double> tokens;
  for (std::int64_t i = 0; i < count; ++i) {
    INFO("token " << i);
    const auto graph = need(replayed.run(step), *replayed.planned.context);
    const auto launches = need(launched.run(step, false), *launched.planned.context);
    CHECK(graph.report.whole);
    CHECK(bits_apart(graph.outputs, launches.outputs) == "");
    tokens.insert(chosen(replayed, step, graph.outputs));
    chosen(launched, step, launches.outputs);
    step = {{{0, 1, 5 + i}}};
  }
  CHECK(tokens.size() > 1);
}

using TokenLists = std::vector<std::vector<std::int64_t>>;

/// A runtime that continues sequences, and the sequences.
struct Continued {
  Continued(const Model& model, std::int64_t steps_in_launch,
            const cuda::HostDriverOptions& how = plain_attention())
      : ready(model, how, early(steps_in_launch)) {}
  cuda::ManySteps run(Step step, const cuda::LoopLimits& limits) {
    step.cache = &ready.replayed;
    RunOptions options;
    options.poison = true;
    return need(cuda::run_many(*ready.runtime, step, ready.weights, limits, options),
                *ready.planned.context);
  }
  /// Gives each row a seed, because seeds that are generated follow positions.
  void give_seeds(std::int64_t rows) {
    const Tensor seeds(DType::i64, {rows});
    for (std::int64_t i = 0; i < rows; ++i)
      reinterpret_cast<std::int64_t*>(seeds.data())[i] = 11 * i + 3;
    ready.weights.give("seeds", seeds);
  }
  const cuda::RuntimeCounters& counters() const { return ready.runtime->counters(); }
  Ready ready;
};

Step beginnings(std::int64_t sequences) {
  Step step;
  for (std::int64_t i = 0; i < sequences; ++i) step.sequences.push_back({i, 1, 0});
  return step;
}

}  // namespace

TEST_CASE("runtime: tokens with early starts are those of launches", "[cuda][diff]") {
  check_early_decode(kSampled, 8);
}

TEST_CASE("runtime: 64 tokens with early starts are those of launches", "[.][slow][cuda][diff]") {
  check_early_decode("greedy", 64);
  check_early_decode(kSampled, 64);
}

namespace {

/// Single steps and loops of 20 steps choose the same tokens, also of sequences that end.
void check_loops(const std::string& lm_head, std::int64_t sequences, std::int64_t steps) {
  if (no_compiler()) return;
  INFO(lm_head << ", " << sequences << " sequences");
  const bool drawn = lm_head != "greedy";
  const Model model = decoder(lm_head);
  Continued single(model, 0), looped(model, 20);
  CHECK(looped.ready.runtime->notes() == single.ready.runtime->notes());
  CHECK(looped.counters().loops == model.sizes.size());
  CHECK(looped.counters().executables == single.counters().executables + model.sizes.size());
  if (drawn)
    for (Continued* c : {&single, &looped}) c->give_seeds(sequences);
  const auto wanted = single.run(beginnings(sequences), {steps, {}});
  const auto got = looped.run(beginnings(sequences), {steps, {}});
  CHECK(got.tokens == wanted.tokens);
  CHECK(got.steps == steps);
  CHECK(looped.counters().loop_replays == static_cast<std::size_t>((steps + 19) / 20));
  CHECK(looped.counters().looped_steps == static_cast<std::size_t>(steps));
  CHECK(looped.counters().replays == 0);
  CHECK(single.counters().replays == static_cast<std::size_t>(steps));
  if (drawn && sequences > 1) return;  // fewer rows would need other seeds
  const std::vector<std::int64_t> ends{wanted.tokens[0][3], wanted.tokens[0].back()};
  const auto ended = single.run(wanted.next, {12, ends});
  const auto ended_in_loop = looped.run(got.next, {12, ends});
  CHECK(ended_in_loop.tokens == ended.tokens);
  CHECK(ended_in_loop.next.sequences.size() == ended.next.sequences.size());
}

}  // namespace

TEST_CASE("runtime: many steps in one launch choose the tokens of single steps", "[cuda][diff]") {
  check_loops("greedy", 3, 24);
  check_loops(kSampled, 1, 64);
}

TEST_CASE("runtime: loops of steps for more sequences", "[.][slow][cuda][diff]") {
  for (const char* lm_head : {"greedy", kSampled})
    for (const std::int64_t sequences : {1, 2, 4, 7}) check_loops(lm_head, sequences, 64);
}

TEST_CASE("runtime: a loop of steps ends with its sequences, and when it is cancelled",
          "[cuda][diff]") {
  if (no_compiler()) return;
  const Model model = decoder("greedy");
  Continued single(model, 0);
  const TokenLists all = single.run(beginnings(2), {24, {}}).tokens;
  const std::int64_t end = all[0][6];
  TokenLists cut = all;
  for (std::vector<std::int64_t>& tokens : cut) {
    const auto at = std::find(tokens.begin(), tokens.end(), end);
    if (at != tokens.end()) tokens.erase(at + 1, tokens.end());
  }
  Continued looped(model, 24);
  const auto ended = looped.run(beginnings(2), {24, {end, -5}});
  CHECK(ended.tokens == cut);
  CHECK(ended.steps == static_cast<std::int64_t>(std::max(cut[0].size(), cut[1].size())));
  CHECK(looped.counters().loop_replays == 1);
  CHECK(ended.next.sequences.size() == (cut[1].size() == 24 ? 1 : 0));

  // A signal arrives when a pass ends, so one more pass runs.
  cuda::Runtime* runtime = nullptr;
  cuda::HostDriverOptions how = plain_attention();
  how.after_pass = [&](std::size_t pass) {
    if (runtime != nullptr && pass == 12) REQUIRE(runtime->loop().cancel());
  };
  Continued stopped(model, 24, how);
  runtime = stopped.ready.runtime.get();
  const auto first = stopped.run(beginnings(2), {24, {}});
  CHECK(first.steps == 13);
  runtime = nullptr;
  const auto rest = stopped.run(first.next, {24 - first.steps, {}});
  TokenLists joined = first.tokens;
  for (std::size_t i = 0; i < joined.size(); ++i)
    joined[i].insert(joined[i].end(), rest.tokens[i].begin(), rest.tokens[i].end());
  CHECK(joined == all);
}

TEST_CASE("runtime: steps that no loop runs are launched one by one, and the reason is noted",
          "[cuda]") {
  if (no_compiler()) return;
  Model pieces = decoder("greedy");
  pieces.mode = "piecewise";
  for (const Model& model : {pieces, decoder("none")}) {
    const Ready ready(model, plain_attention(), early(8));
    CHECK(ready.runtime->counters().loops == 0);
    const auto& notes = ready.runtime->notes();
    CHECK(std::any_of(notes.begin(), notes.end(), [](const std::string& note) {
      return note.starts_with("steps are launched one by one: ");
    }));
  }
}

TEST_CASE("runtime: a loop of steps is captured as a conditional node with one body",
          "[cuda][lens]") {
  const StandIn device;
  const cuda::Nvrtc nvrtc = cuda::Nvrtc::open();
  if (!device.present() || !nvrtc.present()) {
    WARN("SKIPPED: no C++ compiler or no NVRTC");
    return;
  }
  device.function<void(int (*)(const char*), void (*)(const char*, const std::uint64_t*))>(
      "stand_in_kernels")([](const char*) { return 0; }, [](const char*, const std::uint64_t*) {});
  const auto driver = device.driver();
  const Model model = decoder("greedy");
  const Planned planned(model);
  Weights weights(planned.graph, 7);
  const auto runtime =
      need(cuda::Runtime::make(planned.pieces, planned.graph, planned.plan, *driver, early(20)),
           *planned.context);
  need(runtime->load(weights), *planned.context);
  need(runtime->capture(), *planned.context);
  const auto executable = device.function<void*(std::size_t)>("stand_in_executable");
  std::set<std::uint64_t> steps, bodies;  // numbers of kernels
  for (std::size_t i = 0; void* made = executable(i); ++i) {
    const auto read =
        cuda::read_captured_graph(reinterpret_cast<std::uint64_t>(made), "g", device.path());
    REQUIRE(read);
    const CapturedSummary summary = summary_of(*read);
    const std::uint64_t kernels = summary.count(LaunchKind::kernel);
    if (summary.count(LaunchKind::conditional) == 0) {
      CHECK(summary.kernels_in_bodies == 0);
      steps.insert(kernels);
      continue;
    }
    CHECK(summary.kernels_in_bodies == kernels);
    CHECK(read->nodes.back().condition == CapturedCondition{ConditionKind::loop, 1});
    for (std::size_t n = 0; n + 1 < read->nodes.size(); ++n) CHECK(read->nodes[n].inside);
    bodies.insert(kernels);
  }
  CHECK(runtime->counters().loops == model.sizes.size());
  REQUIRE(!bodies.empty());
  for (const std::uint64_t kernels : bodies) CHECK(steps.count(kernels - 1) == 1);
}
