// Times pictures: pages of 20 000 and 100 000 nodes from the text of their graph, and a picture of
// a thousand boxes compared with Graphviz's dot on the same boxes in the same run, under a
// deadline. Wall time, because dot runs in its own process.
#include "viz/viz.hpp"

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/io/file.hpp"
#include "bench/measure.hpp"
#include "dsl/dsl.hpp"
#include "graph/text/graph_json.hpp"
#include "models/generate.hpp"
#include "rewriter/rewriter.hpp"
#include "splitter/plan.hpp"
#include "viz/formats/dot.hpp"
#include "viz/formats/graphviz.hpp"

namespace {

using namespace pw;
using namespace pw::bench;

constexpr int kRuns = 5;
constexpr int kDeadline_ms = 60'000;
constexpr std::size_t kAnyNumber = 1'000'000;

double clock_seconds(const std::function<void()>& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median_clock(const std::function<void()>& body) {
  std::vector<double> runs;
  for (int i = 0; i < kRuns; ++i) runs.push_back(clock_seconds(body));
  return median(std::move(runs));
}

std::string llama(std::int64_t layers) {
  auto context = std::make_shared<Context>();
  need(context, load_op_library(context));
  LlamaOptions options;
  options.layers = layers;
  return graph_to_json(need(context, generate_llama(context, options)));
}

struct Page {
  std::size_t nodes = 0;
  std::string html;
};

/// Performs the steps of `pwviz graph.json [-r llm -p PIPELINE] -o x.html` between its two files.
Page page_of(const std::string& text, const std::string& pipeline) {
  auto context = std::make_shared<Context>();
  std::optional<RuleSet> rules = need(context, load_rules(context, {"llm"}));
  Graph graph = need(context, graph_from_json(context, text, "generated", parse_op));
  const Env params = need(context, bind_params(*rules, {}));
  Page page;
  page.nodes = graph.node_count();
  VizInput input;
  RewriteReport report;
  if (pipeline.empty()) {
    input.versions.push_back({"input", graph});
  } else {
    RewriteOptions options;
    options.after_pass = [&](const std::string& pass, const Graph& g) {
      input.versions.push_back({pass, g});
    };
    report = need(context, run_pipeline(graph, *rules, pipeline, params, options));
    input.journal = &report.journal;
    input.rules = &*rules;
  }
  const Graph& last = input.versions.back().graph;
  const StitchedGraph pieces =
      need(context, split(last, need(context, splitting_ops(context, &*rules, params, {}))));
  const Plan plan = need(context, make_plan(pieces, last, {}));
  input.pieces = &pieces;
  input.plan = &plan;
  page.html = need(context, render_html(input));
  return page;
}

/// One graph as boxes, none folded.
struct Boxes {
  ContextPtr context = std::make_shared<Context>();
  VizInput input;
  VizOptions options;
  explicit Boxes(const std::string& text) {
    need(context, load_op_library(context));
    input.versions.push_back(
        {"input", need(context, graph_from_json(context, text, "generated", parse_op))});
    options.collapse = Collapse::none;
    options.most_boxes = kAnyNumber;
  }
};

struct Bench {
  Table table{{"what", "nodes", "ms", "bytes"}};
  Promises promises;
  std::string folder;

  void page(const std::string& name, std::int64_t layers, const std::string& pipeline, double limit,
            double most_bytes) {
    const std::string text = llama(layers);
    Page page;
    const double taken = median_clock([&] { page = page_of(text, pipeline); });
    table.add({"HTML" + (pipeline.empty() ? std::string() : ", pipeline " + pipeline),
               grouped(page.nodes), milliseconds(taken), grouped(page.html.size())});
    promises.at_most(name + " to HTML", taken, limit, "s");
    if (most_bytes > 0)
      promises.at_most(name + " as HTML", static_cast<double>(page.html.size()) / 1e6, most_bytes,
                       "MB");
    if (folder.empty()) return;
    const std::string path =
        fmt::format("{}/{}{}.html", folder, page.nodes, pipeline.empty() ? "" : "-" + pipeline);
    if (!write_file(path, page.html)) die("cannot write " + path);
  }

  void svg(std::int64_t layers, double limit) {
    Boxes boxes(llama(layers));
    std::string picture;
    const std::size_t nodes = boxes.input.versions[0].graph.node_count();
    const double taken = median_clock(
        [&] { picture = need(boxes.context, render_svg(boxes.input, boxes.options)); });
    table.add({"SVG, laid out here", grouped(nodes), milliseconds(taken), grouped(picture.size())});
    if (limit > 0) promises.at_most("SVG of 1 000 boxes", taken, limit, "s");
  }

  void dot(std::int64_t layers) {
    Boxes boxes(llama(layers));
    const std::string text = need(boxes.context, render_dot(boxes.input, boxes.options));
    Result<std::string> picture = std::string();
    const double taken = clock_seconds([&] { picture = viz::lay_out(text, "svg", kDeadline_ms); });
    table.add({"SVG, Graphviz's dot", grouped(boxes.input.versions[0].graph.node_count()),
               picture ? milliseconds(taken) : "not within 60 000",
               picture ? grouped(picture->size()) : ""});
  }
};

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Times pictures, and Graphviz's dot on the same boxes.", "pw_bench_viz");
  std::string output;
  Bench bench;
  bool without_dot = false;
  app.add_option("--output", output, "write the tables to this file too");
  app.add_option("--pages", bench.folder, "write the pages into this folder");
  app.add_flag("--no-dot", without_dot, "leave out Graphviz's dot, which takes minutes");
  CLI11_PARSE(app, argc, argv);
  if (!bench.folder.empty()) std::filesystem::create_directories(bench.folder);
  bench.page("20 000 nodes", 1112, "", 1.5, 3);
  bench.page("20 000 nodes through o2", 1112, "o2", 1.5, 3);
  bench.page("100 000 nodes", 5556, "", 5, 0);
  bench.svg(55, 0.3);
  if (!without_dot) {
    bench.dot(55);
    bench.svg(278, 0);
    bench.dot(278);
    bench.svg(1112, 0);
    bench.dot(1112);
  }
  const std::string text = "# Pictures\n\n" + machine() +
                           "\n\nMedians of five by the clock, from the text of graph.json to the "
                           "text of the page or picture; dot once, "
                           "under a deadline of 60 s.\n\n" +
                           bench.table.print() + "\n" + bench.promises.print();
  std::fputs(text.c_str(), stdout);
  if (!output.empty() && !write_file(output, text)) die("cannot write " + output);
  return bench.promises.kept() ? 0 : 1;
}
