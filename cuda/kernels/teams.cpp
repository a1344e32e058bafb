// Emits a row program as CUDA C++ for a team of threads, which share one row. The problem is to
// divide loops and reductions over rows of any width so that memory accesses are wide and
// coalesced, data that is read again stays on chip, and results do not depend on the division. All
// threads of the team compute row values; loops and reductions are divided among them.
//
// * Team size: it follows from the widest loop, as a power of two of at most 256 with a thread for
//   each 8 columns. Teams of at most a warp share a block. A row without a reduction may be divided
//   among several blocks.
// * Loops over columns: they run in passes. In a pass a thread has 8 neighbouring columns and moves
//   them in one wide access if they are contiguous (access.cpp). Data that a later loop reads again
//   stays in registers or shared memory (kept.cpp).
// * Loops around other loops: each part of the team executes one pass at a time.
// * Reductions: they follow a fixed tree that depends on the width alone. Chunk c of 8 columns
//   belongs to lane c mod lanes; each lane adds in ascending order; then lanes are combined
//   pairwise, the farthest first. The bits thus do not depend on the schedule, and equal the
//   interpreter's.
//
// Invariant: all threads of a block reach every barrier, because branches around barriers depend
// only on the kernel's constants. Reductions use 8 exchange slots in shared memory in turn, so one
// barrier for each reduction suffices.
//
// Cost: each element is loaded once if it can be kept on chip, else once for each phase that reads
// it; a reduction costs log2(lanes) exchanges and at most one barrier, or one for each group of 256
// threads. Emission is linear in the program.
#include "cuda/kernels/teams.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "base/assert.hpp"
#include "cuda/kernels/kept.hpp"
#include "cuda/kernels/kept_values.hpp"
#include "cuda/kernels/team_size.hpp"
#include "cuda/kernels/thread_text.hpp"

namespace pw::cuda {
namespace {

using rows::Block;
using rows::Statement;
using StatementKind = rows::Statement::Kind;

constexpr std::size_t kMaxUnrolled =
    600;  // statements; unrolling 8 times more would compile slowly
/// Threads that share a row, or a pass of a loop in the row.
struct Team {
  int size = 1;
  std::string place = "t";  ///< expression of a thread's index in the team
  std::string live;         ///< condition under which it may store; empty: always
  bool repeated = false;    ///< its statements run several times in one block
  bool spread = false;      ///< passes of its loops are divided among blocks
  bool whole_warps = true;  ///< all threads of a warp execute its statements
  int groups = 1;  ///< number of 256-thread groups; each has neighbouring passes of wide loops
};

class TeamEmitter {
 public:
  TeamEmitter(const rows::RowProgram& program, const std::vector<KeptValue>& values, Kernel& kernel)
      : program_(program),
        values_(values),
        kernel_(kernel),
        thread_(program, kernel, text_),
        accesses_(program),
        size_(program),
        store_(program, kernel) {}

  /// Returns the number of threads that share a row.
  int team() { return size_.needed(program_.body) * size_.groups(program_.body); }

  std::string run() {
    const Block& body = program_.body;
    const int groups = size_.groups(body), team = needed(body) * groups;
    kernel_.team = team;
    kernel_.rows_per_block = team > 32 ? 1 : std::max(kernel_.schedule.block / team, 1);
    kernel_.threads = team * kernel_.rows_per_block;
    kernel_.column_blocks =
        kernel_.rows_per_block == 1 ? size_.parts(body, team, kernel_.schedule) : 1;
    Team all;
    all.size = team;
    all.groups = groups;
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
    // The body is emitted before the declarations of exchange slots, because it determines which
    // are needed.
    const std::string head = std::move(text_.out);
    text_.out.clear();
    block(body, all, 1);
    keep_accesses();
    return head + meeting_places_ + (kernel_.shared_bytes > 0 ? "  PW_KEPT(kept);\n" : "") +
           text_.out;
  }

 private:
  // ---- recorded accesses
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
  /// Returns the number of blocks among which the loops of a team are divided.
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
  /// Records the words that a thread moves in one or several accesses.
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

  /// Records 16 bytes moved by one of two threads.
  void record_pair(std::size_t argument) {
    AccessNode access;
    access.write = access.live = true;
    access.argument = argument;
    access.bytes = 16;
    access.one_of = 2;
    text_.accesses.add(access);
  }

  // ---- numbers of threads
  [[nodiscard]] std::int64_t columns(rows::VarId var) const { return thread_.columns(var); }
  [[nodiscard]] int needed(const Block& body) const { return size_.needed(body); }
  [[nodiscard]] int needed(const Statement& s) const { return size_.needed(s); }

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
      return is_value(g.argument) || lent_.count({s, g.argument, g.base}) != 0;
    };
    const std::vector<Kept> values = values_of(scope);
    if (!team.spread)
      scope.kept = store_.choose(readers, lent, team.size, !team.repeated && team.place == "t");
    scope.kept.insert(scope.kept.end(), values.begin(), values.end());
    if (team.size <= 32 && team.whole_warps && kernel_.threads % 32 == 0)
      pass_across(body, scope, team);
    lend(scope, team);
    for (const Kept& k : scope.kept) {
      if (!k.shared)
        line(depth, fmt::format("pw_words<{}> {}[{}]{};", k.group.words, k.name, k.passes,
                                cleared_.count(k.name) != 0 ? " = {}" : ""));
    }
    for (const Statement& s : body) statement(s, team, scope, depth);
  }

  /// An inner loop whose groups are also groups of one loop over both levels: in both, pass k of
  /// thread t is group t + k * threads.
  struct Nested {
    const Statement* outer;
    ColumnPasses flat;           ///< groups in the combined loop
    std::vector<GroupRead> own;  ///< groups in the inner loop
    int parts;                   ///< distance of a thread's passes within a group of threads
    bool whole;                  ///< every thread has a pass
  };
  struct Scope {
    std::map<const Statement*, ColumnPasses> loops;
    std::map<const Statement*, Nested> nested;
    std::vector<Kept> kept;
  };
  /// Groups that an outer team keeps for a loop inside its loops.
  struct Lent {
    Kept kept;
    std::string pass;  ///< pass of the outer team
    int team = 1;
    std::string place;
  };

  /// Serves a narrow loop from data that a reduction has read: each thread holds one group in
  /// registers, and receives the needed group from another thread of its warp by an exchange.
  void pass_across(const Block& body, Scope& scope, const Team& team) {
    for (const Statement& c : body) {
      const auto loop = scope.loops.find(&c);
      if (c.kind != StatementKind::loop || loop == scope.loops.end()) continue;
      const ColumnPasses& narrow = loop->second;
      for (const GroupRead& g : narrow.loop.groups) {
        if (writes(c, g.argument) || is_value(g.argument) || narrow.passes != 1 || g.words < 2 ||
            kept_of(scope, narrow, g) != nullptr || lent_.count({&c, g.argument, g.base}) != 0)
          continue;
        for (const Statement& r : body) {
          if (&r == &c) break;
          if (r.kind == StatementKind::reduce && across(c, narrow, g, r, scope, team)) break;
        }
      }
    }
  }
  bool across(const Statement& c, const ColumnPasses& narrow, const GroupRead& g,
              const Statement& r, Scope& scope, const Team& team) {
    const ColumnPasses& wide = scope.loops.at(&r);
    if (wide.passes != 1 || wide.lanes != team.size) return false;
    const std::int64_t chunks = narrow.loop.columns / kColumns;
    for (const GroupRead& from : wide.loop.groups) {
      const auto far = accesses_.distance(g, narrow.loop, from, wide.loop);
      if (!far || *far < 0 || *far + chunks > wide.loop.columns / kColumns) continue;
      if (*far > 0 && (*far < chunks || (*far & (*far - 1)) != 0)) continue;
      if (lent_.count({&r, from.argument, from.base}) != 0) continue;
      const Kept* kept = kept_of(scope, wide, from);
      if (kept == nullptr) {
        scope.kept.push_back(
            {fmt::format("y{}", across_.size()), from, wide.lanes, 1, false, 0, &r});
        kernel_.kept_words += from.words;
        kept = &scope.kept.back();
      }
      if (kept->shared) return false;
      across_[{&c, g.argument, g.base}] =
          *far == 0 ? kept->name + "[0]" : fmt::format("pw_swapped({}[0], {})", kept->name, *far);
      return true;
    }
    return false;
  }

  [[nodiscard]] bool is_value(std::size_t argument) const {
    return std::any_of(values_.begin(), values_.end(),
                       [&](const KeptValue& v) { return v.argument == argument; });
  }
  /// Returns true if a loop writes an argument, or computes the kept value of that argument.
  [[nodiscard]] bool writes(const Statement& s, std::size_t argument) const {
    return program_.arguments[argument].result ||
           std::any_of(values_.begin(), values_.end(), [&](const KeptValue& v) {
             return v.argument == argument && v.producer == s.var;
           });
  }
  /// Returns true if a loop computes the columns that it stores to an argument, in a dtype for
  /// which two are rounded at once.
  [[nodiscard]] bool is_packed(const Statement& loop, std::size_t argument) const {
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
  /// Declares the registers of values that loops of this block keep.
  std::vector<Kept> values_of(const Scope& scope) {
    std::vector<Kept> out;
    for (const auto& [s, p] : scope.loops) {
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
      Nested nested{&s, {}, {}, parts / team.groups, n % parts == 0};
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

  ColumnPasses passes_through(const Statement& s, const Team& team) {
    ColumnPasses p{accesses_.plan(s.var, s.first), team.size, 0};
    if (s.kind == StatementKind::reduce)
      p.lanes = columns(s.var) < 0 ? kMaxTeam : lanes_of(columns(s.var));
    const std::int64_t chunks = (p.loop.columns + kColumns - 1) / kColumns;
    if (team.groups > 1 && p.lanes >= kMaxTeam) p.lanes = team.size;
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
        thread_.note({s.argument, true, "one element per row or group"});
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
      case StatementKind::check:
      case StatementKind::branch: return thread_.statement(s, depth);
    }
  }

  /// Begins the loop over the passes that each of `parts` parts of the team executes.
  void begin_passes(const Statement& s, const Team& team, int parts, int depth) {
    const std::int64_t n = columns(s.var);
    const std::string id = std::to_string(s.var.index);
    if (team.spread && kernel_.schedule.passes > 1) {
      line(depth, fmt::format("for (long long g{0} = part * {1}; g{0} < {2}; g{0} += {3}) {{", id,
                              parts, n, std::int64_t{parts} * kernel_.column_blocks));
    } else if (team.spread) {
      line(depth, fmt::format("if (part * {} < {}) {{", parts, n));
      line(depth + 1, fmt::format("const long long g{} = part * {};", id, parts));
    } else if (n >= 0 && n <= parts) {
      line(depth, "{");
      line(depth + 1, fmt::format("const long long g{} = 0;", id));
    } else if (team.groups > 1) {
      // Pass k of a thread has the same columns as in a loop over all of them.
      if (unrolled_.count(&s) != 0) text_.out += "#pragma unroll\n";
      line(depth,
           fmt::format("for (int g{0} = 0; g{0} < {1}; g{0} += {2}) {{", id,
                       (n + parts - 1) / parts * (parts / team.groups), parts / team.groups));
    } else {
      if (unrolled_.count(&s) != 0) text_.out += "#pragma unroll\n";
      line(depth, fmt::format("for (long long g{0} = 0; g{0} < {1}; g{0} += {2}) {{", id,
                              width(s.var), parts));
    }
  }

  /// Emits a loop around other loops: parts of the team execute a pass each.
  void shared_out(const Statement& s, const Team& team, int depth) {
    Team part = team;
    part.size = std::min(team.size, needed(s.first));
    const int parts = team.size / part.size;
    const std::int64_t n = columns(s.var);
    const std::string id = std::to_string(s.var.index);
    const bool once = n >= 0 && n <= parts, whole = n >= 0 && n % parts == 0;
    // Threads without a pass may skip the body if it has no reduction, or if reductions stay within
    // a warp and whole warps have no pass.
    const bool apart = n >= 0 && size_.widest_within(s.first) <= 32 &&
                       (n % parts) * part.size % 32 == 0 && kernel_.threads % 32 == 0 &&
                       team.whole_warps;
    const bool guarded = !whole && (TeamSize::reductions(s.first) == 0 || apart);
    part.repeated = team.repeated || (!once && !(team.spread && kernel_.schedule.passes == 1));
    part.spread = false;
    begin_passes(s, team, parts, depth);
    const std::string turn =
        parts == 1 ? "g" + id
        : team.groups > 1 && !once
            ? fmt::format("g{} + ({}) / {}", id, place_of(team, (n + parts - 1) / parts), part.size)
            : fmt::format("g{} + {} / {}", id, team.place, part.size);
    part.groups = 1;
    if (whole) {
      line(depth + 1, fmt::format("const long long i{} = {};", id, turn));
    } else if (guarded) {
      line(depth + 1, fmt::format("const long long i{} = {};", id, turn));
      part.whole_warps = apart;
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

  /// Returns the index of a thread's first column group if it has `passes` passes of a loop that
  /// the whole team shares. The next pass is one group of threads further on.
  [[nodiscard]] static std::string place_of(const Team& team, std::int64_t passes) {
    if (team.groups == 1 || passes == 1) return team.place;
    return fmt::format("{0} % {1} + {0} / {1} * {2}", team.place, kMaxTeam, kMaxTeam * passes);
  }

  /// The work of a pass. A reduction by several groups of threads reads its data beforehand.
  enum class Part : std::uint8_t { all, reads, rest };

  /// Emits a thread's passes over its groups of 8 columns.
  template <class Body>
  void passes(const Statement& s, const ColumnPasses& p, const Scope& scope, const Team& team,
              int depth, const Body& body, Part part = Part::all) {
    const std::string place = p.lanes == team.size ? place_of(team, p.passes)
                                                   : fmt::format("{} % {}", team.place, p.lanes);
    const std::int64_t step = p.lanes == team.size ? p.lanes / team.groups : p.lanes;
    if (p.loop.columns == 0) {
      const std::string chunk = fmt::format("c{}", s.var.index), size = width(s.var);
      line(depth, fmt::format("for (long long {0} = {1}; {0} * {2} < {3}; {0} += {4}) {{", chunk,
                              place, kColumns, size, p.lanes));
      text_.accesses.loop(shared(AccessNode::Share::columns, s.var, p.lanes, team),
                          [&] { element_loop(s, p.loop, team, chunk, size, depth + 1, body); });
      return line(depth, "}");
    }
    const bool unrolled =
        part != Part::all || std::any_of(scope.kept.begin(), scope.kept.end(),
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
    line(depth + 1, fmt::format("const long long {} = {} + k * {};", chunk, place, step));
    for (std::size_t g = 0; g < p.loop.groups.size(); ++g) {
      const GroupRead& group = p.loop.groups[g];
      if (const auto far = across_.find({&s, group.argument, group.base}); far != across_.end())
        line(depth + 1, fmt::format("const pw_words<{}> {}{} = {};", group.words, group_names(s), g,
                                    far->second));
    }
    const bool partial = chunks % p.lanes != 0;
    if (partial) line(depth + 1, fmt::format("if ({} < {}) {{", chunk, chunks));
    const int at = depth + 1 + (partial ? 1 : 0);
    text_.accesses.loop(shared(AccessNode::Share::chunks, s.var, p.lanes, team), [&] {
      for (std::size_t g = 0; g < p.loop.groups.size(); ++g) {
        if (part == Part::reads)
          read_ahead(s, p, g, scope, team, at);
        else
          read_group(s, p, g, scope, team, at, part == Part::rest);
      }
    });
    if (part != Part::reads) {
      const std::string tail = p.loop.columns % kColumns == 0 ? "" : std::to_string(p.loop.columns);
      text_.accesses.loop(shared(AccessNode::Share::columns, s.var, p.lanes, team),
                          [&] { element_loop(s, p.loop, team, chunk, tail, at, body); });
      text_.accesses.loop(shared(AccessNode::Share::chunks, s.var, p.lanes, team),
                          [&] { write_groups(s, p, team, at); });
    }
    if (partial) line(depth + 1, "}");
    line(depth, "}");
  }

  [[nodiscard]] static bool uses(const ColumnPasses& p, const Kept& kept) {
    return kept.serves(p) &&
           std::find(p.loop.groups.begin(), p.loop.groups.end(), kept.group) != p.loop.groups.end();
  }

  static std::string group_names(const Statement& s) { return fmt::format("w{}_", s.var.index); }

  [[nodiscard]] std::string global_read(const GroupRead& group) const {
    return fmt::format("pw_read<{}>(p{} + ({}))", group.words, group.argument,
                       accesses_.indices().print(group.base));
  }
  [[nodiscard]] std::string shared_place(const Kept& kept, const Team& team) const {
    return fmt::format("({} * {} + k) * {} + {}, {}", kept.slot, kept.passes, team.size, team.place,
                       kept.passes * team.size);
  }
  [[nodiscard]] static std::string ahead(const Statement& s, std::size_t g) {
    return fmt::format("l{}_{}", s.var.index, g);
  }
  [[nodiscard]] static const Kept* kept_of(const Scope& scope, const ColumnPasses& p,
                                           const GroupRead& group) {
    const auto kept = std::find_if(scope.kept.begin(), scope.kept.end(),
                                   [&](const Kept& k) { return k.group == group && k.serves(p); });
    return kept == scope.kept.end() ? nullptr : &*kept;
  }
  void count_read(const ColumnPasses& p, const GroupRead& group) {
    ++kernel_.group_reads;
    if (std::find(read_.begin(), read_.end(), group) != read_.end()) {
      ++kernel_.again_reads;
      kernel_.again_bytes += p.loop.columns / kColumns * group.words * 4;
    }
    record_words(Space::global, false, group.words, group.argument);
    read_.push_back(group);
  }

  /// Returns words that an earlier phase has loaded. With several passes the compiler must
  /// recompute derived values, which saves registers.
  [[nodiscard]] static std::string again(const std::string& words, std::int64_t passes) {
    return passes > 1 ? "pw_again(" + words + ")" : words;
  }

  /// Emits the loads of a reduction before it begins, into kept storage or its own registers.
  void read_ahead(const Statement& s, const ColumnPasses& p, std::size_t g, const Scope& scope,
                  const Team& team, int depth) {
    const GroupRead& group = p.loop.groups[g];
    const Kept* kept = kept_of(scope, p, group);
    if (writes(s, group.argument) || (kept != nullptr && kept->first != &s)) return;
    count_read(p, group);
    if (kept == nullptr || !kept->shared)
      return line(depth, fmt::format("{}[k] = {};", kept == nullptr ? ahead(s, g) : kept->name,
                                     global_read(group)));
    record_words(Space::shared, true, group.words);
    line(depth,
         fmt::format("pw_keep(kept, {}, {});", shared_place(*kept, team), global_read(group)));
  }

  void read_group(const Statement& s, const ColumnPasses& p, std::size_t g, const Scope& scope,
                  const Team& team, int depth, bool read_before) {
    const GroupRead& group = p.loop.groups[g];
    const std::string name = group_names(s) + std::to_string(g);
    const std::string type = fmt::format("pw_words<{}>", group.words);
    if (writes(s, group.argument)) {
      if (is_packed(s, group.argument)) line(depth, fmt::format("float x{}[{}];", name, kColumns));
      return line(depth, fmt::format("{} {} = {{}};", type, name));
    }
    if (const auto lent = lent_.find({&s, group.argument, group.base}); lent != lent_.end())
      return read_lent(lent->second, group, name, depth);
    if (across_.count({&s, group.argument, group.base}) != 0) return;
    const Kept* kept = kept_of(scope, p, group);
    const bool first = !read_before && (kept == nullptr || kept->first == &s);
    PW_ASSERT(kept != nullptr || !is_value(group.argument), "a value that is kept nowhere is read");
    if (first) count_read(p, group);
    if (kept == nullptr)
      return line(depth, fmt::format("const {} {} = {};", type, name,
                                     read_before ? again(ahead(s, g) + "[k]", p.passes)
                                                 : global_read(group)));
    if (!kept->shared) {
      if (first) line(depth, fmt::format("{}[k] = {};", kept->name, global_read(group)));
      return line(depth,
                  fmt::format("const {} {} = {};", type, name,
                              first ? kept->name + "[k]" : again(kept->name + "[k]", p.passes)));
    }
    record_words(Space::shared, first, group.words);
    if (!first)
      return line(depth, fmt::format("const {} {} = pw_kept<{}>(kept, {});", type, name,
                                     group.words, shared_place(*kept, team)));
    line(depth, fmt::format("const {} {} = {};", type, name, global_read(group)));
    line(depth, fmt::format("pw_keep(kept, {}, {});", shared_place(*kept, team), name));
  }

  /// Emits the read of a group that an outer team keeps.
  void read_lent(const Lent& lent, const GroupRead& group, const std::string& name, int depth) {
    const std::string type = fmt::format("pw_words<{}>", group.words);
    if (!lent.kept.shared)
      return line(depth, fmt::format("const {} {} = {};", type, name,
                                     again(fmt::format("{}[{}]", lent.kept.name, lent.pass),
                                           lent.kept.passes)));
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

  /// Emits one pass: the 8 columns of a chunk.
  template <class Body>
  void element_loop(const Statement& s, const ColumnLoop& loop, const Team& team,
                    const std::string& chunk, const std::string& tail, int depth,
                    const Body& body) {
    thread_.place = {&loop, group_names(s), team.live};
    for (const GroupRead& g : loop.groups)
      if (writes(s, g.argument) && is_packed(s, g.argument))
        thread_.place.packed.insert(g.argument);
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

  /// Returns true if neighbouring threads may combine their 8-byte stores, which requires that
  /// whole warps execute them.
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
      if (!writes(s, group.argument)) continue;
      if (is_packed(s, group.argument))
        line(depth, fmt::format("pw_pack_{0}({1}{2}, x{1}{2});",
                                name(program_.type(group.argument).dtype), group_names(s), g));
      if (is_value(group.argument)) {
        line(depth, fmt::format("z{}[k] = {}{};", group.argument, group_names(s), g));
        continue;
      }
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
    } else if (p.loop.columns > 0 && (team.groups == 1 || p.lanes != team.size)) {
      passes(s, p, scope, team, depth, accumulate);
    }
    const auto meet = [&](int more_than, const std::string& text) {
      const std::string condition = known ? "" : fmt::format("if ({} > {}) ", lanes, more_than);
      line(depth, fmt::format("{}a{} = {};", condition, id, text));
    };
    if (team.groups > 1 && p.lanes == team.size) {
      in_turns(s, p, scope, team, depth, accumulate);
    } else if (p.lanes > 32) {
      // Indexed by the thread's place in the block: parts of the team use adjacent places.
      const std::string place = meeting_place(s.unit, team.groups > 1 ? kMaxTeam : kernel_.team);
      line(depth, fmt::format("pw_put({}, t, a{});", place, id));
      record_meeting(s, known ? p.lanes : 0);
      barrier(depth);
      meet(32, fmt::format("pw_meet<{}, {}>({}, t, {})", type, of, place,
                           known ? std::to_string(p.lanes) : lanes));
      if (team.repeated) barrier(depth);
    }
    for (int d = std::min(p.lanes, 32) / 2; d > 0; d /= 2)  // within a warp
      meet(d, fmt::format("pw_pair<{}, {}>(a{}, {}, {})", type, of, id, d, team.place));
    thread_.total(s, "a" + id, depth);
  }
  /// Emits a reduction by several groups of threads. A lane consists of one thread of each group;
  /// the groups take turns, and each continues with the value that the previous one has stored.
  /// This keeps the order of one lane.
  template <class Body>
  void in_turns(const Statement& s, const ColumnPasses& p, const Scope& scope, const Team& team,
                int depth, const Body& accumulate) {
    const std::string id = std::to_string(s.slot.index), place = meeting_place(s.unit, kMaxTeam);
    for (std::size_t g = 0; g < p.loop.groups.size(); ++g) {
      const GroupRead& group = p.loop.groups[g];
      if (!writes(s, group.argument) && kept_of(scope, p, group) == nullptr)
        line(depth, fmt::format("pw_words<{}> {}[{}];", group.words, ahead(s, g), p.passes));
    }
    passes(s, p, scope, team, depth, accumulate, Part::reads);
    text_.out += "#pragma unroll 1\n";
    line(depth, fmt::format("for (int turn = 0; turn < {}; ++turn) {{", team.groups));
    line(depth + 1, fmt::format("if (turn == {} / {}) {{", team.place, kMaxTeam));
    line(depth + 2,
         fmt::format("if (turn > 0) a{} = pw_at({}, {} % {});", id, place, team.place, kMaxTeam));
    passes(s, p, scope, team, depth + 2, accumulate, Part::rest);
    line(depth + 2, fmt::format("pw_put({}, {} % {}, a{});", place, team.place, kMaxTeam, id));
    line(depth + 1, "}");
    line(depth + 1, "__syncthreads();");
    line(depth, "}");
    kernel_.barriers += team.groups;
    record_turns(s, team.groups);
    record_meeting(s, kMaxTeam);
    const std::string type(type_of(s.unit));
    line(depth, fmt::format("a{} = pw_meet<{}, {}>({}, {} % {}, {});", id, type,
                            ThreadText::function(s), place, team.place, kMaxTeam, kMaxTeam));
  }
  /// Records the reads of the stored values, by all but the first group of threads.
  void record_turns(const Statement& s, int groups) {
    AccessNode access;
    access.space = Space::shared;
    access.bytes = s.unit == rows::Unit::f32 ? 4 : 8;
    access.one_of = groups;
    access.times = groups - 1;
    text_.accesses.add(access);
  }

  /// Returns the exchange slot for the next reduction, declaring it on first use. Slots are reused
  /// in turn: by then enough barriers have passed that all threads have read the earlier values.
  std::string meeting_place(rows::Unit unit, int threads) {
    const int number = meetings_++ % kMeetings;
    const std::string name = fmt::format("s{}_{}", rows::name(unit), number);
    const std::string declaration =
        fmt::format("  PW_SHARED({}, {}, {});\n", type_of(unit), name, threads);
    if (meeting_places_.find(declaration) == std::string::npos) meeting_places_ += declaration;
    return name;
  }
  /// Records the exchange of a reduction: each thread stores its value, and reads those of the
  /// lanes 32 apart.
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
  const std::vector<KeptValue>& values_;
  Kernel& kernel_;
  KernelText text_;
  ThreadText thread_;
  AccessPlan accesses_;
  TeamSize size_;
  KeptStore store_;
  int meetings_ = 0;
  std::string meeting_places_;  ///< declarations of the exchange slots
  std::vector<GroupRead> read_;
  std::map<std::tuple<const Statement*, std::size_t, rows::IndexId>, Lent> lent_;
  /// Expressions of groups in registers of this or another thread of the warp.
  std::map<std::tuple<const Statement*, std::size_t, rows::IndexId>, std::string> across_;
  std::set<const Statement*> unrolled_;  ///< loops whose passes index registers
  std::set<std::string> cleared_;  ///< kept registers that threads without a pass read as well
};

}  // namespace

std::string emit_body(const rows::RowProgram& program, Kernel& kernel) {
  const int team = TeamEmitter(program, {}, kernel).team();
  const WithKeptValues kept = keep_values(program, {team, most_kept_words(kernel.schedule, team)});
  return TeamEmitter(kept.program, kept.values, kernel).run();
}

}  // namespace pw::cuda
