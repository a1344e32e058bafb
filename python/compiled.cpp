// Exports add_compiled: a graph compiled once and run many times, on memory that the caller has.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <pybind11/stl.h>

#include "backends/blas.hpp"
#include "backends/host_functions.hpp"
#include "backends/lent_torch.hpp"
#include "backends/parallel.hpp"
#include "backends/program.hpp"
#include "backends/runner.hpp"
#include "backends/steps.hpp"
#include "base/try.hpp"
#include "python/host_call.hpp"
#include "python/module.hpp"
#include "runtime/step_engine.hpp"

namespace py = pybind11;

namespace pw::python {
namespace {

using Address = std::uintptr_t;

/// Tensors over an engine's own memory, by a callable of (address, dtype, extents).
HostArrays arrays_by(const py::object& over) {
  const std::shared_ptr<py::object> held(new py::object(over), [](py::object* f) {
    const py::gil_scoped_acquire holding;
    delete f;
  });
  const auto array = [held](const TensorView& view) -> py::object {
    py::tuple extents(view.extents.size());
    for (std::size_t i = 0; i < extents.size(); ++i) extents[i] = view.extents[i];
    return (*held)(reinterpret_cast<Address>(view.data), std::string(name(view.dtype)), extents);
  };
  return {array, [array](const py::handle& given, const TensorView& place, const std::string&) {
            const py::object to = array(place);
            if (!to.is(given)) to.attr("copy_")(given);
          }};
}

/// A graph, what runs it, and the extents of its tensors at the symbols of the last run.
class Compiled {
 public:
  Compiled(const PyGraph& g, const std::string& backend, const EngineOptions& options,
           const std::map<std::string, py::object>& functions, const py::object& over)
      : context_(g.context), graph_(g.graph) {
    context_->host_functions = std::make_shared<HostFunctions>();
    const HostArrays arrays = arrays_by(over);
    for (const auto& [op, function] : functions)
      give_host_function(*context_, op, host_function_of(function, arrays, raised_));
    engine_ = need(context_, open_engine(builtin_engines(), backend, options));
    executable_ = need(context_, engine_->whole().compile(graph_));
  }

  [[nodiscard]] std::vector<std::string> summary() const { return engine_->whole().summary(); }

  /// By output, in order.
  std::vector<Extents> extents(const std::map<std::string, std::int64_t>& symbols) {
    prepare({symbols.begin(), symbols.end()});
    std::vector<Extents> out;
    for (const TensorView& view : outputs_) out.push_back(view.extents);
    return out;
  }

  void run(const std::vector<Address>& inputs, const std::vector<Address>& outputs,
           const std::map<std::string, std::int64_t>& symbols) {
    prepare({symbols.begin(), symbols.end()});
    place(inputs_, inputs, "inputs");
    place(outputs_, outputs, "outputs");
    *raised_ = nullptr;
    const Step step = one_sequence(tokens_of_step(graph_, symbols_));
    const auto rows = symbols_.find(graph_.facts.tokens());
    const RunContext context{symbols_, &step, rows == symbols_.end() ? 0 : rows->second};
    auto done = [&] {
      const py::gil_scoped_release others;
      return executable_->run(inputs_, outputs_, context);
    }();
    if (*raised_) std::rethrow_exception(std::exchange(*raised_, nullptr));
    need(context_, std::move(done));
  }

 private:
  void prepare(Symbols symbols) {
    if (prepared_ && symbols == symbols_) return;
    prepared_ = false;
    symbols_ = std::move(symbols);
    inputs_ = views(graph_.inputs());
    outputs_ = views(graph_.outputs());
    prepared_ = true;
  }

  [[nodiscard]] std::vector<TensorView> views(std::span<const ValueId> values) const {
    std::vector<TensorView> out;
    for (ValueId v : values) {
      if (has_no_tensor(graph_, v) || graph_.type(v) == Types::unknown()) {
        out.push_back({DType::u8, {0}, nullptr});
        continue;
      }
      out.push_back({context_->types[graph_.type(v)].dtype,
                     need(context_, extents_of(graph_, v, symbols_)), nullptr});
    }
    return out;
  }

  static void place(std::vector<TensorView>& views, const std::vector<Address>& addresses,
                    std::string_view what) {
    if (views.size() != addresses.size())
      throw mistake("PW1411", fmt::format("the graph has {} {}, and {} are given", views.size(),
                                          what, addresses.size()));
    for (std::size_t i = 0; i < views.size(); ++i)
      views[i].data = reinterpret_cast<std::byte*>(addresses[i]);
  }

  ContextPtr context_;
  Graph graph_;
  std::shared_ptr<std::exception_ptr> raised_ = std::make_shared<std::exception_ptr>();
  std::unique_ptr<StepEngine> engine_;
  std::unique_ptr<Executable> executable_;
  bool prepared_ = false;
  Symbols symbols_;
  std::vector<TensorView> inputs_, outputs_;
};

}  // namespace

void add_compiled(py::module_& module) {
  module.def(
      "lend_blas",
      [](const std::string& library) { need(std::make_shared<Context>(), lend_blas(library)); },
      py::arg("library"),
      "products go to sgemm_ and dgemm_ of this library, which is loaded already");
  module.def(
      "lend_torch",
      [](const std::string& library) { need(std::make_shared<Context>(), lend_torch(library)); },
      py::arg("library"),
      "products and convolutions go to this libtorch_cpu, which is loaded already");
  module.def(
      "use_threads",
      [](std::int64_t most, const std::string& openmp) {
        use_threads(most, openmp.empty() ? TeamRunner() : openmp_threads(openmp));
      },
      py::arg("most"), py::arg("openmp") = "",
      "at most so many threads, those of an OpenMP runtime that is loaded already, or its own");
  py::class_<Compiled>(module, "Compiled",
                       "A graph compiled once, which runs on memory that the caller has.")
      .def(py::init([](const PyGraph& graph, const std::string& backend,
                       const std::map<std::string, py::object>& functions, const py::object& over) {
             return std::make_unique<Compiled>(graph, backend, EngineOptions{}, functions, over);
           }),
           py::arg("graph"), py::arg("backend"), py::arg("functions"), py::arg("over"))
      .def_property_readonly("summary", &Compiled::summary, "what the backend made of it, in lines")
      .def("extents", &Compiled::extents, py::arg("symbols"),
           "the extents of each output at these values of symbols")
      .def("run", &Compiled::run, py::arg("inputs"), py::arg("outputs"), py::arg("symbols"),
           "runs on row-major tensors at these addresses, of the dtypes and extents of the graph's "
           "types: nothing here can check them");
}

}  // namespace pw::python
