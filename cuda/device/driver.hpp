// The seam to a device: memory, and graphs of launches that are recorded once and replayed. A
// recorded graph is plain data. Two implementations: the CUDA driver, and one that runs the same
// kernels on the host (host_driver.hpp).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "backends/backend.hpp"
#include "cuda/kernels/emitter.hpp"

namespace pw::cuda {

/// Of device memory, in bytes; 0 is none.
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

/// How a matrix product y = a · b reads its operands, by the numbers of a node's reads. All of them
/// are row-major; their extents and dtypes say the rest.
struct ProductCall {
  std::size_t a = 0, b = 1;
  bool b_transposed = false;                    ///< b is stored as [columns, depth]
  std::optional<std::size_t> bias;              ///< added: one element, or one a column
  std::optional<std::size_t> a_scale, b_scale;  ///< factors: one element, or one a row, a column
};

/// An op that a library runs: a matrix product.
struct LibraryCall {
  std::string op;
  std::shared_ptr<Executable> on_host;  ///< the call as a graph of its own
  RunContext context;
  std::optional<ProductCall> product;
};

/// Whether a library is called for a product; where there is one that is not, why.
struct LibraryAnswer {
  bool yes = false;
  std::string why;
};

/// One node of a recorded graph.
struct LaunchNode {
  enum class Kind : std::uint8_t { kernel, library, copy };
  Kind kind = Kind::kernel;
  std::string name;  ///< of the kernel, or the library's op
  /// A kernel's pointers: reads, then writes. A library call writes its result, then the workspace.
  std::vector<DeviceTensor> reads, writes;
  std::vector<std::int64_t> params;            ///< of a kernel: rows first
  std::shared_ptr<const LibraryCall> library;  ///< of a library call
  std::vector<std::size_t> after;              ///< nodes that must have ended, ascending
};

[[nodiscard]] LaunchCounts counted(const LaunchNode& node);

struct RecordedGraph {
  std::string name;  ///< "piece_3 of 16 tokens"
  std::vector<LaunchNode> nodes;
};

/// Whether both touch the same bytes, one of them writing.
[[nodiscard]] bool conflict(const LaunchNode& a, const LaunchNode& b);

/// Which nodes must have ended before a node begins, by edges and what they imply. Edges lead from
/// lower numbers to higher ones.
class Ancestors {
 public:
  explicit Ancestors(const RecordedGraph& graph);
  [[nodiscard]] bool has(std::size_t node, std::size_t before) const {
    return (bits_[node * words_ + before / 64] >> (before % 64) & 1) != 0;
  }
  /// An edge more, to a node that none leads from yet.
  void add(std::size_t node, std::size_t before);

 private:
  std::size_t words_;
  std::vector<std::uint64_t> bits_;
};

/// Gives the nodes their edges: those in conflict stay in the order they stand in. No edge that
/// others imply.
void order_nodes(RecordedGraph& graph);

/// A graph made ready to run.
class GraphExecutable {
 public:
  virtual ~GraphExecutable() = default;
  /// Runs all nodes and waits for them. PW1253 where the device fails; nothing works then.
  virtual Status replay() = 0;
};

struct DeviceMemory {
  std::int64_t free = 0, total = 0;  ///< bytes
};

class Driver {
 public:
  virtual ~Driver() = default;
  /// "NVIDIA H200", or "the host".
  [[nodiscard]] virtual std::string device() const = 0;
  /// "sm_90": what kernels are tuned and compiled for; the emulator's is the one it stands for.
  [[nodiscard]] virtual std::string arch() const = 0;
  [[nodiscard]] virtual DeviceMemory memory() const = 0;
  /// Whether library calls of every kind can be launched and captured, attention too.
  [[nodiscard]] virtual bool calls_libraries() const = 0;
  /// Whether those of this product can, with tensors of these extents; addresses do not matter.
  [[nodiscard]] virtual LibraryAnswer calls_library(const ProductCall& product,
                                                    std::span<const DeviceTensor> reads,
                                                    const DeviceTensor& result) const;
  /// Bytes that a library call needs to write besides its result; calls that may run at the same
  /// time must not share them.
  [[nodiscard]] virtual std::int64_t workspace_bytes() const { return 0; }
  /// Aligned to 256 bytes. PW1250 where there is not as much.
  [[nodiscard]] virtual Result<Address> allocate(std::int64_t bytes) = 0;
  virtual void release(Address address) = 0;
  virtual Status write(Address to, const void* from, std::int64_t bytes) = 0;
  virtual Status read(void* to, Address from, std::int64_t bytes) = 0;
  /// All bytes the same.
  virtual Status fill(Address at, int byte, std::int64_t bytes) = 0;
  /// Makes kernels known by their names; those that are known already cost nothing.
  virtual Status load(std::span<const Kernel> kernels) = 0;
  /// PW1251: two nodes touch the same bytes, and no path orders them; PW1252: a node touches memory
  /// that is not allocated.
  virtual Result<std::unique_ptr<GraphExecutable>> instantiate(RecordedGraph graph) = 0;
  /// One node by itself; returns when it has ended.
  virtual Status launch(const LaunchNode& node) = 0;
  /// An op between graphs, on tensors in device memory.
  virtual Status run(Executable& executable, std::span<const DeviceTensor> inputs,
                     std::span<const DeviceTensor> outputs, const RunContext& context) = 0;
};

}  // namespace pw::cuda
