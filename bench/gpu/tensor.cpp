// Times products and attention on a device's tensor cores, compared with bounds, the static model,
// and a library's product. With `--driver host` small ones run and no times are shown.
#include <chrono>
#include <iostream>
#include <optional>

#include <fmt/format.h>

#include "bench/gpu/device.hpp"
#include "bench/measure.hpp"
#include "cuda/kernels/attention/attention.hpp"
#include "cuda/kernels/matmul/product.hpp"
#include "cuda/tuning.hpp"
#include "dsl/dsl.hpp"
#include "tensor/kv_cache.hpp"

namespace pw::bench {
namespace {

struct Args : DeviceArgs {
  std::string only, row;
  std::size_t tiles = 1;
  bool each = false, whole = false;
};

/// Bytes of the second-level cache and more: what is read in turn comes from memory.
constexpr std::int64_t kColdBytes = std::int64_t{192} << 20;
constexpr std::int64_t kMostKeyBytes = std::int64_t{3} << 30;

class TensorBench {
 public:
  /// `own`: the same device as `library`, or null without one.
  TensorBench(cuda::Driver& own, cuda::Driver* library, bool large, bool device, const Args& args)
      : own_(own),
        library_(library),
        large_(large),
        device_(device),
        tiles_(args.tiles),
        each_(args.each),
        whole_(args.whole),
        row_(args.row),
        context_(std::make_shared<Context>()),
        machine_(cuda::tensor_machine_or_nearest(own.arch())) {
    (void)ok(load_op_library(context_));
  }
  TensorBench(const TensorBench&) = delete;
  TensorBench& operator=(const TensorBench&) = delete;

  std::string products() {
    Table table(head({"rows", "product", "bound µs", "model", "measured", "of the bound",
                      "of the model", "library", "tile"}));
    static constexpr std::pair<std::int64_t, std::int64_t> kLayer[] = {
        {4096, 4096}, {4096, 6144}, {4096, 28672}, {14336, 4096}};
    for (const auto& [depth, columns] : kLayer) {
      for (std::int64_t rows :
           {1, 16, 64, 100, 128, 192, 256, 384, 512, 777, 1024, 2048, 4096, 8192})
        product(table, large_ ? cuda::ProductShape{rows, depth, columns, 2, 2}
                              : cuda::ProductShape{rows, depth / 32, columns / 128, 2, 2});
      if (!large_) break;
    }
    return "### Products of bf16\n\n" + table.print() + "\n";
  }

  std::string attention() {
    Table table(head({"heads", "step", "bound µs", "model", "measured", "of the bound",
                      "of the model", "tile"}));
    static constexpr std::array<std::int64_t, 3> kSteps[] = {
        {1, 512, 0},   {1, 1024, 0},   {8, 512, 0},     {1, 2048, 0},  {1, 4096, 0},
        {1, 8192, 0},  {4, 2048, 0},   {4, 1024, 4096}, {1, 1, 4095},  {1, 1, 16383},
        {1, 1, 32767}, {1, 1, 131071}, {2, 1, 4095},    {8, 1, 4095},  {8, 1, 32767},
        {64, 1, 4095}, {64, 1, 32767}, {256, 1, 4095},  {512, 1, 511}, {8, 4, 4092},
        {64, 4, 4092}};
    static constexpr std::pair<std::int64_t, std::int64_t> kHeads[] = {{32, 8}, {32, 32}, {64, 8}};
    for (const auto& [heads, groups] : kHeads) {
      for (const auto& [sequences, rows, past] : kSteps) {
        const std::int64_t keys = 4 * sequences * (past + rows) * groups * 128;  // bytes
        if (large_ && keys > kMostKeyBytes) continue;
        if (!large_ && sequences * rows * (past + rows) > 8192) continue;
        step(table, {sequences, rows, past, heads, groups, 128});
      }
      if (!large_) break;
    }
    return "### Attention of bf16, heads of 128\n\n" + table.print() + "\n";
  }

  [[nodiscard]] Promises promises() const {
    Promises out;
    const auto add = [&](const std::string& what, double worst, double limit) {
      if (worst > 0) out.at_most(what, worst, limit, "");
    };
    add(fmt::format("products of up to {} rows, times the library's", kFewRows), few_rows_, 1.3);
    add("products of more rows, times the library's", more_rows_, 2.5);
    add("a token for each of long contexts, times the bound", decode_, 1.4);
    return out;
  }

 private:
  /// Memory of one measurement.
  class Memory {
   public:
    explicit Memory(TensorBench& bench) : bench_(bench) {}
    ~Memory() {
      for (cuda::Address a : blocks_) bench_.own_.release(a);
    }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    cuda::Address take(std::int64_t bytes) {
      blocks_.push_back(bench_.ok(bench_.own_.allocate(bytes)));
      return blocks_.back();
    }
    cuda::DeviceTensor random(DType dtype, Extents extents) {
      cuda::DeviceTensor out{dtype, std::move(extents), 0};
      out.address = take(out.bytes());
      bench_.ok(cuda::randomize(bench_.own_, out));
      return out;
    }
    cuda::DeviceTensor zeros(DType dtype, Extents extents) {
      cuda::DeviceTensor out{dtype, std::move(extents), 0};
      out.address = take(out.bytes());
      bench_.ok(bench_.own_.fill(out.address, 0, out.bytes()));
      return out;
    }

   private:
    TensorBench& bench_;
    std::vector<cuda::Address> blocks_;
  };

  [[nodiscard]] std::vector<std::string> head(std::vector<std::string> names) const {
    if (!each_ && tiles_ > 1) names.push_back(fmt::format("best of {}", tiles_));
    return names;
  }
  template <class T>
  T ok(Result<T> result) {
    return need(context_, std::move(result));
  }
  [[nodiscard]] std::string figure(const std::string& text) const { return device_ ? text : "—"; }
  [[nodiscard]] std::string us(double seconds) const {
    return figure(fmt::format("{:.1f}", seconds * 1e6));
  }

  struct Tried {
    double model = 0, measured = 0;
    std::string tile;
  };
  /// A row of the first tile, with the best of all, or one of each.
  void add(Table& table, const std::string& first, const std::string& second, double bound,
           const std::vector<Tried>& tried, const std::string& library) const {
    const auto shorter = [](const Tried& a, const Tried& b) { return a.measured < b.measured; };
    const Tried none;
    const auto best = std::min_element(tried.begin(), tried.end(), shorter);
    for (std::size_t i = 0; i < (each_ ? tried.size() : 1); ++i) {
      const Tried& t = tried.empty() ? none : tried[i];
      std::vector<std::string> row{first,
                                   second,
                                   fmt::format("{:.1f}", bound * 1e6),
                                   fmt::format("{:.1f}", t.model * 1e6),
                                   us(t.measured),
                                   figure(fmt::format("{:.2f}", t.measured / bound)),
                                   figure(fmt::format("{:.2f}", t.measured / t.model))};
      if (!library.empty()) row.push_back(library);
      row.push_back(t.tile);
      if (!each_ && tiles_ > 1)
        row.push_back(best == tried.end()
                          ? "—"
                          : figure(fmt::format("{:.1f}, {}", best->measured * 1e6, best->tile)));
      table.add(std::move(row));
    }
  }

  /// Returns the seconds of a node in a chain of alternating copies; `expected` seconds determine
  /// its length.
  double time(cuda::Driver& driver, const std::vector<cuda::LaunchNode>& turns, double expected) {
    const auto count = [&](double seconds) {
      return device_ ? static_cast<std::size_t>(std::clamp(seconds / expected, 10.0, 200.0)) : 1;
    };
    cuda::RecordedGraph graph{"chain", {}};
    const std::size_t nodes = count(4e-3);
    for (std::size_t i = 0; i < nodes; ++i) {
      graph.nodes.push_back(turns[i % turns.size()]);
      if (i > 0) graph.nodes.back().after = {i - 1};
    }
    const auto ready = ok(driver.instantiate(std::move(graph)));
    std::vector<double> times;
    for (int i = 0; i < (device_ ? 8 : 1); ++i) {
      const auto begin = std::chrono::steady_clock::now();
      ok(ready->replay());
      times.push_back(
          std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
    if (times.size() > 1) times.erase(times.begin());
    return median(times) / static_cast<double>(nodes);
  }

  [[nodiscard]] bool wanted(const std::string& name) const {
    return name.find(row_) != std::string::npos;
  }

  void product(Table& table, const cuda::ProductShape& shape) {
    const std::string name = fmt::format("{} x {}", shape.depth, shape.columns);
    if (!wanted(fmt::format("{} rows, {}", shape.rows, name))) return;
    const Graph graph = ok(parse_graph(
        context_,
        fmt::format("graph g {{ symbol n in 1..8192 tokens  in x: bf16[n, {0}], w: bf16[{0}, {1}]  "
                    "y = mm(x, w)  out y }}",
                    shape.depth, shape.columns),
        "bench"));
    const cuda::TensorProduct found = cuda::tensor_products_of(graph).front().product;
    std::vector<cuda::ProductTile> tiles = cuda::ranked_tiles(machine_, shape);
    if (whole_) std::erase_if(tiles, [](const cuda::ProductTile& t) { return t.shares != 0; });
    tiles.resize(std::min(tiles.size(), tiles_));
    Memory memory(*this);
    const std::int64_t weight_bytes = shape.depth * shape.columns * 2;
    const std::int64_t turns = large_ ? std::max<std::int64_t>(kColdBytes / weight_bytes, 2) : 1;
    const bool runs = device_ || !large_;
    std::vector<cuda::DeviceTensor> weights;
    const cuda::DeviceTensor x = memory.random(DType::bf16, {shape.rows, shape.depth});
    for (std::int64_t i = 0; runs && i < turns; ++i)
      weights.push_back(memory.random(DType::bf16, {shape.depth, shape.columns}));
    const cuda::DeviceTensor y = memory.zeros(DType::bf16, {shape.rows, shape.columns});
    const double bound = cuda::product_bound(machine_, shape);
    std::vector<Tried> tried;
    for (const cuda::ProductTile& tile : tiles) {
      const auto kernels = cuda::tensor_product(found, {own_.arch(), shape.rows, tile}, *context_);
      ok(own_.load(std::span(&kernels->product, 1)));
      if (!runs) continue;
      Memory pieces(*this);
      cuda::LaunchNode node;
      node.name = kernels->product.name;
      node.params = {shape.rows};
      for (const auto* type : {&kernels->sums, &kernels->met})
        if (*type)
          node.writes.push_back(
              pieces.zeros(context_->types[**type].dtype, extents(**type, shape.rows)));
      node.writes.push_back(y);
      std::vector<cuda::LaunchNode> nodes;
      for (const cuda::DeviceTensor& w : weights) {
        nodes.push_back(node);
        nodes.back().reads = {x, w};
      }
      const double seconds = time(own_, nodes, bound);
      tried.push_back(
          {cuda::product_time(machine_, shape, tile).seconds, seconds, described(tile)});
    }
    const auto library = seconds_of_library(x, weights, y, bound, memory);
    add(table, std::to_string(shape.rows), name, bound, tried, library ? us(*library) : "—");
    if (library && !tried.empty()) {
      double& worst = shape.rows <= kFewRows ? few_rows_ : more_rows_;
      worst = std::max(worst, tried.front().measured / *library);
    }
  }

  /// Returns nothing without a library, or without an algorithm for the product.
  std::optional<double> seconds_of_library(const cuda::DeviceTensor& x,
                                           const std::vector<cuda::DeviceTensor>& weights,
                                           const cuda::DeviceTensor& y, double bound,
                                           Memory& memory) {
    if (library_ == nullptr || !device_) return std::nullopt;
    cuda::LaunchNode node;
    node.kind = cuda::LaunchNode::Kind::library;
    node.name = "mm";
    node.library =
        std::make_shared<const cuda::LibraryCall>(cuda::LibraryCall{"mm", nullptr, {}, {{}}});
    std::vector<cuda::LaunchNode> nodes;
    const std::int64_t workspace = library_->workspace_bytes();
    const cuda::Address at = workspace > 0 ? memory.take(workspace) : 0;
    for (const cuda::DeviceTensor& w : weights) {
      node.reads = {x, w};
      node.writes = {y};
      if (workspace > 0) node.writes.push_back({DType::u8, {workspace}, at});
      nodes.push_back(node);
    }
    if (!library_->calls_library({}, node.reads, y).yes) return std::nullopt;
    return time(*library_, nodes, bound);
  }

  [[nodiscard]] Extents extents(TypeId type, std::int64_t rows) const {
    Extents out;
    for (DimId d : context_->types[type].shape)
      out.push_back(context_->dims.evaluate(d, {{"n", rows}}).value());
    return out;
  }

  void step(Table& table, const cuda::AttentionWork& work) {
    const std::string heads = fmt::format("{} in {}", work.heads, work.groups);
    const std::string name = fmt::format("{} of {} after {}", work.sequences, work.rows, work.past);
    if (!wanted(heads + ", " + name)) return;
    const Graph graph = ok(parse_graph(
        context_,
        fmt::format("graph g {{ symbol n in 1..8192 tokens  in q: bf16[n, {0}, {2}], k: bf16[n, "
                    "{1}, {2}], v: bf16[n, {1}, {2}]  y = unified_attention(q, k, v, none){{layer "
                    "= \"a\"}}  out y }}",
                    work.heads, work.groups, work.width),
        "bench"));
    const std::int64_t rows = work.sequences * work.rows;
    const std::int64_t query = work.past > 0 && work.rows <= 16 ? work.rows : 0;
    const cuda::AttentionTiles chosen = cuda::attention_tiles(
        machine_, work.heads, work.groups, work.width, std::max<std::int64_t>(query, 1));
    std::vector<cuda::AttentionTile> tiles = cuda::attention_candidates(machine_, work);
    const auto seconds_of = [&](const cuda::AttentionTile& tile) {
      return cuda::attention_time(machine_, work, tile).seconds;
    };
    std::stable_sort(tiles.begin(), tiles.end(),
                     [&](const auto& a, const auto& b) { return seconds_of(a) < seconds_of(b); });
    tiles.insert(tiles.begin(), chosen.all[chosen.of(rows, query)]);
    tiles.resize(std::min(tiles.size(), tiles_));
    const double bound = cuda::attention_bound(machine_, work);
    std::vector<Tried> tried;
    for (const cuda::AttentionTile& tile : tiles)
      tried.push_back({seconds_of(tile), attend(graph, work, tile, bound), described(tile)});
    add(table, heads, name, bound, tried, "");
    if (device_ && work.rows == 1 && bound > kLongDecode)
      decode_ = std::max(decode_, tried.front().measured / bound);
  }

  /// Seconds of one layer's attention, of layers that take turns.
  double attend(const Graph& graph, const cuda::AttentionWork& work,
                const cuda::AttentionTile& tile, double bound) {
    const cuda::AttentionTiles only{{tile}, {{std::int64_t{1} << 40, 0}}};
    const auto kernels = cuda::attention_kernels(graph, KvCache::kPageTokens, own_.arch(), &only);
    ok(own_.load(std::span(&kernels->forms->all.front().kernel, 1)));
    if (large_ && !device_) return 0;
    ok(own_.load(std::span(&kernels->put, 1)));
    Memory memory(*this);
    cuda::DeviceAttention attention(own_, [&](std::int64_t bytes, const std::string&) {
      return Result<cuda::Address>(memory.random(DType::bf16, {bytes / 2}).address);
    });
    const std::int64_t rows = work.sequences * work.rows, keys = work.past + work.rows;
    const std::int64_t pages =
        work.sequences * ((keys + KvCache::kPageTokens - 1) / KvCache::kPageTokens);
    const std::int64_t bytes = pages * KvCache::kPageTokens * 4 * kernels->row;
    const std::int64_t layers = large_ ? std::clamp<std::int64_t>(kColdBytes / bytes, 1, 16) : 1;
    for (std::int64_t i = 0; i < layers; ++i) attention.add(*kernels, fmt::format("l{}", i));
    ok(attention.reserve(pages, rows));
    KvCache cache;
    Step step;
    step.cache = &cache;
    for (std::int64_t s = 0; s < work.sequences; ++s) {
      if (work.past > 0) (void)ok(cache.extend({0, "(all)"}, s, 0, work.past));
      step.sequences.push_back({s, work.rows, work.past});
    }
    ok(attention.begin(step, rows));
    const cuda::DeviceTensor inputs[] = {
        memory.random(DType::bf16, {rows, work.heads, work.width}),
        memory.random(DType::bf16, {rows, work.groups, work.width}),
        memory.random(DType::bf16, {rows, work.groups, work.width})};
    const cuda::DeviceTensor y = memory.zeros(DType::bf16, {rows, work.heads, work.width});
    std::vector<cuda::LaunchNode> nodes;
    for (std::int64_t i = 0; i < layers; ++i) {
      std::vector<cuda::LaunchNode> launches =
          attention.launches(*kernels, fmt::format("l{}", i), inputs, y, 0);
      if (i == 0) ok(own_.launch(launches.front()));
      nodes.push_back(std::move(launches.back()));
    }
    return time(own_, nodes, bound);
  }

  static constexpr std::int64_t kFewRows = 16;
  static constexpr double kLongDecode = 39e-6;  // seconds that reading the keys takes at least

  // The worst of all, in times the library's or the bound.
  double few_rows_ = 0, more_rows_ = 0, decode_ = 0;
  cuda::Driver& own_;
  cuda::Driver* library_;
  bool large_, device_;
  std::size_t tiles_;
  bool each_, whole_;
  std::string row_;
  ContextPtr context_;
  cuda::TensorMachine machine_;
};

}  // namespace
}  // namespace pw::bench

int main(int argc, char** argv) {
  using namespace pw;
  using namespace pw::bench;
  CLI::App app("Times products and attention on tensor cores, and compares them with the model",
               "pw_bench_tensor");
  Args args;
  add_device_options(app, args);
  app.add_option("--tiles", args.tiles, "time so many tiles, those that the model ranks first")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_flag("--each", args.each, "a row for each of them");
  app.add_flag("--whole", args.whole, "of products only tiles that are not cut");
  app.add_option("--only", args.only, "one of the tables")
      ->check(CLI::IsMember({"products", "attention"}));
  app.add_option("--row", args.row,
                 "only rows that have this in their name, such as `256 rows, 4096 x 4096` or "
                 "`32 in 8, 1 of 512`");
  app.footer("Example: pw_bench_tensor --tiles 6 --output tensor.md\nExit code 5: no device.");
  CLI11_PARSE(app, argc, argv);
  const bool device = args.device();
  std::unique_ptr<cuda::Driver> own, library;
  if (args.prepares()) {
    own = preparing_driver(args);
  } else if (device) {
    own = open_device(args.cubins, false);
    library = open_device(args.cubins, true);
  } else {
    own = std::make_unique<cuda::HostDriver>(cuda::HostDriverOptions{.libraries = false});
  }
  TensorBench bench(*own, library.get(), args.large(), device, args);
  std::string text =
      (device ? machine() +
                    ". Microseconds per node of a chain in one graph, medians of 7; weights and "
                    "keys come from memory. Models and bounds are those of an " +
                    std::string(cuda::tensor_machine_or_nearest(own->arch()).name) + "."
              : "Run on the emulator at small sizes, without times.") +
      "\n\n";
  if (args.only != "attention") text += bench.products();
  if (args.only != "products") text += bench.attention();
  if (args.prepares()) return 0;
  const Promises promises = bench.promises();
  if (device) text += "### Limits\n\n" + promises.print() + "\n";
  text += more(args.more);
  publish(args, "Tensor cores: measured and modelled times", *own, text);
  return promises.kept() ? 0 : 1;
}
