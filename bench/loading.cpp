// Reading graphs from .pwb, graph.json, .pwg and FX text, in one run.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/io/file.hpp"
#include "base/memory.hpp"
#include "bench/fx_text.hpp"
#include "bench/generic_json.hpp"
#include "bench/measure.hpp"
#include "bench/page.hpp"
#include "dsl/dsl.hpp"
#include "dsl/syntax/graph_header.hpp"
#include "graph/text/graph_binary.hpp"
#include "graph/text/text.hpp"
#include "import/fx/fx.hpp"
#include "models/generate.hpp"

namespace pw::bench {
namespace {

constexpr double kMostBinary = 0.15;  // seconds for a million nodes
constexpr double kMostJson = 1.66;    // the same: half of what it took before it was made faster
constexpr double kLeastText = 30;     // MB a second
constexpr std::int64_t kMostTextNodes = 200'000;  // texts may have 64 MiB
constexpr std::int64_t kTimesLonger = 4;          // that others read than the grammars

struct Form {
  std::string name, text;
  std::function<std::size_t(const ContextPtr&, const std::string&)> read;  // how many nodes
};

Graph llama(std::int64_t nodes) {
  const auto context = std::make_shared<Context>();
  need(context, load_op_library(context));
  LlamaOptions options;
  options.layers = std::max<std::int64_t>(1, nodes / 24);
  options.quant = "fp8";
  return need(context, generate_llama(context, options));
}

Form fx_form(std::string name, std::int64_t nodes, bool one_by_one) {
  constexpr std::int64_t kLayer = 48;
  return {std::move(name), fx_text(std::max<std::int64_t>(1, nodes / kLayer)),
          [one_by_one](const ContextPtr& c, const std::string& text) {
            FxOptions options{.file = "g.txt"};
            options.one_by_one = one_by_one;
            return need(c, import_fx(c, text, options)).graph.node_count();
          }};
}

std::vector<Form> forms_of(std::int64_t nodes) {
  const Graph graph = llama(nodes);
  const std::int64_t fewer = std::min(nodes, kMostTextNodes), few = fewer / kTimesLonger;
  return {{".pwb", graph_to_binary(graph),
           [](const ContextPtr& c, const std::string& text) {
             return need(c, graph_from_binary(c, text, "g.pwb", parse_op)).node_count();
           }},
          {"graph.json", graph_to_json(graph),
           [](const ContextPtr& c, const std::string& text) {
             return need(c, graph_from_json(c, text, "g.json", parse_op)).node_count();
           }},
          {".pwg", print_pwg(llama(fewer)),
           [](const ContextPtr& c, const std::string& text) {
             return need(c, parse_graph(c, text, "g.pwg")).node_count();
           }},
          {".pwg, all by the grammar", print_pwg(llama(few)),
           [](const ContextPtr& c, const std::string& text) {
             return need(c, parse_graph(c, c->sources.add("g.pwg", text))).node_count();
           }},
          fx_form("FX text", fewer, false),
          fx_form("FX text, each line by the grammar", few, true)};
}

/// A given dump, compared with itself parsed by the grammar.
std::vector<Form> forms_of_dump(const std::string& path) {
  const std::string text = need(std::make_shared<Context>(), read_file(path));
  std::vector<Form> out{fx_form("FX text", 0, false),
                        fx_form("FX text, each line by the grammar", 0, true)};
  for (Form& form : out) form.text = text;
  return out;
}

struct Times {
  std::vector<std::size_t> nodes;
  std::vector<double> medians;
};
Times times_of(const std::vector<Form>& forms, int runs) {
  Times out{std::vector<std::size_t>(forms.size()), {}};
  std::vector<std::vector<double>> times(forms.size());
  for (int run = 0; run < runs; ++run)
    for (std::size_t i = 0; i < forms.size(); ++i) {
      const auto fresh = std::make_shared<Context>();
      need(fresh, load_op_library(fresh));
      times[i].push_back(seconds([&] { out.nodes[i] = forms[i].read(fresh, forms[i].text); }));
    }
  for (const std::vector<double>& all : times) out.medians.push_back(median(all));
  return out;
}

std::string report(std::vector<Form> forms, int runs, Promises& promises) {
  const Times times = times_of(forms, runs);
  Table table({"form", "nodes", "bytes", "ms", "ns a node", "MB/s"});
  for (std::size_t i = 0; i < forms.size(); ++i) {
    const double time = times.medians[i], size = static_cast<double>(forms[i].text.size());
    const double each = time / static_cast<double>(times.nodes[i]);
    table.add({forms[i].name, grouped(times.nodes[i]), grouped(forms[i].text.size()),
               milliseconds(time), fmt::format("{:.0f}", each * 1e9),
               fmt::format("{:.0f}", size / time / 1e6)});
    if (forms[i].name == ".pwb")
      promises.at_most("a million nodes from .pwb", each * 1e6, kMostBinary, "s");
    else if (forms[i].name == "graph.json")
      promises.at_most("a million nodes from graph.json", each * 1e6, kMostJson, "s");
    else if (forms[i].name == ".pwg" || forms[i].name == "FX text")
      promises.at_least(forms[i].name, size / time / 1e6, kLeastText, " MB/s");
  }
  for (const Form& form : forms)
    if (form.name == "graph.json") add_generic(table, form.text, runs);
  return table.print();
}

}  // namespace

int run(int argc, char** argv) {
  CLI::App app("Times reading of graphs. Exit code 1: something that must hold does not.");
  std::int64_t nodes = 1'000'000;
  int runs = 5;
  std::string output, only, dump;
  app.add_option("--nodes", nodes, "approximate number of nodes");
  app.add_option("--runs", runs, "runs of each form; medians are printed")
      ->check(CLI::PositiveNumber);
  app.add_option("--form", only,
                 "run one form alone, for a profiler: .pwb, graph.json, .pwg, FX text");
  app.add_option("-o,--output", output,
                 "also write the report into this page, as the section of "
                 "this processor");
  app.add_option("--dump", dump, "time the reading of this FX text alone");
  CLI11_PARSE(app, argc, argv);
  keep_large_arrays_apart();  // as pwr does
  Promises promises;
  std::vector<Form> forms = dump.empty() ? forms_of(nodes) : forms_of_dump(dump);
  if (!only.empty()) std::erase_if(forms, [&](const Form& form) { return form.name != only; });
  const std::string table = report(std::move(forms), runs, promises);
  const std::string text = fmt::format(
      "{}. Processor time, medians of {} runs that take turns, each in a context of its own, from "
      "the file's bytes in memory to the checked graph. Only the ratios carry over to other "
      "machines.\n\n{}\n{}",
      machine(), runs, table, promises.print());
  std::fputs(text.c_str(), stdout);
  if (!output.empty())
    need(std::make_shared<Context>(), write_section(output, "Reading graphs", processor(), text));
  return promises.kept() ? 0 : 1;
}

}  // namespace pw::bench

int main(int argc, char** argv) { return pw::bench::run(argc, argv); }
