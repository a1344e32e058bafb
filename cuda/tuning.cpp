#include "cuda/tuning.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "backends/kernel.hpp"
#include "backends/program.hpp"
#include "base/hash.hpp"
#include "cuda/device/cubin_cache.hpp"
#include "cuda/device/machine.hpp"
#include "tensor/numerics.hpp"
#include "tensor/parallel.hpp"

namespace pw::cuda {
namespace {

constexpr std::int64_t kMostBytes = std::int64_t{1} << 50;  // of an argument
constexpr int kMostThreads = 2048;                          // of a multiprocessor
constexpr double kBetter = 0.98;  // of the default's time; smaller gains are model noise

struct Compiled {
  Kernel kernel;
  std::optional<Usage> usage;  ///< nothing if rejected, or if it spills
};

/// Compiles all candidates, several at a time.
std::vector<Compiled> compile_all(std::vector<Kernel> kernels, const TuneOptions& options,
                                  const Nvrtc& nvrtc) {
  std::vector<Compiled> out;
  for (Kernel& k : kernels) out.push_back({std::move(k), {}});
  const auto threads = static_cast<std::size_t>(std::max(options.threads, 1));
  parallel_jobs(out.size(), threads, [&](std::size_t i) {
    const auto cubin =
        cubin_of(nvrtc, options.cache, out[i].kernel, {options.arch, options.strict});
    if (cubin && !cubin->usage.spills()) out[i].usage = cubin->usage;
  });
  return out;
}

/// Returns the least time of several replays.
std::optional<double> replay_seconds(Driver& device, const std::vector<LaunchNode>& turns,
                                     std::size_t nodes) {
  constexpr int kReplays = 7;
  RecordedGraph graph{"tuning", {}};
  for (std::size_t i = 0; i < nodes; ++i) graph.nodes.push_back(turns[i % turns.size()]);
  order_nodes(graph);
  auto executable = device.instantiate(std::move(graph));
  if (!executable) return std::nullopt;
  double least = HUGE_VAL;
  for (int i = 0; i < kReplays; ++i) {
    const auto start = std::chrono::steady_clock::now();
    if (!(*executable)->replay()) return std::nullopt;
    least = std::min(
        least, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return least;
}

/// Returns the symbol that sizes depend on: the only one, or the tokens among several.
std::string symbol_of(const rows::RowProgram& program, const std::string& tokens_symbol) {
  const Context& context = *program.context;
  std::set<std::string> all;
  for (std::size_t i = 0; i < program.arguments.size(); ++i) {
    for (DimId d : program.type(i).shape)
      for (std::string& s : context.dims.symbols(d)) all.insert(std::move(s));
  }
  return all.size() == 1 ? *all.begin() : tokens_symbol;
}

/// Returns rows and bytes at a token count; nothing if a size is unknown.
std::optional<Load> load_of(const rows::RowProgram& program, const Symbols& symbols) {
  const Context& context = *program.context;
  const auto rows = context.dims.evaluate(program.params.front(), symbols);
  if (!rows || *rows < 1) return std::nullopt;
  Load out{*rows, 0};
  std::int64_t widest = 0, tables = 0;  // bytes of one argument
  for (std::size_t i = 0; i < program.arguments.size(); ++i) {
    const Type& type = program.type(i);
    auto extents =
        extents_of(context, program.arguments[i].type, symbols, [&] { return program.op; });
    if (!extents) return std::nullopt;
    const std::int64_t whole = DeviceTensor{type.dtype, std::move(*extents), 0}.bytes();
    if (whole > kMostBytes) return std::nullopt;
    const bool grows = std::any_of(type.shape.begin(), type.shape.end(),
                                   [&](DimId d) { return !context.dims.value(d); });
    if (grows) {
      out.bytes += whole;
      widest = std::max(widest, whole);
    } else {
      tables = std::max(tables, whole);
    }
  }
  // From a table of gathered rows, only the bytes of these rows are read.
  out.bytes += std::min(tables, widest);
  return out;
}

}  // namespace

Status randomize(Driver& device, const DeviceTensor& tensor) {
  constexpr std::int64_t kNumbers = std::int64_t{1} << 18;
  const std::int64_t count = TensorView{tensor.dtype, tensor.extents, nullptr}.count();
  if (!is_float(tensor.dtype) || count == 0) return {};
  const Tensor numbers(tensor.dtype, {std::min(count, kNumbers)});
  Random random(1);
  for (std::int64_t i = 0; i < numbers.view().count(); ++i)
    store(tensor.dtype, numbers.data(), i, random.normal());
  std::int64_t done = static_cast<std::int64_t>(numbers.view().bytes());
  const std::int64_t bytes = tensor.bytes();
  if (auto ok = device.write(tensor.address, numbers.data(), done); !ok) return ok;
  while (done < bytes) {  // repeats the existing bytes
    const std::int64_t part = std::min(done, bytes - done);
    LaunchNode copy;
    copy.kind = LaunchNode::Kind::copy;
    copy.name = "copy";
    copy.reads = {{DType::u8, {part}, tensor.address}};
    copy.writes = {{DType::u8, {part}, tensor.address + static_cast<Address>(done)}};
    if (auto ok = device.launch(copy); !ok) return ok;
    done += part;
  }
  return {};
}

MeasuredMemory::~MeasuredMemory() {
  for (Address a : held_) device_.release(a);
}

std::optional<Address> MeasuredMemory::zeros(std::int64_t bytes) {
  const auto address = device_.allocate(bytes);
  if (!address) return std::nullopt;
  held_.push_back(*address);
  return device_.fill(*address, 0, bytes) ? std::optional(*address) : std::nullopt;
}

std::optional<DeviceTensor> MeasuredMemory::tensor(const Context& context, TypeId type,
                                                   const Symbols& symbols) {
  auto extents = extents_of(context, type, symbols, [] { return std::string("a kernel"); });
  if (!extents) return std::nullopt;
  DeviceTensor out{context.types[type].dtype, std::move(*extents), 0};
  const auto address = zeros(out.bytes());
  if (!address) return std::nullopt;
  out.address = *address;
  return randomize(device_, out) ? std::optional(out) : std::nullopt;
}

std::optional<double> measure(Driver& device, const Kernel& kernel, const Context& context,
                              const Symbols& symbols, std::optional<std::size_t> cold) {
  MeasuredMemory memory(device);
  LaunchNode node;
  node.name = kernel.name;
  for (std::size_t i = 0; i < kernel.arguments.size(); ++i) {
    auto tensor = memory.tensor(context, kernel.arguments[i], symbols);
    if (!tensor) return std::nullopt;
    if (kernel.zero == i && !device.fill(tensor->address, 0, tensor->bytes())) return std::nullopt;
    const bool result = i + kernel.results >= kernel.arguments.size();
    const bool valid = kernel.reads_valid && i + kernel.results + 1 == kernel.arguments.size();
    if (valid && !symbols.empty()) {
      const auto all = static_cast<std::int32_t>(symbols.begin()->second);  // the tokens' alone
      if (!device.write(tensor->address, &all, sizeof all)) return std::nullopt;
    }
    (result ? node.writes : node.reads).push_back(std::move(*tensor));
  }
  for (DimId d : kernel.params) {
    const auto value = context.dims.evaluate(d, symbols);
    if (!value) return std::nullopt;
    node.params.push_back(*value);
  }
  return device.load({&kernel, 1}) ? measure_node(device, node, cold) : std::nullopt;
}

std::optional<double> measure_node(Driver& device, const LaunchNode& node,
                                   std::optional<std::size_t> cold) {
  constexpr std::size_t kMany = 65;  // the time of an empty replay is subtracted
  constexpr std::int64_t kColdBytes = std::int64_t{256} << 20, kMostTurns = 16;
  MeasuredMemory memory(device);
  std::vector<LaunchNode> turns{node};
  if (cold) {
    const DeviceTensor& first = node.reads[*cold];
    const std::int64_t bytes = std::max<std::int64_t>(first.bytes(), 1);
    const std::int64_t copies = std::clamp<std::int64_t>(kColdBytes / bytes, 1, kMostTurns - 1);
    for (std::int64_t i = 0; i < copies; ++i) {
      const auto address = memory.zeros(bytes);
      if (!address) break;  // fewer suffice
      DeviceTensor copy = first;
      copy.address = *address;
      if (!randomize(device, copy)) return std::nullopt;
      turns.push_back(node);
      turns.back().reads[*cold] = copy;
    }
  }
  const auto many = replay_seconds(device, turns, kMany), one = replay_seconds(device, turns, 1);
  if (!many || !one) return std::nullopt;
  return std::max(*many - *one, 1e-9) / (kMany - 1);
}

std::vector<Kernel> candidates(const rows::RowProgram& program) {
  std::vector<Kernel> out;
  std::set<std::string> seen;
  const auto add = [&](const Schedule& schedule) {
    Kernel kernel = emit(program, schedule);
    const bool fits = kernel.threads * schedule.resident <= kMostThreads;
    if (fits && seen.insert(kernel.name).second) out.push_back(std::move(kernel));
  };
  const Schedule usual;
  add(usual);
  for (int kept_words : {usual.kept_words, 16, 0}) {
    for (int block : {256, 64, 128, 512}) {
      for (int passes : {1, 2, 4}) {
        for (int resident : {0, 1, 2, 4, 8}) {
          add({block, passes, resident, kept_words});
        }
      }
    }
  }
  return out;
}

Result<TuneReport> tune(const CompileReport& report, const std::string& tokens_symbol,
                        const TuneOptions& options, const Nvrtc& nvrtc) {
  const Machine* machine = machine_of(options.arch);
  if (machine == nullptr)
    return fail(error_in(options.arch, "PW1243", "the architecture is unknown",
                         "use sm_80, sm_90, sm_100 or sm_120"));
  if (!nvrtc.present())
    return fail(
        error_in("NVRTC", "PW1244", "candidates cannot be compiled: " + nvrtc.state(),
                 "install the CUDA toolkit's NVRTC; `pwr doctor` shows where it is searched for"));
  TuneReport out;
  out.by = options.device != nullptr ? options.device->device()
                                     : fmt::format("model of {}", machine->name);
  std::size_t done = 0;
  for (const KernelReport& k : report.kernels) {
    if (!k.program) continue;  // there is one schedule
    const std::string key = program_key(*k.program), symbol = symbol_of(*k.program, tokens_symbol);
    const std::vector<Compiled> compiled = compile_all(candidates(*k.program), options, nvrtc);
    for (std::int64_t tokens : options.tokens) {
      const std::optional<Load> load = load_of(*k.program, {{symbol, tokens}});
      if (!load) {
        out.skipped.push_back(
            fmt::format("{}: its sizes depend on more than the token count", k.kernel.op));
        break;
      }
      Tuned tuned;
      tuned.tokens = tokens;
      tuned.bytes = load->bytes;
      tuned.candidates = compiled.size();
      double usual = 0;
      for (const Compiled& c : compiled) {
        tuned.spilled += c.usage ? 0 : 1;
        double seconds = HUGE_VAL;
        if (c.usage && options.device == nullptr) {
          seconds = estimate(*machine, c.kernel, *c.usage, *load);
        } else if (c.usage) {
          seconds = measure(*options.device, c.kernel, *k.program->context, {{symbol, tokens}})
                        .value_or(HUGE_VAL);
        }
        if (&c == &compiled.front()) usual = seconds;
        if (!std::isfinite(seconds)) continue;
        tuned.others.push_back(
            {key, k.kernel.op, options.arch, load->rows, c.kernel.schedule, seconds, 0, out.by});
      }
      if (tuned.others.empty()) {
        out.skipped.push_back(fmt::format("{}: no candidate can be launched", k.kernel.op));
        break;
      }
      for (TunedSchedule& t : tuned.others) t.default_seconds = std::isfinite(usual) ? usual : 0;
      const TunedSchedule untuned = tuned.others.front();
      std::stable_sort(
          tuned.others.begin(), tuned.others.end(),
          [](const TunedSchedule& a, const TunedSchedule& b) { return a.seconds < b.seconds; });
      const bool gains = !std::isfinite(usual) || tuned.others.front().seconds < kBetter * usual;
      tuned.chosen = gains ? tuned.others.front() : untuned;
      out.tuned.push_back(std::move(tuned));
    }
    if (options.progress) options.progress(++done);
  }
  return out;
}

}  // namespace pw::cuda
