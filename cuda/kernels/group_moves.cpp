// Emits reads and writes of column groups, one wide access each if they are contiguous. Data that
// an earlier phase has loaded comes from where group_storage.cpp has put it. Invariant: each move
// is recorded once, with its width and space, so the access counts of a kernel equal those of its
// text.
#include "cuda/kernels/group_moves.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/assert.hpp"

namespace pw::cuda {

using rows::Statement;
using StatementKind = rows::Statement::Kind;

namespace {

/// Returns the name of the registers that hold a group of a reduction before it begins.
std::string ahead(const Statement& s, std::size_t g) {
  return fmt::format("l{}_{}", s.var.index, g);
}

std::string shared_place(const Kept& kept, const Team& team) {
  return fmt::format("({} * {} + k) * {} + {}, {}", kept.slot, kept.passes, team.size, team.place,
                     kept.passes * team.size);
}

/// Returns words that an earlier phase has loaded. With several passes the compiler must
/// recompute derived values, which saves registers.
std::string again(const std::string& words, std::int64_t passes) {
  return passes > 1 ? "pw_again(" + words + ")" : words;
}

}  // namespace

std::string GroupMoves::names(const Statement& s) { return fmt::format("w{}_", s.var.index); }

std::set<std::size_t> GroupMoves::packed(const Statement& s, const ColumnLoop& loop) const {
  std::set<std::size_t> out;
  for (const GroupRead& g : loop.groups)
    if (storage_.writes(s, g.argument) && is_packed(s, g.argument)) out.insert(g.argument);
  return out;
}

/// Records the words that a thread moves in one or several accesses.
void GroupMoves::record_words(Space space, bool write, int words, std::size_t argument) {
  AccessNode access;
  access.space = space;
  access.write = write;
  access.live = write && space == Space::global;
  access.argument = argument;
  const int whole = space == Space::shared ? 4 : std::min(words, 4);
  access.bytes = 4 * whole;
  access.times = (words + whole - 1) / whole;
  text_.accesses.add(access);
}

/// Records 16 bytes moved by one of two threads.
void GroupMoves::record_pair(std::size_t argument) {
  AccessNode access;
  access.write = access.live = true;
  access.argument = argument;
  access.bytes = 16;
  access.one_of = 2;
  text_.accesses.add(access);
}

/// Returns true if a loop computes the columns that it stores to an argument, in a dtype for
/// which two are rounded at once.
bool GroupMoves::is_packed(const Statement& loop, std::size_t argument) const {
  if (program_.type(argument).dtype != DType::f8e4m3) return false;
  const auto computed = [&](rows::SlotId slot) {
    return std::any_of(loop.first.begin(), loop.first.end(), [&](const Statement& c) {
      return c.kind == StatementKind::compute && c.slot == slot;
    });
  };
  return std::all_of(loop.first.begin(), loop.first.end(), [&](const Statement& q) {
    return q.kind != StatementKind::store || q.argument != argument || computed(q.operands[0]);
  });
}

/// Returns true if neighbouring threads may combine their 8-byte stores, which requires that
/// whole warps execute them.
bool GroupMoves::paired(const ColumnPasses& p, const GroupRead& group, const Team& team) const {
  const std::int64_t chunks = p.loop.columns / kColumns;
  return group.words == 2 && p.lanes > 1 && team.whole_warps &&
         chunks % std::min(p.lanes, 32) == 0 && kernel_.threads % 32 == 0 &&
         storage_.accesses().pairs(group, p.loop);
}

std::string GroupMoves::global_read(const GroupRead& group) const {
  return fmt::format("pw_read<{}>(p{} + ({}))", group.words, group.argument,
                     storage_.accesses().indices().print(group.base));
}

void GroupMoves::count_read(const ColumnPasses& p, const GroupRead& group) {
  ++kernel_.group_reads;
  if (std::find(read_.begin(), read_.end(), group) != read_.end()) {
    ++kernel_.again_reads;
    kernel_.again_bytes += p.loop.columns / kColumns * group.words * 4;
  }
  record_words(Space::global, false, group.words, group.argument);
  read_.push_back(group);
}

void GroupMoves::declare_ahead(const TeamLoop& loop, int depth) {
  const std::vector<GroupRead>& groups = loop.passes.loop.groups;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    if (!storage_.writes(loop.statement, groups[g].argument) &&
        loop.plan.kept_of(loop.passes, groups[g]) == nullptr)
      text_.line(depth, fmt::format("pw_words<{}> {}[{}];", groups[g].words,
                                    ahead(loop.statement, g), loop.passes.passes));
  }
}

void GroupMoves::read_ahead(const TeamLoop& loop, int depth) {
  for (std::size_t g = 0; g < loop.passes.loop.groups.size(); ++g) read_ahead(loop, g, depth);
}

void GroupMoves::read_across(const TeamLoop& loop, int depth) {
  const Statement& s = loop.statement;
  const std::vector<GroupRead>& groups = loop.passes.loop.groups;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    if (const std::string* far = storage_.across(s, groups[g]))
      text_.line(depth,
                 fmt::format("const pw_words<{}> {}{} = {};", groups[g].words, names(s), g, *far));
  }
}

void GroupMoves::read(const TeamLoop& loop, int depth, bool read_before) {
  for (std::size_t g = 0; g < loop.passes.loop.groups.size(); ++g)
    read_group(loop, g, depth, read_before);
}

void GroupMoves::write(const TeamLoop& loop, int depth) {
  for (std::size_t g = 0; g < loop.passes.loop.groups.size(); ++g) write_group(loop, g, depth);
}

/// Emits the loads of a reduction before it begins, into kept storage or its own registers.
void GroupMoves::read_ahead(const TeamLoop& loop, std::size_t g, int depth) {
  const Statement& s = loop.statement;
  const ColumnPasses& p = loop.passes;
  const GroupRead& group = p.loop.groups[g];
  const Kept* kept = loop.plan.kept_of(p, group);
  if (storage_.writes(s, group.argument) || (kept != nullptr && kept->first != &s)) return;
  count_read(p, group);
  if (kept == nullptr || !kept->shared)
    return text_.line(depth, fmt::format("{}[k] = {};", kept == nullptr ? ahead(s, g) : kept->name,
                                         global_read(group)));
  record_words(Space::shared, true, group.words);
  text_.line(depth, fmt::format("pw_keep(kept, {}, {});", shared_place(*kept, loop.team),
                                global_read(group)));
}

void GroupMoves::read_group(const TeamLoop& loop, std::size_t g, int depth, bool read_before) {
  const Statement& s = loop.statement;
  const ColumnPasses& p = loop.passes;
  const GroupRead& group = p.loop.groups[g];
  const std::string name = names(s) + std::to_string(g);
  const std::string type = fmt::format("pw_words<{}>", group.words);
  if (storage_.writes(s, group.argument)) {
    if (is_packed(s, group.argument))
      text_.line(depth, fmt::format("float x{}[{}];", name, kColumns));
    return text_.line(depth, fmt::format("{} {} = {{}};", type, name));
  }
  if (const LentGroup* lent = storage_.lent(s, group)) return read_lent(*lent, group, name, depth);
  if (storage_.across(s, group) != nullptr) return;
  const Kept* kept = loop.plan.kept_of(p, group);
  const bool first = !read_before && (kept == nullptr || kept->first == &s);
  PW_ASSERT(kept != nullptr || !storage_.is_value(group.argument),
            "a value that is kept nowhere is read");
  if (first) count_read(p, group);
  if (kept == nullptr)
    return text_.line(depth, fmt::format("const {} {} = {};", type, name,
                                         read_before ? again(ahead(s, g) + "[k]", p.passes)
                                                     : global_read(group)));
  if (kept->shared) return read_shared(*kept, first, loop, g, depth);
  if (first) text_.line(depth, fmt::format("{}[k] = {};", kept->name, global_read(group)));
  text_.line(depth, fmt::format("const {} {} = {};", type, name,
                                first ? kept->name + "[k]" : again(kept->name + "[k]", p.passes)));
}

/// Emits the read of a group from shared memory, where the `first` reader stores it.
void GroupMoves::read_shared(const Kept& kept, bool first, const TeamLoop& loop, std::size_t g,
                             int depth) {
  const GroupRead& group = loop.passes.loop.groups[g];
  const std::string name = names(loop.statement) + std::to_string(g);
  const std::string place = shared_place(kept, loop.team);
  record_words(Space::shared, first, group.words);
  text_.line(depth, fmt::format("const pw_words<{}> {} = {};", group.words, name,
                                first ? global_read(group)
                                      : fmt::format("pw_kept<{}>(kept, {})", group.words, place)));
  if (first) text_.line(depth, fmt::format("pw_keep(kept, {}, {});", place, name));
}

/// Emits the read of a group that an outer team keeps.
void GroupMoves::read_lent(const LentGroup& lent, const GroupRead& group, const std::string& name,
                           int depth) {
  const std::string type = fmt::format("pw_words<{}>", group.words);
  if (!lent.kept.shared)
    return text_.line(depth, fmt::format("const {} {} = {};", type, name,
                                         again(fmt::format("{}[{}]", lent.kept.name, lent.pass),
                                               lent.kept.passes)));
  record_words(Space::shared, false, group.words);
  text_.line(depth, fmt::format("const {0} {1} = pw_kept<{2}>(kept, (int)({3} * {4} + {5}) * {6} + "
                                "{7}, {8});",
                                type, name, group.words, lent.kept.slot, lent.kept.passes,
                                lent.pass, lent.team, lent.place, lent.kept.passes * lent.team));
}

void GroupMoves::write_group(const TeamLoop& loop, std::size_t g, int depth) {
  const GroupRead& group = loop.passes.loop.groups[g];
  const std::string words = names(loop.statement) + std::to_string(g);
  const std::string& live = loop.team.live;
  if (!storage_.writes(loop.statement, group.argument)) return;
  if (is_packed(loop.statement, group.argument))
    text_.line(depth, fmt::format("pw_pack_{0}({1}, x{1});",
                                  name(program_.type(group.argument).dtype), words));
  if (storage_.is_value(group.argument))
    return text_.line(depth, fmt::format("z{}[k] = {};", group.argument, words));
  ++kernel_.group_writes;
  const std::string base = storage_.accesses().indices().print(group.base);
  if (staged_ && staged_->argument == group.argument) {
    // Every block stores it, the first one and the others.
    constexpr std::string_view kFirst = "first && ";
    const std::string condition =
        live.starts_with(kFirst) ? fmt::format("if ({}) ", live.substr(kFirst.size())) : "";
    return text_.line(depth, fmt::format("{}pw_keep(kept, (int)(({}) / {} - row0 * {}), 1, {});",
                                         condition, base, kColumns, staged_->groups, words));
  }
  const bool pair = paired(loop.passes, group, loop.team);
  const std::string address = fmt::format("p{} + ({})", group.argument, base);
  if (pair) {
    record_pair(group.argument);
    return text_.line(depth, fmt::format("pw_write_pair({}, {}, t, {});", address, words,
                                         live.empty() ? "true" : live));
  }
  record_words(Space::global, true, group.words, group.argument);
  text_.line(depth, fmt::format("{}pw_write({}, {});",
                                live.empty() ? "" : fmt::format("if ({}) ", live), address, words));
}

}  // namespace pw::cuda
