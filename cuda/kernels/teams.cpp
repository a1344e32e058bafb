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
//   stays in registers or shared memory (group_storage.cpp); group_moves.cpp emits the moves.
// * Loops around other loops: each part of the team executes one pass at a time.
// * Reductions: they follow a fixed tree that depends on the width alone. Chunk c of 8 columns
//   belongs to lane c mod lanes; each lane adds in ascending order; then lanes are combined
//   pairwise, the farthest first (exchange.cpp). The bits thus do not depend on the schedule, and
//   equal the interpreter's.
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

#include <fmt/format.h>

#include "cuda/kernels/exchange.hpp"
#include "cuda/kernels/group_moves.hpp"
#include "cuda/kernels/group_storage.hpp"
#include "cuda/kernels/kept_values.hpp"
#include "cuda/kernels/thread_text.hpp"

namespace pw::cuda {
namespace {

using rows::Block;
using rows::Statement;
using StatementKind = rows::Statement::Kind;

/// Statements; unrolling 8 times more would compile slowly.
constexpr std::size_t kMaxUnrolled = 600;

class TeamEmitter {
 public:
  TeamEmitter(const rows::RowProgram& program, const std::vector<KeptValue>& values, Kernel& kernel)
      : program_(program),
        kernel_(kernel),
        thread_(program, kernel, text_),
        storage_(program, values, kernel),
        moves_(program, kernel, text_, storage_),
        exchange_(kernel, text_) {}

  std::string run() {
    Team all = team();
    kernel_.rows_per_block = all.size > 32 ? 1 : std::max(kernel_.schedule.block / all.size, 1);
    kernel_.threads = all.size * kernel_.rows_per_block;
    kernel_.column_blocks = kernel_.rows_per_block == 1
                                ? storage_.size().parts(program_.body, all.size, kernel_.schedule)
                                : 1;
    all.blocks = kernel_.column_blocks;
    line(1, fmt::format("const int t = (int)threadIdx.x % {};", all.size));
    if (kernel_.rows_per_block == 1) {
      line(1, "const long long row = blockIdx.x;");
      if (all.spread()) line(1, "const int part = blockIdx.y;");
    } else {
      line(1,
           fmt::format("const long long turn = (long long)blockIdx.x * {} + (int)threadIdx.x / {};",
                       kernel_.rows_per_block, all.size));
      line(1, "const bool live = turn < rows;");
      line(1, "const long long row = live ? turn : rows - 1;");
      all.live = "live";
    }
    // The body is emitted before the declarations of exchange slots, because it determines which
    // are needed.
    const std::string head = std::move(text_.out);
    text_.out.clear();
    block(program_.body, all, 1);
    keep_accesses();
    return head + exchange_.declarations() +
           (kernel_.shared_bytes > 0 ? "  PW_KEPT(kept);\n" : "") + text_.out;
  }

  RowsInBlock run_in_block(const StagedResult& staged) {
    Team all = team();
    kernel_.rows_per_block = 1;
    kernel_.threads = all.size;
    all.live = "first";
    moves_.stage(staged);
    line(2, "const int t = (int)threadIdx.x;");
    block(program_.body, all, 2);
    return {all.size, exchange_.declarations(), std::move(text_.out)};
  }

 private:
  [[nodiscard]] Team team() {
    TeamSize& size = storage_.size();
    Team all;
    all.groups = size.groups(program_.body);
    all.size = needed(program_.body) * all.groups;
    kernel_.team = all.size;
    return all;
  }

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
  // ---- text
  void line(int depth, const std::string& text) { text_.line(depth, text); }
  [[nodiscard]] std::string width(rows::VarId var) const { return thread_.width(var); }
  [[nodiscard]] std::int64_t columns(rows::VarId var) const { return thread_.columns(var); }
  [[nodiscard]] int needed(const Block& body) { return storage_.size().needed(body); }

  // ---- statements of a team
  void block(const Block& body, const Team& team, int depth) {
    const BlockPlan plan = storage_.plan(body, team);
    for (const Kept& k : plan.kept) {
      if (!k.shared)
        line(depth, fmt::format("pw_words<{}> {}[{}]{};", k.group.words, k.name, k.passes,
                                storage_.is_cleared(k) ? " = {}" : ""));
    }
    for (const Statement& s : body) statement(s, team, plan, depth);
  }

  void statement(const Statement& s, const Team& team, const BlockPlan& plan, int depth) {
    const auto columns_of = plan.loops.find(&s);
    switch (s.kind) {
      case StatementKind::store: return store(s, team, depth);
      case StatementKind::loop:
        if (columns_of == plan.loops.end()) return shared_out(s, team, depth);
        return passes({s, columns_of->second, plan, team}, depth,
                      [&](int at) { thread_.block(s.first, at); });
      case StatementKind::reduce: return reduce({s, columns_of->second, plan, team}, depth);
      case StatementKind::constant:
      case StatementKind::place:
      case StatementKind::load:
      case StatementKind::compute:
      case StatementKind::check:
      case StatementKind::branch: return thread_.statement(s, depth);
    }
  }

  /// Emits a store that one thread of the team executes.
  void store(const Statement& s, const Team& team, int depth) {
    std::string condition = team.size > 1 ? team.place + " == 0" : "";
    if (team.spread()) condition += (condition.empty() ? "" : " && ") + std::string("part == 0");
    if (!team.live.empty()) condition += (condition.empty() ? "" : " && ") + team.live;
    thread_.note({s.argument, true, "one element per row or group"});
    thread_.one_of = std::int64_t{team.size} * team.blocks;
    line(depth,
         fmt::format("{}{}", condition.empty() ? "" : "if (" + condition + ") ", thread_.store(s)));
    thread_.one_of = 1;
  }

  /// Begins the loop over the passes that each of `parts` parts of the team executes.
  void begin_passes(const Statement& s, const Team& team, int parts, int depth) {
    const std::int64_t n = columns(s.var);
    const std::string id = std::to_string(s.var.index);
    if (team.spread() && kernel_.schedule.passes > 1) {
      line(depth, fmt::format("for (long long g{0} = part * {1}; g{0} < {2}; g{0} += {3}) {{", id,
                              parts, n, std::int64_t{parts} * kernel_.column_blocks));
    } else if (team.spread()) {
      line(depth, fmt::format("if (part * {} < {}) {{", parts, n));
      line(depth + 1, fmt::format("const long long g{} = part * {};", id, parts));
    } else if (n >= 0 && n <= parts) {
      line(depth, "{");
      line(depth + 1, fmt::format("const long long g{} = 0;", id));
    } else if (team.groups > 1) {
      // Pass k of a thread has the same columns as in a loop over all of them.
      if (storage_.is_unrolled(s)) text_.out += "#pragma unroll\n";
      line(depth,
           fmt::format("for (int g{0} = 0; g{0} < {1}; g{0} += {2}) {{", id,
                       (n + parts - 1) / parts * (parts / team.groups), parts / team.groups));
    } else {
      if (storage_.is_unrolled(s)) text_.out += "#pragma unroll\n";
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
    const bool separate = n >= 0 && storage_.size().widest_within(s.first) <= 32 &&
                          (n % parts) * part.size % 32 == 0 && kernel_.threads % 32 == 0 &&
                          team.whole_warps;
    const bool guarded = !whole && (TeamSize::reductions(s.first) == 0 || separate);
    part.repeated = team.repeated || (!once && !(team.spread() && kernel_.schedule.passes == 1));
    part.blocks = 1;
    begin_passes(s, team, parts, depth);
    const std::string turn = parts == 1 ? "g" + id
                             : team.groups > 1 && !once
                                 ? fmt::format("g{} + ({}) / {}", id,
                                               team.first_group((n + parts - 1) / parts), part.size)
                                 : fmt::format("g{} + {} / {}", id, team.place, part.size);
    part.groups = 1;
    if (whole) {
      line(depth + 1, fmt::format("const long long i{} = {};", id, turn));
    } else if (guarded) {
      line(depth + 1, fmt::format("const long long i{} = {};", id, turn));
      part.whole_warps = separate;
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
    AccessNode loop = team.shared_loop(AccessNode::Share::parts, s.var, parts);
    loop.live = guarded;
    if (guarded) line(depth + 1, fmt::format("if (i{} < {}) {{", id, width(s.var)));
    text_.accesses.loop(loop, [&] { block(s.first, part, depth + (guarded ? 2 : 1)); });
    if (guarded) line(depth + 1, "}");
    line(depth, "}");
  }

  /// The work of a pass. A reduction by several groups of threads reads its data beforehand.
  enum class Part : std::uint8_t { all, reads, rest };

  /// Emits a thread's passes over its groups of 8 columns.
  template <class Body>
  void passes(const TeamLoop& loop, int depth, const Body& body, Part part = Part::all) {
    const auto& [s, p, plan, team] = loop;
    if (p.loop.columns == 0) return open_passes(loop, depth, body);
    begin_column_passes(loop, part, depth);
    const std::string chunk = ThreadText::variable(p.loop.chunk);
    const std::int64_t chunks = (p.loop.columns + kColumns - 1) / kColumns;
    const std::int64_t step = p.lanes == team.size ? p.lanes / team.groups : p.lanes;
    line(depth + 1,
         fmt::format("const long long {} = {} + k * {};", chunk, first_group(loop), step));
    moves_.read_across(loop, depth + 1);
    const bool partial = chunks % p.lanes != 0;
    if (partial) line(depth + 1, fmt::format("if ({} < {}) {{", chunk, chunks));
    const int at = depth + 1 + (partial ? 1 : 0);
    const AccessNode by_chunks = team.shared_loop(AccessNode::Share::chunks, s.var, p.lanes);
    text_.accesses.loop(by_chunks, [&] {
      if (part == Part::reads)
        moves_.read_ahead(loop, at);
      else
        moves_.read(loop, at, part == Part::rest);
    });
    if (part != Part::reads) {
      const std::string tail = p.loop.columns % kColumns == 0 ? "" : std::to_string(p.loop.columns);
      text_.accesses.loop(team.shared_loop(AccessNode::Share::columns, s.var, p.lanes),
                          [&] { element_loop(loop, chunk, tail, at, body); });
      text_.accesses.loop(by_chunks, [&] { moves_.write(loop, at); });
    }
    if (partial) line(depth + 1, "}");
    line(depth, "}");
  }

  [[nodiscard]] static std::string first_group(const TeamLoop& loop) {
    const auto& [s, p, plan, team] = loop;
    return p.lanes == team.size ? team.first_group(p.passes)
                                : fmt::format("{} % {}", team.place, p.lanes);
  }

  /// Emits the passes of a loop whose width is unknown at compile time.
  template <class Body>
  void open_passes(const TeamLoop& loop, int depth, const Body& body) {
    const auto& [s, p, plan, team] = loop;
    const std::string chunk = fmt::format("c{}", s.var.index), size = width(s.var);
    line(depth, fmt::format("for (long long {0} = {1}; {0} * {2} < {3}; {0} += {4}) {{", chunk,
                            first_group(loop), kColumns, size, p.lanes));
    text_.accesses.loop(team.shared_loop(AccessNode::Share::columns, s.var, p.lanes),
                        [&] { element_loop(loop, chunk, size, depth + 1, body); });
    line(depth, "}");
  }

  /// Begins the loop over k, the passes of a thread.
  void begin_column_passes(const TeamLoop& loop, Part part, int depth) {
    const auto& [s, p, plan, team] = loop;
    if (team.spread() && kernel_.schedule.passes > 1) {
      line(depth,
           fmt::format("for (int k = part; k < {}; k += {}) {{", p.passes, kernel_.column_blocks));
    } else if (team.spread()) {
      line(depth, fmt::format("if (part < {}) {{", p.passes));
      line(depth + 1, "const int k = part;");
    } else if (p.passes == 1) {
      line(depth, "{");
      line(depth + 1, "const int k = 0;");
    } else {
      if (part != Part::all || plan.reads_registers(p)) text_.out += "#pragma unroll\n";
      line(depth, fmt::format("for ({} k = 0; k < {}; ++k) {{",
                              p.passes > (1 << 20) ? "long long" : "int", p.passes));
    }
  }

  static std::size_t size_of(const Block& body) {
    std::size_t n = body.size();
    for (const Statement& s : body) n += size_of(s.first) + size_of(s.second);
    return n;
  }

  /// Emits one pass: the 8 columns of a chunk.
  template <class Body>
  void element_loop(const TeamLoop& loop, const std::string& chunk, const std::string& tail,
                    int depth, const Body& body) {
    const Statement& s = loop.statement;
    const ColumnLoop& columns_loop = loop.passes.loop;
    thread_.place = {&columns_loop, GroupMoves::names(s), loop.team.live,
                     moves_.packed(s, columns_loop)};
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

  void reduce(const TeamLoop& loop, int depth) {
    const auto& [s, p, plan, team] = loop;
    const std::string id = std::to_string(s.slot.index);
    line(depth, fmt::format("{} a{} = {}::start();", type_of(s.unit), id, ThreadText::function(s)));
    const auto accumulate = [&statement = s, this](int at) { thread_.accumulate(statement, at); };
    const bool known = columns(s.var) >= 0;
    const bool turns = team.groups > 1 && p.lanes == team.size;
    const std::int64_t lanes = known ? p.lanes : -1;
    if (!known)
      open_reduction(loop, depth, accumulate);
    else if (p.loop.columns > 0 && !turns)
      passes(loop, depth, accumulate);
    if (turns)
      in_turns(loop, depth, accumulate);
    else if (p.lanes > 32)
      exchange_.combine_warps(s, lanes, team, team.groups > 1 ? kMaxTeam : kernel_.team, depth);
    exchange_.combine_within_warp(s, lanes, team, depth);
    thread_.total(s, "a" + id, depth);
  }

  /// Emits the passes of a reduction whose width, and thus number of lanes, is unknown at compile
  /// time.
  template <class Body>
  void open_reduction(const TeamLoop& loop, int depth, const Body& accumulate) {
    const auto& [s, p, plan, team] = loop;
    const std::string lanes = fmt::format("n{}", s.slot.index), size = width(s.var);
    const std::string chunk = fmt::format("c{}", s.var.index);
    line(depth, fmt::format("const int {} = (int)pw_lanes({});", lanes, size));
    line(depth, fmt::format("for (long long {0} = {1} % {2}; {0} * {3} < {4}; {0} += {2}) {{",
                            chunk, team.place, lanes, kColumns, size));
    text_.accesses.loop(team.shared_loop(AccessNode::Share::columns, s.var, 0),
                        [&] { element_loop(loop, chunk, size, depth + 1, accumulate); });
    line(depth, "}");
  }

  /// Emits a reduction by several groups of threads. A lane consists of one thread of each group;
  /// the groups take turns, and each continues with the value that the previous one has stored.
  /// This keeps the order of one lane.
  template <class Body>
  void in_turns(const TeamLoop& loop, int depth, const Body& accumulate) {
    const auto& [s, p, plan, team] = loop;
    const std::string id = std::to_string(s.slot.index);
    const std::string slot = exchange_.next_slot(s.unit, kMaxTeam);
    moves_.declare_ahead(loop, depth);
    passes(loop, depth, accumulate, Part::reads);
    text_.out += "#pragma unroll 1\n";
    line(depth, fmt::format("for (int turn = 0; turn < {}; ++turn) {{", team.groups));
    line(depth + 1, fmt::format("if (turn == {} / {}) {{", team.place, kMaxTeam));
    line(depth + 2,
         fmt::format("if (turn > 0) a{} = pw_at({}, {} % {});", id, slot, team.place, kMaxTeam));
    passes(loop, depth + 2, accumulate, Part::rest);
    line(depth + 2, fmt::format("pw_put({}, {} % {}, a{});", slot, team.place, kMaxTeam, id));
    line(depth + 1, "}");
    line(depth + 1, "__syncthreads();");
    line(depth, "}");
    exchange_.combine_turns(s, slot, team, depth);
  }

  const rows::RowProgram& program_;
  Kernel& kernel_;
  KernelText text_;
  ThreadText thread_;
  GroupStorage storage_;
  GroupMoves moves_;
  Exchange exchange_;
};

WithKeptValues with_kept_values(const rows::RowProgram& program, const Kernel& kernel) {
  TeamSize size(program);
  const int team = size.needed(program.body) * size.groups(program.body);
  return keep_values(program, {team, most_kept_words(kernel.schedule, team)});
}

}  // namespace

std::string emit_body(const rows::RowProgram& program, Kernel& kernel) {
  const WithKeptValues kept = with_kept_values(program, kernel);
  return TeamEmitter(kept.program, kept.values, kernel).run();
}

std::optional<RowsInBlock> emit_in_block(const rows::RowProgram& program,
                                         const StagedResult& staged) {
  constexpr int kFewest = 64, kMost = 512;
  Kernel kernel;
  const WithKeptValues kept = with_kept_values(program, kernel);
  RowsInBlock out = TeamEmitter(kept.program, kept.values, kernel).run_in_block(staged);
  const auto by_element = [&](const ElementAccess& access) {
    return access.store && access.argument == staged.argument;
  };
  const bool whole = kernel.shared_bytes == 0 &&
                     std::none_of(kernel.elements.begin(), kernel.elements.end(), by_element);
  if (!whole || out.threads < kFewest || out.threads > kMost) return std::nullopt;
  return out;
}

}  // namespace pw::cuda
