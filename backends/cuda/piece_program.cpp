// Exports make_program.
#include "backends/cuda/piece_program.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "backends/cuda/compile.hpp"
#include "backends/cuda/product.hpp"
#include "backends/cuda/topk.hpp"

namespace pw::cuda {
namespace {

class ProgramMaker {
 public:
  ProgramMaker(const Graph& piece, Backend& library, const ProgramOptions& options)
      : graph_(piece.compact()), library_(library), options_(options) {
    take_apart(graph_, [](NodeId, const std::string&) {});
    graph_.erase_dead();
    units_ = rows::group_rows(graph_, options.grouping);
  }

  Result<PieceProgram> run() {
    place_all();
    for (const rows::RunUnit& unit : units_)
      if (auto done = add(unit); !done) return forward(done);
    copy_outputs();
    return std::move(out_);
  }

 private:
  using Done = Result<std::monostate>;

  /// A view is where its operand is.
  [[nodiscard]] ValueId root(ValueId v) const {
    while (view_of_[v.index].valid()) v = view_of_[v.index];
    return v;
  }

  void place_all() {
    view_of_.resize(graph_.value_bound());
    places_.resize(graph_.value_bound());
    placed_.resize(graph_.value_bound());
    for (const rows::RunUnit& unit : units_)
      if (unit.kind == rows::RunUnit::Kind::view)
        view_of_[graph_.result(unit.nodes.front()).index] = graph_.operand(unit.nodes.front(), 0);
    for (std::size_t i = 0; i < graph_.inputs().size(); ++i)
      place(graph_.inputs()[i], {Place::Kind::input, i, {}});
    // What is returned is made where it is returned; what is returned twice is copied.
    for (std::size_t i = 0; i < graph_.outputs().size(); ++i) {
      const ValueId v = root(graph_.outputs()[i]);
      if (!placed_[v.index] && !is_literal(v)) place(v, {Place::Kind::output, i, {}});
    }
  }
  [[nodiscard]] bool is_literal(ValueId v) const {
    return !graph_.is_input(v) && graph_.op_of(graph_.producer(v)).name == "constant";
  }
  void place(ValueId v, Place where) {
    places_[v.index] = where;
    placed_[v.index] = true;
  }

  /// The place of a value that a launch writes or reads, with the type it has there.
  Place place_of(ValueId v) {
    const ValueId from = root(v);
    if (!placed_[from.index]) {
      place(from, {Place::Kind::scratch, out_.scratch.size(), {}});
      out_.scratch.push_back({std::string(graph_.value_name(from)), graph_.type(from),
                              out_.launches.size(), out_.launches.size()});
    }
    Place out = places_[from.index];
    out.type = graph_.type(v);
    if (out.kind == Place::Kind::scratch) out_.scratch[out.index].last = out_.launches.size();
    return out;
  }
  std::vector<Place> places(const std::vector<ValueId>& values) {
    std::vector<Place> out;
    for (ValueId v : values) out.push_back(place_of(v));
    return out;
  }

  Done add(const rows::RunUnit& unit) {
    switch (unit.kind) {
      case rows::RunUnit::Kind::view: return std::monostate{};
      case rows::RunUnit::Kind::literal: return add_literal(unit.nodes.front());
      case rows::RunUnit::Kind::rows:
        add_kernel(emit(unit.program), unit.inputs, unit.outputs);
        return std::monostate{};
      case rows::RunUnit::Kind::opaque: {
        const NodeId n = unit.nodes.front();
        auto kernel = topk_kernel(graph_, n);
        if (!kernel && options_.product_kernels) kernel = product_kernel(graph_, n);
        if (!kernel) return add_library(unit);
        const auto operands = graph_.operands(n);
        add_kernel(std::move(*kernel), {operands.begin(), operands.end()}, {graph_.result(n)});
        return std::monostate{};
      }
    }
    return std::monostate{};
  }

  void add_kernel(Kernel kernel, const std::vector<ValueId>& reads,
                  const std::vector<ValueId>& writes) {
    ProgramLaunch launch;
    launch.name = kernel.name;
    launch.reads = places(reads);
    launch.writes = places(writes);
    launch.params = kernel.params;
    const bool known = std::any_of(out_.kernels.begin(), out_.kernels.end(),
                                   [&](const Kernel& k) { return k.name == kernel.name; });
    if (!known) out_.kernels.push_back(std::move(kernel));
    out_.launches.push_back(std::move(launch));
  }

  Done add_literal(NodeId n) {
    const Result<Tensor> tensor = value_of(n);
    if (!tensor) return tl::unexpected(tensor.error());
    place(graph_.result(n), {Place::Kind::literal, out_.literals.size(), {}});
    out_.literals.push_back(*tensor);
    return std::monostate{};
  }

  Result<Tensor> value_of(NodeId n) {
    std::vector<ValueId> inputs, outputs;
    const Graph alone = rows::isolate(graph_, {&n, 1}, inputs, outputs);
    auto executable = library_.compile(alone);
    if (!executable) return forward(executable);
    const Tensor tensor(graph_.context().types[graph_.type(graph_.result(n))].dtype, {});
    const TensorView view = tensor.view();
    if (auto done = (*executable)->run({}, {&view, 1}, {}); !done) return forward(done);
    return tensor;
  }

  Done add_library(const rows::RunUnit& unit) {
    NodeId n = unit.nodes.front();
    const Op& op = graph_.op_of(n);
    if (!is_library(op) || op.traits.collective) {
      out_.lacks.push_back(fmt::format("{}: {}", op.name, unit.why.reason));
      return std::monostate{};
    }
    std::vector<ValueId> inputs, outputs;
    const Graph alone = rows::isolate(graph_, {&n, 1}, inputs, outputs);
    auto executable = library_.compile(alone);
    if (!executable) return forward(executable);
    ProgramLaunch launch;
    launch.kind = LaunchNode::Kind::library;
    launch.name = op.name;
    launch.reads = places(inputs);
    launch.writes = places(outputs);
    launch.on_host = std::move(*executable);
    out_.launches.push_back(std::move(launch));
    return std::monostate{};
  }

  /// Outputs whose bytes are somewhere else.
  void copy_outputs() {
    for (std::size_t i = 0; i < graph_.outputs().size(); ++i) {
      const ValueId v = graph_.outputs()[i];
      const Place from = places_[root(v).index];
      if (from.kind == Place::Kind::output && from.index == i) continue;
      if (!out_.lacks.empty()) return;
      ProgramLaunch launch;
      launch.kind = LaunchNode::Kind::copy;
      launch.name = "copy";
      launch.reads = {place_of(v)};
      launch.writes = {{Place::Kind::output, i, graph_.type(v)}};
      out_.launches.push_back(std::move(launch));
    }
  }

  Graph graph_;
  Backend& library_;
  ProgramOptions options_;
  std::vector<rows::RunUnit> units_;
  PieceProgram out_;
  std::vector<ValueId> view_of_;  // by value: the operand whose bytes it is
  std::vector<Place> places_;     // by value that is no view
  std::vector<bool> placed_;
};

}  // namespace

Result<PieceProgram> make_program(const Graph& piece, Backend& library,
                                  const ProgramOptions& options) {
  return ProgramMaker(piece, library, options).run();
}

}  // namespace pw::cuda
