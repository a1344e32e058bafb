// Vectorises the accesses of a column loop. An element's address is a linear form over atoms; its
// constant and its coefficient of the column decide which aligned groups the 8 columns of a chunk
// touch.
//
// Invariant: all columns of a chunk use at most kMaxGroups groups, whose positions relative to the
// chunk are equal in every pass; otherwise the access is by elements, with a reason. Equal groups
// of a loop are shared, so each is read once a pass. Cost: linear in the statements, times 8
// columns.
#include "cuda/kernels/access.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace pw::cuda {
namespace {

using rows::Block;
using rows::Index;
using rows::IndexId;
using rows::SlotId;
using rows::Statement;

constexpr std::size_t kMaxGroups = 2;  // groups that one access may touch

void collect_slots(const Block& block, std::vector<SlotId>& out) {
  for (const Statement& s : block) {
    if (s.slot.valid()) out.push_back(s.slot);
    collect_slots(s.first, out);
    collect_slots(s.second, out);
  }
}

Access one_by_one(std::string why) {
  Access access;
  access.why = std::move(why);
  return access;
}

}  // namespace

bool holds_loops(const Block& block) {
  return std::any_of(block.begin(), block.end(), [](const Statement& s) {
    return s.kind == Statement::Kind::loop || s.kind == Statement::Kind::reduce ||
           holds_loops(s.first) || holds_loops(s.second);
  });
}

/// Returns the shared chunk variable of all loops with this number of columns.
rows::VarId AccessPlan::chunk_of(std::int64_t columns) {
  const auto found = chunks_.find(columns);
  if (found != chunks_.end()) return found->second;
  const std::int64_t chunks = (columns + kColumns - 1) / kColumns;
  return chunks_.emplace(columns, indices_.variable(indices_.constant(chunks))).first->second;
}

/// Plans the accesses of a loop's body; statements under a condition may not introduce new reads
/// unless the condition is known.
ColumnLoop AccessPlan::plan(rows::VarId var, const Block& body) {
  ColumnLoop loop;
  loop.var = var;
  const rows::Interval extent = indices_.interval(indices_.extent(var));
  if (extent.low == extent.high) loop.columns = extent.high;
  loop.chunk = chunk_of(loop.columns);
  inside_.clear();
  collect_slots(body, inside_);
  visit(loop, body, true);
  return loop;
}

std::optional<GroupRead> AccessPlan::flat(const GroupRead& group, const ColumnLoop& inner,
                                          rows::VarId outer, std::int64_t all) {
  auto terms = indices_.terms(group.base);
  if (!terms) return std::nullopt;
  const IndexId chunk = indices_.use(inner.chunk), pass = indices_.use(outer);
  const std::int64_t chunks = inner.columns / kColumns;
  const auto of = [&](IndexId atom) {
    const auto found = terms->factors.find(atom);
    return found == terms->factors.end() ? 0 : found->second;
  };
  const std::int64_t factor = of(chunk);
  if (factor == 0 || of(pass) != factor * chunks) return std::nullopt;
  terms->factors.erase(chunk);
  terms->factors.erase(pass);
  const IndexId whole = indices_.use(chunk_of(all));
  if (terms->factors.count(whole) != 0) return std::nullopt;
  terms->factors[whole] = factor;
  GroupRead out = group;
  out.base = indices_.sum(*terms);
  return out;
}

std::optional<std::int64_t> AccessPlan::distance(const GroupRead& group, const ColumnLoop& loop,
                                                 const GroupRead& from, const ColumnLoop& other) {
  if (group.argument != from.argument || group.width != from.width) return std::nullopt;
  auto a = indices_.terms(group.base), b = indices_.terms(from.base);
  if (!a || !b) return std::nullopt;
  const auto take = [&](rows::Terms& terms, rows::VarId chunk) {
    const auto found = terms.factors.find(indices_.use(chunk));
    if (found == terms.factors.end()) return std::int64_t{0};
    const std::int64_t factor = found->second;
    terms.factors.erase(found);
    return factor;
  };
  if (take(*a, loop.chunk) != group.width || take(*b, other.chunk) != group.width)
    return std::nullopt;
  const std::int64_t difference = a->constant - b->constant;
  if (a->factors != b->factors || difference % group.width != 0) return std::nullopt;
  return difference / group.width;
}

/// Every coefficient but the chunk's, and the constant, must be a multiple of two groups, so that
/// an even group starts an aligned pair in every pass.
bool AccessPlan::pairs(const GroupRead& group, const ColumnLoop& loop) {
  const auto terms = indices_.terms(group.base);
  if (!terms || terms->constant % (2 * group.width) != 0) return false;
  const IndexId chunk = indices_.use(loop.chunk);
  const auto found = terms->factors.find(chunk);
  if (found == terms->factors.end() || found->second != group.width) return false;
  return std::all_of(terms->factors.begin(), terms->factors.end(), [&](const auto& f) {
    return f.first == chunk || f.second % (2 * group.width) == 0;
  });
}

void AccessPlan::visit(ColumnLoop& loop, const Block& block, bool always) {
  for (const Statement& s : block) {
    if (s.kind == Statement::Kind::load) loop.accesses.emplace(&s, load(loop, s, always));
    if (s.kind == Statement::Kind::store) loop.accesses.emplace(&s, store(loop, s));
    const bool known = always && (s.kind != Statement::Kind::branch || is_static(loop, s));
    visit(loop, s.first, known && s.kind == Statement::Kind::branch);
    visit(loop, s.second, known && s.kind == Statement::Kind::branch);
  }
}

bool AccessPlan::reads_inside(IndexId index) const {
  const Index& node = indices_[index];
  if (node.kind == Index::Kind::slot) {
    return std::find(inside_.begin(), inside_.end(),
                     SlotId(static_cast<std::size_t>(node.constant))) != inside_.end();
  }
  return (node.a.valid() && reads_inside(node.a)) || (node.b.valid() && reads_inside(node.b));
}

bool AccessPlan::places(const ColumnLoop& loop, IndexId index, Places& out) {
  if (reads_inside(index)) return false;
  const IndexId start = indices_.mul(indices_.use(loop.chunk), indices_.constant(kColumns));
  for (std::int64_t e = 0; e < kColumns; ++e) {
    const IndexId column = indices_.add(start, indices_.constant(e));
    const IndexId place = indices_.substitute(index, loop.var, column);
    if (indices_.depends(place, loop.var)) return false;
    auto terms = indices_.terms(place);
    if (!terms) return false;
    out.factors.push_back(std::move(terms->factors));
    out.constants.push_back(terms->constant);
    if (out.factors.back() != out.factors.front()) return false;
  }
  return true;
}

/// Returns true if the condition is known for each of the 8 columns, equally in all passes.
bool AccessPlan::is_static(const ColumnLoop& loop, const Statement& branch) {
  Places places_of;
  const rows::Interval bound = indices_.interval(branch.bound);
  return bound.low == bound.high && places(loop, branch.index, places_of) &&
         places_of.factors.front().empty();
}

/// Returns why an argument does not suit vector accesses at all, or empty.
std::string AccessPlan::unsuited(const ColumnLoop& loop, std::size_t argument) const {
  if (loop.columns == 0) return "the number of columns is unknown at compile time, or 0";
  if (loop.columns % kColumns != 0)
    return fmt::format("{} columns are not a multiple of {}", loop.columns, kColumns);
  std::int64_t elements = 1;
  for (DimId d : program_.type(argument).shape) {
    if (const auto value = program_.context->dims.value(d))
      elements = elements * (*value % kColumns) % kColumns;
  }
  if (elements % kColumns != 0)
    return fmt::format("its number of elements is not known to be a multiple of {}", kColumns);
  return {};
}

/// Plans a load. If all 8 columns read one element, it is a single access; otherwise the widest
/// aligned groups that cover the columns are tried, down to one word.
Access AccessPlan::load(ColumnLoop& loop, const Statement& s, bool always) {
  if (loop.columns == 0) return one_by_one(unsuited(loop, s.argument));
  if (reads_inside(s.index)) return one_by_one("its index is read from memory");
  Places at;
  if (!places(loop, s.index, at))
    return one_by_one("neighbouring columns are not neighbours in it");
  const auto& constants = at.constants;
  if (std::all_of(constants.begin(), constants.end(), [&](auto c) { return c == constants[0]; })) {
    Access access;
    access.kind = Access::Kind::same;
    return access;
  }
  if (std::string why = unsuited(loop, s.argument); !why.empty()) return one_by_one(why);
  if (!always) return one_by_one("it is read conditionally");
  const std::int64_t size = size_of(program_.type(s.argument).dtype);
  std::string why = "its rows are not aligned to whole groups";
  for (std::int64_t width = kColumns; width * size >= 4; width /= 2) {
    if (std::any_of(at.factors[0].begin(), at.factors[0].end(),
                    [&](const auto& f) { return f.second % width != 0; }))
      continue;
    Access access;
    access.kind = Access::Kind::groups;
    std::vector<GroupRead> groups;
    for (std::int64_t c : constants) {
      const std::int64_t place = ((c % width) + width) % width;
      rows::Terms base{at.factors[0], c - place};
      const GroupRead group{s.argument, width, indices_.sum(base),
                            static_cast<int>(width * size / 4)};
      auto found = std::find(groups.begin(), groups.end(), group);
      if (found == groups.end()) found = groups.insert(found, group);
      access.groups.push_back(static_cast<std::size_t>(found - groups.begin()));
      access.places.push_back(static_cast<int>(place));
    }
    if (groups.size() > kMaxGroups) {
      why = "neighbouring columns are far apart in memory";
      break;
    }
    for (std::size_t& g : access.groups) {
      const GroupRead& group = groups[g];
      auto found = std::find(loop.groups.begin(), loop.groups.end(), group);
      if (found == loop.groups.end()) found = loop.groups.insert(found, group);
      g = static_cast<std::size_t>(found - loop.groups.begin());
    }
    return access;
  }
  return one_by_one(why);
}

/// Plans a store: the 8 columns must be consecutive and start at a whole group, because a partial
/// group would need a read first.
Access AccessPlan::store(ColumnLoop& loop, const Statement& s) {
  if (loop.columns == 0) return one_by_one(unsuited(loop, s.argument));
  Places at;
  if (!places(loop, s.index, at))
    return one_by_one("neighbouring columns are not neighbours in it");
  if (std::string why = unsuited(loop, s.argument); !why.empty()) return one_by_one(why);
  for (std::int64_t e = 0; e < kColumns; ++e) {
    if (at.constants[static_cast<std::size_t>(e)] != at.constants[0] + e)
      return one_by_one("neighbouring columns are not neighbours in it");
  }
  const bool whole = at.constants[0] % kColumns == 0 &&
                     std::all_of(at.factors[0].begin(), at.factors[0].end(),
                                 [](const auto& f) { return f.second % kColumns == 0; });
  if (!whole) return one_by_one("its rows are not aligned to whole groups");
  Access access;
  access.kind = Access::Kind::groups;
  const std::int64_t size = size_of(program_.type(s.argument).dtype);
  const GroupRead group{s.argument, kColumns, indices_.sum({at.factors[0], at.constants[0]}),
                        static_cast<int>(kColumns * size / 4)};
  access.groups.assign(1, loop.groups.size());
  loop.groups.push_back(group);
  return access;
}

}  // namespace pw::cuda
