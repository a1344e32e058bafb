#include "cuda/product_tuning.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "backends/eager/eager.hpp"
#include "backends/kernel.hpp"
#include "backends/program.hpp"
#include "codegen/rowprogram/grouping.hpp"
#include "cuda/compile.hpp"
#include "cuda/device/cubin_cache.hpp"
#include "cuda/device/machine.hpp"
#include "cuda/kernels/matmul/product.hpp"
#include "tensor/parallel.hpp"

namespace pw::cuda {
namespace {

constexpr std::size_t kTriedTiles = 8;  // best by the model

class ProductTuner {
 public:
  ProductTuner(std::string tokens_symbol, const TuneOptions& options, const Nvrtc& nvrtc,
               TuneReport& out)
      : symbol_(std::move(tokens_symbol)),
        options_(options),
        nvrtc_(nvrtc),
        machine_(tensor_machine_or_nearest(options.arch)),
        out_(out) {}

  void add(const Graph& graph, const FoundProduct& found) {
    graph_ = &graph;
    if (!has_tensor_cores(options_.arch, found.product.in) ||
        !done_.insert(found.product.key()).second)
      return;
    for (std::int64_t tokens : options_.tokens) {
      const auto rows = graph_->context().dims.evaluate(found.product.rows, {{symbol_, tokens}});
      if (!rows || *rows < 1) {
        out_.skipped.push_back(
            fmt::format("{}: its sizes depend on more than the token count", found.product.op));
        return;
      }
      tune(found, tokens, *rows);
    }
  }

 private:
  struct Candidate {
    TensorKernels kernels;
    bool refused = false;
  };

  void tune(const FoundProduct& found, std::int64_t tokens, std::int64_t rows) {
    const ProductShape shape = found.product.shape(rows);
    std::vector<ProductTile> tiles = ranked_tiles(machine_, shape);
    tiles.resize(std::min(tiles.size(), kTriedTiles));
    std::vector<Candidate> all;
    for (const ProductTile& tile : tiles)
      all.push_back(
          {*tensor_product(found.product, {options_.arch, rows, tile}, graph_->context())});
    compile(all);
    Tuned tuned;
    tuned.tokens = tokens;
    tuned.candidates = all.size();
    tuned.bytes = (shape.rows + shape.columns) * shape.depth * shape.in_bytes +
                  shape.rows * shape.columns * shape.out_bytes;
    double usual = 0;
    for (const Candidate& c : all) {
      tuned.spilled += c.refused ? 1 : 0;
      const double seconds =
          c.refused ? HUGE_VAL : seconds_of(c.kernels, found.product.b, shape, tokens);
      if (&c == &all.front()) usual = seconds;
      if (std::isfinite(seconds))
        tuned.others.push_back(entry(found, rows, c.kernels.tile, seconds));
    }
    if (tuned.others.empty()) {
      out_.skipped.push_back(fmt::format("{}: no tile can be launched", found.product.op));
      return;
    }
    std::stable_sort(
        tuned.others.begin(), tuned.others.end(),
        [](const TunedSchedule& a, const TunedSchedule& b) { return a.seconds < b.seconds; });
    tuned.chosen = tuned.others.front();
    tuned.chosen.default_seconds = std::isfinite(usual) ? usual : 0;
    ask_library(found, tokens, tuned.chosen);
    out_.tuned.push_back(std::move(tuned));
  }

  /// Times the library, if there is one, since it is the default.
  void ask_library(const FoundProduct& found, std::int64_t tokens, TunedSchedule& chosen) {
    if (options_.device == nullptr) return;
    const auto library =
        measure_library(*options_.device, *graph_, found.nodes, {{symbol_, tokens}});
    chosen.product->library = library && *library <= chosen.seconds;
    if (!library) return;
    chosen.default_seconds = *library;
    chosen.seconds = std::min(chosen.seconds, *library);
  }

  void compile(std::vector<Candidate>& all) {
    const auto compiles = [&](const Kernel& kernel) {
      const auto cubin = cubin_of(nvrtc_, options_.cache, kernel, {options_.arch, false});
      return cubin && !cubin->usage.spills();
    };
    const auto threads = static_cast<std::size_t>(std::max(options_.threads, 1));
    // Without a device the first tile that compiles is the model's best.
    if (options_.device == nullptr) {
      bool found = false;
      for (Candidate& c : all) {
        if (!found) c.refused = !compiles(c.kernels.product);
        found = found || !c.refused;
      }
      return;
    }
    parallel_jobs(all.size(), threads,
                  [&](std::size_t i) { all[i].refused = !compiles(all[i].kernels.product); });
  }

  /// `b`: the operand that is read from memory in each run.
  double seconds_of(const TensorKernels& kernels, std::size_t b, const ProductShape& shape,
                    std::int64_t tokens) {
    if (options_.device == nullptr) return product_time(machine_, shape, kernels.tile).seconds;
    return measure(*options_.device, kernels.product, graph_->context(), {{symbol_, tokens}}, b)
        .value_or(HUGE_VAL);
  }

  TunedSchedule entry(const FoundProduct& found, std::int64_t rows, const ProductTile& tile,
                      double seconds) const {
    TunedSchedule out;
    out.program = found.product.key();
    out.op = found.product.op;
    out.arch = options_.arch;
    out.rows = rows;
    out.product = TunedProduct{tile, true};
    out.seconds = seconds;
    out.by = out_.by;
    return out;
  }

  const Graph* graph_ = nullptr;
  std::string symbol_;
  const TuneOptions& options_;
  const Nvrtc& nvrtc_;
  TensorMachine machine_;
  std::set<std::string> done_;
  TuneReport& out_;
};

}  // namespace

std::optional<double> measure_library(Driver& device, const Graph& graph,
                                      const std::vector<NodeId>& nodes, const Symbols& symbols) {
  const NodeId n = nodes.back();
  std::vector<ValueId> inputs, outputs;
  const Graph alone = rows::isolate(graph, nodes, inputs, outputs);
  auto call = product_call(graph, n);
  if (!call || outputs.size() != 1) return std::nullopt;
  call->b_transposed = nodes.size() > 1;
  const auto number = [&](std::size_t operand) {
    ValueId v = graph.operand(n, operand);
    if (call->b_transposed && operand == product_call(graph, n)->b)
      v = graph.operand(nodes.front(), 0);
    return static_cast<std::size_t>(std::find(inputs.begin(), inputs.end(), v) - inputs.begin());
  };
  for (std::size_t* operand : {&call->a, &call->b}) *operand = number(*operand);
  for (auto* operand : {&call->bias, &call->a_scale, &call->b_scale})
    if (*operand) *operand = number(**operand);
  const auto eager = make_eager();
  auto on_host = eager->compile(alone);
  if (!on_host) return std::nullopt;
  MeasuredMemory memory(device);
  LaunchNode node;
  node.kind = LaunchNode::Kind::library;
  node.name = graph.op_of(n).name;
  RunContext run;
  run.symbols = symbols;
  node.library = std::make_shared<const LibraryCall>(
      LibraryCall{node.name, std::shared_ptr<Executable>(std::move(*on_host)), run, call});
  for (const auto* values : {&inputs, &outputs})
    for (ValueId v : *values) {
      auto tensor = memory.tensor(graph.context(), graph.type(v), symbols);
      if (!tensor) return std::nullopt;
      (values == &inputs ? node.reads : node.writes).push_back(std::move(*tensor));
    }
  if (!device.calls_library(*call, node.reads, node.writes.front()).yes) return std::nullopt;
  if (const std::int64_t workspace = device.workspace_bytes(); workspace > 0) {
    const auto address = memory.zeros(workspace);
    if (!address) return std::nullopt;
    node.writes.push_back({DType::u8, {workspace}, *address});
  }
  return measure_node(device, node, call->b);
}

TuneReport tune_products(const StitchedGraph& pieces, const std::string& tokens_symbol,
                         const TuneOptions& options, const Nvrtc& nvrtc) {
  TuneReport out;
  const Machine* machine = machine_of(options.arch);
  out.by = options.device != nullptr ? options.device->device()
           : machine != nullptr
               ? fmt::format("model of {}", tensor_machine_or_nearest(options.arch).name)
               : "";
  if (options.strict || !nvrtc.present() || machine == nullptr) return out;
  ProductTuner tuner(tokens_symbol, options, nvrtc, out);
  for (const PieceClass& c : pieces.classes) {
    Graph graph = pieces.pieces[c.members.front()].graph.compact();
    decompose(graph, [](NodeId, const std::string&) {});
    graph.erase_dead();
    for (const FoundProduct& found : tensor_products_of(graph)) tuner.add(graph, found);
  }
  return out;
}

}  // namespace pw::cuda
