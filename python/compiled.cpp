// Compiles a graph once and runs it many times, from any thread, on the caller's memory.
#include <algorithm>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <pybind11/stl.h>

#include "backends/cpu/cpu.hpp"
#include "backends/cpu/frozen.hpp"
#include "backends/host_functions.hpp"
#include "backends/op_times.hpp"
#include "backends/program.hpp"
#include "base/try.hpp"
#include "codegen/cache/cache.hpp"
#include "codegen/toolchain.hpp"
#include "engines/step_engine.hpp"
#include "exec/runner.hpp"
#include "exec/steps.hpp"
#include "python/host_call.hpp"
#include "python/module.hpp"
#include "tensor/checksums.hpp"
#include "tensor/linalg/blas.hpp"
#include "tensor/linalg/choices.hpp"
#include "tensor/linalg/torch_kernels.hpp"
#include "tensor/parallel.hpp"

namespace py = pybind11;

namespace pw::python {
namespace {

using Address = std::uintptr_t;

/// Tensors over an engine's memory, made by a callable of (address, dtype, extents).
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
  return {array,
          [array](const py::handle& given, const TensorView& place, const std::string&) {
            const py::object to = array(place);
            if (!to.is(given)) to.attr("copy_")(given);
          },
          true};
}

/// The times of all compiled graphs; null while calls are not timed.
class TimesOfCalls {
 public:
  [[nodiscard]] std::shared_ptr<OpTimes> now() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return times_;
  }
  /// Starts again, or ends. Returns the times so far.
  std::shared_ptr<OpTimes> restart(bool on) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::exchange(times_, on ? std::make_shared<OpTimes>() : nullptr);
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<OpTimes> times_;
};

TimesOfCalls& times_of_calls() {
  static TimesOfCalls all;
  return all;
}

using ChoiceRow = std::pair<std::string, std::vector<std::pair<std::string, double>>>;
using TimeRow = std::tuple<std::string, std::string, std::int64_t, double>;

std::vector<TimeRow> op_times(bool on) {
  std::vector<TimeRow> out;
  if (const auto times = times_of_calls().restart(on))
    for (const auto& [key, sum] : times->sums())
      out.emplace_back(key.first, key.second, sum.calls, sum.seconds);
  return out;
}

/// Keeps measurements in the compile cache, for this processor and version of a library.
void measure_on_calls(const std::string& library) {
  if (library.empty()) return measure_kernels({});
  measure_kernels([library](const std::string& operands,
                            const std::function<std::string()>& measure,
                            const std::function<bool(const std::string&)>& usable) {
    CompileCache cache(CacheOptions::from_environment());
    KeyParts key;
    key.add("operands", operands).add("library", library).add("processor", processor());
    const auto kept = cache.get(
        "measurement", key.of(operands), [&]() -> Result<std::string> { return measure(); },
        usable);
    return kept ? *kept : measure();
  });
}

/// The data of one call: symbols, and the resulting views of inputs and outputs.
struct CallFrame {
  Step step;
  RunContext context;
  std::vector<TensorView> inputs, outputs;
  bool used = false;  ///< by an earlier call
};

/// Frames of completed calls, for reuse by new calls.
class FramePool {
 public:
  /// Returns the last frame with these symbols, or null.
  std::unique_ptr<CallFrame> take(const Symbols& symbols) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = std::find_if(free_.rbegin(), free_.rend(), [&](const auto& frame) {
      return frame->context.symbols == symbols;
    });
    if (found == free_.rend()) return nullptr;
    auto out = std::move(*found);
    free_.erase(std::next(found).base());
    return out;
  }
  void give(std::unique_ptr<CallFrame> frame) {
    constexpr std::size_t kMost = 16;
    const std::lock_guard<std::mutex> lock(mutex_);
    if (free_.size() == kMost) free_.erase(free_.begin());
    free_.push_back(std::move(frame));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<CallFrame>> free_;
};

/// A frame that returns to its pool on destruction.
class LentFrame {
 public:
  LentFrame(FramePool& pool, std::unique_ptr<CallFrame> frame)
      : pool_(pool), frame_(std::move(frame)) {}
  ~LentFrame() { pool_.give(std::move(frame_)); }
  LentFrame(const LentFrame&) = delete;
  LentFrame& operator=(const LentFrame&) = delete;
  CallFrame* operator->() const { return frame_.get(); }

 private:
  FramePool& pool_;
  std::unique_ptr<CallFrame> frame_;
};

/// One state of the weights: its cached values and checksums.
class Frozen {
 public:
  explicit Frozen(const cpu::FrozenSlots& slots, std::vector<std::size_t> weights)
      : kept(slots), unsummed_(std::move(weights)) {}
  /// Constructs the state after a change of some weights.
  Frozen(Frozen& before, const cpu::FrozenSlots& slots, const std::vector<std::size_t>& changed)
      : kept(before.kept, slots, changed), unsummed_(changed) {
    const std::lock_guard<std::mutex> lock(before.mutex_);
    sums_ = before.sums_;
    unsummed_.insert(unsummed_.end(), before.unsummed_.begin(), before.unsummed_.end());
  }

  /// Returns the first of `watched`, and of the pieces due for a check, whose contents changed
  /// since the first call.
  std::optional<std::size_t> other(std::span<const TensorView> inputs,
                                   const std::vector<std::size_t>& watched) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const std::size_t i : std::exchange(unsummed_, {})) sums_.keep(i, inputs[i]);
    if (const auto next = sums_.changed_next(inputs)) return next;
    const auto found = std::find_if(watched.begin(), watched.end(),
                                    [&](std::size_t i) { return sums_.changed(i, inputs[i]); });
    return found == watched.end() ? std::nullopt : std::optional(*found);
  }

  cpu::FrozenWeights kept;

 private:
  std::mutex mutex_;
  std::vector<std::size_t> unsummed_;
  Checksums sums_;
};

/// The measurements that a graph's calls use (choices.hpp). Thread-safe.
class UsedChoices {
 public:
  void add(const CollectedChoices& calls) {
    const std::lock_guard<std::mutex> lock(mutex_);
    classes_.insert(calls.used.begin(), calls.used.end());
  }
  [[nodiscard]] std::vector<ChoiceRow> rows() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<ChoiceRow> out;
    for (const KernelChoice& choice : kernel_choices())
      if (classes_.contains(choice.operands)) out.push_back(row_of(choice));
    return out;
  }

 private:
  static ChoiceRow row_of(const KernelChoice& choice) {
    ChoiceRow out{choice.operands, {}};
    for (const auto& [kernel, seconds] : choice.times) out.second.emplace_back(kernel, seconds);
    return out;
  }

  mutable std::mutex mutex_;
  std::set<std::string> classes_;
};

/// A graph and its engine. After construction only the pool and the used choices change, and each
/// call has its own frame; so calls may run in several threads, and may be nested.
class Compiled {
 public:
  Compiled(const PyGraph& g, const std::string& backend, const EngineOptions& options,
           const std::map<std::string, py::object>& functions, const py::object& over, bool frozen)
      : graph_(in_own_context(g.graph)), context_(graph_.context_ptr()) {
    context_->host_functions = std::make_shared<HostFunctions>();
    const HostArrays arrays = arrays_by(over);
    for (const auto& [op, function] : functions)
      give_host_function(*context_, op, host_function_of(function, arrays));
    engine_ = need(context_, open_engine(builtin_engines(), backend, options));
    if (frozen) freeze();
    executable_ = need(context_, engine_->whole().compile(graph_));
  }

  [[nodiscard]] std::vector<std::string> summary() const { return engine_->whole().summary(); }
  [[nodiscard]] std::vector<ChoiceRow> choices() const { return choices_.rows(); }

  /// Returns the indices of inputs that are weights.
  [[nodiscard]] std::vector<std::size_t> weights() const {
    std::vector<std::size_t> out;
    for (std::size_t i = 0; i < graph_.inputs().size(); ++i)
      if (graph_.input_kind(graph_.inputs()[i]) == InputKind::weight) out.push_back(i);
    return out;
  }

  /// Returns the extents of each output, in order.
  std::vector<Extents> extents(const Symbols& symbols) {
    const LentFrame frame = frame_of(symbols);
    std::vector<Extents> out;
    for (const TensorView& view : frame->outputs) out.push_back(view.extents);
    return out;
  }

  /// Freezes new weights, or those of `before` of which some changed.
  [[nodiscard]] std::shared_ptr<Frozen> freeze_weights(
      Frozen* before, const std::vector<std::size_t>& changed) const {
    if (slots_ == nullptr) throw mistake("PW1406", "the graph was compiled without `frozen`");
    return before == nullptr ? std::make_shared<Frozen>(*slots_, weights())
                             : std::make_shared<Frozen>(*before, *slots_, changed);
  }

  void run(const std::vector<Address>& inputs, const std::vector<Address>& outputs,
           const Symbols& symbols, const std::shared_ptr<Frozen>& frozen,
           const std::vector<std::size_t>& watched) {
    const LentFrame frame = frame_of(symbols);
    place(frame->inputs, inputs, "inputs");
    place(frame->outputs, outputs, "outputs");
    std::optional<cpu::FrozenRun> kept;
    if (frozen) {
      check_written(*frozen, frame->inputs, watched);
      kept.emplace(frozen->kept);
    }
    frame->context.frozen = kept ? &*kept : nullptr;
    const std::shared_ptr<OpTimes> times = times_of_calls().now();
    frame->context.times = times.get();
    std::optional<CollectedChoices> collected;
    if (!std::exchange(frame->used, true)) collected.emplace();
    auto done = [&] {
      const py::gil_scoped_release others;
      return executable_->run(frame->inputs, frame->outputs, frame->context);
    }();
    if (collected) choices_.add(*collected);
    need(context_, std::move(done));
    if (kept) kept->done();
  }

 private:
  void freeze() {
    slots_ = engine_->whole().freeze();
    if (slots_ == nullptr)
      throw mistake("PW1406", "only the backend cpu can freeze weights",
                    "leave out `frozen`, or `backend`");
  }

  /// Fails with PW1227 if the contents of a weight changed without a counted write.
  void check_written(Frozen& frozen, const std::vector<TensorView>& inputs,
                     const std::vector<std::size_t>& watched) const {
    const auto other = frozen.other(inputs, watched);
    if (!other) return;
    throw mistake(
        "PW1227",
        fmt::format("weight `{}` was written in a way that PyTorch does not count (.data, NumPy or "
                    "a pointer), so earlier results may have used its old contents",
                    graph_.value_name(graph_.inputs()[*other])),
        "write it in place under torch.no_grad(); further calls use its current contents");
  }

  LentFrame frame_of(const Symbols& symbols) {
    auto frame = frames_.take(symbols);
    if (frame == nullptr) frame = fresh_frame(symbols);
    return {frames_, std::move(frame)};
  }

  [[nodiscard]] std::unique_ptr<CallFrame> fresh_frame(const Symbols& symbols) const {
    auto out = std::make_unique<CallFrame>();
    out->step = one_sequence(tokens_of_step(graph_, symbols));
    const auto rows = symbols.find(graph_.facts.tokens());
    out->context = {symbols, &out->step, rows == symbols.end() ? 0 : rows->second};
    out->inputs = views(graph_.inputs(), symbols);
    out->outputs = views(graph_.outputs(), symbols);
    return out;
  }

  [[nodiscard]] std::vector<TensorView> views(std::span<const ValueId> values,
                                              const Symbols& symbols) const {
    std::vector<TensorView> out;
    for (ValueId v : values) {
      if (has_no_tensor(graph_, v) || graph_.type(v) == Types::unknown()) {
        out.push_back({DType::u8, {0}, nullptr});
        continue;
      }
      out.push_back({context_->types[graph_.type(v)].dtype,
                     need(context_, extents_of(graph_, v, symbols)), nullptr});
    }
    return out;
  }

  static void place(std::vector<TensorView>& views, const std::vector<Address>& addresses,
                    std::string_view what) {
    if (views.size() != addresses.size())
      throw mistake("PW1411", fmt::format("the graph has {} {}, but {} were passed", views.size(),
                                          what, addresses.size()));
    for (std::size_t i = 0; i < views.size(); ++i)
      views[i].data = reinterpret_cast<std::byte*>(addresses[i]);
  }

  Graph graph_;
  ContextPtr context_;
  std::unique_ptr<StepEngine> engine_;
  std::unique_ptr<Executable> executable_;
  std::shared_ptr<const cpu::FrozenSlots> slots_;  ///< null: weights are not frozen
  FramePool frames_;
  UsedChoices choices_;
};

}  // namespace

Graph in_own_context(const Graph& graph) {
  Graph out(fork(graph.context()), graph.name);
  out.facts = graph.facts;
  std::vector<ValueId> values(graph.value_bound());
  for (ValueId v : graph.inputs())
    values[v.index] = out.add_input(graph.value_name(v), graph.type(v), graph.input_kind(v));
  for (NodeId n = graph.first(); n.valid(); n = graph.next(n)) {
    NodeSpec spec;
    spec.op = graph.op(n);
    spec.attributes = graph.attributes(n);
    spec.name = graph.node_name(n);
    for (ValueId v : graph.operands(n)) spec.operands.push_back(v.valid() ? values[v.index] : v);
    const std::size_t results = graph.result_count(n);
    for (std::size_t r = 0; r < results; ++r) {
      const ValueId v = graph.result(n, r);
      spec.results.push_back({graph.type(v), std::string(graph.value_name(v))});
    }
    const NodeId made = out.add_node(spec);
    for (std::size_t r = 0; r < results; ++r)
      values[graph.result(n, r).index] = out.result(made, r);
  }
  for (ValueId v : graph.outputs()) out.add_output(values[v.index]);
  return out;
}

void add_compiled(py::module_& module) {
  module.def(
      "lend_blas",
      [](const std::string& library) { need(std::make_shared<Context>(), lend_blas(library)); },
      py::arg("library"),
      "Runs matmuls with sgemm_ and dgemm_ of this library, which must be loaded already.");
  module.def(
      "lend_torch",
      [](const std::string& library) { need(std::make_shared<Context>(), lend_torch(library)); },
      py::arg("library"),
      "Runs matmuls and convolutions with this libtorch_cpu, which must be loaded already.");
  module.def("measure_kernels", measure_on_calls, py::arg("library"),
             "Chooses kernels by measuring them once for each class of operands; `library` names "
             "the lent ones with their version. Empty: runs the first kernel in order.");
  module.def("op_times", op_times, py::arg("on"),
             "Returns op, node, calls, and seconds of the calls of compiled graphs since the last "
             "call of this function, and times further ones if `on`.");
  module.def(
      "use_threads",
      [](std::int64_t most, const std::string& openmp) {
        use_threads(most, openmp.empty() ? TeamRunner() : openmp_threads(openmp));
      },
      py::arg("most"), py::arg("openmp") = "",
      "Limits the number of threads; they are those of a loaded OpenMP runtime, or its own.");
  // NOLINTNEXTLINE(bugprone-unused-raii): it registers the class
  py::class_<Frozen, std::shared_ptr<Frozen>>(module, "Frozen",
                                              "Snapshot of the weights of a compiled graph.");
  py::class_<Compiled>(module, "Compiled",
                       "A compiled graph that runs on memory owned by the caller.")
      .def(py::init([](const PyGraph& graph, const std::string& backend,
                       const std::map<std::string, py::object>& functions, const py::object& over,
                       bool frozen) {
             return std::make_unique<Compiled>(graph, backend, EngineOptions{}, functions, over,
                                               frozen);
           }),
           py::arg("graph"), py::arg("backend"), py::arg("functions"), py::arg("over"),
           py::arg("frozen") = false)
      .def_property_readonly("summary", &Compiled::summary,
                             "a summary of the compiled graph, as lines")
      .def_property_readonly("choices", &Compiled::choices,
                             "the measured classes of operands of its calls: kernels and seconds, "
                             "the fastest first")
      .def_property_readonly("weights", &Compiled::weights,
                             "the indices of inputs that are weights")
      .def("extents", &Compiled::extents, py::arg("symbols"),
           "Returns the extents of each output for these values of symbols.")
      .def("freeze", &Compiled::freeze_weights, py::arg("before") = nullptr,
           py::arg("changed") = std::vector<std::size_t>(),
           "Returns a snapshot of the weights for run(); `before` is a snapshot of the same "
           "weights, of which those of `changed` have changed.")
      .def("run", &Compiled::run, py::arg("inputs"), py::arg("outputs"), py::arg("symbols"),
           py::arg("frozen") = nullptr, py::arg("watched") = std::vector<std::size_t>(),
           "Runs on row-major tensors at these addresses. They must have the dtypes and extents of "
           "the graph's types, which cannot be checked here. `frozen` is a snapshot of the "
           "weights; the contents of those in `watched` are compared with it.");
}

}  // namespace pw::python
