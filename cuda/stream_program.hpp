// Runs a whole graph as launches on a caller's stream, in memory that the caller owns. A call
// waits for nothing, allocates nothing, and copies nothing between host and device, so that a
// capture of the stream may contain it.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cuda/piece_program.hpp"

namespace pw::cuda {

/// A node that no kernel computes, or whose kernel would not report a bad index.
struct UnsupportedNode {
  std::string node, reason;
};

/// The launches of a program for fixed sizes. Immutable, so that calls may run concurrently.
class StreamCall {
 public:
  /// Returns the memory between launches, in bytes. Each running call needs its own.
  [[nodiscard]] std::int64_t arena_bytes() const { return arena_bytes_; }
  [[nodiscard]] const std::vector<Extents>& outputs() const { return outputs_; }
  [[nodiscard]] std::size_t launches() const { return launches_.size(); }
  /// Enqueues all launches. Addresses are aligned to 16 bytes, in the graph's order; that of the
  /// arena to 256 bytes.
  Status run(Driver& driver, std::span<const Address> inputs, std::span<const Address> outputs,
             Address arena, Stream stream) const;

 private:
  friend class StreamProgram;
  /// An address: that of an input, an output, or the arena, plus an offset; or an absolute one.
  struct Operand {
    Place::Kind kind = Place::Kind::input;
    std::size_t index = 0;
    Address offset = 0;
  };
  struct Launch {
    std::unique_ptr<StreamLaunch> launch;
    std::vector<Operand> operands;
  };
  std::vector<Launch> launches_;
  std::vector<Extents> outputs_;
  std::int64_t arena_bytes_ = 0;
  /// Bytes at the start of the arena that are 0 between launches.
  std::int64_t zero_bytes_ = 0;
};

class StreamProgram {
 public:
  /// Returns the nodes that a program of the graph could not contain, in order. `sizes`: see
  /// ProgramOptions.
  static std::vector<UnsupportedNode> unsupported(const Graph& graph, const Driver& driver,
                                                  const std::vector<Symbols>& sizes);
  /// Compiles a graph and loads its kernels. Fails with PW1201 if a node is unsupported. The driver
  /// must outlive the program.
  static Result<std::unique_ptr<StreamProgram>> make(const Graph& graph, Driver& driver,
                                                     const std::vector<Symbols>& sizes);
  ~StreamProgram();
  StreamProgram(const StreamProgram&) = delete;
  StreamProgram& operator=(const StreamProgram&) = delete;

  /// Returns the launches for these sizes, prepared on first use. Thread-safe.
  Result<std::shared_ptr<const StreamCall>> at(const Symbols& symbols);
  [[nodiscard]] Driver& driver() const { return driver_; }
  [[nodiscard]] const std::vector<Kernel>& kernels() const { return program_.kernels; }
  /// Returns what each kernel computes, by its name: "OP: VALUES", with the values that it writes.
  [[nodiscard]] std::map<std::string, std::string> kernel_labels() const;
  /// Returns a line for people on what was compiled, and notes.
  [[nodiscard]] std::vector<std::string> summary() const;

 private:
  class Preparation;
  StreamProgram(const Graph& graph, Driver& driver) : graph_(graph), driver_(driver) {}
  Status load_literals();
  [[nodiscard]] std::string_view value_name(const Place& place) const;

  Graph graph_;
  Driver& driver_;
  PieceProgram program_;
  std::vector<Address> literals_;
  std::mutex mutex_;
  std::map<Symbols, std::shared_ptr<const StreamCall>> calls_;
};

}  // namespace pw::cuda
