#include "backends/collectives.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "backends/interpreter/kernels.hpp"
#include "base/try.hpp"
#include "graph/named_groups.hpp"

namespace pw {
namespace {

constexpr std::int64_t kRun = 512;

/// Returns part i of n equal parts along an axis, as a view.
Array part_of(const Array& whole, std::size_t axis, std::int64_t i, std::int64_t n) {
  Array part = whole;
  part.extents[axis] /= n;
  part.data = whole.at(i * part.extents[axis] * whole.strides[axis]);
  return part;
}

/// Returns a sum that wraps around for integers.
template <class T>
T wrapped_sum(T x, T y) {
  if constexpr (std::is_integral_v<T>) {
    using Unsigned = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<Unsigned>(x) + static_cast<Unsigned>(y));
  } else {
    return x + y;
  }
}

template <class T>
void add_up(std::span<const Array> addends, DType declared, const Array& sum) {
  std::vector<Extents> strides;
  for (const Array& x : addends) strides.push_back(x.strides);
  strides.push_back(sum.strides);
  T total[kRun], next[kRun];
  for_each_run(sum.extents, strides, kRun, [&](const Run& run) {
    std::fill(total, total + run.length, T(0));
    for (std::size_t r = 0; r < addends.size(); ++r) {
      const Array& x = addends[r];
      load_run(x.dtype, x.at(run.offsets[r]), run.steps[r], run.length, next);
      for (std::int64_t i = 0; i < run.length; ++i) total[i] = wrapped_sum(total[i], next[i]);
    }
    store_declared(declared, sum, run.offsets.back(), run.steps.back(), run.length, total);
  });
}

Array sum_of(std::span<const Call> group) {
  const Call& first = group.front();
  if (group.size() == 1) return first.operand(0);
  const DType declared = first.operand_dtype(0);
  Array sum = make_array(first.storage(declared), first.operand(0).extents);
  std::vector<Array> addends;
  for (const Call& call : group) addends.push_back(call.operand(0));
  add_in_order(addends, declared, sum);
  return sum;
}

/// Fails if the axis of `whole` does not have `ranks` times the elements of that of a part.
Status check_parts(const Call& call, const Extents& whole, const Extents& part, std::size_t axis,
                   std::size_t ranks) {
  Extents expected = part;
  expected[axis] *= static_cast<std::int64_t>(ranks);
  if (expected == whole) return {};
  return fail_call(call, "PW1203",
                   fmt::format("{} elements along axis {} are not {} parts of {}", whole[axis],
                               axis, ranks, part[axis]),
                   "run a token count that is a multiple of the ranks");
}

Status all_reduce(std::span<Call> group) {
  const Array sum = sum_of(group);
  for (Call& call : group) call.results[0] = sum;
  return {};
}

/// Stores on each rank its part of `whole(rank)`.
template <class F>
Status scatter(std::span<Call> group, F whole) {
  const auto n = static_cast<std::int64_t>(group.size());
  for (std::int64_t i = 0; i < n; ++i) {
    Call& call = group[static_cast<std::size_t>(i)];
    const Array& x = whole(call);
    const std::size_t axis = call.axis("dim", 0, x.rank());
    if (auto fits = check_parts(call, x.extents, call.extents[0], axis, group.size()); !fits)
      return fits;
    call.results[0] = part_of(x, axis, i, n);
  }
  return {};
}

Status reduce_scatter(std::span<Call> group) {
  const Array sum = sum_of(group);
  return scatter(group, [&](const Call&) -> const Array& { return sum; });
}

Status shard(std::span<Call> group) {
  return scatter(group, [](const Call& call) -> const Array& { return call.operand(0); });
}

Status all_gather(std::span<Call> group) {
  Call& first = group.front();
  const std::size_t axis = first.axis("dim", 0, first.operand(0).rank());
  const auto n = static_cast<std::int64_t>(group.size());
  if (auto fits =
          check_parts(first, first.extents[0], first.operand(0).extents, axis, group.size());
      !fits)
    return fits;
  Array whole = first.operand(0);
  if (n > 1) {
    whole = first.result();
    for (std::int64_t i = 0; i < n; ++i)
      copy(group[static_cast<std::size_t>(i)].operand(0), part_of(whole, axis, i, n));
  }
  for (Call& call : group) call.results[0] = whole;
  return {};
}

constexpr std::pair<Primitive, Collective> kCollectives[] = {
    {Primitive::all_reduce, all_reduce},
    {Primitive::reduce_scatter, reduce_scatter},
    {Primitive::all_gather, all_gather},
    {Primitive::shard, shard},
};

}  // namespace

void add_in_order(std::span<const Array> addends, DType declared, const Array& sum) {
  if (is_float(declared)) {
    add_up<double>(addends, declared, sum);
  } else {
    add_up<std::int64_t>(addends, declared, sum);
  }
}

Collective find_collective(Primitive op) {
  for (const auto& [primitive, collective] : kCollectives) {
    if (primitive == op) return collective;
  }
  return nullptr;
}

const std::string* group_name(const Graph& graph, NodeId node) {
  const Attribute* group = graph.attribute(node, "group");
  return group == nullptr ? nullptr : std::get_if<std::string>(group);
}

Result<RankGroups> stated_groups(const Graph& graph) {
  RankGroups groups;
  if (!may_size_groups(graph)) return groups;
  for (const NamedGroup& named : named_groups(graph)) {
    if (named.ranks == 0) continue;
    const auto [known, added] = groups.emplace(named.group, RankGroup{named.ranks, 1});
    if (added || known->second.size == named.ranks) continue;
    return fail(error_in(
        fmt::format("graph {} at node {}", graph.name, graph.node_name(named.node)), "PW1208",
        fmt::format("states that group `{}` has {} ranks, but elsewhere in the graph it has {}",
                    named.group, named.ranks, known->second.size)));
  }
  return groups;
}

RankGroups groups_in(const Step& step, const RankGroups& stated) {
  RankGroups out = step.groups == nullptr ? RankGroups() : *step.groups;
  out.insert(stated.begin(), stated.end());
  return out;
}

RankGroup group_of(const Graph& graph, NodeId node, const RankGroups& stated) {
  if (const std::int64_t ranks = stated_ranks(graph, node); ranks != 0) return {ranks, 1};
  const std::string* name = group_name(graph, node);
  const auto known = name == nullptr ? stated.end() : stated.find(*name);
  return known == stated.end() ? RankGroup() : known->second;
}

namespace {

/// Orders the calls by group, so that those of a strided group are adjacent.
Status run_group(Collective collective, std::span<Call> ranks, std::size_t first, RankGroup group) {
  const auto size = static_cast<std::size_t>(group.size),
             stride = static_cast<std::size_t>(group.stride);
  if (stride == 1) return collective(ranks.subspan(first, size));
  std::vector<Call> members;
  for (std::size_t i = 0; i < size; ++i) members.push_back(ranks[first + i * stride]);
  auto done = collective(members);
  for (std::size_t i = 0; i < size; ++i)
    ranks[first + i * stride].results = std::move(members[i].results);
  return done;
}

/// Returns entry i along the first axis, without that axis, as a view.
Array entry(const Array& x, std::int64_t i) {
  Array out = part_of(x, 0, i, x.extents[0]);
  out.extents.erase(out.extents.begin());
  out.strides.erase(out.strides.begin());
  return out;
}

/// Returns the parts of an array along an axis, in order.
Array parts_in_order(const Array& x, std::size_t axis, std::int64_t n) {
  Extents extents = x.extents;
  extents[axis] /= n;
  extents.insert(extents.begin(), n);
  const Array packed = make_array(x.dtype, extents);
  for (std::int64_t i = 0; i < n; ++i) {
    copy(part_of(x, axis, i, n), entry(packed, i));
  }
  return packed;
}

/// Describes a call for messages.
std::string in_words(const Call& call, const std::string& group) {
  const Array& x = call.operand(0);
  return fmt::format("{} at node {} (group {}, {} bytes)", call.graph.op_of(call.node).name,
                     call.graph.node_name(call.node), group.empty() ? "of all" : group,
                     x.count() * size_of(call.operand_dtype(0)));
}

/// This rank's part of one collective over a group of processes.
class Across {
 public:
  Across(Call& call, RankGroup group, Communicator& others)
      : call_(call), group_(group), others_(others) {}

  Status run(Collective collective) {
    if (collective == shard) return own_part();
    const std::string* name = group_name(call_.graph, call_.node);
    others_.enter(in_words(call_, name == nullptr ? std::string() : *name));
    if (collective == all_reduce) return reduced();
    return collective == reduce_scatter ? scattered() : gathered();
  }

 private:
  [[nodiscard]] std::int64_t ranks() const { return group_.size; }
  [[nodiscard]] DType declared() const { return call_.operand_dtype(0); }
  [[nodiscard]] std::size_t axis(const Array& x) const { return call_.axis("dim", 0, x.rank()); }

  Status own_part() {
    const Array& x = call_.operand(0);
    PW_TRY(check_parts(call_, x.extents, call_.extents[0], axis(x), count()));
    const std::int64_t place = others_.rank() % (group_.size * group_.stride) / group_.stride;
    call_.results[0] = part_of(x, axis(x), place, ranks());
    return {};
  }
  Status reduced() {
    const Array x = contiguous(call_.operand(0));
    call_.results[0] = make_array(call_.storage(declared()), x.extents);
    return others_.all_reduce(x, declared(), call_.results[0], group_);
  }
  Status scattered() {
    const Array& x = call_.operand(0);
    PW_TRY(check_parts(call_, x.extents, call_.extents[0], axis(x), count()));
    call_.results[0] = make_array(call_.storage(declared()), call_.extents[0]);
    return others_.reduce_scatter(parts_in_order(x, axis(x), ranks()), declared(), call_.results[0],
                                  group_);
  }
  Status gathered() {
    const Array x = contiguous(call_.operand(0));
    PW_TRY(check_parts(call_, call_.extents[0], x.extents, axis(x), count()));
    Extents extents = x.extents;
    extents.insert(extents.begin(), ranks());
    const Array packed = make_array(x.dtype, extents);
    PW_TRY(others_.all_gather(x, packed, group_));
    const Array whole = call_.result();
    for (std::int64_t i = 0; i < ranks(); ++i) {
      copy(entry(packed, i), part_of(whole, axis(x), i, ranks()));
    }
    return {};
  }
  [[nodiscard]] std::size_t count() const { return static_cast<std::size_t>(ranks()); }

  Call& call_;
  RankGroup group_;
  Communicator& others_;
};

}  // namespace

Status run_collective(Collective collective, std::span<Call> ranks, RankGroup group,
                      Communicator* others) {
  const auto all = others != nullptr ? others->size() : static_cast<std::int64_t>(ranks.size());
  if (group.size == 0) group = {all, 1};
  const std::int64_t size = group.size, block = size * group.stride;
  if (all == 1 && size != 1) {
    return fail_call(ranks[0], "PW1201",
                     fmt::format("a collective over {} ranks cannot run on one", size),
                     fmt::format("run it on this number of ranks: --ranks {}", size));
  }
  if (size < 1 || group.stride < 1 || all % block != 0) {
    return fail_call(ranks[0], "PW1208",
                     fmt::format("a group of {} ranks does not fit {} ranks", size, all),
                     "run on a multiple of every group's ranks");
  }
  if (others != nullptr && size > 1) return Across(ranks[0], group, *others).run(collective);
  if (others != nullptr) return collective(ranks);
  for (std::int64_t begin = 0; begin < all; begin += block)
    for (std::int64_t i = 0; i < group.stride; ++i)
      if (auto done = run_group(collective, ranks, static_cast<std::size_t>(begin + i), group);
          !done)
        return done;
  return {};
}

namespace {

/// Gives every rank of a group the least number among them; returns true if any changed.
bool spread(const RankGroup& group, std::vector<std::int64_t>& numbers) {
  std::map<std::int64_t, std::int64_t> least;  // by group
  for (std::size_t r = 0; r < numbers.size(); ++r) {
    auto& number =
        least.emplace(group.index(static_cast<std::int64_t>(r)), numbers[r]).first->second;
    number = std::min(number, numbers[r]);
  }
  bool changed = false;
  for (std::size_t r = 0; r < numbers.size(); ++r) {
    const std::int64_t number = least[group.index(static_cast<std::int64_t>(r))];
    changed = changed || number != numbers[r];
    numbers[r] = number;
  }
  return changed;
}

}  // namespace

std::int64_t replica_of(const std::vector<std::string>& over, std::int64_t rank,
                        const RankGroups& groups) {
  constexpr std::int64_t kMost = 4096;  // no run has as many ranks
  std::vector<RankGroup> known;
  std::int64_t block = 1;
  for (const std::string& name : over) {
    const auto found = groups.find(name);
    if (found == groups.end() || found->second.size < 1 || found->second.size > kMost) return 0;
    known.push_back(found->second);
    block = std::lcm(block, found->second.size * found->second.stride);
    if (block > kMost) return 0;
  }
  if (known.empty()) return rank;
  std::vector<std::int64_t> numbers;
  for (std::int64_t r = 0; r < (rank / block + 1) * block; ++r) {
    numbers.push_back(r);
    for (const RankGroup& group : known) numbers.back() = std::min(numbers.back(), group.index(r));
  }
  // A value that is equal in one group is equal in all groups that share a rank with it.
  for (bool changed = true; changed;) {
    changed = false;
    for (const RankGroup& group : known) changed = spread(group, numbers) || changed;
  }
  return numbers[static_cast<std::size_t>(rank)];
}

}  // namespace pw
