// Plans the storage of column groups, block by block of a row program. Groups are first kept for
// the phases that read them again (kept.cpp). Then a narrow loop may read the registers of a
// reduction through warp exchanges, and inner loops may read what the loops around them keep.
#include "cuda/kernels/group_storage.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace pw::cuda {

using rows::Block;
using rows::Statement;
using StatementKind = rows::Statement::Kind;

const Kept* BlockPlan::kept_of(const ColumnPasses& p, const GroupRead& group) const {
  const auto at = std::find_if(kept.begin(), kept.end(),
                               [&](const Kept& k) { return k.group == group && k.serves(p); });
  return at == kept.end() ? nullptr : &*at;
}

bool BlockPlan::reads_registers(const ColumnPasses& p) const {
  const std::vector<GroupRead>& groups = p.loop.groups;
  return std::any_of(kept.begin(), kept.end(), [&](const Kept& k) {
    return !k.shared && k.serves(p) &&
           std::find(groups.begin(), groups.end(), k.group) != groups.end();
  });
}

BlockPlan GroupStorage::plan(const Block& body, const Team& team) {
  BlockPlan plan;
  std::vector<Reader> readers;
  for (const Statement& s : body) {
    if (is_columns(s)) {
      const auto at = plan.loops.emplace(&s, passes_through(s, team)).first;
      readers.push_back({&s, &at->second, false});
    } else if (s.kind == StatementKind::loop && !team.spread()) {
      add_nested(s, team, plan, readers);
    }
  }
  const auto elsewhere = [&](const Statement* s, const GroupRead& g) {
    return is_value(g.argument) || lent(*s, g) != nullptr;
  };
  const std::vector<Kept> values = values_of(plan);
  if (!team.spread())
    plan.kept = store_.choose(readers, elsewhere, team.size, !team.repeated && team.place == "t");
  plan.kept.insert(plan.kept.end(), values.begin(), values.end());
  if (team.size <= 32 && team.whole_warps && kernel_.threads % 32 == 0)
    pass_across(body, plan, team);
  lend(plan, team);
  return plan;
}

bool GroupStorage::is_value(std::size_t argument) const {
  return std::any_of(values_.begin(), values_.end(),
                     [&](const KeptValue& v) { return v.argument == argument; });
}

bool GroupStorage::writes(const Statement& s, std::size_t argument) const {
  return program_.arguments[argument].result ||
         std::any_of(values_.begin(), values_.end(), [&](const KeptValue& v) {
           return v.argument == argument && v.producer == s.var;
         });
}

const LentGroup* GroupStorage::lent(const Statement& s, const GroupRead& group) const {
  const auto found = lent_.find({&s, group.argument, group.base});
  return found == lent_.end() ? nullptr : &found->second;
}

const std::string* GroupStorage::across(const Statement& s, const GroupRead& group) const {
  const auto found = across_.find({&s, group.argument, group.base});
  return found == across_.end() ? nullptr : &found->second;
}

ColumnPasses GroupStorage::passes_through(const Statement& s, const Team& team) {
  ColumnPasses p{accesses_.plan(s.var, s.first), team.size, 0};
  if (s.kind == StatementKind::reduce)
    p.lanes = size_.columns(s.var) < 0 ? kMaxTeam : lanes_of(size_.columns(s.var));
  const std::int64_t chunks = (p.loop.columns + kColumns - 1) / kColumns;
  if (team.groups > 1 && p.lanes >= kMaxTeam) p.lanes = team.size;
  p.passes = (chunks + p.lanes - 1) / p.lanes;
  return p;
}

void GroupStorage::add_nested(const Statement& s, const Team& team, BlockPlan& plan,
                              std::vector<Reader>& readers) {
  const std::int64_t n = size_.columns(s.var);
  const int size = std::min(team.size, size_.needed(s.first)), parts = team.size / size;
  if (n < 1) return;
  Team part = team;
  part.size = size;
  for (const Statement& q : s.first) {
    if (!is_columns(q)) continue;
    const ColumnPasses p = passes_through(q, part);
    if (p.lanes != size || p.passes != 1 || p.loop.columns != kColumns * size) continue;
    NestedLoop nested{&s, {}, {}, parts / team.groups, n % parts == 0};
    nested.flat.lanes = team.size;
    nested.flat.passes = (n + parts - 1) / parts;
    for (const GroupRead& g : p.loop.groups) {
      auto flat = accesses_.flat(g, p.loop, s.var, n * p.loop.columns);
      if (!flat || program_.arguments[g.argument].result) continue;
      nested.flat.loop.groups.push_back(*flat);
      nested.own.push_back(g);
    }
    const auto at = plan.nested.emplace(&q, std::move(nested)).first;
    readers.push_back({&q, &at->second.flat, true});
  }
}

/// Returns the registers of values that loops of this block keep.
std::vector<Kept> GroupStorage::values_of(const BlockPlan& plan) {
  std::vector<Kept> out;
  for (const auto& [s, p] : plan.loops) {
    for (const GroupRead& g : p.loop.groups) {
      if (!is_value(g.argument) || !writes(*s, g.argument)) continue;
      out.push_back({fmt::format("z{}", g.argument), g, p.lanes, p.passes, false, 0, s});
      kernel_.kept_words += static_cast<int>(p.passes * g.words);
    }
  }
  std::sort(out.begin(), out.end(),
            [](const Kept& a, const Kept& b) { return a.group.argument < b.group.argument; });
  return out;
}

/// Serves a narrow loop from data that a reduction has read: each thread holds one group in
/// registers, and receives the needed group from another thread of its warp by an exchange.
void GroupStorage::pass_across(const Block& body, BlockPlan& plan, const Team& team) {
  for (const Statement& c : body) {
    const auto loop = plan.loops.find(&c);
    if (c.kind != StatementKind::loop || loop == plan.loops.end()) continue;
    const ColumnPasses& narrow = loop->second;
    for (const GroupRead& g : narrow.loop.groups) {
      if (writes(c, g.argument) || is_value(g.argument) || narrow.passes != 1 || g.words < 2 ||
          plan.kept_of(narrow, g) != nullptr || lent(c, g) != nullptr)
        continue;
      for (const Statement& r : body) {
        if (&r == &c) break;
        if (r.kind == StatementKind::reduce && pass_across(c, narrow, g, r, plan, team)) break;
      }
    }
  }
}

bool GroupStorage::pass_across(const Statement& c, const ColumnPasses& narrow, const GroupRead& g,
                               const Statement& r, BlockPlan& plan, const Team& team) {
  const ColumnPasses& wide = plan.loops.at(&r);
  if (wide.passes != 1 || wide.lanes != team.size) return false;
  const std::int64_t chunks = narrow.loop.columns / kColumns;
  for (const GroupRead& from : wide.loop.groups) {
    const auto far = accesses_.distance(g, narrow.loop, from, wide.loop);
    if (!far || *far < 0 || *far + chunks > wide.loop.columns / kColumns) continue;
    if (*far > 0 && (*far < chunks || (*far & (*far - 1)) != 0)) continue;
    if (lent(r, from) != nullptr) continue;
    const Kept* kept = plan.kept_of(wide, from);
    if (kept == nullptr) {
      plan.kept.push_back({fmt::format("y{}", across_.size()), from, wide.lanes, 1, false, 0, &r});
      kernel_.kept_words += from.words;
      kept = &plan.kept.back();
    }
    if (kept->shared) return false;
    across_[{&c, g.argument, g.base}] =
        *far == 0 ? kept->name + "[0]" : fmt::format("pw_swapped({}[0], {})", kept->name, *far);
    return true;
  }
  return false;
}

void GroupStorage::lend(const BlockPlan& plan, const Team& team) {
  for (const auto& [q, nested] : plan.nested) {
    for (std::size_t i = 0; i < nested.own.size(); ++i) {
      for (const Kept& k : plan.kept) {
        if (!(k.group == nested.flat.loop.groups[i]) || !k.serves(nested.flat)) continue;
        if (k.shared && !nested.whole)
          continue;  // threads without a pass would read unwritten memory
        lent_[{q, nested.own[i].argument, nested.own[i].base}] = {
            k, fmt::format("g{} / {}", nested.outer->var.index, nested.parts), team.size,
            team.place};
        if (!k.shared) unrolled_.insert(nested.outer);
        if (!nested.whole) cleared_.insert(k.name);
      }
    }
  }
}

}  // namespace pw::cuda
