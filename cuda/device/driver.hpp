// The device interface: memory, and graphs of launches that are recorded once and replayed. A
// recorded graph is plain data. There are two implementations: the CUDA driver, and an emulator
// that runs the same kernels on the host (host_driver.hpp).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "backends/backend.hpp"
#include "cuda/kernels/emitter.hpp"

namespace pw::cuda {

/// Device address in bytes; 0 is null.
using Address = std::uint64_t;

struct MemoryRange {
  Address begin = 0, end = 0;
  [[nodiscard]] bool meets(const MemoryRange& other) const {
    return begin < other.end && other.begin < end;
  }
  friend bool operator==(const MemoryRange&, const MemoryRange&) = default;
};

/// A tensor in device memory.
struct DeviceTensor {
  DType dtype = DType::f32;
  Extents extents;
  Address address = 0;
  [[nodiscard]] std::int64_t bytes() const {
    return static_cast<std::int64_t>(TensorView{dtype, extents, nullptr}.bytes());
  }
  [[nodiscard]] MemoryRange range() const {
    return {address, address + static_cast<Address>(bytes())};
  }
};

/// Operand layout of a matrix product y = a · b, as indices of a node's reads. All are row-major;
/// their tensors give extents and dtypes.
struct ProductCall {
  std::size_t a = 0, b = 1;
  bool b_transposed = false;        ///< b is stored as [columns, depth]
  std::optional<std::size_t> bias;  ///< addend: one element, or one for each column
  /// Factors: one element, or one for each row (a) and column (b).
  std::optional<std::size_t> a_scale, b_scale;
};

/// An op that a library runs: a matrix product.
struct LibraryCall {
  std::string op;
  std::shared_ptr<Executable> on_host;  ///< the call as a graph of its own
  RunContext context;
  std::optional<ProductCall> product;
};

/// Answer of a driver for a product: a library runs it, or the reason why a present library does
/// not.
struct LibraryAnswer {
  bool yes = false;
  std::string why;
};

/// One node of a recorded graph.
struct LaunchNode {
  enum class Kind : std::uint8_t { kernel, library, copy };
  Kind kind = Kind::kernel;
  std::string name;  ///< name of the kernel, or of the library's op
  /// A kernel's pointers: reads, then writes. A library call writes its result, then the workspace.
  std::vector<DeviceTensor> reads, writes;
  std::vector<std::int64_t> params;            ///< for a kernel: rows first
  std::shared_ptr<const LibraryCall> library;  ///< for a library call
  std::vector<std::size_t> after;              ///< predecessors, ascending
  /// The edge from its only predecessor is programmatic: the kernel may start when that one has
  /// started, and waits for its end (see `waits_first`).
  bool early = false;
};

[[nodiscard]] LaunchCounts counted(const LaunchNode& node);
/// Returns the node with other addresses: those of its reads, then of its writes.
[[nodiscard]] LaunchNode at_addresses(LaunchNode node, std::span<const Address> tensors);

struct RecordedGraph {
  std::string name;  ///< "piece_3 of 16 tokens"
  std::vector<LaunchNode> nodes;
  /// The nodes are the body of a loop that runs until the kernel of this node ends it. The driver
  /// gives that kernel the condition's handle, as its last parameter.
  std::optional<std::size_t> condition = std::nullopt;
  bool shared = false;  ///< its executable may be shared (GraphExecutable::add)
};

/// Returns true if the graphs have nodes of the same kinds with the same edges, and no loop.
[[nodiscard]] bool same_topology(const RecordedGraph& a, const RecordedGraph& b);

/// Returns true if both touch the same bytes and one of them writes.
[[nodiscard]] bool conflict(const LaunchNode& a, const LaunchNode& b);

/// The transitive predecessors of each node. Edges lead from lower to higher numbers.
class Ancestors {
 public:
  explicit Ancestors(const RecordedGraph& graph);
  [[nodiscard]] bool has(std::size_t node, std::size_t before) const {
    return (bits_[node * words_ + before / 64] >> (before % 64) & 1) != 0;
  }
  /// Adds an edge to a node that has no outgoing edges yet.
  void add(std::size_t node, std::size_t before);

 private:
  std::size_t words_;
  std::vector<std::uint64_t> bits_;
};

/// Gives the nodes their edges: nodes in conflict keep their order. Transitively implied edges are
/// omitted.
void order_nodes(RecordedGraph& graph);

/// Returns why a node must start after its predecessors have ended, or an empty text if its edge
/// may be programmatic. Edges of waiting kernels order completion as full edges do: each waits
/// before its first access, so it ends after its predecessor. `waiting`: names of such kernels.
[[nodiscard]] std::string why_not_early(const RecordedGraph& graph, std::size_t node,
                                        const std::set<std::string>& waiting);
/// Makes edges programmatic where that is safe.
void start_early(RecordedGraph& graph, const std::set<std::string>& waiting);
/// Fails with PW1251 if a programmatic edge is not safe.
[[nodiscard]] Status check_early(const RecordedGraph& graph, const std::set<std::string>& waiting);

/// An instantiated graph, and the others that share its executable. Those have the same nodes and
/// edges with other parameters; to replay another one than the last, the executable is updated.
class GraphExecutable {
 public:
  virtual ~GraphExecutable() = default;
  /// Adds a graph and returns its number; the instantiated one is number 0. Returns nothing if the
  /// graph needs an executable of its own. Fails as `instantiate` does.
  virtual Result<std::optional<std::size_t>> add(const RecordedGraph& graph) = 0;
  /// Runs all nodes of a graph, once or in a loop, and waits for them. Fails with PW1253 if the
  /// device fails; the device is unusable afterwards.
  virtual Status replay(std::size_t number) = 0;
  Status replay() { return replay(0); }
  /// Returns the number of the graph that replays without an update.
  [[nodiscard]] virtual std::size_t current() const = 0;
};

struct DeviceMemory {
  std::int64_t free = 0, total = 0;  ///< bytes
};

/// The driver's handle of a queue of launches; 0: the default stream.
using Stream = std::uint64_t;

/// A launch with fixed sizes, for any addresses. Thread-safe.
class StreamLaunch {
 public:
  virtual ~StreamLaunch() = default;
  /// Enqueues the launch without waiting for it. `tensors`: the node's reads, then its writes.
  virtual Status enqueue(std::span<const Address> tensors, Stream stream) const = 0;
};

class Driver {
 public:
  virtual ~Driver() = default;
  /// Returns the device's name: "NVIDIA H200", or "the host".
  [[nodiscard]] virtual std::string device() const = 0;
  /// Returns the architecture for tuning and compiling, "sm_90"; the emulator returns the one that
  /// it emulates.
  [[nodiscard]] virtual std::string arch() const = 0;
  [[nodiscard]] virtual DeviceMemory memory() const = 0;
  /// Returns true if library calls of every kind, including attention, can be launched and
  /// captured.
  [[nodiscard]] virtual bool calls_libraries() const = 0;
  /// Reports whether a product with tensors of these extents can be a library call; addresses are
  /// ignored.
  [[nodiscard]] virtual LibraryAnswer calls_library(const ProductCall& product,
                                                    std::span<const DeviceTensor> reads,
                                                    const DeviceTensor& result) const;
  /// Returns the workspace bytes of a library call; concurrent calls must not share a workspace.
  [[nodiscard]] virtual std::int64_t workspace_bytes() const { return 0; }
  /// Allocates memory aligned to 256 bytes. Fails with PW1250 if memory is short.
  [[nodiscard]] virtual Result<Address> allocate(std::int64_t bytes) = 0;
  virtual void release(Address address) = 0;
  virtual Status write(Address to, const void* from, std::int64_t bytes) = 0;
  virtual Status read(void* to, Address from, std::int64_t bytes) = 0;
  /// Sets all bytes to one value.
  virtual Status fill(Address at, int byte, std::int64_t bytes) = 0;
  /// Writes a number while a graph may be running, and does not wait for the graph. Thread-safe.
  virtual Status signal(Address at, std::int64_t value) = 0;
  /// Loads kernels by name; kernels that are already loaded cost nothing.
  virtual Status load(std::span<const Kernel> kernels) = 0;
  /// Instantiates a graph. Fails with PW1251 if two nodes touch the same bytes and no path orders
  /// them, with PW1252 if a node touches unallocated memory, and with PW1250 if the device does not
  /// run loops.
  virtual Result<std::unique_ptr<GraphExecutable>> instantiate(RecordedGraph graph) = 0;
  /// Launches one node and waits for its end.
  virtual Status launch(const LaunchNode& node) = 0;
  /// Prepares a node for any addresses; its own are ignored. Fails with PW1223 if its kernel was
  /// not loaded, and with PW1261 if no library supports a product.
  virtual Result<std::unique_ptr<StreamLaunch>> prepare(LaunchNode node) = 0;
  /// Enqueues setting all bytes to one value.
  virtual Status fill_on(Stream stream, Address at, int byte, std::int64_t bytes) = 0;
  /// Makes the device current in the calling thread, for enqueuing.
  virtual Status enter() { return {}; }
  /// Runs an op between graphs, on tensors in device memory.
  virtual Status run(Executable& executable, std::span<const DeviceTensor> inputs,
                     std::span<const DeviceTensor> outputs, const RunContext& context) = 0;
};

}  // namespace pw::cuda
