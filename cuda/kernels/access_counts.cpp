// Evaluates access trees. The number of threads that reach a node is the product of the shares of
// its enclosing loops; it is tracked for all threads, and for those that have a row and a pass.
//
// Invariant: a count is exact or absent. A loop without branches multiplies the counts of its body;
// a loop with branches is enumerated pass by pass, so that each condition has a value; a value that
// is read from memory makes the count absent. The cost is linear in the tree, times the passes of
// enumerated loops.
#include "cuda/kernels/access_counts.hpp"

#include <algorithm>
#include <bit>
#include <map>

#include "base/division.hpp"

namespace pw::cuda {
namespace {

using Kind = AccessNode::Kind;
using Share = AccessNode::Share;
using rows::Index;
using rows::IndexId;
using rows::VarId;

constexpr std::int64_t kColumns = 8, kMostLanes = 256, kWarp = 32;

/// Threads that reach a node: all, and those with a row and a pass.
struct Reached {
  std::int64_t all = 0, live = 0;
};

/// Returns the index of an access width in AccessesByWidth: log2 of the bytes.
std::size_t width_index(std::int64_t bytes) {
  return static_cast<std::size_t>(std::countr_zero(static_cast<std::uint64_t>(bytes)));
}

/// Returns the lanes of the reduction tree for a width.
std::int64_t tree_lanes(std::int64_t width) {
  std::int64_t lanes = 1;
  while (lanes < kMostLanes && lanes * kColumns < width) lanes *= 2;
  return lanes;
}

/// Returns true if nodes contain a branch, so that the passes of their loop must be enumerated.
bool branches(const std::vector<AccessNode>& nodes) {
  return std::any_of(nodes.begin(), nodes.end(), [](const AccessNode& n) {
    return n.kind == Kind::branch || branches(n.first);
  });
}

/// Walks the tree once. `values_` binds the variables of enumerated loops; `known_` becomes false
/// when a condition or extent has no value.
class Counter {
 public:
  Counter(const AccessTree& tree, std::size_t arguments, std::span<const std::int64_t> params)
      : tree_(tree), params_(params) {
    out_.arguments.resize(arguments);
  }

  std::optional<LaunchAccesses> run() {
    if (params_.empty()) return std::nullopt;
    const std::int64_t rows = params_.front(), blocks = ceil_div(rows, tree_.rows_per_block);
    const std::int64_t each = std::int64_t{tree_.team} * tree_.column_blocks;
    const std::int64_t all = blocks * tree_.rows_per_block * each;
    if (!branches(tree_.nodes) || !tree_.row) {
      visit(tree_.nodes, {all, rows * each});
    } else {
      for (std::int64_t r = 0; r < rows && known_; ++r) with(*tree_.row, r, {each, each});
      if (rows > 0) with(*tree_.row, rows - 1, {all - rows * each, 0});
    }
    if (!known_) return std::nullopt;
    return std::move(out_);
  }

 private:
  void with(VarId var, std::int64_t value, Reached reached) {
    if (reached.all == 0) return;
    values_[var] = value;
    visit(tree_.nodes, reached);
    values_.erase(var);
  }

  void visit(const std::vector<AccessNode>& nodes, Reached reached) {
    for (const AccessNode& n : nodes) {
      switch (n.kind) {
        case Kind::access: access(n, reached); break;
        case Kind::loop: loop(n, reached); break;
        case Kind::branch: branch(n, reached); break;
      }
    }
  }

  /// Adds an access. An exchange of a reduction counts only if its lanes span more than one warp.
  void access(const AccessNode& n, Reached reached) {
    std::int64_t times = (n.live ? reached.live : reached.all) / n.one_of * n.times;
    if (n.var.valid()) {
      const std::int64_t lanes = tree_lanes(extent(n.var));
      times = lanes > kWarp ? times * (lanes / kWarp) : 0;
    }
    if (n.space == Space::shared)
      out_.add_shared(n.write, n.bytes, times);
    else
      out_.add_global(n.argument, n.write, n.bytes, times, n.uniform ? tree_.team : 1);
  }

  /// Visits a loop. `idle` counts threads of a team part without a pass that execute the body
  /// anyway, because barriers inside need them; they are reached but not live.
  void loop(const AccessNode& n, Reached reached) {
    const std::int64_t passes = extent(n.var);
    const std::int64_t lanes = n.lanes > 0 ? n.lanes : tree_lanes(passes);
    const std::int64_t of = n.share == Share::serial ? 1 : lanes * n.blocks;
    const Reached one{reached.all / of, reached.live / of};
    const std::int64_t times = n.share == Share::chunks ? ceil_div(passes, kColumns) : passes;
    const std::int64_t idle =
        n.share == Share::parts && !n.live
            ? reached.all / n.blocks * ceil_div(passes, lanes) - one.all * passes
            : 0;
    if (!branches(n.first)) return visit(n.first, {one.all * times + idle, one.live * times});
    for (std::int64_t i = 0; i < times && known_; ++i) pass(n, i, one);
    if (idle > 0) pass(n, passes - 1, {idle, 0});
  }

  void pass(const AccessNode& n, std::int64_t i, Reached reached) {
    values_[n.var] = i;
    visit(n.first, reached);
    values_.erase(n.var);
  }

  void branch(const AccessNode& n, Reached reached) {
    const auto index = value(n.index), bound = value(n.bound);
    if (!index || !bound) {
      known_ = false;
      return;
    }
    visit(*index < *bound ? n.first : n.second, reached);
  }

  /// Returns the extent of a loop; 0, and an absent count, if it depends on data.
  std::int64_t extent(VarId var) {
    const auto out = value(tree_.indices.extent(var));
    known_ = known_ && out;
    return std::max<std::int64_t>(out.value_or(0), 0);
  }

  /// Evaluates an index expression; nothing if it reads memory or divides by zero.
  [[nodiscard]] std::optional<std::int64_t> value(IndexId id) const {
    const Index& node = tree_.indices[id];
    if (!node.a.valid()) return leaf(node);
    const auto a = value(node.a), b = value(node.b);
    if (!a || !b) return std::nullopt;
    switch (node.kind) {
      case Index::Kind::add: return *a + *b;
      case Index::Kind::sub: return *a - *b;
      case Index::Kind::mul: return *a * *b;
      case Index::Kind::div: return *b == 0 ? std::nullopt : std::optional(*a / *b);
      case Index::Kind::mod: return *b == 0 ? std::nullopt : std::optional(*a % *b);
      case Index::Kind::clamp: return *a < 0 ? 0 : std::min(*a, *b - 1);
      case Index::Kind::constant:
      case Index::Kind::variable:
      case Index::Kind::param:
      case Index::Kind::slot: break;
    }
    return std::nullopt;
  }

  [[nodiscard]] std::optional<std::int64_t> leaf(const Index& node) const {
    const auto at = static_cast<std::size_t>(node.constant);
    if (node.kind == Index::Kind::constant) return node.constant;
    if (node.kind == Index::Kind::param && at < params_.size()) return params_[at];
    if (node.kind != Index::Kind::variable) return std::nullopt;  // read from memory
    const auto found = values_.find(VarId(at));
    return found == values_.end() ? std::nullopt : std::optional(found->second);
  }

  const AccessTree& tree_;
  std::span<const std::int64_t> params_;
  LaunchAccesses out_;
  std::map<VarId, std::int64_t> values_;
  bool known_ = true;
};

}  // namespace

void LaunchAccesses::add_global(std::size_t argument, bool write, std::int64_t bytes,
                                std::int64_t times, std::int64_t alike) {
  const std::size_t width = width_index(bytes);
  (write ? total.global_writes : total.global_reads).times[width] += times;
  arguments.at(argument).times[width] += times / alike;
}

void LaunchAccesses::add_shared(bool write, std::int64_t bytes, std::int64_t times) {
  (write ? total.shared_writes : total.shared_reads).times[width_index(bytes)] += times;
}

std::optional<LaunchAccesses> count_accesses(const AccessTree& tree, std::size_t arguments,
                                             std::span<const std::int64_t> params,
                                             std::span<const AccessesByData::Array> data) {
  if (tree.by_data && data.size() != tree.by_data->arrays.size()) return std::nullopt;
  auto out = Counter(tree, arguments, params).run();
  if (out && tree.by_data) tree.by_data->add(params.front(), data, *out);
  return out;
}

}  // namespace pw::cuda
