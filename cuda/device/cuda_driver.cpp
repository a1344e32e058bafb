#include "cuda/device/cuda_driver.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include "base/environment.hpp"
#include "base/try.hpp"
#include "cuda/device/cubin_cache.hpp"
#include "cuda/device/cuda_library.hpp"
#include "cuda/device/lt_product.hpp"

namespace pw::cuda {
namespace {

constexpr int kStub = 34;                                 // CUDA_ERROR_STUB_LIBRARY
constexpr int kMemory = 2;                                // CUDA_ERROR_OUT_OF_MEMORY
constexpr int kOldest = 12000;                            // CUDA 12.0
constexpr int kMajor = 75, kMinor = 76, kMostShared = 8;  // attributes
constexpr int kRelaxed = 2;                               // CU_STREAM_CAPTURE_MODE_RELAXED
constexpr std::int64_t kMiB = std::int64_t{1} << 20;

/// A loaded library and its state.
struct Opened {
  void* library = nullptr;
  CudaFunctions functions;
  DriverStatus status;
  int device = 0, version = 0, major = 0;
  std::string name, arch;
};

std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

std::string error_text(const CudaFunctions& f, int code) {
  const char* text = nullptr;
  const bool known = f.error_name != nullptr && f.error_name(code, &text) == 0 && text != nullptr;
  return known ? text : fmt::format("error {}", code);
}

Opened open_library(const CudaDriverOptions& options) {
  Opened out;
  const std::string path = options.library.empty() ? cuda_library_path() : options.library;
  const auto is = [&](DriverState state, const std::string& text) {
    out.status = {state, text};
    return out;
  };
  out.library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (out.library == nullptr) return is(DriverState::absent, path + " was not found");
  const std::string missing = fill(out.functions, out.library);
  CudaFunctions& f = out.functions;
  if (f.init == nullptr) return is(DriverState::absent, path + " is not a CUDA driver");
  const int begun = f.init(0);
  if (begun == kStub)
    return is(DriverState::stub, path + " is the toolkit's stub, which is for linking only");
  int version = 0;
  if (f.version != nullptr) f.version(&version);
  if (!missing.empty() || version < kOldest)
    return is(DriverState::too_old,
              fmt::format("{} supports CUDA {}{}; 12.0 or later is required", path,
                          version_text(version), missing.empty() ? "" : " and lacks " + missing));
  int devices = 0;
  if (begun != 0)
    return is(DriverState::no_device, fmt::format("{} (CUDA {}) cannot start: {}", path,
                                                  version_text(version), error_text(f, begun)));
  if (f.device_count(&devices) != 0 || devices <= options.device)
    return is(DriverState::no_device,
              devices == 0
                  ? fmt::format("{} (CUDA {}) has no device", path, version_text(version))
                  : fmt::format("{} (CUDA {}) has devices 0 to {}, but device {} is requested",
                                path, version_text(version), devices - 1, options.device));
  char name[128] = {};
  int major = 0, minor = 0;
  if (f.device_get(&out.device, options.device) != 0 || f.device_name(name, 127, out.device) != 0 ||
      f.device_attribute(&major, kMajor, out.device) != 0 ||
      f.device_attribute(&minor, kMinor, out.device) != 0)
    return is(DriverState::no_device, path + " does not report its device");
  out.version = version;
  out.major = major;
  out.name = name;
  out.arch = fmt::format("sm_{}{}", major, minor);
  return is(DriverState::ok,
            fmt::format("CUDA {}, {} ({})", version_text(version), out.name, out.arch));
}

}  // namespace

std::string cuda_library_path() {
  const std::string named = environment("PWR_CUDA_DRIVER");
  return named.empty() ? "libcuda.so.1" : named;
}

std::string_view name(DriverState state) {
  switch (state) {
    case DriverState::absent: return "absent";
    case DriverState::stub: return "stub";
    case DriverState::too_old: return "too old";
    case DriverState::no_device: return "no device";
    case DriverState::ok: return "ok";
  }
  return "";
}

/// The product of a node and the algorithm that computes it.
struct ChosenProduct {
  LtProduct product;
  LtAddresses at;
  LtAlgorithm algorithm;
};

struct CudaDriver::State {
  Opened opened;
  CudaDriverOptions options;
  Nvrtc nvrtc = Nvrtc::open();
  void* context = nullptr;  ///< the device's primary context
  void* stream = nullptr;
  void* signals = nullptr;  ///< a stream that does not wait for the other
  struct Loaded {
    void* module = nullptr;
    void* function = nullptr;
    Kernel kernel;
  };
  std::map<std::string, Loaded, std::less<>> kernels;
  std::set<std::string> waiting;   ///< those that wait before they do anything else
  std::unique_ptr<LtProducts> lt;  ///< null: not searched yet, or absent
  bool looked_for_lt = false;
  std::string lt_why;  ///< reason if it was found but does not start

  [[nodiscard]] const CudaFunctions& f() const { return opened.functions; }
  Status check(int code, const std::string& what) const {
    if (code == 0) return {};
    return fail(error_in(opened.name, code == kMemory ? "PW1250" : "PW1253",
                         fmt::format("could not {}: {}", what, error_text(f(), code))));
  }
  Status wait(int code, const std::string& what) const {
    if (auto ok = check(code, what); !ok) return ok;
    return check(f().stream_wait(stream), what);
  }

  LtProducts* products() {
    if (looked_for_lt || options.strict || !options.libraries) return lt.get();
    looked_for_lt = true;
    LtLibrary library = LtLibrary::open(options.cublaslt, opened.version / 1000);
    if (!library.present()) return nullptr;
    auto started = LtProducts::start(std::move(library));
    if (started)
      lt = std::move(*started);
    else
      lt_why = "cuBLASLt " + started.error().front().message;
    return lt.get();
  }
  /// The size that NVIDIA's guide recommends for a handle of cuBLAS.
  [[nodiscard]] std::int64_t workspace_bytes() const { return (opened.major >= 9 ? 32 : 4) * kMiB; }

  tl::expected<LtProduct, std::string> read(const ProductCall& call,
                                            std::span<const DeviceTensor> reads,
                                            const DeviceTensor& result) {
    if (products() == nullptr) return tl::unexpected(lt_why);
    return lt_product(call, reads, result, lt->library().version());
  }

  Result<ChosenProduct> choose(const LaunchNode& node) {
    const auto none = [&](const std::string& why) {
      return fail(error_in(node.name, "PW1261", "no library supports it on this device" + why));
    };
    if (!node.library->product) return none("");
    const ProductCall& call = *node.library->product;
    auto product = read(call, node.reads, node.writes[0]);
    if (!product) return none(product.error().empty() ? "" : ": " + product.error());
    ChosenProduct out{*product, addresses_of(call, node.reads, node.writes[0]), {}};
    if (node.writes.size() > 1) {
      out.product.workspace_bytes = node.writes[1].bytes();
      out.at.workspace = node.writes[1].address;
    }
    auto algorithm = lt->algorithm(out.product);
    if (!algorithm) return forward(algorithm);
    out.algorithm = *algorithm;
    return out;
  }

  Status multiply(const ChosenProduct& p) {
    return lt->multiply(p.product, p.at, p.algorithm, stream);
  }

  /// The launches of a matmul, as a child graph.
  Result<void*> captured(const ChosenProduct& p) {
    PW_TRY(check(f().capture_begin(stream, kRelaxed), "begin to capture"));
    auto done = multiply(p);
    void* graph = nullptr;
    auto ended = check(f().capture_end(stream, &graph), "end to capture");  // in any case
    if (done && ended) return graph;
    if (graph != nullptr) f().graph_destroy(graph);
    return done ? forward(ended) : forward(done);
  }
};

/// A graph of the driver's that an executable is made of or updated to.
struct CudaDriver::MadeGraph {
  std::string name;
  std::unique_ptr<void, int (*)(void*)> made;
};

/// Returns a kernel's launch without its parameters.
CudaKernelNode kernel_node(const Kernel& kernel, void* function, const LaunchNode& node) {
  CudaKernelNode out;
  out.function = function;
  out.grid[0] =
      static_cast<unsigned>((node.params[0] + kernel.rows_per_block - 1) / kernel.rows_per_block);
  out.grid[1] = static_cast<unsigned>(kernel.column_blocks);
  out.block[0] = static_cast<unsigned>(kernel.threads);
  out.shared_bytes = static_cast<unsigned>(kernel.shared_bytes);
  return out;
}

/// A kernel launch, with the memory of its parameters.
class CudaLaunch {
 public:
  CudaLaunch(const Kernel& kernel, void* function, const LaunchNode& node)
      : node_(kernel_node(kernel, function, node)) {
    for (const auto* tensors : {&node.reads, &node.writes})
      for (const DeviceTensor& t : *tensors) values_.push_back(t.address);
    for (std::int64_t p : node.params) values_.push_back(static_cast<std::uint64_t>(p));
    for (std::uint64_t& v : values_) params_.push_back(&v);
    node_.params = params_.data();
  }
  CudaLaunch(const CudaLaunch&) = delete;
  CudaLaunch& operator=(const CudaLaunch&) = delete;
  [[nodiscard]] const CudaKernelNode& node() const { return node_; }

 private:
  std::vector<std::uint64_t> values_;
  std::vector<void*> params_;
  CudaKernelNode node_;
};

/// Invariant: the executable has the parameters of graph `current_`, if that is set.
class CudaDriver::Replay final : public GraphExecutable {
 public:
  Replay(State& state, MadeGraph graph, void* executable) : state_(state), executable_(executable) {
    graphs_.push_back(std::move(graph));
  }
  ~Replay() override { state_.f().executable_destroy(executable_); }
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  Result<std::optional<std::size_t>> add(const RecordedGraph& graph) override {
    if (!graphs_[0].made) return std::nullopt;
    graphs_.push_back(PW_TRY(make(state_, graph)));
    // The driver compares the topologies, those of library calls too.
    if (update(graphs_.size() - 1)) return graphs_.size() - 1;
    graphs_.pop_back();
    return std::nullopt;
  }
  Status replay(std::size_t number) override {
    if (current_ != number) PW_TRY(update(number));
    return state_.wait(state_.f().graph_launch(executable_, state_.stream),
                       "replay " + graphs_[number].name);
  }
  [[nodiscard]] std::size_t current() const override { return current_.value_or(graphs_.size()); }

 private:
  Status update(std::size_t number) {
    current_.reset();
    CudaUpdate why;
    PW_TRY(state_.check(state_.f().graph_update(executable_, graphs_[number].made.get(), &why),
                        "update to " + graphs_[number].name));
    current_ = number;
    return {};
  }

  State& state_;
  std::vector<MadeGraph> graphs_;
  std::optional<std::size_t> current_ = 0;
  void* executable_;
};

CudaDriver::CudaDriver(std::unique_ptr<State> state) : state_(std::move(state)) {}

DriverStatus CudaDriver::probe(const CudaDriverOptions& options) {
  return open_library(options).status;
}

Result<std::unique_ptr<CudaDriver>> CudaDriver::open(const CudaDriverOptions& options) {
  auto state = std::make_unique<State>();
  state->opened = open_library(options);
  state->options = options;
  const DriverStatus& status = state->opened.status;
  if (status.state != DriverState::ok)
    return fail(error_in("CUDA driver", "PW1260",
                         fmt::format("{}: {}", cuda::name(status.state), status.text),
                         "use `--driver host` to emulate the kernels and graphs on the CPU"));
  const CudaFunctions& f = state->f();
  PW_TRY(state->check(f.context_retain(&state->context, state->opened.device), "retain a context"));
  std::unique_ptr<CudaDriver> driver(new CudaDriver(std::move(state)));
  State& s = *driver->state_;
  PW_TRY(driver->enter());
  for (void** stream : {&s.stream, &s.signals})
    PW_TRY(s.check(s.f().stream_create(stream, 1), "create a stream"));
  return driver;
}

CudaDriver::~CudaDriver() {
  state_->lt.reset();
  for (const auto& [name, loaded] : state_->kernels) state_->f().module_unload(loaded.module);
  for (void* stream : {state_->stream, state_->signals})
    if (stream != nullptr) state_->f().stream_destroy(stream);
  state_->f().context_release(state_->opened.device);
}

std::string CudaDriver::device() const { return state_->opened.name; }

std::string CudaDriver::arch() const { return state_->opened.arch; }

DeviceMemory CudaDriver::memory() const {
  std::size_t free = 0, total = 0;
  state_->f().memory_info(&free, &total);
  return {static_cast<std::int64_t>(free), static_cast<std::int64_t>(total)};
}

Result<Address> CudaDriver::allocate(std::int64_t bytes) {
  Address address = 0;
  const auto wanted = static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1));
  const int code = state_->f().memory_allocate(&address, wanted);
  if (auto ok = state_->check(code, fmt::format("allocate {} bytes; {} of {} are free", bytes,
                                                memory().free, memory().total));
      !ok)
    return forward(ok);
  return address;
}

void CudaDriver::release(Address address) { state_->f().memory_free(address); }

Status CudaDriver::write(Address to, const void* from, std::int64_t bytes) {
  return state_->wait(
      state_->f().copy_in(to, from, static_cast<std::size_t>(bytes), state_->stream),
      "copy to the device");
}

Status CudaDriver::read(void* to, Address from, std::int64_t bytes) {
  return state_->wait(
      state_->f().copy_out(to, from, static_cast<std::size_t>(bytes), state_->stream),
      "copy from the device");
}

Status CudaDriver::fill(Address at, int byte, std::int64_t bytes) {
  return state_->wait(state_->f().fill(at, static_cast<unsigned char>(byte),
                                       static_cast<std::size_t>(bytes), state_->stream),
                      "fill memory");
}

Status CudaDriver::signal(Address at, std::int64_t value) {
  PW_TRY(enter());
  const CudaFunctions& f = state_->f();
  const std::string what = "send a signal";
  PW_TRY(state_->check(f.copy_in(at, &value, sizeof value, state_->signals), what));
  return state_->check(f.stream_wait(state_->signals), what);
}

Status CudaDriver::load(std::span<const Kernel> kernels) {
  for (const Kernel& kernel : kernels) {
    if (state_->kernels.count(kernel.name) != 0) continue;
    const Target target{state_->opened.arch, state_->options.strict};
    State::Loaded loaded;
    loaded.kernel = kernel;
    const CudaFunctions& f = state_->f();
    std::optional<Status> state;  // of the last cubin tried
    const auto loads = [&](const Cubin& cubin) {
      if (loaded.module != nullptr) f.module_unload(std::exchange(loaded.module, nullptr));
      state = state_->check(f.module_load(&loaded.module, cubin.bytes.data()),
                            "load kernel " + kernel.name);
      if (!*state) loaded.module = nullptr;
      if (*state)
        state =
            state_->check(f.module_function(&loaded.function, loaded.module, kernel.name.c_str()),
                          "find kernel " + kernel.name);
      return state->has_value();
    };
    const std::string& prepared = state_->options.prepared;
    auto cubin = prepared.empty()
                     ? cubin_of(state_->nvrtc, state_->options.cache, kernel, target, loads)
                     : prepared_cubin(prepared, kernel, target);
    if (!cubin && !prepared.empty() && state_->nvrtc.present())
      cubin = cubin_of(state_->nvrtc, state_->options.cache, kernel, target, loads);
    if (!cubin) return forward(cubin);
    if (!state) (void)loads(*cubin);  // no cache has checked it
    if (!*state) {
      if (loaded.module != nullptr) f.module_unload(loaded.module);
      return *state;
    }
    const auto [known, fresh] = state_->kernels.emplace(kernel.name, loaded);
    if (waits_first(kernel)) state_->waiting.insert(kernel.name);
    if (auto ok = state_->check(f.function_set(known->second.function, kMostShared,
                                               static_cast<int>(kernel.shared_bytes)),
                                "reserve shared memory for kernel " + kernel.name);
        !ok)
      return ok;
  }
  return {};
}

LibraryAnswer CudaDriver::calls_library(const ProductCall& product,
                                        std::span<const DeviceTensor> reads,
                                        const DeviceTensor& result) const {
  auto described = state_->read(product, reads, result);
  if (!described) return {false, described.error()};
  described->workspace_bytes = workspace_bytes();
  const auto algorithm = state_->lt->algorithm(*described);
  if (!algorithm) return {false, algorithm.error().front().message};
  return {true, {}};
}

std::int64_t CudaDriver::workspace_bytes() const {
  return state_->products() == nullptr ? 0 : state_->workspace_bytes();
}

/// Adds the nodes of a recorded graph to a graph of the driver.
class CudaDriver::GraphMaker {
 public:
  GraphMaker(State& state, const RecordedGraph& graph) : state_(state), graph_(graph) {}

  /// Products are chosen before the first capture.
  Status choose_products() {
    for (const LaunchNode& node : graph_.nodes) {
      if (node.kind != LaunchNode::Kind::library) continue;
      auto chosen = PW_TRY(state_.choose(node));
      products_.emplace(&node, chosen);
    }
    return {};
  }

  Status add_nodes(void* to) {
    if (graph_.condition) to = PW_TRY(add_loop(to));
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) PW_TRY(add(to, i));
    return {};
  }

 private:
  /// Returns the body of a loop, whose first pass always runs.
  Result<void*> add_loop(void* to) {
    constexpr unsigned kAssignDefault = 1;  // CU_GRAPH_COND_ASSIGN_DEFAULT: at each launch
    const CudaFunctions& f = state_.f();
    if (f.graph_condition == nullptr || f.graph_loop == nullptr)
      return fail(error_in(graph_.name, "PW1250",
                           "the driver has no loops in graphs; CUDA 12.4 or later is required"));
    PW_TRY(state_.check(f.graph_condition(&condition_, to, state_.context, 1, kAssignDefault),
                        "add a condition to " + graph_.name));
    CudaConditional loop;
    loop.condition = condition_;
    loop.context = state_.context;
    void* added = nullptr;
    PW_TRY(state_.check(f.graph_loop(&added, to, nullptr, nullptr, 0, &loop),
                        "add a loop to " + graph_.name));
    return loop.body[0];
  }

  Status add(void* to, std::size_t number) {
    const CudaFunctions& f = state_.f();
    const LaunchNode& node = graph_.nodes[number];
    const bool early = node.early && f.graph_edges != nullptr;
    std::vector<void*> after;
    if (!early)
      for (std::size_t before : node.after) after.push_back(nodes_[before]);
    void* added = nullptr;
    int code = 0;
    if (node.kind == LaunchNode::Kind::library) {
      // A child graph holds whatever the library launches. Drivers since 12.0 support it; capture
      // into an existing graph requires 12.3.
      auto child = PW_TRY(state_.captured(products_.at(&node)));
      code = f.graph_child(&added, to, after.data(), after.size(), child);  // a copy of it
      f.graph_destroy(child);
    } else if (node.kind == LaunchNode::Kind::copy) {
      CudaCopy copy;
      copy.from.device = node.reads[0].address;
      copy.to.device = node.writes[0].address;
      copy.width = static_cast<std::size_t>(node.reads[0].bytes());
      code = f.graph_copy(&added, to, after.data(), after.size(), &copy, nullptr);
    } else {
      code = PW_TRY(add_kernel(to, number, after, added));
    }
    if (code == 0 && early) {
      const CudaEdge programmatic{.from_port = 1, .type = 1};
      code = f.graph_edges(to, &nodes_[node.after[0]], &added, &programmatic, 1);
    }
    PW_TRY(state_.check(code, "add " + node.name + " to " + graph_.name));
    nodes_.push_back(added);
    return {};
  }

  Result<int> add_kernel(void* to, std::size_t number, const std::vector<void*>& after,
                         void*& added) {
    LaunchNode node = graph_.nodes[number];
    const auto loaded = state_.kernels.find(node.name);
    if (loaded == state_.kernels.end())
      return fail(error_in(graph_.name, "PW1223", "kernel " + node.name + " was not loaded"));
    if (graph_.condition == number) node.params.back() = static_cast<std::int64_t>(condition_);
    const CudaLaunch launch(loaded->second.kernel, loaded->second.function, node);
    return state_.f().graph_kernel(&added, to, after.data(), after.size(), &launch.node());
  }

  State& state_;
  const RecordedGraph& graph_;
  std::map<const LaunchNode*, ChosenProduct> products_;
  std::vector<void*> nodes_;
  std::uint64_t condition_ = 0;
};

Result<CudaDriver::MadeGraph> CudaDriver::make(State& state, const RecordedGraph& graph) {
  const CudaFunctions& f = state.f();
  PW_TRY(check_early(graph, state.waiting));
  GraphMaker maker(state, graph);
  PW_TRY(maker.choose_products());
  void* made = nullptr;
  PW_TRY(state.check(f.graph_create(&made, 0), "create a graph"));
  MadeGraph out{graph.name, {made, f.graph_destroy}};
  PW_TRY(maker.add_nodes(made));
  return out;
}

Result<std::unique_ptr<GraphExecutable>> CudaDriver::instantiate(RecordedGraph graph) {
  const CudaFunctions& f = state_->f();
  MadeGraph made = PW_TRY(make(*state_, graph));
  void* executable = nullptr;
  PW_TRY(
      state_->check(f.graph_instantiate(&executable, made.made.get(), 0), "capture " + graph.name));
  if (!graph.shared) made.made.reset();
  auto replay = std::make_unique<Replay>(*state_, std::move(made), executable);
  PW_TRY(state_->wait(f.graph_upload(executable, state_->stream), "upload " + graph.name));
  return replay;
}

class CudaDriver::KernelOnStream final : public StreamLaunch {
 public:
  KernelOnStream(const State& state, const State::Loaded& loaded, const LaunchNode& node)
      : state_(state),
        name_(node.name),
        node_(kernel_node(loaded.kernel, loaded.function, node)),
        sizes_(node.params.begin(), node.params.end()) {}

  Status enqueue(std::span<const Address> tensors, Stream stream) const override {
    std::vector<std::uint64_t> values(tensors.begin(), tensors.end());
    values.insert(values.end(), sizes_.begin(), sizes_.end());
    std::vector<void*> parameters;
    parameters.reserve(values.size());
    for (std::uint64_t& value : values) parameters.push_back(&value);
    const int code = state_.f().launch(node_.function, node_.grid[0], node_.grid[1], 1,
                                       node_.block[0], 1, 1, node_.shared_bytes,
                                       reinterpret_cast<void*>(stream), parameters.data(), nullptr);
    return code == 0 ? Status() : state_.check(code, "launch " + name_);
  }

 private:
  const State& state_;
  std::string name_;
  CudaKernelNode node_;
  std::vector<std::uint64_t> sizes_;
};

class CudaDriver::ProductOnStream final : public StreamLaunch {
 public:
  ProductOnStream(State& state, ChosenProduct chosen, LaunchNode node)
      : state_(state), chosen_(std::move(chosen)), node_(std::move(node)) {}

  Status enqueue(std::span<const Address> tensors, Stream stream) const override {
    const LaunchNode node = at_addresses(node_, tensors);
    LtAddresses addresses = addresses_of(*node.library->product, node.reads, node.writes[0]);
    if (node.writes.size() > 1) addresses.workspace = node.writes[1].address;
    return state_.lt->multiply(chosen_.product, addresses, chosen_.algorithm,
                               reinterpret_cast<void*>(stream));
  }

 private:
  State& state_;
  ChosenProduct chosen_;
  LaunchNode node_;
};

class CudaDriver::CopyOnStream final : public StreamLaunch {
 public:
  CopyOnStream(const State& state, std::int64_t bytes) : state_(state), bytes_(bytes) {}
  Status enqueue(std::span<const Address> tensors, Stream stream) const override {
    return state_.check(state_.f().copy(tensors[1], tensors[0], static_cast<std::size_t>(bytes_),
                                        reinterpret_cast<void*>(stream)),
                        "copy on the device");
  }

 private:
  const State& state_;
  std::int64_t bytes_;
};

Result<std::unique_ptr<StreamLaunch>> CudaDriver::prepare(LaunchNode node) {
  if (node.kind == LaunchNode::Kind::copy)
    return std::make_unique<CopyOnStream>(*state_, node.reads[0].bytes());
  if (node.kind == LaunchNode::Kind::library) {
    auto chosen = PW_TRY(state_->choose(node));
    return std::make_unique<ProductOnStream>(*state_, std::move(chosen), std::move(node));
  }
  const auto loaded = state_->kernels.find(node.name);
  if (loaded == state_->kernels.end())
    return fail(error_in(node.name, "PW1223", "the kernel was not loaded"));
  return std::make_unique<KernelOnStream>(*state_, loaded->second, node);
}

Status CudaDriver::launch(const LaunchNode& node) {
  auto prepared = prepare(node);
  if (!prepared && node.kind == LaunchNode::Kind::library)
    return run(*node.library->on_host, node.reads, std::span(node.writes).first(1),
               node.library->context);
  if (!prepared) return forward(prepared);
  std::vector<Address> addresses;
  for (const auto* tensors : {&node.reads, &node.writes})
    for (const DeviceTensor& tensor : *tensors) addresses.push_back(tensor.address);
  PW_TRY((*prepared)->enqueue(addresses, reinterpret_cast<Stream>(state_->stream)));
  return state_->wait(0, "run " + node.name);
}

Status CudaDriver::fill_on(Stream stream, Address at, int byte, std::int64_t bytes) {
  return state_->check(
      state_->f().fill(at, static_cast<unsigned char>(byte), static_cast<std::size_t>(bytes),
                       reinterpret_cast<void*>(stream)),
      "fill memory");
}

Status CudaDriver::enter() {
  const int code = state_->f().context_set(state_->context);
  return code == 0 ? Status() : state_->check(code, "set the current context");
}

/// Runs on the host with copies in both directions: correct for every op, but slow.
Status CudaDriver::run(Executable& executable, std::span<const DeviceTensor> inputs,
                       std::span<const DeviceTensor> outputs, const RunContext& context) {
  std::vector<Tensor> tensors;
  std::vector<TensorView> in, out;
  for (const DeviceTensor& t : inputs) {
    tensors.emplace_back(t.dtype, t.extents);
    in.push_back(tensors.back().view());
    if (auto done = read(in.back().data, t.address, t.bytes()); !done) return done;
  }
  for (const DeviceTensor& t : outputs) {
    tensors.emplace_back(t.dtype, t.extents);
    out.push_back(tensors.back().view());
  }
  if (auto done = executable.run(in, out, context); !done) return done;
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (auto done = write(outputs[i].address, out[i].data, outputs[i].bytes()); !done) return done;
  return {};
}

}  // namespace pw::cuda
