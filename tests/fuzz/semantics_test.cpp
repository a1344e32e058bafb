// Random graphs on every engine, whole, split and padded, on 1, 2 and 4 ranks, and as passes
// rewrite them. Strict code gives the bits of the interpreter in single precision; eager and the
// fast code of the CPU stay within what rounding may do, which spread_of finds. A default run
// takes a few, `[slow]` 5 000 more; PW_SEEDS=17 takes one graph, PW_SEEDS=17:100 a hundred, and
// shows what is refused.
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>

#include "backends/collectives.hpp"
#include "backends/cpu/cpu.hpp"
#include "backends/eager/eager.hpp"
#include "backends/interpreter/interpreter.hpp"
#include "base/try.hpp"
#include "codegen/toolchain.hpp"
#include "cuda/device/host_driver.hpp"
#include "cuda/runtime.hpp"
#include "graph/text/text.hpp"
#include "rewriter/rewriter.hpp"
#include "splitter/splitter.hpp"
#include "tests/backends/graphs.hpp"
#include "tests/backends_cpu/running.hpp"
#include "tests/fuzz/random_graph.hpp"
#include "tests/fuzz/spread.hpp"
#include "tests/verify/rules.hpp"
#include "verify/samples/sample.hpp"

namespace {

using namespace pw;
using namespace pw::test;

/// What became of the graphs, and why some were not run in some way: by way, then reason.
struct Tally {
  std::map<std::string, std::size_t> ran;
  std::map<std::string, std::map<std::string, std::size_t>> refused;
  std::size_t wrong = 0;
  void print(std::ostream& out) const {
    for (const auto& [way, count] : ran) {
      std::size_t refusals = 0;
      if (const auto found = refused.find(way); found != refused.end())
        for (const auto& [reason, times] : found->second) refusals += times;
      out << "  " << way << ": " << count << " ran, " << refusals << " refused\n";
    }
  }
};

/// A graph with its contents, and what it should give.
struct Subject {
  RandomGraph random;
  Graph graph;  ///< read back from its text
  Step step;
  Symbols symbols;
  ContentsOf contents;
  std::vector<Weights> weights;
  RankOutputs wanted;  ///< the interpreter's, in single precision
  std::vector<Spreads> spread;
  bool widened = false, fast = true;  ///< fast: fast code is compared, too
};

class Check {
 public:
  Check(Tally& tally, const ContextPtr& context)
      : tally_(tally),
        rules_(checked(load_rules(context, {"llm"}), context)),
        params_(bind_params(rules_, {}).value()) {}

  void run(const GraphGenerator& generator, std::uint64_t seed) {
    RandomGraph random = generator.graph(seed);
    const std::string text = print_pwg(random.graph);
    auto graph = parse_graph(random.graph.context_ptr(), text, "random");
    INFO("seed " << seed << ", " << random.tokens << " tokens, " << random.ranks
                 << " ranks, cut at '" << random.cut << "'\n"
                 << text);
    if (!graph) FAIL(render(graph.error(), random.graph.context().sources));
    CHECK(print_pwg(*graph) == text);
    Subject s{std::move(random), std::move(*graph), {}, {}, {}, {}, {}, {}};
    if (!prepare(s)) return;
    whole(s);
    rewritten(s);
    stepwise(s);
    if (s.random.ranks == 1) on_device(s);
  }

 private:
  bool prepare(Subject& s) {
    s.step = one_sequence(s.random.tokens);
    if (s.random.tokens > 3) s.step = {{{0, 3, 0}, {1, s.random.tokens - 3, 0}}};
    s.symbols = sample_symbols(s.graph, s.random.tokens);
    s.contents = {kContents[s.random.seed % std::size(kContents)], s.random.seed};
    s.weights = weights_of_ranks(s.graph, 1, s.random.ranks);
    auto given = give_contents(s.weights, s.graph, s.symbols, s.contents.contents, s.contents.seed);
    if (!given) FAIL(render(given.error(), s.graph.context().sources));
    auto wanted = run_whole(s.graph, *oracle_, s.weights, s.step);
    if (!kept("interpreter", wanted)) return false;
    s.wanted = std::move(*wanted);
    auto spread = spread_of(s.graph, s.random.ranks, s.step, s.contents, 6);
    if (!kept("reference", spread)) return false;
    s.spread = std::move(*spread);
    s.fast = !out_of_range(s);
    auto exact = run_reference(s.graph, s.weights, s.step);
    if (!kept("reference", exact)) return false;
    // Where noise makes all of it special, as of (-2)^-2, these two are what there is.
    add_run(s, s.wanted);
    add_run(s, *exact);
    return true;
  }
  static void add_run(Subject& s, const RankOutputs& outputs) {
    for (std::size_t rank = 0; rank < outputs.size(); ++rank)
      for (std::size_t o = 0; o < outputs[rank].size(); ++o)
        for (std::size_t i = 0; i < s.spread[rank][o].size(); ++i)
          s.spread[rank][o][i].add(element(outputs[rank][o], i));
  }
  static double element(const Tensor& tensor, std::size_t i) {
    return load(tensor.dtype(), tensor.data(), static_cast<std::int64_t>(i));
  }

  void whole(Subject& s) {
    same_bits(s, "cpu, strict", run_whole(s.graph, strict_, s.weights, s.step));
    near(s, "cpu", run_whole(s.graph, fast_, s.weights, s.step));
    near(s, "eager", run_whole(s.graph, *eager_, s.weights, s.step));
  }

  /// What the built-in passes leave is computed by the same operations; the library's rules may
  /// round elsewhere.
  void rewritten(Subject& s) {
    const RankGroups groups = stated_groups(s.graph).value();
    Step step = s.step;
    step.groups = &groups;  // as a run of the original takes them
    for (const std::string pipeline : {"dce", "cse", "elide_clones", "o2"}) {
      Graph after = s.graph.compact();
      auto done = run_pipeline(after, rules_, pipeline, params_);
      if (!done) FAIL(render(done.error(), s.graph.context().sources));
      if (print_pwg(after) == print_pwg(s.graph)) continue;
      const std::string way = "rewritten by " + pipeline;
      auto got = run_whole(after, *oracle_, s.weights, step);
      if (pipeline == "o2")
        near(s, way, got);
      else
        same_bits(s, way, got);
    }
  }

  struct Cut {
    StitchedGraph pieces;
    Plan plan;
  };
  Result<Cut> cut(const Subject& s, const std::vector<std::int64_t>& sizes) {
    SplitOptions options;
    if (!s.random.cut.empty()) options.at = {s.random.cut};
    auto at = PW_TRY(splitting_ops(s.graph.context_ptr(), nullptr, {}, options));
    auto pieces = PW_TRY(split(s.graph, at, options));
    PlanOptions planned;
    planned.max_tokens = 12;
    planned.capture_sizes = sizes;
    auto plan = PW_TRY(make_plan(pieces, s.graph, planned));
    return Cut{std::move(pieces), std::move(plan)};
  }
  std::vector<std::int64_t> sizes_of(const Subject& s) {
    if (s.graph.facts.tokens().empty()) return {};
    return s.random.seed % 2 == 0 ? std::vector<std::int64_t>{4, 12}
                                  : std::vector<std::int64_t>{2, 8};
  }

  void stepwise(Subject& s) {
    auto made = cut(s, sizes_of(s));
    if (!kept("plan", made)) return;
    for (const bool pad : {true, false}) {
      const std::string way = pad ? "split and padded" : "split";
      same_bits(s, way + ", strict", by_runner(s, *made, strict_, pad));
      near(s, way + ", eager", by_runner(s, *made, *eager_, pad));
      if (pad) near(s, way + ", cpu", by_runner(s, *made, fast_, pad));
    }
  }
  Result<RankOutputs> by_runner(Subject& s, const Cut& made, Backend& backend, bool pad) {
    auto runner = PW_TRY(Runner::make(made.pieces, s.graph, made.plan, backend));
    RunOptions options;
    options.pad = pad;
    options.poison = true;
    auto result = PW_TRY(runner.run(s.step, s.weights, options));
    return std::move(result.outputs);
  }

  void on_device(Subject& s) {
    auto made = cut(s, sizes_of(s));
    if (!made) return;
    for (const bool pad : {true, false}) {
      if (!pad && s.random.seed % 4 != 0) continue;
      same_bits(s, pad ? "cuda, captured" : "cuda, launched", by_device(s, *made, pad));
    }
  }
  Result<RankOutputs> by_device(Subject& s, const Cut& made, bool pad) {
    cuda::HostDriver driver({.seed = s.random.seed});
    cuda::RuntimeOptions options;
    options.strict = true;
    auto runtime = PW_TRY(cuda::Runtime::make(made.pieces, s.graph, made.plan, driver, options));
    PW_TRY(runtime->load(s.weights[0]));
    PW_TRY(runtime->capture());
    RunOptions run;
    run.pad = pad;
    run.poison = true;
    auto result = PW_TRY(runtime->run(s.step, s.weights[0], run));
    RankOutputs out;
    out.push_back(std::move(result.outputs));
    return out;
  }

  /// The largest numbers may leave the range on the way, by one order of a sum and not by another.
  static bool large(const Subject& s) {
    return s.contents.contents == Contents::wide || s.contents.contents == Contents::edges;
  }
  /// What is between the operands of an op and its result may, too, at either end: only strict
  /// code is held to that. Of products it is not seen from outside.
  static bool out_of_range(Subject& s) {
    if (!large(s)) return false;
    Graph flat = s.graph.compact();
    if (!inline_bodies(flat)) return true;
    const std::vector<NodeId> order = flat.order();
    if (std::any_of(order.begin(), order.end(),
                    [&](NodeId n) { return is_library_call(flat.op_of(n)); }))
      return true;
    const Graph values = all_values(flat);
    const auto all = run_reference(values, s.weights, s.step, s.symbols);
    if (!all) return true;
    for (const std::vector<Tensor>& outputs : *all)
      for (std::size_t o = 0; o < outputs.size(); ++o)
        if (leaves(values.context().types[values.type(values.outputs()[o])].dtype, outputs[o]))
          return true;
    return false;
  }
  /// The graph, which returns whatever its nodes give.
  static Graph all_values(const Graph& graph) {
    Graph out(graph.context_ptr(), graph.name);
    out.facts = graph.facts;
    std::map<ValueId, ValueId> same;
    for (const ValueId v : graph.inputs())
      same[v] = out.add_input(graph.value_name(v), graph.type(v), graph.input_kind(v));
    for (const NodeId n : graph.order()) {
      NodeSpec spec;
      spec.op = graph.op(n);
      spec.attributes = graph.attributes(n);
      for (const ValueId v : graph.operands(n)) spec.operands.push_back(v.valid() ? same[v] : v);
      for (std::size_t i = 0; i < graph.result_count(n); ++i)
        spec.results.push_back({graph.type(graph.result(n, i)), ""});
      const NodeId made = out.add_node(spec);
      for (std::size_t i = 0; i < graph.result_count(n); ++i)
        out.add_output(same[graph.result(n, i)] = out.result(made, i));
    }
    return out;
  }
  /// Whether an element of a run in double precision is not a normal number of the dtype.
  static bool leaves(DType dtype, const Tensor& exact) {
    if (dtype != DType::f16 && dtype != DType::bf16 && dtype != DType::f32) return false;
    const double most = dtype == DType::f16 ? 65504 : 0x1.fep127;
    const double least = dtype == DType::f16 ? 0x1p-14 : 0x1p-126;
    for (std::size_t i = 0; i < static_cast<std::size_t>(exact.view().count()); ++i) {
      const double value = std::abs(element(exact, i));
      if (value > most || (value != 0 && value < least)) return true;
    }
    return false;
  }
  template <class T>
  bool kept(const std::string& way, const Result<T>& result) {
    if (result) {
      ++tally_.ran[way];
      return true;
    }
    const Diagnostic& first = result.error().front();
    ++tally_.refused[way][fmt::format("{} {}", first.code, first.message)];
    return false;
  }
  void same_bits(const Subject& s, const std::string& way, const Result<RankOutputs>& got) {
    compare(s, way, got, [&](std::size_t rank, std::size_t o, const Tensor& tensor) {
      return bit_difference(tensor, s.wanted[rank][o]);
    });
  }
  void near(Subject& s, const std::string& way, const Result<RankOutputs>& got) {
    if (!s.fast) return static_cast<void>(kept(way, got));
    const auto apart = [&](std::size_t rank, std::size_t o, const Tensor& tensor) {
      return beyond(s, s.spread[rank][o], tensor, s.wanted[rank][o]);
    };
    compare(s, way, got, [&](std::size_t rank, std::size_t o, const Tensor& tensor) {
      std::string first = apart(rank, o, tensor);
      if (first.empty() || s.widened) return first;
      widen(s);  // what lies beside a step takes many runs to fall on both sides of it
      return apart(rank, o, tensor);
    });
  }
  static void widen(Subject& s) {
    s.widened = true;
    const auto more = spread_of(s.graph, s.random.ranks, s.step, s.contents, 300, 1);
    for (std::size_t rank = 0; more && rank < more->size(); ++rank)
      for (std::size_t o = 0; o < s.spread[rank].size(); ++o)
        for (std::size_t i = 0; i < s.spread[rank][o].size(); ++i)
          s.spread[rank][o][i].add((*more)[rank][o][i]);
  }
  /// The first element that is not within its spread, or empty.
  static std::string beyond(const Subject& s, const std::vector<Spread>& spread,
                            const Tensor& tensor, const Tensor& wanted) {
    if (tensor.extents() != wanted.extents()) return "other extents";
    for (std::size_t i = 0; i < spread.size(); ++i) {
      const double value = element(tensor, i);
      if (within(spread[i], value, tensor.dtype())) continue;
      if (large(s) && (spread[i].special || !std::isfinite(value) || !is_float(tensor.dtype())))
        continue;
      return fmt::format("element {}: {:.9g}, not in {:.9g} … {:.9g}{} (single {:.9g})", i, value,
                         spread[i].least, spread[i].most, spread[i].special ? " or special" : "",
                         element(wanted, i));
    }
    return "";
  }
  template <class Compare>
  void compare(const Subject& s, const std::string& way, const Result<RankOutputs>& got,
               const Compare& difference) {
    if (!kept(way, got)) return;
    REQUIRE(got->size() == s.wanted.size());
    for (std::size_t rank = 0; rank < got->size(); ++rank) {
      REQUIRE((*got)[rank].size() == s.wanted[rank].size());
      for (std::size_t o = 0; o < (*got)[rank].size(); ++o) {
        const std::string apart = difference(rank, o, (*got)[rank][o]);
        if (apart.empty()) continue;
        ++tally_.wrong;
        FAIL_CHECK(way << ", " << name(s.contents.contents) << ", rank " << rank << ", output " << o
                       << ": " << apart);
      }
    }
  }

  Tally& tally_;
  RuleSet rules_;
  Env params_;
  std::unique_ptr<Backend> oracle_ = make_interpreter(Precision::single), eager_ = make_eager();
  CpuBackend strict_{{.strict = true}}, fast_;
};

void check_all(std::uint64_t first, std::uint64_t count) {
  if (!have_compiler()) return;
  const ContextPtr context = library();
  const GraphGenerator generator(context);
  Tally tally;
  Check check(tally, context);
  const char* only = std::getenv("PW_SEEDS");
  if (only != nullptr) {
    char* rest = nullptr;
    first = std::strtoull(only, &rest, 10);
    count = *rest == ':' ? std::strtoull(rest + 1, nullptr, 10) : 1;
  }
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    check.run(generator, seed);
    if ((seed - first) % 250 == 249) std::cerr << "seeds to " << seed << "\n";
  }
  std::cerr << "random graphs, seeds " << first << " to " << first + count - 1 << ", "
            << generator.ops().size() << " ops: " << tally.wrong << " wrong\n";
  tally.print(std::cerr);
  if (only != nullptr)
    for (const auto& [way, reasons] : tally.refused)
      for (const auto& [reason, times] : reasons)
        std::cerr << "    " << way << ": " << times << " × " << reason << "\n";
}

}  // namespace

TEST_CASE("fuzz: random graphs mean the same on every engine", "[fuzz][diff]") { check_all(1, 25); }
// 5 000 in four parts, for as many processes.
TEST_CASE("fuzz: many random graphs, part 1", "[.][slow][fuzz][part1]") { check_all(1000, 1250); }
TEST_CASE("fuzz: many random graphs, part 2", "[.][slow][fuzz][part2]") { check_all(2250, 1250); }
TEST_CASE("fuzz: many random graphs, part 3", "[.][slow][fuzz][part3]") { check_all(3500, 1250); }
TEST_CASE("fuzz: many random graphs, part 4", "[.][slow][fuzz][part4]") { check_all(4750, 1250); }
