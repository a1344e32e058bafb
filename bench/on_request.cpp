// Times one graph on the backend cpu on request: `pw_bench_on_request GRAPH FOLDER`. Writes the
// tensors to FOLDER as in memory, and a line of JSON that describes them. Then, for each line with
// a number N on standard input, runs N times and prints the processor time of one run in seconds.
#include <fstream>
#include <iostream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "backends/cpu/cpu.hpp"
#include "bench/measure.hpp"
#include "bench/prepared.hpp"
#include "dsl/dsl.hpp"

namespace pw::bench {
namespace {

/// Names the files after the tensors' places, not after anything in the graph.
std::string written(const std::vector<TensorView>& tensors, const std::string& kind,
                    const std::string& folder) {
  std::vector<std::string> items;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const TensorView& t = tensors[i];
    const std::string file = fmt::format("{}/{}{}.bin", folder, kind, i);
    std::ofstream out(file, std::ios::binary);
    out.write(reinterpret_cast<const char*>(t.data), static_cast<std::streamsize>(t.bytes()));
    if (!out.flush()) die("cannot write " + file);
    items.push_back(fmt::format("{{\"file\": \"{}{}.bin\", \"dtype\": \"{}\", \"shape\": [{}]}}",
                                kind, i, name(t.dtype), fmt::join(t.extents, ", ")));
  }
  return fmt::format("\"{}\": [{}]", kind, fmt::join(items, ", "));
}

void serve(const std::string& path, const std::string& folder) {
  auto context = std::make_shared<Context>();
  need(context, load_op_library(context));
  const Graph graph = need(context, load_graph(context, path));
  CpuBackend cpu;
  const auto prepared = prepare(cpu, graph, 1);
  const CpuReport report = cpu.report();
  if (report.kernels.empty()) die("no C++ compiler: there is nothing to measure");
  std::cout << fmt::format("{{{}, {}, \"kernels\": {}, \"on_eager\": {}}}",
                           written(prepared->in, "inputs", folder),
                           written(prepared->out, "outputs", folder), report.kernels.size(),
                           report.nodes_on_eager())
            << std::endl;
  for (int runs = 0; std::cin >> runs;) {
    const double total = all_threads_seconds([&] {
      for (int r = 0; r < runs; ++r) prepared->run();
    });
    std::cout << total / std::max(runs, 1) << std::endl;
  }
}

}  // namespace
}  // namespace pw::bench

int main(int argc, char** argv) {
  CLI::App app("One graph on the backend cpu, timed on request", "pw_bench_on_request");
  std::string graph, folder;
  app.add_option("graph", graph, "graph.json or .pwg")->required();
  app.add_option("folder", folder, "where the tensors are written to")->required();
  CLI11_PARSE(app, argc, argv);
  pw::bench::serve(graph, folder);
  return 0;
}
