// Times decode steps of Llama-3.2-1B, with its LM head and the choice of the next token, in each
// way to launch them, and relates them to a chain of the same matrix products. With `--driver host`
// everything runs at a small size, and no times are shown.
#include <chrono>
#include <iostream>
#include <optional>

#include <fmt/format.h>

#include "bench/gpu/device.hpp"
#include "bench/measure.hpp"
#include "cuda/many_steps.hpp"
#include "dsl/dsl.hpp"
#include "models/families.hpp"
#include "rewriter/rewriter.hpp"
#include "splitter/plan.hpp"
#include "tensor/kv_cache.hpp"

namespace pw::bench {
namespace {

constexpr double kMostOfChain = 1.05;  // the whole step, relative to the chain

struct Args : DeviceArgs {
  double chain = 0;  ///< microseconds; 0: not measured
};

/// How a decoder is launched.
struct Way {
  const char* name;
  bool graph = true, streams = false, early = false;
  std::int64_t steps_in_launch = 0;
};

constexpr Way kWays[] = {
    {"launch by launch", false},
    {"one graph a step", true},
    {"one graph, weights streamed", true, true},
    {"the same with programmatic edges", true, true, true},
    {"the same, 16 steps a launch", true, true, true, 16},
};

class DecodeBench {
 public:
  DecodeBench(cuda::Driver& driver, bool large, bool device, double chain)
      : driver_(driver),
        device_(device),
        chain_(chain),
        context_(std::make_shared<Context>()),
        graph_(decoder(large)),
        pieces_(ok(split(graph_, ok(splitting_ops(context_, &rules_, {}, {}))))),
        plan_(planned()),
        weights_(graph_, 7) {}

  /// Runs all ways; only captures them if `computes` is false.
  std::string run(bool computes) {
    for (const Way& way : kWays) {
      std::cerr << way.name << " …\n";
      const auto runtime = captured(way);
      if (computes) measure(way, *runtime);
    }
    if (chain_ > 0)
      table_.add({"the chain of 65 matrix products", "65", us(chain_), figure("1.00")});
    if (device_ && chain_ > 0)
      promises_.at_most("whole step, relative to the chain", 100 * *least_ / chain_,
                        100 * kMostOfChain, " %");
    return "### Decode steps of Llama-3.2-1B\n\n" + table_.print() + "\n### Limits\n\n" +
           promises_.print();
  }
  [[nodiscard]] bool kept() const { return promises_.kept(); }

 private:
  template <class T>
  T ok(Result<T> result) {
    return need(context_, std::move(result));
  }
  [[nodiscard]] std::string figure(const std::string& text) const { return device_ ? text : "—"; }
  [[nodiscard]] std::string us(double microseconds) const {
    return figure(fmt::format("{:.1f}", microseconds));
  }

  Graph decoder(bool large) {
    rules_ = ok(load_rules(context_, {"llm"}));
    FamilyOptions options;
    options.family = "llama3";
    options.layers = large ? 16 : 1;
    options.hidden = large ? 2048 : 512;
    options.heads = large ? 32 : 4;
    options.kv_heads = large ? 8 : 2;
    options.head = large ? 64 : 16;
    options.ffn = large ? 8192 : 192;
    options.vocab = large ? 128256 : 64;
    options.positions = large ? 8192 : 128;
    options.max_tokens = 8;
    options.lm_head = "greedy";
    Graph out = ok(generate_family(context_, options));
    (void)ok(run_pipeline(out, rules_, "o2", ok(bind_params(rules_, {}))));
    return out;
  }
  Plan planned() {
    PlanOptions options;
    options.max_tokens = 8;
    options.max_requests = 1;
    options.capture_sizes = {1};
    options.mode = "full";
    return ok(make_plan(pieces_, graph_, options));
  }
  std::unique_ptr<cuda::Runtime> captured(const Way& way) {
    cuda::RuntimeOptions options;
    options.cached_tokens = 1024;
    options.stream_weights = way.streams;
    options.programmatic_edges = way.early;
    options.steps_in_launch = way.steps_in_launch;
    auto out = ok(cuda::Runtime::make(pieces_, graph_, plan_, driver_, options));
    ok(out->load(weights_));
    ok(out->capture());
    promises_.at_least(fmt::format("whole steps captured, {}", way.name),
                       static_cast<double>(out->counters().whole_steps), 1, "");
    return out;
  }

  /// Decodes one sequence: 256 tokens, and then chunks of 16 that are measured.
  void measure(const Way& way, cuda::Runtime& runtime) {
    constexpr std::int64_t kChunk = 16;
    KvCache cache;
    Step step;
    step.sequences = {{0, 1, 0}};
    step.cache = &cache;
    RunOptions options;
    options.captures = way.graph;
    std::vector<std::int64_t> tokens;
    const auto decode = [&](std::int64_t count) {
      const auto begin = std::chrono::steady_clock::now();
      const Generation done = ok(cuda::run_many(runtime, step, weights_, {count, {}}, options));
      const std::chrono::duration<double, std::micro> took =
          std::chrono::steady_clock::now() - begin;
      tokens.insert(tokens.end(), done.tokens[0].begin(), done.tokens[0].end());
      step = done.next;
      return took.count() / static_cast<double>(count);
    };
    decode(device_ ? 256 : kChunk);
    std::vector<double> times;
    for (int i = 0; i < (device_ ? 12 : 1); ++i) times.push_back(decode(kChunk));
    cache.end(0);
    const double microseconds = median(times);
    if (way.graph) least_ = std::min(least_.value_or(microseconds), microseconds);
    table_.add({way.name, launches(way, runtime), us(microseconds),
                chain_ > 0 ? figure(fmt::format("{:.2f}", microseconds / chain_)) : "—"});
    check_tokens(way, tokens);
  }

  /// Streamed products sum in an order of their own, so only ways that stream are compared.
  void check_tokens(const Way& way, const std::vector<std::int64_t>& tokens) {
    if (!way.streams) return;
    if (streamed_tokens_.empty()) streamed_tokens_ = tokens;
    std::size_t others = 0;
    for (std::size_t i = 0; i < tokens.size(); ++i)
      others += tokens[i] == streamed_tokens_.at(i) ? 0 : 1;
    if (way.early)
      promises_.at_most(fmt::format("other tokens, {}", way.name), static_cast<double>(others), 0,
                        "");
  }

  /// Returns the nodes of a step's graph.
  std::string launches(const Way& way, const cuda::Runtime& runtime) const {
    const cuda::RuntimeCounters& c = runtime.counters();
    return way.steps_in_launch > 0 || c.executables == 0
               ? "—"
               : fmt::format("{}", c.graph_nodes / c.executables);
  }

  cuda::Driver& driver_;
  bool device_;
  double chain_;
  ContextPtr context_;
  RuleSet rules_;
  Graph graph_;
  StitchedGraph pieces_;
  Plan plan_;
  Weights weights_;
  std::vector<std::int64_t> streamed_tokens_;
  std::optional<double> least_;
  Table table_{{"way", "nodes", "µs a step", "relative to the chain"}};
  Promises promises_;
};

std::unique_ptr<cuda::Driver> open(const Args& args) {
  if (args.prepares()) return preparing_driver(args);
  if (args.driver == "host") return std::make_unique<cuda::HostDriver>();
  return open_device(args.cubins, true);
}

}  // namespace
}  // namespace pw::bench

int main(int argc, char** argv) {
  using namespace pw::bench;
  CLI::App app("Decode steps of Llama-3.2-1B on a device", "pw_bench_decode");
  Args args;
  add_device_options(app, args);
  app.add_option("--chain", args.chain,
                 "microseconds of a chain of the same matrix products, measured on this device");
  app.footer("Example: pw_bench_decode --chain 760.8 --output decode.md\nExit code 5: no device.");
  CLI11_PARSE(app, argc, argv);
  const auto driver = open(args);
  DecodeBench bench(*driver, args.large(), args.device(), args.chain);
  const std::string body = bench.run(!args.prepares());
  if (args.prepares()) return 0;
  const std::string text =
      (args.device() ? machine() +
                           ". One sequence after 256 tokens; wall time with the token read back, "
                           "median of 12 times 16 steps."
                     : "Run on the emulator at a small size, without times.") +
      "\n\n" + body + more(args.more);
  publish(args, "Decode benchmarks", *driver, text);
  return bench.kept() ? 0 : 1;
}
