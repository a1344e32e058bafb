// Whole decoders on the cpu backend, before and after the rules: within the tolerance of eager, in
// strict mode with the bits of the interpreter, padded and poisoned.
#include "backends/eager/eager.hpp"
#include "backends/interpreter/interpreter.hpp"
#include "base/io/file.hpp"
#include "exec/runner.hpp"
#include "import/fx/fx.hpp"
#include "models/generate.hpp"
#include "rewriter/rewriter.hpp"
#include "splitter/plan.hpp"
#include "tests/backends_cpu/running.hpp"
#include "tests/shared_dump.hpp"
#include "tests/verify/rules.hpp"
#include "verify/numeric.hpp"

namespace {

using namespace pw;
using namespace pw::test;

struct Subject {
  RuleSet rules;
  Graph before, after;
};

Subject rewritten(RuleSet rules, Graph graph) {
  Graph after = graph.compact();
  auto done = run_pipeline(after, rules, "o2", bind_params(rules, {}).value());
  if (!done) FAIL(render(done.error(), rules.context->sources));
  return {std::move(rules), std::move(graph), std::move(after)};
}

Subject decoder(const std::string& quant) {
  RuleSet rules = library_rules();
  LlamaOptions options;
  options.layers = 2;
  options.hidden = 128;
  options.heads = 4;
  options.kv_heads = 2;
  options.ffn = 192;
  options.vocab = 97;
  options.positions = 128;
  options.max_tokens = 64;
  options.quant = quant;
  Graph graph = generate_llama(rules.context, options).value();
  return rewritten(std::move(rules), std::move(graph));
}

void check_bits(const Subject& s, const Graph& graph, std::int64_t tokens) {
  CpuBackend strict({.strict = true});
  const auto oracle = make_interpreter(Precision::single);
  Weights weights(s.before, 3);
  const auto got = run_whole(graph, strict, weights, one_sequence(tokens)),
             wanted = run_whole(graph, *oracle, weights, one_sequence(tokens));
  REQUIRE(got);
  REQUIRE(wanted);
  for (std::size_t i = 0; i < got->size(); ++i)
    CHECK(bit_difference((*got)[i], (*wanted)[i]) == "");
}

void check_tolerance(const Subject& s, const Graph& graph, std::int64_t tokens, bool group) {
  CpuBackend cpu({.fuse = group});
  const auto eager = make_eager();
  Weights weights(s.before, 3);
  const auto got = run_whole(graph, cpu, weights, one_sequence(tokens));
  REQUIRE(got);
  const auto report = check_against(s.before, *eager, weights, one_sequence(tokens), *got);
  REQUIRE(report);
  for (const OutputCheck& o : report->outputs) {
    INFO(tokens << " tokens, " << o.name << ": " << o.reason);
    CHECK(o.passed);
  }
}

}  // namespace

TEST_CASE("cpu: decoders agree with eager, and with the interpreter bit by bit", "[cpu][diff]") {
  if (!have_compiler()) return;
  for (const char* quant : {"none", "fp8"}) {
    const Subject s = decoder(quant);
    for (const Graph* graph : {&s.before, &s.after}) {
      INFO(quant << (graph == &s.before ? " before" : " after"));
      for (std::int64_t tokens : {1, 7, 33}) {
        check_tolerance(s, *graph, tokens, true);
        check_tolerance(s, *graph, tokens, false);
        check_bits(s, *graph, tokens);
      }
    }
  }
}

TEST_CASE("cpu: a Qwen2 layer agrees with eager, and with the interpreter bit by bit",
          "[cpu][diff]") {
  if (!have_compiler()) return;
  const std::string path = shared_dump("qwen2-1.5b.tp1.layer1.fx.txt");
  if (path.empty()) return;
  RuleSet rules = library_rules();
  FxOptions options;
  options.file = path;
  options.symbols = {{"n", {{"arg0_1", 0}, {"arg6_1", 0}}}};
  Graph graph = import_fx(rules.context, read_file(path).value(), options).value().graph;
  const Subject s = rewritten(std::move(rules), std::move(graph));
  for (const Graph* one : {&s.before, &s.after}) {
    INFO((one == &s.before ? "before" : "after"));
    check_tolerance(s, *one, 5, true);
    check_bits(s, *one, 3);
  }
}

TEST_CASE("cpu: rows of padding hold NaN, and no valid row shows it", "[cpu]") {
  if (!have_compiler()) return;
  const Subject s = decoder("fp8");
  const auto splitting = splitting_ops(s.rules.context, &s.rules, {}, {}).value();
  const StitchedGraph pieces = split(s.after, splitting).value();
  PlanOptions plan_options;
  plan_options.max_tokens = 64;
  plan_options.capture_sizes = {16, 48};
  const Plan plan = make_plan(pieces, s.after, plan_options).value();
  CpuBackend cpu({.strict = true});
  Runner runner = Runner::make(pieces, s.after, plan, cpu).value();
  Weights weights(s.before, 3);
  RunOptions poisoned, alone;
  poisoned.poison = true;
  alone.pad = false;
  for (std::int64_t tokens : {1, 7, 16, 33}) {
    const auto padded = runner.run(one_sequence(tokens), weights, poisoned),
               exact = runner.run(one_sequence(tokens), weights, alone);
    REQUIRE(padded);
    REQUIRE(exact);
    CHECK(padded->report.padded > exact->report.padded - 1);
    for (std::size_t i = 0; i < exact->outputs.size(); ++i) {
      INFO(tokens << " tokens, output " << i);
      CHECK(bit_difference(padded->outputs[i], exact->outputs[i]) == "");
      for (std::int64_t e = 0; e < exact->outputs[i].view().count(); ++e) {
        const double x = load(exact->outputs[i].dtype(), padded->outputs[i].data(), e);
        if (std::isnan(x)) FAIL("element " << e << " is NaN");
      }
    }
  }
}

TEST_CASE("cpu: an op that nothing reads may say how many ranks a group has", "[backends_cpu]") {
  const auto context = library_rules().context;
  const Graph graph = parse_graph(context, R"(graph g { symbol n in 1..8 tokens  in x: f32[n, 4]
  y = all_reduce(x){group = "tp"}  z = all_gather(x){dim = 0, world = 2, group = "tp"}
  w = exp(y)  out w })",
                                  "test")
                          .value();
  const std::vector<Weights> weights = weights_of_ranks(graph, 5, 4);
  const auto on = [&](Backend& backend) {
    std::vector<Weights> own = weights;
    auto ran = run_whole(graph, backend, own, one_sequence(3));
    if (!ran) FAIL(render(ran.error(), context->sources));
    return std::move(*ran);
  };
  CpuBackend strict({.strict = true});
  const auto got = on(strict), wanted = on(*make_interpreter(Precision::single));
  REQUIRE(got.size() == 4);
  for (std::size_t rank = 0; rank < 4; ++rank)
    CHECK(bit_difference(got[rank][0], wanted[rank][0]) == "");
  CHECK(bit_difference(got[0][0], got[1][0]) == "");
  CHECK(bit_difference(got[0][0], got[2][0]) != "");
}
