// Reading a million nodes, in each form a graph has, and rewriting again after an edit, in one run.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/file.hpp"
#include "base/memory.hpp"
#include "bench/incremental.hpp"
#include "bench/measure.hpp"
#include "dsl/dsl.hpp"
#include "graph/generate.hpp"
#include "graph/graph_binary.hpp"

namespace pw::bench {
namespace {

constexpr double kMostBinary = 0.15;  // seconds for a million nodes

struct Form {
  std::string name, text;
  std::function<Result<Graph>(const ContextPtr&, const std::string&)> read;
};

std::string report(std::int64_t layers, Promises& promises) {
  const auto context = std::make_shared<Context>();
  need(context, load_op_library(context));
  LlamaOptions options;
  options.layers = layers;
  options.quant = "fp8";
  const Graph graph = need(context, generate_llama(context, options));
  const std::vector<Form> forms = {
      {".pwb", graph_to_binary(graph),
       [](const ContextPtr& c, const std::string& text) {
         return graph_from_binary(c, text, "g.pwb", parse_op);
       }},
      {"graph.json", graph_to_json(graph), [](const ContextPtr& c, const std::string& text) {
         return graph_from_json(c, text, "g.json", parse_op);
       }}};
  constexpr int kRuns = 5;
  std::vector<std::vector<double>> times(forms.size());
  for (int run = 0; run < kRuns; ++run)
    for (std::size_t i = 0; i < forms.size(); ++i) {
      const auto fresh = std::make_shared<Context>();
      need(fresh, load_op_library(fresh));
      times[i].push_back(seconds([&] { need(fresh, forms[i].read(fresh, forms[i].text)); }));
    }
  Table table({"form", "nodes", "bytes", "ms", "ns a node", "MB/s", "beside .pwb"});
  const double binary = median(times[0]);
  for (std::size_t i = 0; i < forms.size(); ++i) {
    const double time = median(times[i]), size = static_cast<double>(forms[i].text.size());
    table.add({forms[i].name, grouped(graph.node_count()), grouped(forms[i].text.size()),
               milliseconds(time),
               fmt::format("{:.0f}", time * 1e9 / static_cast<double>(graph.node_count())),
               fmt::format("{:.0f}", size / time / 1e6), fmt::format("{:.2f}×", time / binary)});
  }
  promises.at_most("a million nodes from .pwb",
                   binary * 1e6 / static_cast<double>(graph.node_count()), kMostBinary, "s");
  return table.print();
}

}  // namespace

int run(int argc, char** argv) {
  CLI::App app("Times reading of graphs. Exit code 1: something that must hold does not.");
  std::int64_t nodes = 1'000'000;
  std::string output, rules = PW_BENCH_RULES;
  app.add_option("--nodes", nodes, "about how many");
  app.add_option("-o,--output", output, "also write the report into this file");
  app.add_option("--rules", rules, "for rewriting again");
  CLI11_PARSE(app, argc, argv);
  keep_large_arrays_apart();  // as pwr does
  Promises promises;
  const std::string table = report(std::max<std::int64_t>(1, nodes / 24), promises);
  const std::string again = incremental_report(rules, promises);
  const std::string text = fmt::format(
      "# Reading graphs\n\n{}. Processor time, medians of five runs that take turns, "
      "each in a context of its own, from the file's bytes in memory to the checked graph. Only "
      "the "
      "ratios carry over to other machines.\n\n{}\n## Rewriting again\n\n{}\n{}",
      machine(), table, again, promises.print());
  std::fputs(text.c_str(), stdout);
  if (!output.empty()) need(std::make_shared<Context>(), write_file(output, text));
  return promises.kept() ? 0 : 1;
}

}  // namespace pw::bench

int main(int argc, char** argv) { return pw::bench::run(argc, argv); }
