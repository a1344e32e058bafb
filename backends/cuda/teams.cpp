// Exports emit_body. A block of statements is emitted for a team of threads: values of the row are
// computed by all of them, loops and reductions are shared out.
#include "backends/cuda/teams.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "backends/cuda/access.hpp"
#include "backends/cuda/expressions.hpp"

namespace pw::cuda {
namespace {

using rows::Block;
using rows::Operation;
using rows::Statement;
using Kind = rows::Statement::Kind;

constexpr int kMaxTeam = 256;                  // lanes of the widest reduction
constexpr int kMaxKeptWords = 48;              // registers
constexpr std::int64_t kMaxKeptBytes = 98304;  // of shared memory a block
constexpr std::int64_t kMaxParts = 4096;       // blocks that share a row
constexpr std::int64_t kMaxKeptPasses = 8;     // that are unrolled to stay in registers

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
};

/// A group of columns that several loops of one block read.
struct Kept {
  std::string name;
  GroupRead group;
  std::int64_t passes = 0;
  bool shared = false;
  int slot = 0;  ///< of shared memory, in units of passes * team * 16 bytes
  const Statement* first = nullptr;
};

class TeamEmitter {
 public:
  TeamEmitter(const rows::RowProgram& program, Kernel& kernel)
      : program_(program), kernel_(kernel), text_(program), accesses_(program) {}

  std::string run() {
    const Block& body = program_.body;
    const int team = needed(body);
    kernel_.team = team;
    kernel_.rows_per_block = team > 32 ? 1 : kMaxTeam / team;
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
    const std::string head = std::move(out_);
    out_.clear();
    block(body, all, 1);
    std::string shared;
    if (units_ > 0) {
      kernel_.shared_bytes = units_ * team * 16;
      shared = "  PW_KEPT(kept);\n";
    }
    return head + shared + out_;
  }

 private:
  // ---- how many threads
  [[nodiscard]] std::int64_t columns(rows::VarId var) const {
    const rows::Interval extent = program_.indices.interval(program_.indices.extent(var));
    return extent.low == extent.high ? extent.high : -1;
  }
  [[nodiscard]] int needed(const Block& body) const {
    int most = 1;
    for (const Statement& s : body) most = std::max(most, needed(s));
    return most;
  }
  [[nodiscard]] int needed(const Statement& s) const {
    if (s.kind != Kind::loop && s.kind != Kind::reduce) return 1;
    const std::int64_t n = columns(s.var);
    if (n < 0) return kMaxTeam;
    if (s.kind == Kind::reduce || !holds_loops(s.first)) return lanes_of(n);
    return std::min(kMaxTeam, needed(s.first) * power_of_two_from(n));
  }

  /// Into how many blocks a row can go: the most passes of a loop, where no reduction is over the
  /// whole row. A step of few tokens then runs on more than a few multiprocessors.
  [[nodiscard]] int parts_of(const Block& body) const {
    std::int64_t most = 1;
    for (const Statement& s : body) {
      if (s.kind == Kind::reduce || s.kind == Kind::branch) return 1;
      if (s.kind != Kind::loop) continue;
      if (columns(s.var) < 0) return 1;
      most = std::max(most, passes_of(s));
    }
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
  void line(int depth, const std::string& text) {
    out_ += std::string(static_cast<std::size_t>(depth) * 2, ' ') + text + "\n";
  }
  std::string index(rows::IndexId id) const { return program_.indices.print(id); }
  static std::string variable(rows::VarId id) { return fmt::format("i{}", id.index); }
  std::string width(rows::VarId var) const { return index(program_.indices.extent(var)); }

  // ---- statements of a team
  void block(const Block& body, const Team& team, int depth) {
    const Scope scope = keep(body, team, depth);
    for (const Statement& s : body) statement(s, team, scope, depth);
  }

  struct Scope {
    std::map<const Statement*, ColumnLoop> loops;
    std::vector<Kept> kept;
  };

  void statement(const Statement& s, const Team& team, const Scope& scope, int depth) {
    const auto columns_of = scope.loops.find(&s);
    switch (s.kind) {
      case Kind::store: {
        std::string condition = team.size > 1 ? team.place + " == 0" : "";
        if (team.spread) condition += (condition.empty() ? "" : " && ") + std::string("part == 0");
        if (!team.live.empty()) condition += (condition.empty() ? "" : " && ") + team.live;
        note({s.argument, true, "one element for a row or a group"});
        return line(depth, fmt::format("{}{}", condition.empty() ? "" : "if (" + condition + ") ",
                                       store_text(s)));
      }
      case Kind::loop:
        if (columns_of == scope.loops.end()) return shared_out(s, team, depth);
        return passes(s, columns_of->second, scope, team, team.size, depth,
                      [&](int at) { column(s.first, columns_of->second, at); });
      case Kind::reduce: return reduce(s, columns_of->second, scope, team, depth);
      case Kind::constant:
      case Kind::load:
      case Kind::compute:
      case Kind::branch: return alone(s, depth);
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
    part.repeated = team.repeated || (!once && !team.spread);
    part.spread = false;
    if (team.spread) {
      line(depth, fmt::format("if (part * {} < {}) {{", parts, n));
      line(depth + 1, fmt::format("const long long g{} = part * {};", id, parts));
    } else if (once) {
      line(depth, "{");
      line(depth + 1, fmt::format("const long long g{} = 0;", id));
    } else {
      line(depth, fmt::format("for (long long g{0} = 0; g{0} < {1}; g{0} += {2}) {{", id,
                              width(s.var), parts));
    }
    const std::string turn =
        parts == 1 ? "g" + id : fmt::format("g{} + {} / {}", id, team.place, part.size);
    if (whole) {
      line(depth + 1, fmt::format("const long long i{} = {};", id, turn));
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
    block(s.first, part, depth + 1);
    line(depth, "}");
  }

  /// The passes of a thread over its groups of 8 columns, the one of `lanes` apart each.
  template <class Body>
  void passes(const Statement& s, const ColumnLoop& loop, const Scope& scope, const Team& team,
              int lanes, int depth, const Body& body) {
    const std::string chunk = fmt::format("c{}", s.var.index);
    const std::string place =
        lanes == team.size ? team.place : fmt::format("{} % {}", team.place, lanes);
    if (loop.columns == 0) {
      const std::string size = width(s.var);
      line(depth, fmt::format("for (long long {0} = {1}; {0} * {2} < {3}; {0} += {4}) {{", chunk,
                              place, kColumns, size, lanes));
      element_loop(s, loop, team, chunk, size, depth + 1, body);
      return line(depth, "}");
    }
    const std::int64_t chunks = (loop.columns + kColumns - 1) / kColumns;
    const std::int64_t turns = (chunks + lanes - 1) / lanes;
    const bool unrolled = std::any_of(scope.kept.begin(), scope.kept.end(), [&](const Kept& k) {
      return !k.shared && uses(loop, k, turns, lanes, team);
    });
    const std::string id = std::to_string(loop.chunk.index);
    if (team.spread) {
      line(depth, fmt::format("if (part < {}) {{", turns));
      line(depth + 1, "const int k = part;");
    } else if (turns == 1) {
      line(depth, "{");
      line(depth + 1, "const int k = 0;");
    } else {
      if (unrolled) out_ += "#pragma unroll\n";
      line(depth, fmt::format("for (int k = 0; k < {}; ++k) {{", turns));
    }
    line(depth + 1, fmt::format("const long long i{} = {} + k * {};", id, place, lanes));
    const bool partial = chunks % lanes != 0;
    if (partial) line(depth + 1, fmt::format("if (i{} < {}) {{", id, chunks));
    const int at = depth + 1 + (partial ? 1 : 0);
    for (std::size_t g = 0; g < loop.groups.size(); ++g)
      read_group(s, loop, g, scope, turns, lanes, team, at);
    const std::string tail = loop.columns % kColumns == 0 ? "" : std::to_string(loop.columns);
    element_loop(s, loop, team, "i" + id, tail, at, body);
    if (partial) line(depth + 1, "}");
    line(depth, "}");
  }

  [[nodiscard]] bool uses(const ColumnLoop& loop, const Kept& kept, std::int64_t turns, int lanes,
                          const Team& team) const {
    return lanes == team.size && kept.passes == turns &&
           std::find(loop.groups.begin(), loop.groups.end(), kept.group) != loop.groups.end();
  }

  std::string group_name(const Statement& s, std::size_t group) const {
    return fmt::format("w{}_{}", s.var.index, group);
  }

  void read_group(const Statement& s, const ColumnLoop& loop, std::size_t g, const Scope& scope,
                  std::int64_t turns, int lanes, const Team& team, int depth) {
    const GroupRead& group = loop.groups[g];
    const std::string name = group_name(s, g), type = fmt::format("pw_words<{}>", group.words);
    if (program_.arguments[group.argument].result)
      return line(depth, fmt::format("{} {} = {{}};", type, name));
    const std::string read = fmt::format("pw_read<{}>(p{} + ({}))", group.words, group.argument,
                                         accesses_.indices().print(group.base));
    const auto kept = std::find_if(scope.kept.begin(), scope.kept.end(), [&](const Kept& k) {
      return k.group == group && uses(loop, k, turns, lanes, team);
    });
    if (kept == scope.kept.end()) {
      ++kernel_.group_reads;
      return line(depth, fmt::format("const {} {} = {};", type, name, read));
    }
    const std::string place =
        kept->shared ? fmt::format("({} * {} + k) * {} + {}, {}", kept->slot, kept->passes,
                                   team.size, team.place, kept->passes * team.size)
                     : "";
    if (kept->first == &s) {
      ++kernel_.group_reads;
      if (!kept->shared) line(depth, fmt::format("{}[k] = {};", kept->name, read));
      line(depth,
           fmt::format("const {} {} = {};", type, name, kept->shared ? read : kept->name + "[k]"));
      if (kept->shared) line(depth, fmt::format("pw_keep(kept, {}, {});", place, name));
      return;
    }
    line(depth, kept->shared ? fmt::format("const {} {} = pw_kept<{}>(kept, {});", type, name,
                                           group.words, place)
                             : fmt::format("const {} {} = {}[k];", type, name, kept->name));
  }

  /// One pass: the 8 columns of a chunk, then what was gathered is written.
  template <class Body>
  void element_loop(const Statement& s, const ColumnLoop& loop, const Team& team,
                    const std::string& chunk, const std::string& tail, int depth,
                    const Body& body) {
    column_ = {&s, &loop, &team};
    out_ += "#pragma unroll\n";
    line(depth, fmt::format("for (int e = 0; e < {}; ++e) {{", kColumns));
    line(depth + 1,
         fmt::format("const long long {} = {} * {} + e;", variable(s.var), chunk, kColumns));
    if (!tail.empty()) line(depth + 1, fmt::format("if ({} < {}) {{", variable(s.var), tail));
    body(depth + (tail.empty() ? 1 : 2));
    if (!tail.empty()) line(depth + 1, "}");
    line(depth, "}");
    for (std::size_t g = 0; g < loop.groups.size(); ++g) {
      const GroupRead& group = loop.groups[g];
      if (!program_.arguments[group.argument].result) continue;
      ++kernel_.group_writes;
      line(depth,
           fmt::format("{}pw_write(p{} + ({}), {});",
                       team.live.empty() ? "" : fmt::format("if ({}) ", team.live), group.argument,
                       accesses_.indices().print(group.base), group_name(s, g)));
    }
    column_ = {};
  }

  void reduce(const Statement& s, const ColumnLoop& loop, const Scope& scope, const Team& team,
              int depth) {
    const std::string type(type_of(s.unit)), id = std::to_string(s.slot.index);
    const bool mean = s.operation == Operation::mean;
    const std::string function = fmt::format("pw_{}<{}>", mean ? "sum" : name(s.operation), type);
    const std::int64_t n = columns(s.var);
    const int lanes = n < 0 ? kMaxTeam : lanes_of(n);
    line(depth, fmt::format("{} a{} = {}::start();", type, id, function));
    const auto accumulate = [&](int at) {
      column(s.first, loop, at);
      line(at, fmt::format("a{0} = {1}::of(a{0}, {2});", id, function,
                           text_.in_unit(s.operands[0], s.unit)));
    };
    if (n < 0) {
      line(depth, fmt::format("const int n{} = (int)pw_lanes({});", id, width(s.var)));
      const std::string chunk = fmt::format("c{}", s.var.index);
      line(depth, fmt::format("for (long long {0} = {1} % n{2}; {0} * {3} < {4}; {0} += n{2}) {{",
                              chunk, team.place, id, kColumns, width(s.var)));
      element_loop(s, loop, team, chunk, width(s.var), depth + 1, accumulate);
      line(depth, "}");
    } else if (n > 0) {
      passes(s, loop, scope, team, lanes, depth, accumulate);
    }
    const auto meet = [&](const std::string& text, const std::string& condition) {
      line(depth, fmt::format("{}a{} = {};", condition, id, text));
    };
    if (lanes > 32) {
      // By the place in the block: parts of the team meet side by side.
      line(depth, fmt::format("PW_SHARED({}, s{}, {});", type, id, kernel_.team));
      line(depth, fmt::format("pw_put(s{0}, t, a{0});", id));
      barrier(depth);
      meet(fmt::format("pw_meet<{}, {}>(s{}, t, {})", type, function, id,
                       n < 0 ? "n" + id : std::to_string(lanes)),
           n < 0 ? fmt::format("if (n{} > 32) ", id) : "");
      if (team.repeated) barrier(depth);
    }
    for (int d = std::min(lanes, 32) / 2; d > 0; d /= 2)
      meet(fmt::format("pw_pair<{}, {}>(a{}, {}, {})", type, function, id, d, team.place),
           n < 0 ? fmt::format("if (n{} > {}) ", id, d) : "");
    // An empty mean of integers divides by zero; pw_div says what that gives.
    std::string total = "a" + id;
    if (mean) total = fmt::format("pw_div({}, ({})({}))", total, type, width(s.var));
    line(depth, text_.rounded(s.slot, total, s.unit));
  }
  void barrier(int depth) {
    ++kernel_.barriers;
    line(depth, "__syncthreads();");
  }

  // ---- statements of one thread, alone or for one column
  void column(const Block& body, const ColumnLoop&, int depth) {
    for (const Statement& s : body) alone(s, depth);
  }

  void alone(const Statement& s, int depth) {
    switch (s.kind) {
      case Kind::constant:
      case Kind::compute: return line(depth, text_.defined(s));
      case Kind::load: return line(depth, load_text(s));
      case Kind::store: return line(depth, store_text(s));
      case Kind::branch: return branch(s, depth);
      case Kind::loop:
        line(depth, fmt::format("for (long long {0} = 0; {0} < {1}; ++{0}) {{", variable(s.var),
                                width(s.var)));
        for (const Statement& inner : s.first) alone(inner, depth + 1);
        return line(depth, "}");
      case Kind::reduce: return reduce_alone(s, depth);
    }
  }

  const Access* access(const Statement& s) const {
    if (!column_.loop) return nullptr;
    const auto found = column_.loop->accesses.find(&s);
    return found == column_.loop->accesses.end() ? nullptr : &found->second;
  }

  std::string load_text(const Statement& s) {
    const Access* how = access(s);
    if (how && how->kind == Access::Kind::groups) {
      return text_.loaded(s.slot, taken(s, *how));
    }
    if (how && how->kind == Access::Kind::element) note({s.argument, false, how->why});
    return text_.loaded(s.slot, fmt::format("p{}[{}]", s.argument, index(s.index)));
  }

  /// The element of a group that column e reads.
  std::string taken(const Statement& s, const Access& how) const {
    const auto table = [](const auto& numbers) {
      std::uint64_t bits = 0;
      bool rising = true, equal = true;
      for (std::size_t e = 0; e < numbers.size(); ++e) {
        bits |= static_cast<std::uint64_t>(numbers[e]) << 4 * e;
        rising = rising && static_cast<std::size_t>(numbers[e]) == e;
        equal = equal && numbers[e] == numbers[0];
      }
      if (rising) return std::string("e");
      if (equal) return std::to_string(numbers[0]);
      return fmt::format("(int)(0x{:08x}u >> 4 * e & 15)", bits);
    };
    const std::string_view type = storage(program_.type(s.argument).dtype);
    const auto take = [&](std::size_t group) {
      return fmt::format("pw_take<{}>({}, {})", type, group_name(*column_.statement, group),
                         table(how.places));
    };
    const std::size_t first = how.groups.front();
    const auto other = std::find_if(how.groups.begin(), how.groups.end(),
                                    [&](std::size_t g) { return g != first; });
    if (other == how.groups.end()) return take(first);
    std::vector<int> which;
    for (std::size_t g : how.groups) which.push_back(g == first ? 0 : 1);
    return fmt::format("({} ? {} : {})", table(which), take(*other), take(first));
  }

  std::string store_text(const Statement& s) {
    const Access* how = access(s);
    const DType to = program_.type(s.argument).dtype;
    const std::string value = text_.stored(s.operands[0]);
    if (how && how->kind == Access::Kind::groups) {
      return fmt::format("pw_insert<{}>({}, e, {});", storage(to),
                         group_name(*column_.statement, how->groups[0]), value);
    }
    if (how) note({s.argument, true, how->why});
    const bool guarded = column_.team && !column_.team->live.empty();
    return fmt::format("{}p{}[{}] = {};",
                       guarded ? fmt::format("if ({}) ", column_.team->live) : "", s.argument,
                       index(s.index), value);
  }

  void note(ElementAccess access) {
    auto& all = kernel_.elements;
    if (std::find(all.begin(), all.end(), access) == all.end()) all.push_back(std::move(access));
  }

  void branch(const Statement& s, int depth) {
    const DType to = text_.dtype(s.slot);
    const std::string slot = Expressions::slot(s.slot), own = "u" + std::to_string(s.slot.index);
    line(depth, fmt::format("{} {};", held(to), own));
    line(depth, fmt::format("if ({} < {}) {{", index(s.index), index(s.bound)));
    for (const Statement& inner : s.first) alone(inner, depth + 1);
    line(depth + 1, fmt::format("{} = {};", own, Expressions::slot(s.operands[0])));
    line(depth, "} else {");
    for (const Statement& inner : s.second) alone(inner, depth + 1);
    line(depth + 1, fmt::format("{} = {};", own, Expressions::slot(s.operands[1])));
    line(depth, "}");
    line(depth, text_.given(s.slot, own));
  }

  void reduce_alone(const Statement& s, int depth) {
    const std::string type(type_of(s.unit)), id = std::to_string(s.slot.index);
    const bool mean = s.operation == Operation::mean;
    const std::string function = fmt::format("pw_{}<{}>", mean ? "sum" : name(s.operation), type);
    const std::string size = width(s.var), var = variable(s.var);
    const auto accumulate = [&](int at) {
      for (const Statement& inner : s.first) alone(inner, at);
      line(at, fmt::format("a{0} = {1}::of(a{0}, {2});", id, function,
                           text_.in_unit(s.operands[0], s.unit)));
    };
    std::string total = "r" + id;
    line(depth, fmt::format("{} r{};", type, id));
    line(depth, "{");
    const std::int64_t n = columns(s.var);
    if (n >= 0 && n <= kColumns) {
      line(depth + 1, fmt::format("{} a{} = {}::start();", type, id, function));
      line(depth + 1, fmt::format("for (long long {0} = 0; {0} < {1}; ++{0}) {{", var, size));
      accumulate(depth + 2);
      line(depth + 1, "}");
      line(depth + 1, fmt::format("r{0} = a{0};", id));
    } else {
      line(depth + 1, fmt::format("pw_tree<{}, {}> t{};", type, function, id));
      line(depth + 1, fmt::format("const long long l{} = pw_lanes({});", id, size));
      line(depth + 1, fmt::format("for (long long q{0} = 0; q{0} < l{0}; ++q{0}) {{", id));
      line(depth + 2, fmt::format("{} a{} = {}::start();", type, id, function));
      line(
          depth + 2,
          fmt::format(
              "for (long long c{0} = pw_lane(q{0}, l{0}) * {1}; c{0} < {2}; c{0} += l{0} * {1}) {{",
              id, kColumns, size));
      line(depth + 3, fmt::format("const long long e{0} = c{0} + {1} < {2} ? c{0} + {1} : {2};", id,
                                  kColumns, size));
      line(depth + 3, fmt::format("for (long long {0} = c{1}; {0} < e{1}; ++{0}) {{", var, id));
      accumulate(depth + 4);
      line(depth + 3, "}");
      line(depth + 2, "}");
      line(depth + 2, fmt::format("t{0}.push(q{0}, a{0});", id));
      line(depth + 1, "}");
      line(depth + 1, fmt::format("r{0} = t{0}.total;", id));
    }
    line(depth, "}");
    if (mean) total = fmt::format("pw_div({}, ({})({}))", total, type, size);
    line(depth, text_.rounded(s.slot, total, s.unit));
  }

  // ---- what is read by several loops of a block
  Scope keep(const Block& body, const Team& team, int depth) {
    Scope scope;
    struct Candidate {
      GroupRead group;
      std::int64_t passes;
      const Statement* first;
      int uses;
    };
    std::vector<Candidate> candidates;
    for (const Statement& s : body) {
      const bool columns_here =
          s.kind == Kind::reduce || (s.kind == Kind::loop && !holds_loops(s.first));
      if (!columns_here) continue;
      const ColumnLoop& loop =
          scope.loops.emplace(&s, accesses_.plan(s.var, s.first)).first->second;
      const int lanes = s.kind == Kind::reduce ? lanes_of(loop.columns) : team.size;
      if (loop.columns == 0 || lanes != team.size || team.spread) continue;
      const std::int64_t chunks = (loop.columns + kColumns - 1) / kColumns;
      const std::int64_t turns = (chunks + lanes - 1) / lanes;
      for (const GroupRead& g : loop.groups) {
        if (program_.arguments[g.argument].result || g.words < 2) continue;
        const auto found =
            std::find_if(candidates.begin(), candidates.end(),
                         [&](const Candidate& c) { return c.group == g && c.passes == turns; });
        if (found == candidates.end())
          candidates.push_back({g, turns, &s, 1});
        else
          ++found->uses;
      }
    }
    for (const Candidate& c : candidates) {
      if (c.uses < 2) continue;
      Kept kept{fmt::format("h{}", kept_count_), c.group, c.passes, false, 0, c.first};
      const std::int64_t words = c.passes * c.group.words;
      const std::int64_t units = c.passes * ((c.group.words + 3) / 4);
      if (c.passes <= kMaxKeptPasses && kernel_.kept_words + words <= kMaxKeptWords) {
        kernel_.kept_words += static_cast<int>(words);
        line(depth, fmt::format("pw_words<{}> {}[{}];", c.group.words, kept.name, c.passes));
      } else if (!team.repeated && team.size > 32 && team.place == "t" &&
                 (units_ + units) * team.size * 16 <= kMaxKeptBytes) {
        kept.shared = true;
        kept.slot = static_cast<int>(units_ / c.passes);
        if (units_ % c.passes != 0) continue;
        units_ += units;
      } else {
        continue;
      }
      ++kept_count_;
      scope.kept.push_back(kept);
    }
    return scope;
  }

  const rows::RowProgram& program_;
  Kernel& kernel_;
  Expressions text_;
  AccessPlan accesses_;
  std::string out_;
  int kept_count_ = 0;
  std::int64_t units_ = 0;  ///< of 16 bytes a thread, kept in shared memory
  struct {
    const Statement* statement = nullptr;
    const ColumnLoop* loop = nullptr;
    const Team* team = nullptr;
  } column_;  ///< where the statements of a column stand
};

}  // namespace

std::string emit_body(const rows::RowProgram& program, Kernel& kernel) {
  return TeamEmitter(program, kernel).run();
}

}  // namespace pw::cuda
