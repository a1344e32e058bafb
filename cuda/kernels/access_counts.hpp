// Predicts how often a launch of a kernel touches memory. The emitter produces a tree of accesses,
// loops and branches in addition to the kernel's text. `count_accesses` evaluates the tree for the
// sizes of a launch and, if loop lengths are data, for the arrays that hold them. Invariant: the
// prediction equals the emulator's count of actual accesses (host_driver.hpp). The cost is that of
// a walk over the tree.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "codegen/rowprogram/index.hpp"

namespace pw::cuda {

enum class Space : std::uint8_t { global, shared };

/// Accesses of one kind, by the bytes that one thread moves at once: 1, 2, 4, 8 and 16.
struct AccessesByWidth {
  static constexpr std::size_t kWidths = 5;
  std::array<std::int64_t, kWidths> times{};
  [[nodiscard]] std::int64_t bytes() const {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < kWidths; ++i) sum += times[i] << i;
    return sum;
  }
  AccessesByWidth& operator+=(const AccessesByWidth& other) {
    for (std::size_t i = 0; i < kWidths; ++i) times[i] += other.times[i];
    return *this;
  }
  friend bool operator==(const AccessesByWidth&, const AccessesByWidth&) = default;
};

struct AccessCounts {
  AccessesByWidth global_reads, global_writes, shared_reads, shared_writes;
  AccessCounts& operator+=(const AccessCounts& other) {
    global_reads += other.global_reads;
    global_writes += other.global_writes;
    shared_reads += other.shared_reads;
    shared_writes += other.shared_writes;
    return *this;
  }
  /// Returns the accesses of single threads, of any width.
  [[nodiscard]] std::int64_t times() const {
    std::int64_t sum = 0;
    for (const auto* kind : {&global_reads, &global_writes, &shared_reads, &shared_writes})
      for (const std::int64_t t : kind->times) sum += t;
    return sum;
  }
  friend bool operator==(const AccessCounts&, const AccessCounts&) = default;
};

/// A node of the tree. Executions are counted in threads.
struct AccessNode {
  enum class Kind : std::uint8_t { access, loop, branch };
  enum class Share : std::uint8_t {
    serial,   ///< each thread runs all passes
    columns,  ///< each of `lanes` threads has one column at a time
    chunks,   ///< the same, once for each 8 columns
    parts,    ///< `lanes` parts of the team have one pass each; the last may have none
  };
  Kind kind = Kind::access;
  // For an access.
  Space space = Space::global;
  bool write = false;
  int bytes = 0;             ///< bytes that a thread moves at once
  std::size_t argument = 0;  ///< argument of the kernel, in global memory
  std::int64_t times = 1;    ///< accesses by each thread that reaches the node
  std::int64_t one_of = 1;   ///< only one of so many threads reaches the node
  bool live = false;         ///< only threads with a row and a pass reach it; also for a loop
  bool uniform = false;      ///< all threads of a team touch the same element
  // For a loop. An access with a variable is an exchange between lanes at distances of multiples of
  // 32.
  Share share = Share::serial;
  rows::VarId var;
  std::int64_t lanes = 1;   ///< 0: as many as the reduction tree has for the loop's width
  std::int64_t blocks = 1;  ///< blocks that share the passes
  // For a branch.
  rows::IndexId index, bound;
  std::vector<AccessNode> first, second;  ///< first: also the body of a loop

  [[nodiscard]] static AccessNode of_global(std::size_t argument, bool write, std::int64_t bytes) {
    AccessNode out;
    out.argument = argument;
    out.write = write;
    out.bytes = static_cast<int>(bytes);
    return out;
  }
  [[nodiscard]] static AccessNode of_shared(bool write, std::int64_t bytes) {
    AccessNode out = of_global(0, write, bytes);
    out.space = Space::shared;
    return out;
  }
};

struct LaunchAccesses {
  AccessCounts total;
  /// Accesses to global memory by argument; an access that is equal for all threads of a team
  /// counts once for the team.
  std::vector<AccessesByWidth> arguments;
  /// Adds `times` accesses of one kind by threads that move `bytes` each. `alike`: number of
  /// threads that touch the same element.
  void add_global(std::size_t argument, bool write, std::int64_t bytes, std::int64_t times,
                  std::int64_t alike = 1);
  void add_shared(bool write, std::int64_t bytes, std::int64_t times);
};

/// Accesses of a kernel whose loop lengths are data.
struct AccessesByData {
  using Array = std::span<const std::int64_t>;
  std::vector<std::size_t> arrays;  ///< arguments with the lengths, of dtype i64
  /// Adds a launch's accesses, computed from its params and the arrays' contents at its start.
  std::function<void(std::int64_t rows, std::span<const Array>, LaunchAccesses&)> add;
};

struct AccessTree {
  rows::Indices indices;
  std::optional<rows::VarId> row;  ///< a variable of the indices
  int team = 1, rows_per_block = 1, column_blocks = 1;
  std::vector<AccessNode> nodes;
  std::optional<AccessesByData> by_data;  ///< in addition to the nodes
};

/// Returns the accesses of a launch with these values of `Kernel::params`, rows first, and the
/// arrays that the tree requires. Nothing if an array is missing, or if a branch depends on other
/// data in memory.
[[nodiscard]] std::optional<LaunchAccesses> count_accesses(
    const AccessTree& tree, std::size_t arguments, std::span<const std::int64_t> params,
    std::span<const AccessesByData::Array> data = {});

/// Builds the tree while text is emitted.
class AccessRecorder {
 public:
  void add(AccessNode access) { open().push_back(std::move(access)); }
  template <class Body>
  void loop(AccessNode node, const Body& body) {
    node.kind = AccessNode::Kind::loop;
    inside(node.first, body);
    if (!node.first.empty()) add(std::move(node));
  }
  template <class First, class Second>
  void branch(rows::IndexId index, rows::IndexId bound, const First& first, const Second& second) {
    AccessNode node;
    node.kind = AccessNode::Kind::branch;
    node.index = index;
    node.bound = bound;
    inside(node.first, first);
    inside(node.second, second);
    if (!node.first.empty() || !node.second.empty()) add(std::move(node));
  }
  [[nodiscard]] std::vector<AccessNode> take() { return std::exchange(root_, {}); }

 private:
  std::vector<AccessNode>& open() { return within_ != nullptr ? *within_ : root_; }
  template <class Body>
  void inside(std::vector<AccessNode>& nodes, const Body& body) {
    std::vector<AccessNode>* const before = std::exchange(within_, &nodes);
    body();
    within_ = before;
  }
  std::vector<AccessNode> root_;
  std::vector<AccessNode>* within_ = nullptr;
};

}  // namespace pw::cuda
