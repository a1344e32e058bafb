#include "cuda/device/host_driver.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "base/hash.hpp"
#include "base/try.hpp"

namespace pw::cuda {
namespace {

constexpr std::int64_t kAligned = 256;
constexpr int kFresh = 0xa5;  // fills unwritten memory

std::byte* pointer(Address address) { return reinterpret_cast<std::byte*>(address); }

std::vector<TensorView> views(std::span<const DeviceTensor> tensors) {
  std::vector<TensorView> out;
  for (const DeviceTensor& t : tensors) out.push_back({t.dtype, t.extents, pointer(t.address)});
  return out;
}

}  // namespace

class HostDriver::Replay final : public GraphExecutable {
 public:
  Replay(HostDriver& driver, RecordedGraph graph) : driver_(driver) {
    if (graph.condition)
      graph.nodes[*graph.condition].params.back() =
          static_cast<std::int64_t>(reinterpret_cast<Address>(&go_on_));
    graphs_.push_back(std::move(graph));
  }
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  Result<std::optional<std::size_t>> add(const RecordedGraph& graph) override {
    if (!graphs_[0].shared || !same_topology(graphs_[0], graph)) return std::nullopt;
    PW_TRY(driver_.check(graph));
    graphs_.push_back(graph);
    return graphs_.size() - 1;
  }

  Status replay(std::size_t number) override {
    current_ = number;
    const RecordedGraph& graph = graphs_[number];
    const std::size_t replay = driver_.replays_++;
    if (replay == driver_.options_.break_replay) driver_.broken_ = true;
    if (driver_.broken_)
      return fail(error_in(graph.name, "PW1253",
                           fmt::format("the device failed at node {} ({})", graph.nodes.size() - 1,
                                       graph.nodes.empty() ? "" : graph.nodes.back().name),
                           "restart the process; the device stays unusable until it ends"));
    const std::uint64_t seed = combine(driver_.options_.seed, replay);
    if (!graph.condition) return Order(driver_, graph, seed).run();
    return run_loop(graph, seed);
  }

  [[nodiscard]] std::size_t current() const override { return current_; }

 private:
  Status run_loop(const RecordedGraph& graph, std::uint64_t seed) {
    Status done;
    go_on_ = 1;
    for (std::size_t pass = 1; go_on_ != 0 && done; ++pass) {
      driver_.deliver_signals(true);
      done = Order(driver_, graph, combine(seed, pass)).run();
      if (driver_.options_.after_pass) driver_.options_.after_pass(pass);
    }
    driver_.deliver_signals(false);
    return done;
  }

  /// One random order of the nodes.
  class Order {
   public:
    Order(HostDriver& driver, const RecordedGraph& graph, std::uint64_t seed)
        : driver_(driver),
          graph_(graph),
          random_(seed),
          waiting_for_(graph.nodes.size()),
          started_(graph.nodes.size()),
          done_(graph.nodes.size()),
          followers_(graph.nodes.size()) {}

    Status run() {
      for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
        waiting_for_[i] = graph_.nodes[i].after.size();
        for (std::size_t before : graph_.nodes[i].after) followers_[before].push_back(i);
      }
      for (std::size_t i = 0; i < graph_.nodes.size(); ++i)
        if (waiting_for_[i] == 0) may_start(i, 0);
      while (!ready_.empty()) {
        std::swap(ready_[random_.below(ready_.size())], ready_.back());
        const std::size_t node = ready_.back();
        ready_.pop_back();
        PW_TRY(run(node));
      }
      return {};
    }

   private:
    static constexpr int kMostInside = 8;  // launches that run within each other

    /// A follower with a programmatic edge may start as well, sometimes.
    void may_start(std::size_t node, int inside) {
      ready_.push_back(node);
      for (std::size_t next : followers_[node])
        if (graph_.nodes[next].early && inside < kMostInside && random_.below(2) == 0)
          may_start(next, inside + 1);
    }

    Status run(std::size_t node) {
      if (started_[node]) return {};
      started_[node] = true;
      const LaunchNode& launch = graph_.nodes[node];
      Earlier earlier;
      if (launch.early && !done_[launch.after[0]])
        earlier = [this, before = launch.after[0]] { return run(before); };
      PW_TRY(driver_.run_node(launch, random_.below(1u << 30), earlier));
      done_[node] = true;
      for (std::size_t next : followers_[node])
        if (--waiting_for_[next] == 0) may_start(next, 0);
      return {};
    }

    HostDriver& driver_;
    const RecordedGraph& graph_;
    Random random_;
    std::vector<std::size_t> waiting_for_, ready_;
    std::vector<bool> started_, done_;
    std::vector<std::vector<std::size_t>> followers_;
  };

  HostDriver& driver_;
  std::vector<RecordedGraph> graphs_;
  std::size_t current_ = 0;
  unsigned go_on_ = 1;  ///< the condition of a loop
};

HostDriver::HostDriver(const HostDriverOptions& options) : options_(options) {}

HostDriver::~HostDriver() {
  for (const auto& [address, bytes] : blocks_) std::free(pointer(address));
}

DeviceMemory HostDriver::memory() const {
  return {options_.capacity - allocated_, options_.capacity};
}

Result<Address> HostDriver::allocate(std::int64_t bytes) {
  const std::int64_t whole = std::max((bytes + kAligned - 1) / kAligned * kAligned, kAligned);
  void* block = nullptr;
  if (bytes >= 0 && whole <= options_.capacity - allocated_)
    block = std::aligned_alloc(kAligned, static_cast<std::size_t>(whole));
  if (block == nullptr)
    return fail(error_in(device(), "PW1250",
                         fmt::format("{} bytes are requested, but {} of {} are free", bytes,
                                     memory().free, memory().total)));
  std::memset(block, kFresh, static_cast<std::size_t>(whole));
  const auto address = reinterpret_cast<Address>(block);
  blocks_[address] = whole;
  allocated_ += whole;
  return address;
}

void HostDriver::release(Address address) {
  const auto block = blocks_.find(address);
  if (block == blocks_.end()) return;
  allocated_ -= block->second;
  blocks_.erase(block);
  std::free(pointer(address));
}

Status HostDriver::check(const MemoryRange& range, const std::string& what) const {
  auto block = blocks_.upper_bound(range.begin);
  if (block != blocks_.begin()) {
    --block;
    if (range.end <= block->first + static_cast<Address>(block->second)) return {};
  }
  return fail(
      error_in(what, "PW1252",
               fmt::format("accesses {} bytes of unallocated memory", range.end - range.begin)));
}

Status HostDriver::write(Address to, const void* from, std::int64_t bytes) {
  if (auto ok = check({to, to + static_cast<Address>(bytes)}, "a write"); !ok) return ok;
  std::memcpy(pointer(to), from, static_cast<std::size_t>(bytes));
  return {};
}

Status HostDriver::read(void* to, Address from, std::int64_t bytes) {
  if (auto ok = check({from, from + static_cast<Address>(bytes)}, "a read"); !ok) return ok;
  std::memcpy(to, pointer(from), static_cast<std::size_t>(bytes));
  return {};
}

Status HostDriver::fill(Address at, int byte, std::int64_t bytes) {
  if (auto ok = check({at, at + static_cast<Address>(bytes)}, "a fill"); !ok) return ok;
  std::memset(pointer(at), byte, static_cast<std::size_t>(bytes));
  return {};
}

Status HostDriver::signal(Address at, std::int64_t value) {
  PW_TRY(check({at, at + sizeof value}, "a signal"));
  const std::lock_guard lock(signals_lock_);
  if (signals_wait_)
    signals_.emplace_back(at, value);
  else
    std::memcpy(pointer(at), &value, sizeof value);
  return {};
}

void HostDriver::deliver_signals(bool wait) {
  const std::lock_guard lock(signals_lock_);
  signals_wait_ = wait;
  for (const auto& [at, value] : std::exchange(signals_, {}))
    std::memcpy(pointer(at), &value, sizeof value);
}

Status HostDriver::load(std::span<const Kernel> kernels) {
  const std::lock_guard lock(turn_);
  std::vector<Kernel> fresh;
  for (const Kernel& k : kernels)
    if (module_of_.emplace(k.name, modules_.size()).second) {
      fresh.push_back(k);
      trees_[k.name] = k.accesses;
      if (waits_first(k)) waiting_.insert(k.name);
    }
  if (fresh.empty()) return {};
  auto module = HostKernels::build(fresh, {}, options_.cache);
  if (!module) {
    for (const Kernel& k : fresh) module_of_.erase(k.name);
    return forward(module);
  }
  modules_.push_back(std::move(*module));
  return {};
}

Result<std::unique_ptr<GraphExecutable>> HostDriver::instantiate(RecordedGraph graph) {
  if (graphs_++ == options_.refuse_graph)
    return fail(error_in(graph.name, "PW1250", "the device rejects the graph"));
  PW_TRY(check(graph));
  return std::make_unique<Replay>(*this, std::move(graph));
}

Status HostDriver::check(const RecordedGraph& graph) const {
  if (options_.checks_edges) PW_TRY(check_early(graph, waiting_));
  const Ancestors ancestors(graph);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const LaunchNode& node = graph.nodes[i];
    const std::string what = fmt::format("{}, node {} ({})", graph.name, i, node.name);
    for (const auto* tensors : {&node.reads, &node.writes}) {
      for (const DeviceTensor& t : *tensors) PW_TRY(check(t.range(), what));
    }
    for (std::size_t before = 0; before < i; ++before) {
      if (!conflict(graph.nodes[before], node) || ancestors.has(i, before)) continue;
      return fail(error_in(
          what, "PW1251",
          fmt::format("accesses the same memory as node {} ({}), and no path orders the two",
                      before, graph.nodes[before].name),
          "add the missing edge between them"));
    }
  }
  return {};
}

Status HostDriver::run_node(const LaunchNode& node, std::uint64_t seed, const Earlier& earlier) {
  for (const auto* tensors : {&node.reads, &node.writes}) {
    for (const DeviceTensor& t : *tensors)
      if (auto ok = check(t.range(), node.name); !ok) return ok;
  }
  return run_unchecked(node, seed, earlier);
}

Status HostDriver::run_unchecked(const LaunchNode& node, std::uint64_t seed,
                                 const Earlier& earlier) {
  switch (node.kind) {
    case LaunchNode::Kind::copy:
      std::memmove(pointer(node.writes[0].address), pointer(node.reads[0].address),
                   static_cast<std::size_t>(node.reads[0].bytes()));
      copied_ += node.reads[0].bytes();
      return {};
    case LaunchNode::Kind::library:
      return node.library->on_host->run(views(node.reads), views(node.writes),
                                        node.library->context);
    case LaunchNode::Kind::kernel: return run_kernel(node, seed, earlier);
  }
  return {};
}

Status HostDriver::run_kernel(const LaunchNode& node, std::uint64_t seed, const Earlier& earlier) {
  const auto module = module_of_.find(node.name);
  if (module == module_of_.end())
    return fail(error_in(node.name, "PW1223", "the kernel was not loaded"));
  std::vector<void*> pointers;
  for (const auto* tensors : {&node.reads, &node.writes})
    for (const DeviceTensor& t : *tensors) pointers.push_back(pointer(t.address));
  Touched& touched = touched_[node.name];
  ++touched.launches;
  const auto foretold = foretell(node);
  if (!foretold)
    touched.foretold.reset();
  else if (touched.foretold)
    *touched.foretold += foretold->total;
  return modules_[module->second].run(node.name, pointers, node.params, seed, &touched.counted,
                                      earlier);
}

std::optional<LaunchAccesses> HostDriver::foretell(const LaunchNode& node) const {
  const auto tree = trees_.find(node.name);
  if (tree == trees_.end() || tree->second == nullptr) return std::nullopt;
  std::vector<DeviceTensor> arguments = node.reads;
  arguments.insert(arguments.end(), node.writes.begin(), node.writes.end());
  std::vector<AccessesByData::Array> data;
  if (const auto& by_data = tree->second->by_data)
    for (std::size_t i : by_data->arrays) {
      const DeviceTensor& array = arguments.at(i);
      data.emplace_back(reinterpret_cast<const std::int64_t*>(pointer(array.address)),
                        static_cast<std::size_t>(array.bytes() / size_of(DType::i64)));
    }
  return count_accesses(*tree->second, arguments.size(), node.params, data);
}

class HostDriver::OnStream final : public StreamLaunch {
 public:
  OnStream(HostDriver& driver, LaunchNode node) : driver_(driver), node_(std::move(node)) {}

  Status enqueue(std::span<const Address> tensors, Stream) const override {
    const LaunchNode node = at_addresses(node_, tensors);
    const std::lock_guard lock(driver_.turn_);
    return driver_.run_unchecked(node, combine(driver_.options_.seed, driver_.enqueued_++));
  }

 private:
  HostDriver& driver_;
  LaunchNode node_;
};

Result<std::unique_ptr<StreamLaunch>> HostDriver::prepare(LaunchNode node) {
  if (node.kind == LaunchNode::Kind::kernel && !module_of_.contains(node.name))
    return fail(error_in(node.name, "PW1223", "the kernel was not loaded"));
  return std::make_unique<OnStream>(*this, std::move(node));
}

Status HostDriver::fill_on(Stream, Address at, int byte, std::int64_t bytes) {
  std::memset(pointer(at), byte, static_cast<std::size_t>(bytes));
  return {};
}

Status HostDriver::launch(const LaunchNode& node) {
  return run_node(node, combine(options_.seed, replays_));
}

Status HostDriver::run(Executable& executable, std::span<const DeviceTensor> inputs,
                       std::span<const DeviceTensor> outputs, const RunContext& context) {
  for (const auto& tensors : {inputs, outputs}) {
    for (const DeviceTensor& t : tensors)
      if (auto ok = check(t.range(), "an op between graphs"); !ok) return ok;
  }
  return executable.run(views(inputs), views(outputs), context);
}

}  // namespace pw::cuda
