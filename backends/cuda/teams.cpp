// Exports emit_body: the statements of a row program as CUDA C++ for a team of threads, those that
// work on one row. Row values are computed by all threads of the team; loops and reductions are
// divided among them.
//  * The size of the team follows from the widest loop: a power of two of at most 256, a thread for
//    each 8 columns. Teams of at most a warp share a block; a row without a reduction may be spread
//    over several blocks.
//  * A loop over columns goes in passes, in which a thread has 8 neighbouring columns and moves
//    them as one wide access where they are contiguous (access.cpp). What a later loop reads again
//    stays in registers or shared memory (kept.cpp).
//  * A loop around other loops gives a pass to each part of the team.
//  * A reduction follows a fixed tree, which depends on its width alone: chunk c of 8 columns to
//    lane c mod lanes, each lane in ascending order, then lanes pairwise, the farthest first. So
//    the bits do not depend on the schedule, and are the interpreter's.
//
// Barriers are reached by all threads of a block: branches around them depend on the kernel's
// constants only. Reductions take turns at 8 places in shared memory, so that one barrier a
// reduction is enough.
#include "backends/cuda/teams.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "backends/cuda/kept.hpp"
#include "backends/cuda/thread_text.hpp"

namespace pw::cuda {
namespace {

using rows::Block;
using rows::Statement;
using StatementKind = rows::Statement::Kind;

constexpr int kMaxTeam = 256;              // lanes of the widest reduction
constexpr int kMeetings = 8;               // for each unit; 40 KiB together
constexpr std::size_t kMaxUnrolled = 600;  // statements; eight times more would compile for long
constexpr std::int64_t kMaxParts = 4096;   // blocks that share a row
int power_of_two_from(std::int64_t n) {
  int p = 1;
  while (p < kMaxTeam && p < n) p *= 2;
  return p;
}
int lanes_of(std::int64_t columns) {
  return power_of_two_from((columns + kColumns - 1) / kColumns);
}

/// Threads that work on the same row, or on the same pass of a loop within it.
struct Team {
  int size = 1;
  std::string place = "t";  ///< of a thread in it
  std::string live;         ///< whether it may store; empty: always
  bool repeated = false;    ///< its statements run several times in one block
  bool spread = false;      ///< passes of its loops are shared out over blocks
  bool whole_warps = true;  ///< all threads of a warp run its statements
};

class TeamEmitter {
 public:
  TeamEmitter(const rows::RowProgram& program, Kernel& kernel)
      : program_(program),
        kernel_(kernel),
        thread_(program, kernel, text_),
        accesses_(program),
        store_(program, kernel) {}

  std::string run() {
    const Block& body = program_.body;
    const int team = needed(body);
    kernel_.team = team;
    kernel_.rows_per_block = team > 32 ? 1 : std::max(kernel_.schedule.block / team, 1);
    kernel_.threads = team * kernel_.rows_per_block;
    kernel_.column_blocks = kernel_.rows_per_block == 1 ? parts_of(body) : 1;
    Team all;
    all.size = team;
    all.spread = kernel_.column_blocks > 1;
    line(1, fmt::format("const int t = (int)threadIdx.x % {};", team));
    if (kernel_.rows_per_block == 1) {
      line(1, "const long long row = blockIdx.x;");
      if (all.spread) line(1, "const int part = blockIdx.y;");
    } else {
      line(1,
           fmt::format("const long long turn = (long long)blockIdx.x * {} + (int)threadIdx.x / {};",
                       kernel_.rows_per_block, team));
      line(1, "const bool live = turn < rows;");
      line(1, "const long long row = live ? turn : rows - 1;");
      all.live = "live";
    }
    const std::string head = std::move(text_.out);
    text_.out.clear();
    block(body, all, 1);
    keep_accesses();
    return head + meeting_places_ + (kernel_.shared_bytes > 0 ? "  PW_KEPT(kept);\n" : "") +
           text_.out;
  }

 private:
  // ---- what is accessed
  void keep_accesses() {
    auto tree = std::make_shared<AccessTree>();
    tree->indices = program_.indices;
    tree->row = program_.row;
    tree->team = kernel_.team;
    tree->rows_per_block = kernel_.rows_per_block;
    tree->column_blocks = kernel_.column_blocks;
    tree->nodes = text_.accesses.take();
    kernel_.accesses = std::move(tree);
  }
  /// Over how many blocks the loops of a team are spread.
  [[nodiscard]] std::int64_t blocks_of(const Team& team) const {
    return team.spread ? kernel_.column_blocks : 1;
  }
  [[nodiscard]] AccessNode shared(AccessNode::Share share, rows::VarId var, std::int64_t lanes,
                                  const Team& team) const {
    AccessNode loop;
    loop.share = share;
    loop.var = var;
    loop.lanes = lanes;
    loop.blocks = blocks_of(team);
    return loop;
  }
  /// Words that a thread moves as one or several accesses.
  void record_words(Space space, bool write, int words, std::size_t argument = 0) {
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

  /// 16 bytes, by one of two threads.
  void record_pair(std::size_t argument) {
    AccessNode access;
    access.write = access.live = true;
    access.argument = argument;
    access.bytes = 16;
    access.one_of = 2;
    text_.accesses.add(access);
  }

  // ---- how many threads
  [[nodiscard]] std::int64_t columns(rows::VarId var) const { return thread_.columns(var); }
  [[nodiscard]] int needed(const Block& body) const {
    int most = 1;
    for (const Statement& s : body) most = std::max(most, needed(s));
    return most;
  }
  [[nodiscard]] int needed(const Statement& s) const {
    if (s.kind != StatementKind::loop && s.kind != StatementKind::reduce) return 1;
    const std::int64_t n = columns(s.var);
    if (n < 0) return kMaxTeam;
    if (s.kind == StatementKind::reduce || !holds_loops(s.first)) return lanes_of(n);
    return std::min(kMaxTeam, needed(s.first) * power_of_two_from(n));
  }

  [[nodiscard]] static int reductions(const Block& body) {
    int n = 0;
    for (const Statement& s : body)
      n += (s.kind == StatementKind::reduce ? 1 : 0) + reductions(s.first) + reductions(s.second);
    return n;
  }
  /// Into how many blocks a row can go: the most passes of a loop, where no reduction is over the
  /// whole row. A step of few tokens then runs on more than a few multiprocessors.
  [[nodiscard]] int parts_of(const Block& body) const {
    if (reductions(body) > kMeetings)
      return 1;  // blocks skip barriers: places could not take turns
    std::int64_t most = 1;
    for (const Statement& s : body) {
      if (s.kind == StatementKind::reduce || s.kind == StatementKind::branch) return 1;
      if (s.kind != StatementKind::loop) continue;
      if (columns(s.var) < 0) return 1;
      most = std::max(most, passes_of(s));
    }
    most = (most + kernel_.schedule.passes - 1) / kernel_.schedule.passes;
    return most <= kMaxParts ? static_cast<int>(most) : 1;
  }
  [[nodiscard]] std::int64_t passes_of(const Statement& loop) const {
    const std::int64_t n = columns(loop.var);
    const std::int64_t at_once = holds_loops(loop.first)
                                     ? kernel_.team / std::min(kernel_.team, needed(loop.first))
                                     : kernel_.team * kColumns;
    return (n + at_once - 1) / at_once;
  }

  // ---- text
  void line(int depth, const std::string& text) { text_.line(depth, text); }
  [[nodiscard]] std::string width(rows::VarId var) const { return thread_.width(var); }

  // ---- statements of a team
  void block(const Block& body, const Team& team, int depth) {
    Scope scope;
    std::vector<Reader> readers;
    for (const Statement& s : body) {
      if (is_columns(s)) {
        const auto at = scope.loops.emplace(&s, passes_through(s, team)).first;
        readers.push_back({&s, &at->second, false});
      } else if (s.kind == StatementKind::loop && !team.spread) {
        add_nested(s, team, scope, readers);
      }
    }
    const auto lent = [&](const Statement* s, const GroupRead& g) {
      return lent_.count({s, g.argument, g.base}) != 0;
    };
    if (!team.spread)
      scope.kept = store_.choose(readers, lent, team.size, !team.repeated && team.place == "t");
    lend(scope, team);
    for (const Kept& k : scope.kept) {
      if (!k.shared)
        line(depth, fmt::format("pw_words<{}> {}[{}]{};", k.group.words, k.name, k.passes,
                                cleared_.count(k.name) != 0 ? " = {}" : ""));
    }
    for (const Statement& s : body) statement(s, team, scope, depth);
  }

  /// A loop within a loop whose parts have the groups of a loop over both: pass k of thread t is
  /// group t + k * threads in either.
  struct Nested {
    const Statement* outer;
    ColumnPasses flat;           ///< groups as the loop over both has them
    std::vector<GroupRead> own;  ///< and as it has them itself
    int parts;
    bool whole;  ///< no thread is without a pass
  };
  struct Scope {
    std::map<const Statement*, ColumnPasses> loops;
    std::map<const Statement*, Nested> nested;
    std::vector<Kept> kept;
  };
  /// What an outer team keeps for a loop within its loops.
  struct Lent {
    Kept kept;
    std::string pass;  ///< of the outer team
    int team = 1;
    std::string place;
  };

  [[nodiscard]] static bool is_columns(const Statement& s) {
    return s.kind == StatementKind::reduce ||
           (s.kind == StatementKind::loop && !holds_loops(s.first));
  }

  void add_nested(const Statement& s, const Team& team, Scope& scope,
                  std::vector<Reader>& readers) {
    const std::int64_t n = columns(s.var);
    const int size = std::min(team.size, needed(s.first)), parts = team.size / size;
    if (n < 1) return;
    Team part = team;
    part.size = size;
    for (const Statement& q : s.first) {
      if (!is_columns(q)) continue;
      const ColumnPasses p = passes_through(q, part);
      if (p.lanes != size || p.passes != 1 || p.loop.columns != kColumns * size) continue;
      Nested nested{&s, {}, {}, parts, n % parts == 0};
      nested.flat.lanes = team.size;
      nested.flat.passes = (n + parts - 1) / parts;
      for (const GroupRead& g : p.loop.groups) {
        auto flat = accesses_.flat(g, p.loop, s.var, n * p.loop.columns);
        if (!flat || program_.arguments[g.argument].result) continue;
        nested.flat.loop.groups.push_back(*flat);
        nested.own.push_back(g);
      }
      const auto at = scope.nested.emplace(&q, std::move(nested)).first;
      readers.push_back({&q, &at->second.flat, true});
    }
  }

  void lend(const Scope& scope, const Team& team) {
    for (const auto& [q, nested] : scope.nested) {
      for (std::size_t i = 0; i < nested.own.size(); ++i) {
        for (const Kept& k : scope.kept) {
          if (!(k.group == nested.flat.loop.groups[i]) || !k.serves(nested.flat)) continue;
          if (k.shared && !nested.whole) continue;  // nobody wrote what threads without a pass read
          lent_[{q, nested.own[i].argument, nested.own[i].base}] = {
              k, fmt::format("g{} / {}", nested.outer->var.index, nested.parts), team.size,
              team.place};
          if (!k.shared) unrolled_.insert(nested.outer);
          if (!nested.whole) cleared_.insert(k.name);
        }
      }
    }
  }

  ColumnPasses passes_through(const Statement& s, const Team& team) {
    ColumnPasses p{accesses_.plan(s.var, s.first), team.size, 0};
    if (s.kind == StatementKind::reduce)
      p.lanes = columns(s.var) < 0 ? kMaxTeam : lanes_of(columns(s.var));
    const std::int64_t chunks = (p.loop.columns + kColumns - 1) / kColumns;
    p.passes = (chunks + p.lanes - 1) / p.lanes;
    return p;
  }

  void statement(const Statement& s, const Team& team, const Scope& scope, int depth) {
    const auto columns_of = scope.loops.find(&s);
    switch (s.kind) {
      case StatementKind::store: {
        std::string condition = team.size > 1 ? team.place + " == 0" : "";
        if (team.spread) condition += (condition.empty() ? "" : " && ") + std::string("part == 0");
        if (!team.live.empty()) condition += (condition.empty() ? "" : " && ") + team.live;
        thread_.note({s.argument, true, "one element for a row or a group"});
        thread_.one_of = team.size * blocks_of(team);
        line(depth, fmt::format("{}{}", condition.empty() ? "" : "if (" + condition + ") ",
                                thread_.store(s)));
        thread_.one_of = 1;
        return;
      }
      case StatementKind::loop:
        if (columns_of == scope.loops.end()) return shared_out(s, team, depth);
        return passes(s, columns_of->second, scope, team, depth,
                      [&](int at) { thread_.block(s.first, at); });
      case StatementKind::reduce: return reduce(s, columns_of->second, scope, team, depth);
      case StatementKind::constant:
      case StatementKind::load:
      case StatementKind::compute:
      case StatementKind::branch: return thread_.statement(s, depth);
    }
  }

  /// A loop around other loops: parts of the team take a pass each.
  void shared_out(const Statement& s, const Team& team, int depth) {
    Team part = team;
    part.size = std::min(team.size, needed(s.first));
    const int parts = team.size / part.size;
    const std::int64_t n = columns(s.var);
    const std::string id = std::to_string(s.var.index);
    const bool once = n >= 0 && n <= parts, whole = n >= 0 && n % parts == 0;
    // Without a reduction within, threads that have no pass need not meet the others.
    const bool guarded = !whole && reductions(s.first) == 0;
    part.repeated = team.repeated || (!once && !(team.spread && kernel_.schedule.passes == 1));
    part.spread = false;
    if (team.spread && kernel_.schedule.passes > 1) {
      line(depth, fmt::format("for (long long g{0} = part * {1}; g{0} < {2}; g{0} += {3}) {{", id,
                              parts, n, std::int64_t{parts} * kernel_.column_blocks));
    } else if (team.spread) {
      line(depth, fmt::format("if (part * {} < {}) {{", parts, n));
      line(depth + 1, fmt::format("const long long g{} = part * {};", id, parts));
    } else if (once) {
      line(depth, "{");
      line(depth + 1, fmt::format("const long long g{} = 0;", id));
    } else {
      if (unrolled_.count(&s) != 0) text_.out += "#pragma unroll\n";
      line(depth, fmt::format("for (long long g{0} = 0; g{0} < {1}; g{0} += {2}) {{", id,
                              width(s.var), parts));
    }
    const std::string turn =
        parts == 1 ? "g" + id : fmt::format("g{} + {} / {}", id, team.place, part.size);
    if (whole) {
      line(depth + 1, fmt::format("const long long i{} = {};", id, turn));
    } else if (guarded) {
      line(depth + 1, fmt::format("const long long i{} = {};", id, turn));
      part.whole_warps = false;
    } else {
      line(depth + 1, fmt::format("const bool l{} = {} < {};", id, turn, width(s.var)));
      line(depth + 1,
           fmt::format("const long long i{0} = l{0} ? {1} : {2} - 1;", id, turn, width(s.var)));
      part.live = (team.live.empty() ? "" : team.live + " && ") + "l" + id;
    }
    if (parts > 1) {
      line(depth + 1, fmt::format("const int t{} = {} % {};", id, team.place, part.size));
      part.place = "t" + id;
    }
    AccessNode loop = shared(AccessNode::Share::parts, s.var, parts, team);
    loop.live = guarded;
    if (guarded) line(depth + 1, fmt::format("if (i{} < {}) {{", id, width(s.var)));
    text_.accesses.loop(loop, [&] { block(s.first, part, depth + (guarded ? 2 : 1)); });
    if (guarded) line(depth + 1, "}");
    line(depth, "}");
  }

  /// The passes of a thread over its groups of 8 columns.
  template <class Body>
  void passes(const Statement& s, const ColumnPasses& p, const Scope& scope, const Team& team,
              int depth, const Body& body) {
    const std::string place =
        p.lanes == team.size ? team.place : fmt::format("{} % {}", team.place, p.lanes);
    if (p.loop.columns == 0) {
      const std::string chunk = fmt::format("c{}", s.var.index), size = width(s.var);
      line(depth, fmt::format("for (long long {0} = {1}; {0} * {2} < {3}; {0} += {4}) {{", chunk,
                              place, kColumns, size, p.lanes));
      text_.accesses.loop(shared(AccessNode::Share::columns, s.var, p.lanes, team),
                          [&] { element_loop(s, p.loop, team, chunk, size, depth + 1, body); });
      return line(depth, "}");
    }
    const bool unrolled = std::any_of(scope.kept.begin(), scope.kept.end(),
                                      [&](const Kept& k) { return !k.shared && uses(p, k); });
    if (team.spread && kernel_.schedule.passes > 1) {
      line(depth,
           fmt::format("for (int k = part; k < {}; k += {}) {{", p.passes, kernel_.column_blocks));
    } else if (team.spread) {
      line(depth, fmt::format("if (part < {}) {{", p.passes));
      line(depth + 1, "const int k = part;");
    } else if (p.passes == 1) {
      line(depth, "{");
      line(depth + 1, "const int k = 0;");
    } else {
      if (unrolled) text_.out += "#pragma unroll\n";
      line(depth, fmt::format("for ({} k = 0; k < {}; ++k) {{",
                              p.passes > (1 << 20) ? "long long" : "int", p.passes));
    }
    const std::string chunk = ThreadText::variable(p.loop.chunk);
    const std::int64_t chunks = (p.loop.columns + kColumns - 1) / kColumns;
    line(depth + 1, fmt::format("const long long {} = {} + k * {};", chunk, place, p.lanes));
    const bool partial = chunks % p.lanes != 0;
    if (partial) line(depth + 1, fmt::format("if ({} < {}) {{", chunk, chunks));
    const int at = depth + 1 + (partial ? 1 : 0);
    text_.accesses.loop(shared(AccessNode::Share::chunks, s.var, p.lanes, team), [&] {
      for (std::size_t g = 0; g < p.loop.groups.size(); ++g) read_group(s, p, g, scope, team, at);
    });
    const std::string tail = p.loop.columns % kColumns == 0 ? "" : std::to_string(p.loop.columns);
    text_.accesses.loop(shared(AccessNode::Share::columns, s.var, p.lanes, team),
                        [&] { element_loop(s, p.loop, team, chunk, tail, at, body); });
    text_.accesses.loop(shared(AccessNode::Share::chunks, s.var, p.lanes, team),
                        [&] { write_groups(s, p, team, at); });
    if (partial) line(depth + 1, "}");
    line(depth, "}");
  }

  [[nodiscard]] static bool uses(const ColumnPasses& p, const Kept& kept) {
    return kept.serves(p) &&
           std::find(p.loop.groups.begin(), p.loop.groups.end(), kept.group) != p.loop.groups.end();
  }

  static std::string group_names(const Statement& s) { return fmt::format("w{}_", s.var.index); }

  void read_group(const Statement& s, const ColumnPasses& p, std::size_t g, const Scope& scope,
                  const Team& team, int depth) {
    const GroupRead& group = p.loop.groups[g];
    const std::string name = group_names(s) + std::to_string(g);
    const std::string type = fmt::format("pw_words<{}>", group.words);
    if (program_.arguments[group.argument].result)
      return line(depth, fmt::format("{} {} = {{}};", type, name));
    const std::string read = fmt::format("pw_read<{}>(p{} + ({}))", group.words, group.argument,
                                         accesses_.indices().print(group.base));
    if (const auto lent = lent_.find({&s, group.argument, group.base}); lent != lent_.end())
      return read_lent(lent->second, group, name, depth);
    const auto kept = std::find_if(scope.kept.begin(), scope.kept.end(),
                                   [&](const Kept& k) { return k.group == group && k.serves(p); });
    const bool first = kept == scope.kept.end() || kept->first == &s;
    kernel_.group_reads += first ? 1 : 0;
    if (first && std::find(read_.begin(), read_.end(), group) != read_.end()) {
      ++kernel_.again_reads;
      kernel_.again_bytes += p.loop.columns / kColumns * group.words * 4;
    }
    if (first) record_words(Space::global, false, group.words, group.argument);
    if (first) read_.push_back(group);
    if (kept == scope.kept.end())
      return line(depth, fmt::format("const {} {} = {};", type, name, read));
    if (!kept->shared) {
      if (first) line(depth, fmt::format("{}[k] = {};", kept->name, read));
      return line(depth, fmt::format("const {} {} = {}[k];", type, name, kept->name));
    }
    const std::string place = fmt::format("({} * {} + k) * {} + {}, {}", kept->slot, kept->passes,
                                          team.size, team.place, kept->passes * team.size);
    record_words(Space::shared, first, group.words);
    if (!first)
      return line(depth, fmt::format("const {} {} = pw_kept<{}>(kept, {});", type, name,
                                     group.words, place));
    line(depth, fmt::format("const {} {} = {};", type, name, read));
    line(depth, fmt::format("pw_keep(kept, {}, {});", place, name));
  }

  /// A group that an outer team keeps.
  void read_lent(const Lent& lent, const GroupRead& group, const std::string& name, int depth) {
    const std::string type = fmt::format("pw_words<{}>", group.words);
    if (!lent.kept.shared)
      return line(depth,
                  fmt::format("const {} {} = {}[{}];", type, name, lent.kept.name, lent.pass));
    record_words(Space::shared, false, group.words);
    line(depth, fmt::format("const {0} {1} = pw_kept<{2}>(kept, (int)({3} * {4} + {5}) * {6} + "
                            "{7}, {8});",
                            type, name, group.words, lent.kept.slot, lent.kept.passes, lent.pass,
                            lent.team, lent.place, lent.kept.passes * lent.team));
  }

  static std::size_t size_of(const Block& body) {
    std::size_t n = body.size();
    for (const Statement& s : body) n += size_of(s.first) + size_of(s.second);
    return n;
  }

  /// One pass: the 8 columns of a chunk.
  template <class Body>
  void element_loop(const Statement& s, const ColumnLoop& loop, const Team& team,
                    const std::string& chunk, const std::string& tail, int depth,
                    const Body& body) {
    thread_.place = {&loop, group_names(s), team.live};
    const std::string column = ThreadText::variable(s.var);
    text_.out += size_of(s.first) > kMaxUnrolled ? "#pragma unroll 1\n" : "#pragma unroll\n";
    line(depth, fmt::format("for (int e = 0; e < {}; ++e) {{", kColumns));
    line(depth + 1, fmt::format("const long long {} = {} * {} + e;", column, chunk, kColumns));
    if (!tail.empty()) line(depth + 1, fmt::format("if ({} < {}) {{", column, tail));
    body(depth + (tail.empty() ? 1 : 2));
    if (!tail.empty()) line(depth + 1, "}");
    line(depth, "}");
    thread_.place = {};
  }

  /// Whether neighbouring threads may put their 8 bytes together: each warp gets here as a whole.
  bool paired(const ColumnPasses& p, const GroupRead& group, const Team& team) {
    const std::int64_t chunks = p.loop.columns / kColumns;
    return group.words == 2 && p.lanes > 1 && team.whole_warps &&
           chunks % std::min(p.lanes, 32) == 0 && kernel_.threads % 32 == 0 &&
           accesses_.pairs(group, p.loop);
  }

  void write_groups(const Statement& s, const ColumnPasses& p, const Team& team, int depth) {
    const ColumnLoop& loop = p.loop;
    for (std::size_t g = 0; g < loop.groups.size(); ++g) {
      const GroupRead& group = loop.groups[g];
      if (!program_.arguments[group.argument].result) continue;
      ++kernel_.group_writes;
      if (paired(p, group, team)) {
        record_pair(group.argument);
        line(depth, fmt::format("pw_write_pair(p{} + ({}), {}{}, t, {});", group.argument,
                                accesses_.indices().print(group.base), group_names(s), g,
                                team.live.empty() ? "true" : team.live));
        continue;
      }
      record_words(Space::global, true, group.words, group.argument);
      line(depth,
           fmt::format("{}pw_write(p{} + ({}), {}{});",
                       team.live.empty() ? "" : fmt::format("if ({}) ", team.live), group.argument,
                       accesses_.indices().print(group.base), group_names(s), g));
    }
  }

  void reduce(const Statement& s, const ColumnPasses& p, const Scope& scope, const Team& team,
              int depth) {
    const std::string type(type_of(s.unit)), id = std::to_string(s.slot.index);
    const std::string of = ThreadText::function(s), lanes = "n" + id;
    const bool known = columns(s.var) >= 0;
    line(depth, fmt::format("{} a{} = {}::start();", type, id, of));
    const auto accumulate = [&](int at) { thread_.accumulate(s, at); };
    if (!known) {
      line(depth, fmt::format("const int {} = (int)pw_lanes({});", lanes, width(s.var)));
      const std::string chunk = fmt::format("c{}", s.var.index);
      line(depth, fmt::format("for (long long {0} = {1} % {2}; {0} * {3} < {4}; {0} += {2}) {{",
                              chunk, team.place, lanes, kColumns, width(s.var)));
      text_.accesses.loop(shared(AccessNode::Share::columns, s.var, 0, team), [&] {
        element_loop(s, p.loop, team, chunk, width(s.var), depth + 1, accumulate);
      });
      line(depth, "}");
    } else if (p.loop.columns > 0) {
      passes(s, p, scope, team, depth, accumulate);
    }
    const auto meet = [&](int more_than, const std::string& text) {
      const std::string condition = known ? "" : fmt::format("if ({} > {}) ", lanes, more_than);
      line(depth, fmt::format("{}a{} = {};", condition, id, text));
    };
    if (p.lanes > 32) {
      // By the place in the block: parts of the team meet side by side.
      const std::string place = meeting_place(s.unit);
      line(depth, fmt::format("pw_put({}, t, a{});", place, id));
      record_meeting(s, known ? p.lanes : 0);
      barrier(depth);
      meet(32, fmt::format("pw_meet<{}, {}>({}, t, {})", type, of, place,
                           known ? std::to_string(p.lanes) : lanes));
      if (team.repeated) barrier(depth);
    }
    for (int d = std::min(p.lanes, 32) / 2; d > 0; d /= 2)
      meet(d, fmt::format("pw_pair<{}, {}>(a{}, {}, {})", type, of, id, d, team.place));
    thread_.total(s, "a" + id, depth);
  }
  /// A place of its own for each of the first reductions. Later ones take turns: so many barriers
  /// lie between that everybody has read what was there.
  std::string meeting_place(rows::Unit unit) {
    const int number = meetings_++ % kMeetings;
    const std::string name = fmt::format("s{}_{}", rows::name(unit), number);
    const std::string declaration =
        fmt::format("  PW_SHARED({}, {}, {});\n", type_of(unit), name, kernel_.team);
    if (meeting_places_.find(declaration) == std::string::npos) meeting_places_ += declaration;
    return name;
  }
  /// Each thread puts its value, and takes those of the lanes 32 apart.
  void record_meeting(const Statement& s, std::int64_t lanes) {
    AccessNode access;
    access.space = Space::shared;
    access.write = true;
    access.bytes = s.unit == rows::Unit::f32 ? 4 : 8;
    text_.accesses.add(access);
    access.write = false;
    if (lanes > 0) access.times = lanes / 32;
    if (lanes == 0) access.var = s.var;
    text_.accesses.add(access);
  }
  void barrier(int depth) {
    ++kernel_.barriers;
    line(depth, "__syncthreads();");
  }

  const rows::RowProgram& program_;
  Kernel& kernel_;
  KernelText text_;
  ThreadText thread_;
  AccessPlan accesses_;
  KeptStore store_;
  int meetings_ = 0;
  std::string meeting_places_;  ///< their declarations
  std::vector<GroupRead> read_;
  std::map<std::tuple<const Statement*, std::size_t, rows::IndexId>, Lent> lent_;
  std::set<const Statement*> unrolled_;  ///< loops whose passes index registers
  std::set<std::string> cleared_;        ///< what is kept that threads without a pass read, too
};

}  // namespace

std::string emit_body(const rows::RowProgram& program, Kernel& kernel) {
  return TeamEmitter(program, kernel).run();
}

}  // namespace pw::cuda
