// How often a launch of a kernel touches memory, known before it runs. The emitter leaves a tree of
// a kernel's accesses, loops and branches beside its text; `count_accesses` evaluates it for the
// sizes of a launch, and where loops go by lengths that are data, for the arrays that hold them.
// The emulator counts what really happens (host_driver.hpp), and both are equal.
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

/// Accesses of one kind, by what one thread moves at once: 1, 2, 4, 8 and 16 bytes.
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
  /// Accesses of single threads, of any width.
  [[nodiscard]] std::int64_t times() const {
    std::int64_t sum = 0;
    for (const auto* kind : {&global_reads, &global_writes, &shared_reads, &shared_writes})
      for (const std::int64_t t : kind->times) sum += t;
    return sum;
  }
  friend bool operator==(const AccessCounts&, const AccessCounts&) = default;
};

/// A member of the tree. How often it is reached is counted in threads.
struct AccessNode {
  enum class Kind : std::uint8_t { access, loop, branch };
  enum class Share : std::uint8_t {
    serial,   ///< each thread runs all passes
    columns,  ///< a thread of `lanes` has one column of so many
    chunks,   ///< the same, once for each 8 columns
    parts,    ///< `lanes` parts of the team take a pass each; the last are there for no pass
  };
  Kind kind = Kind::access;
  // Of an access.
  Space space = Space::global;
  bool write = false;
  int bytes = 0;             ///< that a thread moves at once
  std::size_t argument = 0;  ///< of the kernel; of global memory
  std::int64_t times = 1;    ///< a thread that gets there
  std::int64_t one_of = 1;   ///< only one of so many threads gets there
  bool live = false;         ///< only those that have a row, and a pass; of a loop too
  bool uniform = false;      ///< all threads of a team touch the same element
  // Of a loop. An access with a variable is a meeting of its lanes, 32 apart.
  Share share = Share::serial;
  rows::VarId var;
  std::int64_t lanes = 1;   ///< 0: what the reduction tree has for the loop's width
  std::int64_t blocks = 1;  ///< that share the passes
  // Of a branch.
  rows::IndexId index, bound;
  std::vector<AccessNode> first, second;  ///< first: of a loop too

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
  /// By argument, of global memory; what all threads of a team touch alike counts once a team.
  std::vector<AccessesByWidth> arguments;
  /// Of one kind, `times` by threads that move so many bytes each. `alike`: so many of them touch
  /// the same element.
  void add_global(std::size_t argument, bool write, std::int64_t bytes, std::int64_t times,
                  std::int64_t alike = 1);
  void add_shared(bool write, std::int64_t bytes, std::int64_t times);
};

/// Of a kernel whose loops go by what it reads.
struct AccessesByData {
  using Array = std::span<const std::int64_t>;
  std::vector<std::size_t> arrays;  ///< the arguments that they go by, of dtype i64
  /// Adds a launch's accesses: by its params, and by the arrays' elements when it begins.
  std::function<void(std::int64_t rows, std::span<const Array>, LaunchAccesses&)> add;
};

struct AccessTree {
  rows::Indices indices;
  std::optional<rows::VarId> row;  ///< a variable of the indices
  int team = 1, rows_per_block = 1, column_blocks = 1;
  std::vector<AccessNode> nodes;
  std::optional<AccessesByData> by_data;  ///< besides the nodes
};

/// Of a launch with these values of `Kernel::params`, rows first, and the arrays that the tree asks
/// for. Nothing where those are absent, or where a branch depends on anything else that is read
/// from memory.
[[nodiscard]] std::optional<LaunchAccesses> count_accesses(
    const AccessTree& tree, std::size_t arguments, std::span<const std::int64_t> params,
    std::span<const AccessesByData::Array> data = {});

/// Collects the tree while text is written.
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
