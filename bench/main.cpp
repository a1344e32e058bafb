// Times the stages on generated decoders of growing size. Prints medians and the cost per node
// relative to the smallest graph of the same run: a linear stage shows ratios near 1.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "dsl/dsl.hpp"
#include "graph/compare/graph_diff.hpp"
#include "graph/text/graph_json.hpp"
#include "graph/text/text.hpp"
#include "models/generate.hpp"
#include "rewriter/rewriter.hpp"
#include "splitter/plan.hpp"

namespace {

using namespace pw;

constexpr int kRuns = 3;

double once(const std::function<void()>& body) {
  auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

template <class T>
T need(const ContextPtr& context, Result<T> result) {
  if (result) return std::move(*result);
  std::fputs(render(result.error(), context->sources).c_str(), stderr);
  std::exit(3);
}

struct Sample {
  std::size_t nodes = 0, rewrites = 0;
  std::map<std::string, double> seconds;  // by stage
};

Sample run_once(std::int64_t layers) {
  auto context = std::make_shared<Context>();
  Sample sample;
  std::optional<RuleSet> rules;
  sample.seconds["0 load rules"] =
      once([&] { rules = need(context, load_rules(context, {"llm"})); });
  Env params = need(context, bind_params(*rules, {}));
  std::optional<Graph> graph;
  LlamaOptions options;
  options.layers = layers;
  options.quant = "fp8";
  sample.seconds["1 generate"] =
      once([&] { graph = need(context, generate_llama(context, options)); });
  sample.nodes = graph->node_count();
  std::string text;
  sample.seconds["2 write json"] = once([&] { text = graph_to_json(*graph); });
  std::optional<Graph> original;
  sample.seconds["3 read json"] = once(
      [&] { original = need(context, graph_from_json(context, text, "generated", parse_op)); });
  sample.seconds["4 pipeline o2"] = once([&] {
    sample.rewrites = need(context, run_pipeline(*graph, *rules, "o2", params)).journal.total();
  });
  std::optional<StitchedGraph> pieces;
  std::vector<OpId> ops = need(context, splitting_ops(context, &*rules, params, {}));
  sample.seconds["5 split"] = once([&] { pieces = need(context, split(*graph, ops)); });
  sample.seconds["6 plan"] = once([&] { need(context, make_plan(*pieces, *graph, {})); });
  sample.seconds["7 diff"] =
      once([&] { diff_graphs(*original, *graph, match_graphs(*original, *graph)); });
  return sample;
}

Sample medians(std::int64_t layers) {
  std::vector<Sample> runs;
  for (int i = 0; i < kRuns; ++i) runs.push_back(run_once(layers));
  Sample out = runs.front();
  for (auto& [stage, seconds] : out.seconds) {
    std::vector<double> values;
    for (const Sample& run : runs) values.push_back(run.seconds.at(stage));
    std::sort(values.begin(), values.end());
    seconds = values[kRuns / 2];
  }
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::int64_t> layers{32, 320};
  if (argc > 1) {
    layers.clear();
    for (int i = 1; i < argc; ++i) layers.push_back(std::max(1L, std::atol(argv[i])));
  }
  std::map<std::string, double> base;  // cost a node in the smallest graph
  fmt::print("{:<16} {:>10} {:>10} {:>12} {:>12} {:>8}\n", "stage", "nodes", "rewrites", "ms",
             "ns a node", "ratio");
  for (std::int64_t n : layers) {
    Sample sample = medians(n);
    for (const auto& [stage, seconds] : sample.seconds) {
      double per_node = seconds * 1e9 / static_cast<double>(sample.nodes);
      base.emplace(stage, per_node);
      bool sized = stage[0] != '0';
      fmt::print("{:<16} {:>10} {:>10} {:>12.2f} {:>12.0f} {:>8}\n", stage.substr(2), sample.nodes,
                 stage[0] == '4' ? std::to_string(sample.rewrites) : "", seconds * 1e3, per_node,
                 sized ? fmt::format("{:.2f}", per_node / base[stage]) : "");
    }
  }
  return 0;
}
