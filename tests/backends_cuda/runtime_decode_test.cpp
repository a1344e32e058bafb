// Generated tokens: whole steps as graphs, with early starts, and many steps in one launch choose
// the tokens of launches one by one.
#include <algorithm>
#include <set>

#include "cuda/device/graph_reader.hpp"
#include "cuda/device/nvrtc.hpp"
#include "cuda/many_steps.hpp"
#include "tests/backends_cuda/kernel_run.hpp"
#include "tests/backends_cuda/runtime_cases.hpp"
#include "tests/backends_cuda/stand_in.hpp"
#include "tests/catch.hpp"

using namespace pw;
using namespace pw::test;

namespace {

constexpr const char* kSampled = "temperature=1.5,top_k=20,top_p=0.9";

/// The token after the last row, and the inputs of the next step.
double chosen(ReadyRuntime& ready, const Step& step, const std::vector<Tensor>& outputs) {
  ready.weights.write_back(ready.planned.graph, outputs, step);
  return values_of(outputs[0].view()).back();
}

/// Generates tokens after a prompt: by replayed graphs of whole steps, launch by launch, and by the
/// CPU backend on the whole graph.
void check_decode(const std::string& lm_head, std::size_t inputs_a_step, std::int64_t count) {
  if (no_host_compiler()) return;
  constexpr std::int64_t kPrompt = 5;
  ModelCase model = whole({"none", "o2"});
  model.lm_head = lm_head;
  const cuda::RuntimeOptions options = strict_options(2 * count);
  ReadyRuntime replayed(model, {}, options), launched(model, {}, options),
      on_cpu(model, {}, options);
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
  ReadyRuntime forced(model, {}, options);
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
  check_decode(kSampled, 3, 20);
}

TEST_CASE("runtime: 64 tokens by graphs of whole steps equal those by launches",
          "[.][slow][cuda][diff]") {
  check_decode("greedy", 2, 64);
  check_decode(kSampled, 3, 64);
}

namespace {

cuda::HostDriverOptions plain_attention() { return {.libraries = false, .arch = "sm_70"}; }

cuda::RuntimeOptions early(std::int64_t steps_in_launch = 0) {
  cuda::RuntimeOptions options;
  options.cached_tokens = 1024;  // of all sequences: a cache that grows makes captured steps stale
  options.programmatic_edges = options.early_at_a_loss = true;
  options.steps_in_launch = steps_in_launch;
  return options;
}

ModelCase decoder(const std::string& lm_head) {
  ModelCase model = whole({"none", "o2"});
  model.lm_head = lm_head;
  model.layers = 1;
  model.max_requests = 8;
  model.sizes = {1, 4, 8};
  return model;
}

ModelCase streamed_decoder(const std::string& lm_head) {
  ModelCase model = decoder(lm_head);
  model.streamed = true;
  return model;
}

/// Generates tokens with programmatic edges: by replayed graphs, in random orders, and launch by
/// launch.
void check_early_decode(const ModelCase& model, std::int64_t count) {
  if (no_host_compiler()) return;
  cuda::RuntimeOptions options = early();
  options.stream_weights = model.streamed;
  ReadyRuntime replayed(model, {}, options), launched(model, {.seed = 5}, options);
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
  Continued(const ModelCase& model, std::int64_t steps_in_launch,
            const cuda::HostDriverOptions& how = plain_attention())
      : ready(model, how, early(steps_in_launch)) {}
  Generation run(Step step, const GenerationLimits& limits) {
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
  ReadyRuntime ready;
};

Step beginnings(std::int64_t sequences) {
  Step step;
  for (std::int64_t i = 0; i < sequences; ++i) step.sequences.push_back({i, 1, 0});
  return step;
}

}  // namespace

TEST_CASE("runtime: tokens with early starts are those of launches", "[cuda][diff]") {
  check_early_decode(decoder(kSampled), 8);
}

TEST_CASE("runtime: 64 tokens with early starts are those of launches", "[.][slow][cuda][diff]") {
  check_early_decode(decoder("greedy"), 64);
  check_early_decode(decoder(kSampled), 64);
}

TEST_CASE("runtime: tokens of streamed products are those of launches", "[cuda][diff]") {
  check_early_decode(streamed_decoder("greedy"), 6);
}

TEST_CASE("runtime: 64 tokens of streamed products are those of launches",
          "[.][slow][cuda][diff]") {
  check_early_decode(streamed_decoder("greedy"), 64);
  check_early_decode(streamed_decoder(kSampled), 64);
}

TEST_CASE("runtime: a layer of streamed products is two kernels of a step", "[cuda]") {
  if (no_host_compiler()) return;
  ModelCase model = streamed_decoder("greedy");
  cuda::RuntimeOptions options = early();
  const auto nodes = [&] {
    const ReadyRuntime ready(model, plain_attention(), options);
    return ready.runtime->counters().graph_nodes;
  };
  model.sizes = {1};
  const std::size_t separate = nodes();
  options.stream_weights = true;
  const std::size_t streamed = nodes();
  CHECK(streamed + 9 <= separate);
  model.layers = 2;
  CHECK(nodes() == streamed + 2);
}

namespace {

/// Single steps and loops of 20 steps choose the same tokens, also of sequences that end.
void check_loops(const std::string& lm_head, std::int64_t sequences, std::int64_t steps) {
  if (no_host_compiler()) return;
  INFO(lm_head << ", " << sequences << " sequences");
  const bool drawn = lm_head != "greedy";
  const ModelCase model = decoder(lm_head);
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
  if (no_host_compiler()) return;
  const ModelCase model = decoder("greedy");
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
  if (no_host_compiler()) return;
  ModelCase pieces = decoder("greedy");
  pieces.mode = "piecewise";
  for (const ModelCase& model : {pieces, decoder("none")}) {
    const ReadyRuntime ready(model, plain_attention(), early(8));
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
  const ModelCase model = decoder("greedy");
  const PlannedModel planned(model);
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
