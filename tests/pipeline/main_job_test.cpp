// The main job called as a function, on the engines of the program and on one of the test's own.
#include <cstring>

#include <fmt/format.h>

#include "graph/infer/symbol_fact.hpp"
#include "pipeline/run/run.hpp"
#include "tests/catch.hpp"
#include "tests/pipeline/written.hpp"

using namespace pw;
using namespace pw::test;

namespace {

constexpr const char* kGraph = R"(graph block {
  symbol n in 1..512 tokens
  in x: f32[n, 8], res: f32[n, 8]
  in weight w: f32[8]
  r = add(x, res)
  y = rms_norm(r, w){eps = 1e-5}
  out y, r
}
)";

RunRequest request_of(const std::string& graph) {
  RunRequest request;
  request.graph.path = graph;
  request.rules = {{"llm"}, "o2", {}};
  request.tokens = {1, 7};
  request.check = true;
  return request;
}

/// The job's summary; records are added to `records`.
Result<RunSummary> run(const RunRequest& request, std::vector<RunRecord>& records) {
  return run_model(std::make_shared<Context>(), request, {},
                   [&](const RunRecord& record, const LoadedRules&) -> Status {
                     records.push_back(record);
                     return {};
                   });
}

std::string code_of(const RunRequest& request) {
  std::vector<RunRecord> records;
  const auto done = run(request, records);
  return done ? "" : done.error().front().code;
}

/// Zeros, whatever the graph computes.
class Zeros final : public Backend {
 public:
  [[nodiscard]] std::string name() const override { return "zeros"; }
  [[nodiscard]] Result<std::unique_ptr<Executable>> compile(const Graph&) override {
    return std::make_unique<Nothing>();
  }

 private:
  struct Nothing final : Executable {
    Status run(std::span<const TensorView>, std::span<const TensorView> outputs,
               const RunContext&) override {
      for (const TensorView& output : outputs) std::memset(output.data, 0, output.bytes());
      return {};
    }
  };
};

/// Of a run of two steps, both of which pass the check.
RunRecord checked_run(const std::string& graph, const char* backend) {
  RunRequest request = request_of(graph);
  request.backend = backend;
  std::vector<RunRecord> records;
  const auto done = run(request, records);
  REQUIRE(done);
  CHECK((done->steps == 2 && done->failed == 0));
  REQUIRE(records.size() == 1);
  return std::move(records.front());
}

}  // namespace

TEST_CASE("pipeline: the main job rewrites, runs and passes the check", "[pipeline]") {
  const std::string graph = written("pipeline_block.pwg", kGraph);
  for (const char* backend : {"eager", "interpreter", "cpu"}) {
    INFO(backend);
    const RunRecord record = checked_run(graph, backend);
    CHECK(record.versions.back().graph.node_count() == 1);
    REQUIRE(record.steps.size() == 2);
    for (const StepRun& step : record.steps) CHECK(step.numbers.front().outputs.size() == 2);
  }
}

TEST_CASE("pipeline: what is of weights alone is computed once, and the numbers are the same",
          "[pipeline]") {
  const std::string graph = written("pipeline_gemma.pwg", R"(graph gemma {
  symbol n in 1..512 tokens
  in x: bf16[n, 8]
  in weight w: bf16[8], m: bf16[16, 8]
  y = rms_norm(x, w + 1.0){eps = 1e-5}
  z = mm(y, transpose(m){dim0 = 0, dim1 = 1})
  out z
}
)");
  for (const char* backend : {"eager", "interpreter", "cpu"}) {
    INFO(backend);
    const RunRecord record = checked_run(graph, backend);
    REQUIRE(record.at_load);
    CHECK(record.at_load->outputs().size() == 2);
    std::size_t nodes = 0;
    for (const Piece& piece : record.pieces->pieces) nodes += piece.graph.node_count();
    CHECK(nodes == 2);
    CHECK(record.versions.back().graph.node_count() == 5);  // with the number
  }
}

TEST_CASE("pipeline: an engine of the caller's own runs, and its wrong numbers are found",
          "[pipeline]") {
  RunRequest request = request_of(written("pipeline_block.pwg", kGraph));
  request.engines.push_back(
      engine_of({"zeros", "nothing but zeros", {.ranks = true}, [](const BackendOptions&) {
                   return std::make_unique<Zeros>();
                 }}));
  request.backend = "zeros";
  request.keep = true;
  std::vector<RunRecord> records;
  const auto done = run(request, records);
  REQUIRE(done);
  CHECK(done->failed == 2);
  REQUIRE(records.front().steps.front().outputs.size() == 2);
  const OutputCheck& check = records.front().steps.front().numbers.front().outputs.front();
  CHECK(check.reference_rms > 0.1);
  CHECK(check.after_error == Approx(check.reference_rms));
}

TEST_CASE("pipeline: what cannot be done is an error with a code, not the end of the program",
          "[pipeline]") {
  const std::string graph = written("pipeline_block.pwg", kGraph);
  RunRequest request = request_of(graph);
  request.backend = "gpu";
  CHECK(code_of(request) == "PW1405");
  request = request_of(graph);
  request.engine.strict = true;  // eager has no strict mode
  CHECK(code_of(request) == "PW1406");
  request = request_of(graph);
  request.rules.pipeline = "o22";
  CHECK(code_of(request) == "PW1101");
  request = request_of(graph);
  request.rules.definitions = {"tp"};
  CHECK(code_of(request) == "PW1403");
  request = request_of(graph);
  request.plan.max_tokens = 4;
  CHECK(code_of(request) == "PW1408");
  request = request_of(graph);
  request.tokens = {600};
  CHECK(code_of(request) == "PW1207");
  request = request_of(graph);
  request.graph.replicated = {"nobody"};
  CHECK(code_of(request) == "PW1409");
  CHECK(code_of(request_of("build/there_is_no_such.pwg")) == "PW0001");
}

namespace {

constexpr const char* kBatched = R"(graph batched {
  symbol b in 2..64
  symbol s in 1..512
  in x: f32[b, s, 8], y: f32[b, 1, 8]
  in weight w: f32[8]
  h = mul(x, w)
  z = add(h, y)
  out z
}
)";

/// "2 tokens; b 3..3, s 5..5": of the steps that were run, and of the symbols.
std::string settled(RunRequest request) {
  request.rules.pipeline.clear();
  std::vector<RunRecord> records;
  const auto done = run(request, records);
  if (!done) return done.error().front().code + ": " + done.error().front().message;
  std::string out;
  for (const StepRun& step : records.front().steps) {
    out += fmt::format("{} ", step.report.tokens);
    for (const NumericReport& report : step.numbers) CHECK(report.passed());
  }
  out += "tokens;";
  for (const auto& [symbol, fact] : records.front().versions.front().graph.facts.symbols)
    out += fmt::format(" {} {}{}", symbol, print_range(fact), fact.role.empty() ? "" : " tokens");
  return out;
}

}  // namespace

TEST_CASE("pipeline: several symbols get their numbers from the request, else from tensors",
          "[pipeline]") {
  RunRequest request = request_of(written("pipeline_batched.pwg", kBatched));
  request.tokens.clear();
  request.graph.values = {"b=3", "s=5"};
  CHECK(settled(request) == "3 tokens; b 3..3 tokens s 5..5");
  request.graph.tokens = "s";
  CHECK(settled(request) == "5 tokens; b 3..3 s 5..5 tokens");
  // One is left to the steps.
  request.graph.values = {"b=3"};
  request.graph.tokens.clear();
  request.tokens = {1, 7};
  CHECK(settled(request) == "1 7 tokens; b 3..3 s 1..512 tokens");
  // Tensors say what is not set, and step counts go to the symbol that has such a number in them.
  request.tokens.clear();
  request.graph.values.clear();
  request.given.emplace("x", Tensor(DType::f32, {4, 6, 8}));
  CHECK(settled(request) == "4 tokens; b 4..4 tokens s 6..6");
  request.tokens = {6};
  CHECK(settled(request) == "6 tokens; b 4..4 s 1..512 tokens");
}

TEST_CASE("pipeline: a symbol that cannot have its number is refused", "[pipeline]") {
  RunRequest request = request_of(written("pipeline_batched.pwg", kBatched));
  request.tokens.clear();
  request.graph.values = {"b=1"};
  CHECK(settled(request) == "PW1470: b would be 1, but the graph declares it in 2..64");
  request.graph.values = {"bb=4"};
  CHECK(settled(request) == "PW1470: the graph has no symbol `bb`");
  request.graph.values = {"b"};
  CHECK(settled(request).starts_with("PW1470"));
  request.graph.values = {"b=4x"};
  CHECK(settled(request).starts_with("PW1470"));
  request.graph.values.clear();
  request.graph.tokens = "t";
  CHECK(settled(request) == "PW1470: the graph has no symbol `t`");
  // Beyond what is planned for, a number must be given.
  request.graph.tokens = "b";
  request.plan.max_tokens = 256;
  CHECK(settled(request) == "PW1470: the symbol s, which is in 1..512, has no number");
  request.given.emplace("x", Tensor(DType::f32, {1, 6, 8}));
  CHECK(settled(request) == "PW1470: b would be 1, but the graph declares it in 2..64");
}

TEST_CASE("pipeline: a session's contexts are apart", "[pipeline]") {
  const RunRequest request = request_of(written("pipeline_block.pwg", kGraph));
  std::vector<RunRecord> first, second;
  REQUIRE(run(request, first));
  REQUIRE(run(request, second));
  CHECK(plan_to_json(first[0].plan, *first[0].pieces) ==
        plan_to_json(second[0].plan, *second[0].pieces));
}
