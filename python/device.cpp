// Compiles a graph for a device, or for its emulator, and enqueues it on a caller's stream.
#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <pybind11/stl.h>

#include "base/try.hpp"
#include "cuda/device/cuda_driver.hpp"
#include "cuda/device/host_driver.hpp"
#include "cuda/stream_program.hpp"
#include "graph/passes/at_load.hpp"
#include "python/module.hpp"
#include "splitter/row_mixing.hpp"
#include "splitter/sizes.hpp"

namespace py = pybind11;

namespace pw::python {
namespace {

using cuda::Address;

/// An opened device. One thread at a time compiles for it.
class Device {
 public:
  static std::shared_ptr<Device> open(const std::string& driver, int index) {
    auto out = std::make_shared<Device>();
    out->cache_ = std::make_unique<CompileCache>(CacheOptions::from_environment());
    if (driver == "host") {
      out->driver_ =
          std::make_unique<cuda::HostDriver>(cuda::HostDriverOptions{.cache = out->cache_.get()});
    } else {
      cuda::CudaDriverOptions options;
      options.library = driver == "cuda" ? "" : driver;
      options.device = index;
      options.cache = out->cache_.get();
      out->driver_ = need(std::make_shared<Context>(), cuda::CudaDriver::open(options));
    }
    return out;
  }
  [[nodiscard]] cuda::Driver& driver() const { return *driver_; }
  [[nodiscard]] std::mutex& compiling() { return compiling_; }

 private:
  std::unique_ptr<CompileCache> cache_;
  std::unique_ptr<cuda::Driver> driver_;
  std::mutex compiling_;
};

class DeviceCall;

/// A graph compiled for a device. Calls may run in several threads, and may be nested.
class DeviceProgram : public std::enable_shared_from_this<DeviceProgram> {
 public:
  DeviceProgram(std::shared_ptr<Device> device, const PyGraph& g, const Symbols& sizes)
      : device_(std::move(device)), graph_(in_own_context(g.graph)) {
    const std::lock_guard lock(device_->compiling());
    program_ =
        need(graph_.context_ptr(), cuda::StreamProgram::make(graph_, device_->driver(), {sizes}));
  }

  [[nodiscard]] std::vector<std::string> summary() const { return program_->summary(); }
  [[nodiscard]] std::map<std::string, std::string> kernel_labels() const {
    return program_->kernel_labels();
  }
  DeviceCall at(const Symbols& symbols);

 private:
  friend class DeviceCall;
  std::shared_ptr<Device> device_;
  Graph graph_;
  std::unique_ptr<cuda::StreamProgram> program_;
};

/// The launches of a program for fixed sizes. Immutable.
class DeviceCall {
 public:
  DeviceCall(std::shared_ptr<DeviceProgram> program, std::shared_ptr<const cuda::StreamCall> call)
      : program_(std::move(program)), call_(std::move(call)) {}

  [[nodiscard]] const cuda::StreamCall& call() const { return *call_; }

  void run(const std::vector<Address>& inputs, const std::vector<Address>& outputs, Address arena,
           cuda::Stream stream) const {
    check("inputs", inputs, program_->graph_.inputs().size());
    check("outputs", outputs, program_->graph_.outputs().size());
    enqueue(inputs, outputs, arena, stream);
  }

  /// Returns a function that runs with these arguments.
  [[nodiscard]] py::cpp_function bound(std::vector<Address> inputs, std::vector<Address> outputs,
                                       Address arena, cuda::Stream stream) const {
    check("inputs", inputs, program_->graph_.inputs().size());
    check("outputs", outputs, program_->graph_.outputs().size());
    return py::cpp_function([call = *this, inputs = std::move(inputs), arena,
                             outputs = std::move(outputs),
                             stream] { call.enqueue(inputs, outputs, arena, stream); });
  }

 private:
  void enqueue(const std::vector<Address>& inputs, const std::vector<Address>& outputs,
               Address arena, cuda::Stream stream) const {
    auto done = [&] {
      const py::gil_scoped_release others;
      return call_->run(program_->device_->driver(), inputs, outputs, arena, stream);
    }();
    need(program_->graph_.context_ptr(), std::move(done));
  }
  static void check(std::string_view what, const std::vector<Address>& given, std::size_t count) {
    constexpr Address kAligned = 16;
    if (given.size() != count)
      throw mistake("PW1411", fmt::format("the graph has {} {}, but {} were passed", count, what,
                                          given.size()));
    if (std::any_of(given.begin(), given.end(), [](Address a) { return a % kAligned != 0; }))
      throw mistake("PW1411",
                    fmt::format("an address of the {} is not a multiple of {}", what, kAligned));
  }

  std::shared_ptr<DeviceProgram> program_;
  std::shared_ptr<const cuda::StreamCall> call_;
};

DeviceCall DeviceProgram::at(const Symbols& symbols) {
  auto call = [&] {
    const py::gil_scoped_release others;
    const std::lock_guard lock(device_->compiling());
    return program_->at(symbols);
  }();
  return {shared_from_this(), need(graph_.context_ptr(), std::move(call))};
}

std::vector<std::pair<std::string, std::string>> unsupported(Device& device, const PyGraph& g,
                                                             const Symbols& sizes) {
  const std::lock_guard lock(device.compiling());
  std::vector<std::pair<std::string, std::string>> out;
  for (auto& [node, reason] : cuda::StreamProgram::unsupported(g.graph, device.driver(), {sizes}))
    out.emplace_back(std::move(node), std::move(reason));
  return out;
}

/// Returns the part of a graph that depends on weights alone, and the graph that reads its results
/// as weights; None if there is no such part.
std::optional<std::pair<PyGraph, PyGraph>> at_load(const PyGraph& g) {
  Graph rest = g.graph;
  std::optional<Graph> first = take_constants(rest);
  if (!first) return std::nullopt;
  return std::pair{PyGraph{g.context, std::move(*first)}, PyGraph{g.context, std::move(rest)}};
}

/// Returns why calls with more rows than a symbol counts may change the rows that it counts.
std::optional<std::string> why_not_padded(const PyGraph& g, const std::string& symbol) {
  Graph graph = g.graph;
  for (auto& [name, fact] : graph.facts.symbols) fact.role.clear();
  graph.facts.symbols[symbol].role = "tokens";
  return row_mixing(graph, Reductions::all_rows);
}

}  // namespace

void add_device(py::module_& module) {
  py::class_<Device, std::shared_ptr<Device>>(module, "Device",
                                              "A GPU, or its emulator on the host.")
      .def(py::init(&Device::open), py::arg("driver") = "cuda", py::arg("index") = 0,
           "Opens the device with this index through the CUDA driver (`cuda`, or the path of "
           "another library), or the emulator (`host`). Raises PW1260 if there is none.")
      .def_property_readonly(
          "name", [](const Device& device) { return device.driver().device(); },
          "the name of the device")
      .def("unsupported", &unsupported, py::arg("graph"), py::arg("sizes"),
           "Returns the nodes of a graph that cannot run on the device, with the reasons. `sizes` "
           "are typical values of the symbols.");
  py::class_<DeviceCall>(module, "DeviceCall", "The launches of a DeviceProgram for fixed sizes.")
      .def_property_readonly(
          "extents", [](const DeviceCall& c) { return c.call().outputs(); },
          "the extents of each output")
      .def_property_readonly(
          "launches", [](const DeviceCall& c) { return c.call().launches(); },
          "the number of launches")
      .def_property_readonly(
          "arena_bytes", [](const DeviceCall& c) { return c.call().arena_bytes(); },
          "the bytes that a run needs between its launches")
      .def("run", &DeviceCall::run, py::arg("inputs"), py::arg("outputs"), py::arg("arena"),
           py::arg("stream"),
           "Enqueues the launches on a stream, on row-major tensors at these addresses, which are "
           "multiples of 16, and on an arena at a multiple of 256. They must have the dtypes and "
           "extents of the graph's types, which cannot be checked here.")
      .def("bound", &DeviceCall::bound, py::arg("inputs"), py::arg("outputs"), py::arg("arena"),
           py::arg("stream"), "Returns a function that does what run does with these arguments.");
  py::class_<DeviceProgram, std::shared_ptr<DeviceProgram>>(
      module, "DeviceProgram",
      "A graph compiled for a device. It runs on a caller's stream and memory, and never waits, "
      "allocates, or copies to or from the host.")
      .def(py::init<std::shared_ptr<Device>, const PyGraph&, const Symbols&>(), py::arg("device"),
           py::arg("graph"), py::arg("sizes"))
      .def_property_readonly("kernel_labels", &DeviceProgram::kernel_labels,
                             "what each kernel computes, by its name: an op, and the values that "
                             "it writes")
      .def_property_readonly("summary", &DeviceProgram::summary,
                             "a summary of the compiled graph, as lines")
      .def("at", &DeviceProgram::at, py::arg("symbols"),
           "Returns the launches for these values of symbols, prepared on first use.");
  module.def("at_load", &at_load, py::arg("graph"),
             "Returns the part of a graph that depends on weights alone, and the graph that reads "
             "its results as weights, by name; None if there is no such part.");
  module.def("why_not_padded", &why_not_padded, py::arg("graph"), py::arg("symbol"),
             "Returns why a call of the graph with a greater value of a symbol may change other "
             "elements than it adds, at the ends of dims; None if it cannot.");
  module.def(
      "default_capture_sizes",
      [](std::int64_t max_tokens, std::int64_t multiple) {
        SizeRules rules;
        rules.max_tokens = max_tokens;
        rules.sequence_parallel = multiple;
        return default_capture_sizes(rules);
      },
      py::arg("max_tokens"), py::arg("multiple"),
      "Returns the default capture sizes of `pwr plan`, as multiples.");
}

}  // namespace pw::python
