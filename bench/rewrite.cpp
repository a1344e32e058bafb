// Benchmark of rewriting: every stage at growing sizes, the engine against hand-written rules, a
// star graph, and bytes per node. Ends with the checked limits, and exit code 1 if one is exceeded.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "base/io/file.hpp"
#include "base/memory.hpp"
#include "bench/measure.hpp"
#include "bench/one_graph.hpp"
#include "bench/page.hpp"
#include "bench/stages.hpp"
#include "bench/star.hpp"
#include "graph/text/graph_json.hpp"
#include "models/generate.hpp"

namespace pw::bench {
namespace {

constexpr double kMostGrowth = 2;   // of the cost a node, from the smallest size to the largest
constexpr double kMost = 2.5;       // times the rules written by hand
constexpr double kMostBytes = 120;  // a node

struct Args {
  std::string rules = PW_BENCH_RULES;
  std::vector<std::size_t> sizes{10'000, 100'000, 1'000'000};
  std::string output;
  OneGraph one;
  std::string family = "llama";
  std::optional<Stage> stage;
  int times = 1;
  std::size_t caches = 0;  ///< nodes; 0: caches are not simulated
};

int runs_of(std::size_t nodes) { return nodes <= 20'000 ? 15 : nodes <= 200'000 ? 7 : 5; }

std::string per_node(double seconds, std::size_t nodes) {
  return fmt::format("{:.0f}", seconds * 1e9 / static_cast<double>(nodes));
}
std::string times(double ratio) { return fmt::format("{:.2f}×", ratio); }

/// A family of graphs, one for each size.
struct Family {
  std::string name;
  std::function<Graph(const ContextPtr&, std::size_t nodes)> make;
};

Graph make_llama(const ContextPtr& context, std::size_t nodes) {
  LlamaOptions options;
  options.quant = "fp8";
  options.tp = 2;  // for the collectives; 24 nodes a layer
  options.layers = static_cast<std::int64_t>(std::max<std::size_t>(1, nodes / 24));
  return need(context, generate_llama(context, options));
}

/// Wide layers, in random topological order; 666 nodes a layer, and as many layers as the generator
/// makes at most.
Graph make_moe(const ContextPtr& context, std::size_t nodes) {
  LlamaOptions options;
  options.quant = "fp8";
  options.tp = 2;
  options.experts = 64;
  options.topk = 8;
  options.layers = static_cast<std::int64_t>(std::clamp<std::size_t>(nodes / 666, 1, 1195));
  return shuffled(need(context, generate_llama(context, options)), 20);
}

std::vector<Family> families() { return {{"llama", make_llama}, {"moe", make_moe}}; }

class Report {
 public:
  explicit Report(Args args) : args_(std::move(args)) {}

  int run() {
    say(
        fmt::format("{}; GCC {}.{}. Processor time, medians of 15, 7 and 5 runs in one process, "
                    "each with cold caches. Only the ratios carry over to other machines.\n\n",
                    machine(), __GNUC__, __GNUC_MINOR__));
    rules();
    for (const Family& family : families()) stages(family);
    if (args_.caches > 0) caches();
    star();
    bytes();
    say("### What must hold\n\n" + promises_.print());
    if (!args_.output.empty()) {
      need(std::make_shared<Context>(),
           write_section(args_.output, "Rewriting", processor(), text_));
    }
    return promises_.kept() ? 0 : 1;
  }

 private:
  void say(const std::string& text) {
    text_ += text;
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
  }

  RuleSet loaded(const ContextPtr& context) {
    return need(context, load_rules(context, {args_.rules}));
  }

  void rules() {
    std::vector<double> samples, library;
    std::size_t count = 0;
    for (int i = 0; i < 9; ++i) {
      const auto context = std::make_shared<Context>();
      library.push_back(seconds([&] { need(context, load_op_library(context)); }));
      samples.push_back(seconds([&] { count = loaded(context).rules.size(); }));
    }
    say(fmt::format("Parsing and checking {} rules: {} ms, after {} ms for the op library.\n\n",
                    count, milliseconds(median(samples)), milliseconds(median(library))));
  }

  void stages(const Family& family) {
    Table cost({family.name, "nodes", "matches", "rewrites", "compile ms", "scan ms", "fixpoint ms",
                "hashes ms", "explain ms"});
    Table ratio({family.name, "scan ns/node", "by hand", "engine/hand", "fixpoint ns/node",
                 "by hand", "engine/hand", "scan growth", "fixpoint growth"});
    Stages first, last;
    for (std::size_t size : args_.sizes) {
      const auto context = std::make_shared<Context>();
      const RuleSet set = loaded(context);
      const Graph graph = family.make(context, size);
      last = run_stages(graph, set, runs_of(size));
      if (first.nodes == 0) first = last;
      const std::string nodes = grouped(last.nodes);
      cost.add({family.name, nodes, grouped(last.matches), grouped(last.rewrites),
                milliseconds(last.compile), milliseconds(last.scan), milliseconds(last.fixpoint),
                milliseconds(last.hash), milliseconds(last.explain)});
      ratio.add({nodes, per_node(last.scan, last.nodes), per_node(last.hand_scan, last.nodes),
                 times(last.scan / last.hand_scan), per_node(last.fixpoint, last.nodes),
                 per_node(last.hand_fixpoint, last.nodes),
                 times(last.fixpoint / last.hand_fixpoint),
                 times(growth(first, last, &Stages::scan)),
                 times(growth(first, last, &Stages::fixpoint))});
    }
    say("### " + family.name + "\n\n" + cost.print() + "\n" + ratio.print() + "\n" + fired(last) +
        "\n");
    promise(family, first, last);
  }

  static double growth(const Stages& first, const Stages& last, double Stages::* stage) {
    return last.*stage / static_cast<double>(last.nodes) /
           (first.*stage / static_cast<double>(first.nodes));
  }

  static std::string fired(const Stages& stages) {
    std::string out = fmt::format("Rewrites at {} nodes:", grouped(stages.nodes));
    for (std::size_t i = 0; i < kHandRules; ++i)
      out += fmt::format("{} {} {}", i == 0 ? "" : ",", name(static_cast<HandRule>(i)),
                         stages.by_rule[i]);
    return out + ".\n";
  }

  void promise(const Family& family, const Stages& first, const Stages& last) {
    const std::string at = fmt::format(", {} of {}", family.name, grouped(last.nodes));
    const double scan = last.scan / last.hand_scan;
    const double fixpoint = last.fixpoint / last.hand_fixpoint;
    promises_.at_most("scan, engine / by hand" + at, scan, kMost, "×");
    promises_.at_most("fixpoint, engine / by hand" + at, fixpoint, kMost, "×");
    promises_.at_most("scan, growth of the cost a node" + at, growth(first, last, &Stages::scan),
                      kMostGrowth, "×");
    promises_.at_most("fixpoint, growth of the cost a node" + at,
                      growth(first, last, &Stages::fixpoint), kMostGrowth, "×");
  }

  void star() {
    std::vector<std::string> head{"one value, ns a user"};
    std::vector<std::vector<std::pair<std::string, double>>> columns;
    for (std::size_t size : args_.sizes) {
      head.push_back(grouped(size) + " users");
      columns.push_back(run_star(size, 9));
    }
    head.emplace_back("growth");
    Table table(head);
    for (std::size_t row = 0; row < columns.front().size(); ++row) {
      std::vector<std::string> cells{columns.front()[row].first};
      for (const auto& column : columns) cells.push_back(per_node(column[row].second, 1));
      const double growth = columns.back()[row].second / columns.front()[row].second;
      cells.push_back(times(growth));
      table.add(std::move(cells));
      promises_.at_most(fmt::format("star, growth of the cost of {}", columns.front()[row].first),
                        growth, kMostGrowth, "×");
    }
    many(table);
    say("### A star\n\n" + table.print() + "\n");
  }

  /// Stops where it is clear that the cost grows with the square.
  void many(Table& table) {
    std::vector<std::string> cells{"a rule with `many`"};
    double first = 0, growth = 0;
    for (std::size_t size : args_.sizes) {
      std::optional<double> cost;
      if (growth <= 3 * kMostGrowth) cost = run_many(size, size > 200'000 ? 1 : 3);
      cells.push_back(cost ? per_node(*cost, 1) : "not run");
      if (!cost) continue;
      if (first == 0) first = *cost;
      growth = *cost / first;
    }
    cells.push_back(first > 0 ? times(growth) : "");
    table.add(std::move(cells));
    if (first > 0)
      promises_.at_most("star, growth of the cost of a rule with `many`", growth, kMostGrowth, "×");
  }

  /// Each stage under callgrind, which counts what measured_stage() does, with caches of one size
  /// whatever the machine has.
  void caches() {
    Table table({"stage", "instructions/node", "by hand", "first-level misses/node", "by hand",
                 "last-level misses/node", "by hand"});
    for (const char* family : {"llama", "moe"})
      for (const char* stage : {"scan", "fixpoint"}) {
        const std::vector<double> ours = simulated(family, stage);
        const std::vector<double> hand = simulated(family, std::string("hand-") + stage);
        std::vector<std::string> cells{std::string(family) + ", " + stage};
        for (std::size_t i = 0; i < ours.size(); ++i)
          for (double count : {ours[i], hand[i]})
            cells.push_back(fmt::format("{:.{}f}", count, i == 0 ? 0 : 2));
        table.add(std::move(cells));
      }
    say(fmt::format(
        "### Instructions and cache misses\n\nCounted by callgrind on {} nodes, data only, "
        "with 32 KiB of first-level and 1 MiB of second-level cache.\n\n{}\n",
        grouped(args_.caches), table.print()));
  }

  /// Instructions, misses of the first level and of the last, a node.
  std::vector<double> simulated(const std::string& family, const std::string& stage) {
    const std::filesystem::path folder =
        std::filesystem::temp_directory_path() / fmt::format("piecewise-caches-{}", getpid());
    std::filesystem::create_directories(folder);
    const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
    const std::string log = (folder / "log").string();
    const std::string command = fmt::format(
        "valgrind --tool=callgrind --cache-sim=yes --I1=32768,8,64 --D1=32768,8,64 "
        "--LL=1048576,16,64 --collect-atstart=no --toggle-collect=measured_stage "
        "--callgrind-out-file=/dev/null '{}' --rules '{}' --sizes {} --stage {} --family {} 2> "
        "'{}'",
        self, args_.rules, args_.caches, stage, family, log);
    const int code = std::system(command.c_str());
    std::ifstream in(log);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    std::filesystem::remove_all(folder);
    if (code != 0) die("callgrind could not run; --caches needs valgrind");
    std::vector<double> out;
    for (const char* key : {"I   refs:", "D1  misses:", "LLd misses:"}) {
      std::string digits = text.substr(text.find(key) + std::string_view(key).size(), 20);
      std::erase_if(digits, [](char c) { return c == ',' || c == ' '; });
      out.push_back(std::atof(digits.c_str()) / static_cast<double>(args_.caches));
    }
    return out;
  }

  /// In a separate process, because memory freed by earlier benchmarks would hide growth.
  void bytes() {
    const std::filesystem::path folder =
        std::filesystem::temp_directory_path() / fmt::format("piecewise-bench-{}", getpid());
    std::filesystem::create_directories(folder);
    const std::string graph = (folder / "llama.json").string(), answer = (folder / "out").string();
    {
      const auto context = std::make_shared<Context>();
      loaded(context);
      need(context, write_file(graph, graph_to_json(make_llama(context, args_.sizes.back()))));
    }
    const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
    const std::string command = fmt::format("'{}' --graph '{}' --rules '{}' --pass all > '{}'",
                                            self, graph, args_.rules, answer);
    const int code = std::system(command.c_str());
    std::string line;
    std::ifstream in(answer);
    std::getline(in, line);
    in.close();
    std::filesystem::remove_all(folder);
    if (code != 0) die("bytes a node could not be measured");
    say("### Bytes a node\n\nLoaded from JSON and rewritten in a process of its own:\n\n    " +
        line + "\n\n");
    promises_.at_most("bytes a loaded node, after load and fixpoint, journal on",
                      number_after(line, "\"bytes_per_node\": "), kMostBytes, "");
  }

  static double number_after(const std::string& text, const std::string& key) {
    const std::size_t at = text.find(key);
    return at == std::string::npos ? 0 : std::atof(text.c_str() + at + key.size());
  }

  Args args_;
  std::string text_;
  Promises promises_;
};

void run_one_stage(const Args& args) {
  for (const Family& family : families()) {
    if (family.name != args.family) continue;
    const auto context = std::make_shared<Context>();
    const RuleSet rules = need(context, load_rules(context, {args.rules}));
    run_stage(*args.stage, family.make(context, args.sizes.back()), rules, args.times);
  }
}

}  // namespace

int run(int argc, char** argv) {
  Args args;
  CLI::App app("Times rewriting. Exit code 1: something that must hold does not.");
  app.add_option("--rules", args.rules, "the rules, as hand_compiled.cpp has them");
  app.add_option("--sizes", args.sizes, "nodes, rising");
  app.add_option("-o,--output", args.output, "also write the report into this file");
  app.add_option("--caches", args.caches,
                 "also count instructions and cache misses under callgrind, on so many nodes");
  app.add_option("--graph", args.one.graph, "instead: one graph file, one line of JSON");
  app.add_option("--pass", args.one.pass, "with --graph: the pass or pipeline to run");
  app.add_flag("--verify", args.one.verify, "with --graph: check the graph afterwards");
  const std::map<std::string, Stage> stages{{"scan", Stage::scan},
                                            {"hand-scan", Stage::hand_scan},
                                            {"fixpoint", Stage::fixpoint},
                                            {"hand-fixpoint", Stage::hand_fixpoint}};
  app.add_option("--stage", args.stage, "instead: this stage alone, for a profiler")
      ->transform(CLI::CheckedTransformer(stages));
  app.add_option("--family", args.family, "with --stage: llama or moe")
      ->check(CLI::IsMember({"llama", "moe"}));
  app.add_option("--times", args.times, "with --stage: how often");
  CLI11_PARSE(app, argc, argv);
  keep_large_arrays_apart();  // as pwr does
  if (args.stage) {
    run_one_stage(args);
    return 0;
  }
  if (args.one.graph.empty()) return Report(std::move(args)).run();
  args.one.rules = args.rules;
  std::puts(run_one_graph(args.one).c_str());
  return 0;
}

}  // namespace pw::bench

int main(int argc, char** argv) { return pw::bench::run(argc, argv); }
