// Measures a device in one run: launches and replays, capture and its memory, kernels compared with
// copies of their bytes, weights by parameters and by a table, steps of a decoder. With `--driver
// host` everything runs but no times are shown, because times of the emulator are meaningless for a
// device.
#include <chrono>
#include <iostream>

#include <fmt/format.h>

#include "bench/gpu/device.hpp"
#include "bench/measure.hpp"
#include "cuda/runtime.hpp"
#include "dsl/dsl.hpp"
#include "models/generate.hpp"
#include "rewriter/rewriter.hpp"
#include "splitter/plan.hpp"
#include "tensor/kv_cache.hpp"
#include "tensor/numerics.hpp"

namespace pw::bench {
namespace {

constexpr std::int64_t kSizes = 51;          // captured sizes, as vLLM has
constexpr std::int64_t kDecoded = 256 + 24;  // steps of a decode, the last ones measured

/// The drivers of the sections, and of the product comparison: with a library, and with our own
/// kernels.
struct Drivers {
  std::unique_ptr<cuda::Driver> main, other;
  cuda::Driver* library = nullptr;  ///< null: nothing is computed
  cuda::Driver* own = nullptr;
};

Drivers open(const DeviceArgs& args) {
  Drivers out;
  if (args.prepares()) {
    out.main = preparing_driver(args);
    out.own = out.main.get();
    return out;
  }
  if (args.driver == "host") {
    out.main = std::make_unique<cuda::HostDriver>(cuda::HostDriverOptions{.libraries = false});
    out.other = std::make_unique<cuda::HostDriver>();
    out.own = out.main.get();
    out.library = out.other.get();
    return out;
  }
  out.main = open_device(args.cubins, true);
  out.other = open_device(args.cubins, false);
  out.library = out.main.get();
  out.own = out.other.get();
  return out;
}

class GpuBench {
 public:
  /// `large`: at a device's sizes; `device`: figures are of one.
  GpuBench(const Drivers& drivers, bool large, bool device)
      : drivers_(drivers),
        driver_(*drivers.main),
        large_(large),
        device_(device),
        context_(std::make_shared<Context>()) {
    rules_ = ok(load_rules(context_, {"llm"}));
  }
  ~GpuBench() {
    for (cuda::Address a : blocks_) driver_.release(a);
  }
  GpuBench(const GpuBench&) = delete;
  GpuBench& operator=(const GpuBench&) = delete;

  std::string run() {
    std::string out = section("Launch and replay", {"what", "time"}, [&](Table& t) { nodes(t); });
    out += section("Kernels compared with a copy of the same number of bytes",
                   {"what", "MiB", "µs", "copy µs", "speed relative to the copy"},
                   [&](Table& t) { kernels(t); });
    out += section("Matrix products: cuBLASLt and generated kernels",
                   {"what", "cuBLASLt µs", "TFLOP/s", "generated µs", "TFLOP/s", "difference"},
                   [&](Table& t) { products(t); });
    out += section("Weights of 64 layers in one graph", {"what", "µs", "ratio"},
                   [&](Table& t) { weights(t); });
    out +=
        section("Decoder: capture, memory, and steps", {"what", ""}, [&](Table& t) { decoder(t); });
    return out + "### Limits\n\n" + promises_.print();
  }
  [[nodiscard]] bool kept() const { return promises_.kept(); }

 private:
  template <class T>
  T ok(Result<T> result) {
    return need(context_, std::move(result));
  }
  std::string section(const std::string& title, std::vector<std::string> head,
                      const std::function<void(Table&)>& fill) {
    std::cerr << title << " …\n";
    Table table(std::move(head));
    fill(table);
    return "### " + title + "\n\n" + table.print() + "\n";
  }
  /// Returns a figure, or nothing without a device.
  [[nodiscard]] std::string figure(const std::string& text) const { return device_ ? text : "—"; }
  [[nodiscard]] std::string us(double seconds) const {
    return figure(fmt::format("{:.2f}", seconds * 1e6));
  }
  /// Returns wall time including the final wait, as a median; on the host a single run.
  double time(const std::function<void()>& body) const {
    std::vector<double> times;
    body();
    for (int i = 0; i < (device_ ? 21 : 1); ++i) {
      const auto begin = std::chrono::steady_clock::now();
      body();
      times.push_back(
          std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
    return median(times);
  }
  double time(cuda::RecordedGraph graph) { return time(driver_, std::move(graph)); }
  double time(cuda::Driver& driver, cuda::RecordedGraph graph) {
    const auto ready = ok(driver.instantiate(std::move(graph)));
    return time([&] { ok(ready->replay()); });
  }

  cuda::Address take(std::int64_t bytes) {
    blocks_.push_back(ok(driver_.allocate(bytes)));
    ok(driver_.fill(blocks_.back(), 0, bytes));
    return blocks_.back();
  }

  /// A graph of ops, ready as one piece of that many rows.
  struct OnePiece {
    Graph graph;
    StitchedGraph pieces;
    Plan plan;
    Weights weights;
    std::unique_ptr<cuda::Runtime> runtime;
    std::int64_t rows = 0;
    [[nodiscard]] cuda::RecordedGraph record(const ContextPtr& context) const {
      return need(context, runtime->record(PieceId(0), rows));
    }
  };
  std::unique_ptr<OnePiece> one_piece(const std::string& text, std::int64_t rows) {
    return one_piece(driver_, text, rows);
  }
  std::unique_ptr<OnePiece> one_piece(cuda::Driver& driver, const std::string& text,
                                      std::int64_t rows) {
    Graph graph = ok(parse_graph(
        context_, "graph g {\n  symbol n in 1..8192 tokens\n" + text + "\n}\n", "bench"));
    StitchedGraph pieces = ok(split(graph, {}));
    PlanOptions options;
    options.max_tokens = rows;
    options.capture_sizes = {rows};
    Plan plan = ok(make_plan(pieces, graph, options));
    Weights weights(graph, 1);
    auto out = std::make_unique<OnePiece>(OnePiece{
        std::move(graph), std::move(pieces), std::move(plan), std::move(weights), nullptr, rows});
    out->runtime = ok(cuda::Runtime::make(out->pieces, out->graph, out->plan, driver));
    ok(out->runtime->load(out->weights));
    return out;
  }

  static std::int64_t bytes_of(const cuda::RecordedGraph& graph) {
    std::int64_t bytes = 0;
    for (const cuda::LaunchNode& node : graph.nodes)
      for (const auto* tensors : {&node.reads, &node.writes})
        for (const cuda::DeviceTensor& t : *tensors) bytes += t.bytes();
    return bytes;
  }
  /// The nodes again and again, each time after the last.
  static cuda::RecordedGraph repeated(const cuda::RecordedGraph& once, std::size_t times) {
    cuda::RecordedGraph out{once.name, {}};
    for (std::size_t i = 0; i < times; ++i)
      for (const cuda::LaunchNode& node : once.nodes) out.nodes.push_back(node);
    for (std::size_t n = 0; n < out.nodes.size(); ++n) {
      out.nodes[n].after.clear();
      if (n > 0) out.nodes[n].after = {n - 1};
    }
    return out;
  }

  void nodes(Table& table) {
    const auto piece = one_piece("in x: f32[n, 64]  y = relu(x)  out y", 1);
    const cuda::RecordedGraph one = piece->record(context_);
    table.add({"one kernel launched, and waited for",
               us(time([&] { ok(driver_.launch(one.nodes.front())); })) + " µs"});
    table.add({"a graph of one node replayed, and waited for", us(time(one)) + " µs"});
    const std::size_t count = large_ ? 1000 : 20;
    const double chain = time(repeated(one, count));
    table.add(
        {fmt::format("{} nodes in a chain", count),
         figure(fmt::format("{:.0f}", chain / static_cast<double>(count) * 1e9)) + " ns a node"});
    cuda::RecordedGraph apart{"apart", {}};
    for (std::size_t i = 0; i < count; ++i) {
      cuda::LaunchNode node = one.nodes.front();
      node.after.clear();
      node.writes[0].address = take(node.writes[0].bytes());
      apart.nodes.push_back(std::move(node));
    }
    table.add({fmt::format("{} nodes without edges", count),
               figure(fmt::format("{:.0f}", time(apart) / static_cast<double>(count) * 1e9)) +
                   " ns a node"});
    const auto begin = std::chrono::steady_clock::now();
    (void)ok(driver_.instantiate(repeated(one, count)));
    const double capture =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    table.add({fmt::format("capture of {} nodes", count),
               us(capture / static_cast<double>(count)) + " µs a node"});
  }

  void kernels(Table& table) {
    const std::int64_t rows = large_ ? 8192 : 2, wide = large_ ? 4096 : 64;
    const std::size_t times = large_ ? 20 : 1;
    const auto beside_copy = [&](const std::string& name, const std::string& text) {
      const auto piece = one_piece(text, rows);
      const cuda::RecordedGraph once = piece->record(context_);
      const std::int64_t bytes = bytes_of(once);
      const double own = time(repeated(once, times)) / static_cast<double>(times);
      // A copy reads its bytes and writes them.
      cuda::LaunchNode copy;
      copy.kind = cuda::LaunchNode::Kind::copy;
      copy.name = "copy";
      copy.reads = {{DType::u8, {bytes / 2}, take(bytes / 2)}};
      copy.writes = {{DType::u8, {bytes / 2}, take(bytes / 2)}};
      const double other = time(repeated({"copies", {copy}}, times)) / static_cast<double>(times);
      table.add({fmt::format("{}, {} kernels", name, once.nodes.size()),
                 fmt::format("{:.1f}", static_cast<double>(bytes) / (1 << 20)), us(own), us(other),
                 figure(fmt::format("{:.0f} %", other / own * 100))});
    };
    beside_copy("sum and RMSNorm", fmt::format("in x: bf16[n, {0}], z: bf16[n, {0}], w: bf16[{0}]\n"
                                               "y, r = fused_add_rms_norm(x, z, w)  out y, r",
                                               wide));
    beside_copy("sum, RMSNorm and fp8",
                fmt::format("in x: bf16[n, {0}], z: bf16[n, {0}], w: bf16[{0}], s: f32[1]\n"
                            "q, r = fused_add_rms_norm_static_fp8_quant(x, z, w, s)  out q, r",
                            wide));
    beside_copy("silu times, fp8 a row",
                fmt::format("in x: bf16[n, {0}], z: bf16[n, {0}]\n"
                            "g = silu(x)  m = mul(g, z)  q, s = dynamic_per_token_fp8_quant(m)\n"
                            "out q, s",
                            wide));
    beside_copy("RMSNorm of f32",
                fmt::format("in x: f32[n, {0}], w: f32[{0}]  y = rms_norm(x, w)  out y", wide));
  }

  void products(Table& table) {
    const std::int64_t wide = large_ ? 4096 : 64;
    for (std::int64_t rows : {1, 16, 256}) {
      if (!large_ && rows > 16) continue;
      const auto product = [&](const std::string& name, const std::string& text, double limit) {
        compare(table, fmt::format("{}, {} × {} by {} × {}", name, rows, wide, wide, wide),
                fmt::format(fmt::runtime(text), wide), rows, limit);
      };
      product("bf16", "in x: bf16[n, {0}], w: bf16[{0}, {0}]  y = mm(x, w)  out y", 1.0 / 128);
      product("bf16, transposed",
              "in x: bf16[n, {0}], w: bf16[{0}, {0}]\n"
              "t = transpose(w){{dim0 = 0, dim1 = 1}}  y = mm(x, t)  out y",
              1.0 / 128);
      product("fp8, transposed",
              "in x: f8e4m3[n, {0}], w: f8e4m3[{0}, {0}], s: f32[1], r: f32[1]\n"
              "t = transpose(w){{dim0 = 0, dim1 = 1}}\n"
              "y = scaled_mm(x, t, s, r){{out = bf16}}  out y",
              1.0 / 128);
    }
  }

  /// Compares one product both ways, with the difference relative to the largest result.
  void compare(Table& table, const std::string& name, const std::string& text, std::int64_t rows,
               double limit) {
    struct Way {
      std::string us = "—", rate = "—";
      Tensor result;
    };
    const auto run = [&](cuda::Driver& driver, bool library) {
      Way out;
      const auto piece = one_piece(driver, text, rows);
      const cuda::RecordedGraph once = piece->record(context_);
      const bool called = once.nodes.front().library != nullptr;
      if (called != library) return out;  // no library, or no algorithm for the product
      Step step;
      step.sequences = {{0, rows, 0}};
      if (drivers_.library != nullptr)
        out.result = ok(piece->runtime->run(step, piece->weights)).outputs.front();
      const double t = time(driver, once);
      const TensorView y = {once.nodes.back().writes[0].dtype, once.nodes.back().writes[0].extents,
                            nullptr};
      const auto depth = once.nodes.back().reads.front().extents[1];
      out.us = us(t);
      out.rate = figure(fmt::format("{:.2f}", 2e-12 * static_cast<double>(y.count() * depth) / t));
      return out;
    };
    const Way own = run(*drivers_.own, false);
    if (drivers_.library == nullptr) return;
    const Way other = run(*drivers_.library, true);
    std::string difference = "—";
    if (!other.result.empty()) {
      const double worst = relative_difference(other.result.view(), own.result.view());
      difference = fmt::format("{:.1e}", worst);
      promises_.at_most("difference of products: " + name, worst * 100, limit * 100, " %");
    }
    table.add({name, other.us, other.rate, own.us, own.rate, difference});
  }

  static double relative_difference(const TensorView& a, const TensorView& b) {
    double worst = 0, largest = 0;
    for (std::int64_t i = 0; i < b.count(); ++i) {
      const double wanted = load(b.dtype, b.data, i);
      const double difference = std::abs(load(a.dtype, a.data, i) - wanted);
      if (!std::isfinite(difference)) return 1;
      worst = std::max(worst, difference);
      largest = std::max(largest, std::abs(wanted));
    }
    return largest > 0 ? worst / largest : 1;
  }

  /// A kernel that adds one layer's weights to a row: they are an argument, or found in a table.
  cuda::Kernel adding(bool by_table, TypeId type) {
    cuda::Kernel kernel;
    kernel.name = by_table ? "by_table" : "by_parameter";
    kernel.op = "add";
    kernel.arguments = {type, type};
    kernel.results = 1;
    kernel.params = {context_->dims.constant(1)};
    if (by_table) kernel.params.push_back(context_->dims.constant(0));
    kernel.threads = kernel.rows_per_block = 256;
    kernel.source = fmt::format(
        "extern \"C\" __global__ void {}({} p0, float* p1, long long rows{}) {{\n"
        "  const long long i = (long long)blockIdx.x * 256 + threadIdx.x;\n"
        "  if (i < rows) p1[i] = pw_add(p1[i], {});\n}}\n",
        kernel.name, by_table ? "const long long*" : "const float*",
        by_table ? ", long long layer" : "", by_table ? "((const float*)p0[layer])[i]" : "p0[i]");
    return kernel;
  }

  void weights(Table& table) {
    constexpr std::int64_t kLayers = 64, kWide = 4096;
    const TypeId type = context_->types.get(DType::f32, {context_->dims.constant(kWide)});
    const cuda::Kernel both[] = {adding(false, type), adding(true, type)};
    ok(driver_.load(both));
    std::vector<std::int64_t> addresses;
    for (std::int64_t i = 0; i < kLayers; ++i)
      addresses.push_back(static_cast<std::int64_t>(take(kWide * 4)));
    const cuda::Address in_table = take(kLayers * 8), row = take(kWide * 4);
    ok(driver_.write(in_table, addresses.data(), kLayers * 8));
    const auto graph = [&](bool by_table) {
      cuda::RecordedGraph out{by_table ? "by table" : "by parameters", {}};
      for (std::int64_t i = 0; i < kLayers; ++i) {
        cuda::LaunchNode node;
        node.name = both[by_table ? 1 : 0].name;
        if (by_table)
          node.reads = {{DType::i64, {kLayers}, in_table}};
        else
          node.reads = {{DType::f32,
                         {kWide},
                         static_cast<cuda::Address>(addresses[static_cast<std::size_t>(i)])}};
        node.writes = {{DType::f32, {kWide}, row}};
        node.params = {kWide};
        if (by_table) node.params.push_back(i);
        out.nodes.push_back(std::move(node));
      }
      cuda::order_nodes(out);
      return out;
    };
    const double direct = time(graph(false)), looked_up = time(graph(true));
    table.add({"addresses in each node's parameters", us(direct), figure("1.00")});
    table.add({"addresses in a table in memory", us(looked_up),
               figure(fmt::format("{:.2f}", looked_up / direct))});
  }

  void decoder(Table& table) {
    LlamaOptions options;
    options.layers = large_ ? 8 : 2;
    options.hidden = large_ ? 2048 : 128;
    options.heads = large_ ? 16 : 4;
    options.kv_heads = large_ ? 4 : 2;
    options.ffn = large_ ? 5632 : 192;
    options.vocab = large_ ? 32000 : 64;
    options.max_tokens = 64;
    Graph graph = ok(generate_llama(context_, options));
    (void)ok(run_pipeline(graph, rules_, "o2", ok(bind_params(rules_, {}))));
    const StitchedGraph pieces = ok(split(graph, ok(splitting_ops(context_, &rules_, {}, {}))));
    PlanOptions plan_options;
    plan_options.max_tokens = 64;
    plan_options.capture_sizes = {1, 8, 32};
    const Plan plan = ok(make_plan(pieces, graph, plan_options));
    Weights weights(graph, 7);
    cuda::RuntimeOptions how;
    how.cached_tokens = 2 * 32 * kDecoded;  // of the most sequences below, twice
    const std::int64_t before = driver_.memory().free;
    const auto runtime = ok(cuda::Runtime::make(pieces, graph, plan, driver_, how));
    ok(runtime->load(weights));
    const std::int64_t loaded = driver_.memory().free;
    const Captured captured = capture(*runtime);
    const MemoryPlan& memory = runtime->memory();
    const auto planned =
        static_cast<double>(memory.arena_bytes + memory.input_bytes + memory.weight_bytes +
                            memory.buffer_bytes + memory.cache_bytes);
    const auto taken = static_cast<double>(before - loaded);
    const cuda::RuntimeCounters& c = runtime->counters();
    table.add({"model", fmt::format("{} layers of {}, {} pieces, {} classes", options.layers,
                                    options.hidden, c.pieces, c.piece_classes)});
    table.add({"graphs captured, executables, nodes",
               fmt::format("{}, {}, {}", c.graphs_captured, c.executables, c.graph_nodes)});
    table.add({"capture", figure(fmt::format("{:.1f} ms", captured.seconds * 1e3))});
    table.add({"memory: planned", fmt::format("{:.2f} MiB", planned / (1 << 20))});
    table.add({"memory: taken", fmt::format("{:.2f} MiB", taken / (1 << 20))});
    table.add({"memory: of executables", figure(fmt::format("{:.2f} MiB", captured.mebibytes))});
    promises_.at_most("memory taken, relative to the plan", std::abs(taken / planned - 1) * 100, 5,
                      " %");
    plan_options.mode = "full_decode_only";
    const Plan decodes = ok(make_plan(pieces, graph, plan_options));
    const auto whole = ok(cuda::Runtime::make(pieces, graph, decodes, driver_, how));
    ok(whole->load(weights));
    ok(whole->capture());
    KvCache in_pieces, in_whole, alone;
    for (std::int64_t sequences : {1, 8, 32}) {
      const auto row = [&](const std::string& what, cuda::Runtime& by, bool pad, KvCache& cache) {
        const double seconds = decode(by, weights, sequences, pad, cache);
        table.add({fmt::format("decode of {} sequences, {}", sequences, what),
                   figure(fmt::format("{:.2f} ms a step", seconds * 1e3))});
      };
      row("as one graph", *whole, true, in_whole);
      row("pieces captured", *runtime, true, in_pieces);
      row("launch by launch", *runtime, false, alone);
    }
    const cuda::RuntimeCounters& w = whole->counters();
    promises_.at_most("captures that failed",
                      static_cast<double>(c.failed_captures + w.failed_captures), 0, "");
    promises_.at_most("stale replays", static_cast<double>(c.stale + w.stale), 0, "");
    plan_options.capture_sizes.clear();
    for (std::int64_t size = 1; size <= kSizes; ++size) plan_options.capture_sizes.push_back(size);
    const Plan many = ok(make_plan(pieces, graph, plan_options));
    for (const bool shared : {false, true}) {
      how.share_executables = shared;
      const auto ready = ok(cuda::Runtime::make(pieces, graph, many, driver_, how));
      many_sizes(table, *ready, weights, shared ? "shared executables" : "an executable each");
    }
  }

  struct Captured {
    double seconds = 0, mebibytes = 0;  ///< of device memory
  };
  Captured capture(cuda::Runtime& runtime) {
    const std::int64_t free = driver_.memory().free;
    const auto begin = std::chrono::steady_clock::now();
    ok(runtime.capture());
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    return {taken.count(), static_cast<double>(free - driver_.memory().free) / (1 << 20)};
  }

  /// Adds rows for capturing whole steps of many sizes, and for decoding by turns of two sizes.
  void many_sizes(Table& table, cuda::Runtime& runtime, Weights& weights, const std::string& how) {
    ok(runtime.load(weights));
    const Captured captured = capture(runtime);
    const cuda::RuntimeCounters& c = runtime.counters();
    table.add({fmt::format("{} sizes, {}: executables, nodes", kSizes, how),
               fmt::format("{}, {}", c.executables, c.graph_nodes)});
    table.add(
        {fmt::format("{} sizes, {}: capture, memory", kSizes, how),
         figure(fmt::format("{:.1f} ms, {:.2f} MiB", captured.seconds * 1e3, captured.mebibytes))});
    KvCache cache;
    std::vector<double> times;
    for (int i = 0; i < (device_ ? 2 * kDecoded : 2); ++i) {
      Step step;
      step.cache = &cache;
      for (std::int64_t s = 0; s < 1 + i % 2; ++s)
        step.sequences.push_back({s, 1, s == 0 ? i : i / 2});
      times.push_back(ok(runtime.run(step, weights, {})).report.seconds);
    }
    table.add({fmt::format("{} sizes, {}: decode of 1 and 2 sequences by turns", kSizes, how),
               figure(fmt::format("{:.2f} ms a step", median(times) * 1e3))});
  }

  double decode(cuda::Runtime& runtime, Weights& weights, std::int64_t sequences, bool pad,
                KvCache& cache) {
    Step step;
    step.cache = &cache;
    for (std::int64_t i = 0; i < sequences; ++i) step.sequences.push_back({i, 1, 0});
    std::vector<double> times;
    for (int i = 0; i < (device_ ? kDecoded : 2); ++i) {
      RunOptions options;
      options.pad = pad;
      times.push_back(ok(runtime.run(step, weights, options)).report.seconds);
      for (Sequence& s : step.sequences) ++s.past;
    }
    for (const Sequence& s : step.sequences) cache.end(s.id);
    times.erase(times.begin(), times.end() - (device_ ? 24 : 1));  // with 256 tokens of past
    return median(times);
  }

  const Drivers& drivers_;
  cuda::Driver& driver_;
  bool large_, device_;
  ContextPtr context_;
  RuleSet rules_;
  std::vector<cuda::Address> blocks_;
  Promises promises_;
};

}  // namespace
}  // namespace pw::bench

int main(int argc, char** argv) {
  using namespace pw::bench;
  CLI::App app("What a device does, in one run", "pw_bench_gpu");
  DeviceArgs args;
  add_device_options(app, args);
  app.footer("Example: pw_bench_gpu --output gpu.md\nExit code 5: no device.");
  CLI11_PARSE(app, argc, argv);
  const Drivers drivers = open(args);
  GpuBench bench(drivers, args.large(), args.device());
  if (args.prepares()) {
    (void)bench.run();
    return 0;
  }
  const std::string text = (args.device() ? machine() + ". Wall time, medians of 21."
                                          : "Run on the emulator at small sizes, without times.") +
                           "\n\n" + bench.run() + more(args.more);
  publish(args, "GPU benchmarks", *drivers.main, text);
  return bench.kept() ? 0 : 1;
}
