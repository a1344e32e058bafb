// Captured CUDA graphs: reads them from the driver, and draws their pages.
#include <map>
#include <string>

#include <pybind11/stl.h>

#include "base/io/file.hpp"
#include "base/try.hpp"
#include "cuda/device/graph_reader.hpp"
#include "pipeline/report/captured_page.hpp"
#include "python/module.hpp"

namespace py = pybind11;

namespace pw::python {
namespace {

Result<std::string> page_of(const std::string& path) {
  return captured_page(PW_TRY(captured_from_json(PW_TRY(read_file(path)), path)));
}

Status draw_page(const std::string& path, const std::string& page) {
  return write_file(page, PW_TRY(page_of(path)));
}

py::dict capture(std::uint64_t address, const std::string& name, const std::string& path,
                 const std::map<std::string, std::string>& labels) {
  const auto context = std::make_shared<Context>();
  CapturedLaunches graph = need(context, cuda::read_captured_graph(address, name));
  for (CapturedNode& node : graph.nodes)
    if (const auto label = labels.find(node.name); label != labels.end())
      node.label = label->second;
  need(context, write_file(path, captured_to_json(graph)));
  const CapturedSummary summary = summary_of(graph);
  py::dict out, kinds;
  for (std::size_t k = 0; k < kLaunchKinds; ++k)
    if (summary.kinds[k] != 0)
      kinds[py::str(std::string(pw::name(static_cast<LaunchKind>(k))))] = summary.kinds[k];
  out["nodes"] = graph.nodes.size();
  out["edges"] = graph.edges.size();
  out["kinds"] = kinds;
  out["topology"] = summary.topology;
  out["critical_path"] = summary.longest.nodes.size();
  out["known_bytes"] = summary.known_bytes;
  out["kernels_in_bodies"] = summary.kernels_in_bodies;
  out["unknown_bodies"] = summary.unknown_bodies;
  out["programmatic_edges"] = summary.programmatic_edges;
  out["could_be_programmatic"] = summary.candidates.size();
  return out;
}

}  // namespace

void add_lens(py::module_& m) {
  m.def(
      "read_captured_graph", &capture, py::arg("address"), py::arg("name"), py::arg("path"),
      py::arg("labels"),
      "Writes the CUgraph at that address to a file as piecewise.captured/1, with these labels of "
      "kernels by name; returns its counts.");
  m.def(
      "draw_captured_graph",
      [](const std::string& path, const std::string& page) {
        const auto context = std::make_shared<Context>();
        const auto done = [&] {
          const py::gil_scoped_release release;
          return draw_page(path, page);
        }();
        need(context, done);
      },
      py::arg("path"), py::arg("page"), "Draws the page of a file of read_captured_graph.");
}

}  // namespace pw::python
