// Measures row kernels on the processor against baselines in one run: a fused norm against a copy
// of its bytes, a decoder layer without products on cpu and eager, and eager against plain Eigen.
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <sched.h>

#include "backends/cpu/cpu.hpp"
#include "backends/eager/eager.hpp"
#include "bench/eigen.hpp"
#include "bench/measure.hpp"
#include "bench/prepared.hpp"
#include "codegen/toolchain.hpp"
#include "dsl/dsl.hpp"
#include "exec/runner.hpp"
#include "models/generate.hpp"
#include "rewriter/rewriter.hpp"
#include "splitter/plan.hpp"

namespace pw::bench {
namespace {

/// The median time of one call, in seconds; calls of several bodies take turns, so that what
/// disturbs the machine disturbs all of them.
std::vector<double> medians(const std::vector<std::function<void()>>& bodies, int samples,
                            double target) {
  std::vector<int> repeats;
  for (const auto& body : bodies) {
    const double once = all_threads_seconds([&] { body(), body(); }) / 2;
    repeats.push_back(std::max(1, static_cast<int>(target / std::max(once, 1e-9))));
  }
  std::vector<std::vector<double>> times(bodies.size());
  for (int s = 0; s < samples; ++s) {
    for (std::size_t b = 0; b < bodies.size(); ++b) {
      const double t = all_threads_seconds([&] {
        for (int r = 0; r < repeats[b]; ++r) bodies[b]();
      });
      times[b].push_back(t / repeats[b]);
    }
  }
  std::vector<double> out;
  for (auto& t : times) out.push_back(median(t));
  return out;
}

Graph parsed(const ContextPtr& context, const std::string& text) {
  return need(context, parse_graph(context, "graph g {\n" + text + "\n}\n", "bench"));
}

/// The graph without its products and its attention: what they make is read, what they read is
/// made.
Graph without_products(const Graph& graph) {
  Graph out(graph.context_ptr(), graph.name);
  out.facts = graph.facts;
  std::vector<ValueId> values(graph.value_bound());
  for (ValueId v : graph.inputs())
    values[v.index] = out.add_input(graph.value_name(v), graph.type(v), graph.input_kind(v));
  std::vector<ValueId> made;
  for (NodeId n : graph.order()) {
    const Op& op = graph.op_of(n);
    const bool opaque = op.name == "mm" || op.name == "addmm" || op.name == "scaled_mm" ||
                        op.name == "unified_attention";
    if (opaque) {
      for (ValueId v : graph.operands(n)) {
        if (v.valid() && !graph.is_input(v)) made.push_back(values[v.index]);
      }
      for (std::size_t i = 0; i < graph.result_count(n); ++i)
        values[graph.result(n, i).index] =
            out.add_input(out.fresh_name("made"), graph.type(graph.result(n, i)), InputKind::input);
      continue;
    }
    NodeSpec spec;
    spec.op = graph.op(n);
    spec.attributes = graph.attributes(n);
    for (ValueId v : graph.operands(n)) spec.operands.push_back(v.valid() ? values[v.index] : v);
    for (std::size_t i = 0; i < graph.result_count(n); ++i)
      spec.results.push_back({graph.type(graph.result(n, i)), ""});
    const NodeId copy = out.add_node(spec);
    for (std::size_t i = 0; i < graph.result_count(n); ++i)
      values[graph.result(n, i).index] = out.result(copy, i);
  }
  for (ValueId v : graph.outputs()) made.push_back(values[v.index]);
  std::map<ValueId, bool> seen;
  for (ValueId v : made) {
    // A weight's transpose does not count as work of the layer.
    const bool compute = !out.is_input(v) && out.op_of(out.producer(v)).name != "transpose" &&
                         out.op_of(out.producer(v)).name != "constant";
    if (compute && seen.emplace(v, true).second) out.add_output(v);
  }
  out.erase_dead();
  return out;
}

std::string us(double seconds) { return fmt::format("{:.1f}", seconds * 1e6); }

void norm(Table& table, Promises& promises) {
  constexpr std::int64_t kRows = 32, kColumns = 4096;
  auto context = std::make_shared<Context>();
  need(context, load_op_library(context));
  const Graph graph = parsed(
      context, fmt::format("in x: bf16[{0}, {1}], z: bf16[{0}, {1}], w: bf16[{1}], s: f32[1]\n"
                           "q, r = fused_add_rms_norm_static_fp8_quant(x, z, w, s)  out q, r",
                           kRows, kColumns));
  CpuBackend cpu;
  const auto eager = make_eager();
  auto fast = prepare(cpu, graph, kRows), slow = prepare(*eager, graph, kRows);
  if (cpu.report().kernels.empty()) die("no C++ compiler: there is nothing to measure");
  const std::size_t bytes = fast->bytes();
  std::vector<char> from(bytes, 1), to(bytes);
  const auto copy = [&](std::size_t n) {
    std::memcpy(to.data(), from.data(), n);
    asm volatile("" : : "r"(to.data()) : "memory");
  };
  const auto t = medians(
      {[&] { fast->run(); }, [&] { copy(bytes); }, [&] { copy(bytes / 2); }, [&] { slow->run(); }},
      31, 2e-3);
  table.add({"add + rms_norm + fp8, 32 × 4096 bf16, cpu", us(t[0]),
             fmt::format("{:.2f} µs a row", t[0] * 1e6 / kRows)});
  table.add(
      {"memcpy of the bytes it reads and writes", us(t[1]), fmt::format("{:.2f}", t[0] / t[1])});
  table.add({"memcpy that reads and writes as many together", us(t[2]),
             fmt::format("{:.2f}", t[0] / t[2])});
  table.add({"the same on eager", us(t[3]), fmt::format("{:.2f}", t[0] / t[3])});
  promises.at_most("norm over memcpy of the same bytes", t[0] / t[1], 3, "×");
}

void layer(Table& table, Promises& promises, std::int64_t tokens) {
  for (const char* quant : {"none", "fp8"}) {
    auto context = std::make_shared<Context>();
    const RuleSet rules = need(context, load_rules(context, {"llm"}));
    LlamaOptions options;
    options.layers = 1;
    options.hidden = 2048;
    options.heads = 16;
    options.kv_heads = 4;
    options.ffn = 5632;
    options.vocab = 512;
    options.quant = quant;
    Graph before = need(context, generate_llama(context, options));
    Graph after = before.compact();
    (void)need(context, run_pipeline(after, rules, "o2", need(context, bind_params(rules, {}))));
    for (const auto& [name, graph] :
         {std::pair("before", &before), std::pair("after o2", &after)}) {
      const Graph rows = without_products(*graph);
      CpuBackend cpu, alone({.fuse = false});
      const auto eager = make_eager();
      auto fast = prepare(cpu, rows, tokens), ungrouped = prepare(alone, rows, tokens),
           slow = prepare(*eager, rows, tokens);
      const auto t = medians(
          {[&] { fast->run(); }, [&] { ungrouped->run(); }, [&] { slow->run(); }}, 11, 5e-3);
      const std::string what =
          fmt::format("layer without products, {}, {}, {} tokens", quant, name, tokens);
      table.add({what + ", cpu", us(t[0]), fmt::format("{} kernels", cpu.report().kernels.size())});
      table.add({what + ", cpu --grouping none", us(t[1]), fmt::format("{:.2f}", t[1] / t[0])});
      table.add({what + ", eager", us(t[2]), fmt::format("{:.2f}", t[2] / t[0])});
      promises.at_most("cpu over eager, " + what, t[0] / t[2], 0.2, "×");
    }
  }
}

void attention(Table& table) {
  constexpr std::int64_t kTokens = 1024;
  auto context = std::make_shared<Context>();
  need(context, load_op_library(context));
  const Graph graph = parsed(
      context, fmt::format("in q: bf16[{0}, 16, 128], k: bf16[{0}, 4, 128], v: bf16[{0}, 4, 128]\n"
                           "y = unified_attention(q, k, v, none){{layer = \"a\"}}  out y",
                           kTokens));
  CpuBackend cpu;
  const auto eager = make_eager();
  auto fast = prepare(cpu, graph, kTokens), slow = prepare(*eager, graph, kTokens);
  const auto t = medians({[&] { fast->run(); }, [&] { slow->run(); }}, 5, 5e-3);
  table.add({"attention, 1024 tokens, 16 heads of 128, cpu", us(t[0]), ""});
  table.add({"the same on eager", us(t[1]), fmt::format("{:.2f}", t[1] / t[0])});
}

void eager_ops(Table& table, Promises& promises) {
  constexpr std::int64_t kRows = 64, kColumns = 4096;
  const auto eager = make_eager();
  for (const EigenOp& op : eigen_ops()) {
    auto context = std::make_shared<Context>();
    need(context, load_op_library(context));
    const Graph graph =
        parsed(context, fmt::format("in x: f32[{0}, {1}], z: f32[{0}, {1}]  y = {2}  out y", kRows,
                                    kColumns, op.text));
    auto run = prepare(*eager, graph, kRows);
    const auto* x = reinterpret_cast<const float*>(run->in[0].data);
    const auto* z = reinterpret_cast<const float*>(run->in[1].data);
    std::vector<float> y(static_cast<std::size_t>(kRows * kColumns));
    const auto t =
        medians({[&] { run->run(); }, [&] { op.run(x, z, y.data(), kRows, kColumns); }}, 31, 2e-3);
    table.add({std::string("eager ") + op.text, us(t[0]), ""});
    table.add({std::string("Eigen ") + op.text, us(t[1]), fmt::format("{:.2f}", t[0] / t[1])});
    promises.at_most(std::string("eager over Eigen, ") + op.text, t[0] / t[1], 2, "×");
  }
}

/// From the plan of a 32-layer model to executables, with and without cached objects.
void start(Table& table, Promises& promises) {
  auto context = std::make_shared<Context>();
  const RuleSet rules = need(context, load_rules(context, {"llm"}));
  Graph graph = need(context, generate_llama(context, LlamaOptions{}));
  (void)need(context, run_pipeline(graph, rules, "o2", need(context, bind_params(rules, {}))));
  const StitchedGraph pieces =
      need(context, split(graph, need(context, splitting_ops(context, &rules, {}, {}))));
  const Plan plan = need(context, make_plan(pieces, graph, {}));
  const PrivateFolder folder;
  std::vector<double> times;
  std::string kernels;
  for (int round = 0; round < 6; ++round) {
    CpuBackend cpu(
        {.cache = std::make_shared<CompileCache>(CacheOptions{folder.path() + "/cache", ""})});
    // Wall time, because files and other processes (compilers) are awaited.
    const auto begin = std::chrono::steady_clock::now();
    (void)need(context, Runner::make(pieces, graph, plan, cpu));
    times.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    kernels =
        fmt::format("{} kernels, {} compiled", cpu.report().kernels.size(), cpu.report().compiled);
    if (round == 0) table.add({"32 layers, plan to executables, cold", us(times[0]), kernels});
  }
  times.erase(times.begin());
  const double warm = median(times);
  table.add({"32 layers, plan to executables, warm", us(warm), kernels});
  promises.at_most("warm start of 32 layers", warm * 1e3, 20, "ms");
}

/// All threads on one core: what is compared has one thread each.
void stay_on_one_core() {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(std::max(::sched_getcpu(), 0)), &set);
  (void)::sched_setaffinity(0, sizeof set, &set);
}

}  // namespace
}  // namespace pw::bench

int main(int argc, char** argv) {
  using namespace pw::bench;
  CLI::App app("Row kernels on the processor", "pw_bench_kernels");
  std::string output;
  std::int64_t tokens = 64;
  app.add_option("--output", output, "write the tables there too, as Markdown");
  app.add_option("--tokens", tokens, "of the layer")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  const std::string on =
      machine() +
      ". Processor time, medians of bodies that take turns, caches warm; starts by the clock.";
  stay_on_one_core();
  Table table({"what", "µs", "ratio"});
  Promises promises;
  norm(table, promises);
  layer(table, promises, tokens);
  attention(table);
  eager_ops(table, promises);
  start(table, promises);
  const std::string text =
      "# Row kernels, one thread\n\n" + on + "\n\n" + table.print() + "\n" + promises.print();
  std::cout << text;
  if (!output.empty()) std::ofstream(output) << text;
  return promises.kept() ? 0 : 1;
}
