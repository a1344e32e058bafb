// Keeps values that several phases of a row compute: common subexpression elimination across the
// loops of a block, by value numbering. Expressions of a column get equal keys if operations,
// rounding points and loaded elements are equal; the column of an inner loop is compared as a
// column of the loop over both. A later loop then starts from the equal values of an earlier one.
//
// Invariant: a kept value has two bytes and is read by the thread that stored it, so it needs no
// exchange and its bits are unchanged. A value is kept only if a pass then loads no more words than
// before, and within the team's register limit. Cost: one table look-up for each statement, and a
// search of the earlier phases with the same key.
#include "cuda/kernels/kept_values.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "cuda/kernels/access.hpp"

namespace pw::cuda {
namespace {

using rows::Block;
using rows::IndexId;
using rows::SlotId;
using rows::Statement;
using rows::VarId;
using Kind = Statement::Kind;

constexpr std::int64_t kMostPasses = 8;
constexpr int kMostLanes = 256;     // lanes of a reduction
constexpr std::size_t kNarrow = 2;  // bytes

bool is_column_loop(const Statement& s) {
  return s.kind == Kind::reduce || (s.kind == Kind::loop && !holds_loops(s.first));
}

std::int64_t lanes_of(std::int64_t columns) {
  std::int64_t lanes = 1;
  while (lanes < kMostLanes && lanes * kColumns < columns) lanes *= 2;
  return lanes;
}

/// A loop over columns, with its columns expressed over the outermost loop that it is compared in.
struct Phase {
  Statement* loop = nullptr;
  VarId outer;               ///< the loop around it; invalid: none
  std::int64_t columns = 0;  ///< over both loops
  int threads = 1;           ///< threads that share the columns
  std::int64_t passes = 1;   ///< passes of a thread
};

/// Visits the blocks of a program from the outside in. `known_` maps the key of each value to the
/// reductions that compute it in the current block.
class Keeper {
 public:
  Keeper(const rows::RowProgram& program, const TeamShape& team) : words_left_(team.most_words) {
    out_.program = program;
  }

  WithKeptValues run(int threads) {
    visit(out_.program.body, threads);
    if (threads > kMostLanes) compute_ahead(threads);
    return std::move(out_);
  }

 private:
  using Key = std::size_t;
  /// The parts of an expression; equal expressions have equal keys.
  using Parts = std::tuple<Kind, Primitive, rows::Unit, DType, std::vector<std::size_t>,
                           std::uint64_t, std::vector<std::pair<std::size_t, std::int64_t>>>;
  struct Producer {
    const Phase* phase;
    SlotId slot;
    std::optional<std::size_t> kept;  ///< index into out_.values
  };

  [[nodiscard]] std::int64_t columns(VarId var) const {
    const auto& indices = out_.program.indices;
    const rows::Interval extent = indices.interval(indices.extent(var));
    return extent.low == extent.high ? extent.high : -1;
  }

  // ---- phases of a block

  /// Compares the phases of a block in order, then visits loops around loops with the part of the
  /// team that each pass gets.
  void visit(Block& body, int threads) {
    std::vector<Phase> phases;
    for (Statement& s : body) {
      if (is_column_loop(s)) {
        add_phase(phases, s, {}, columns(s.var), threads);
      } else if (s.kind == Kind::loop) {
        add_nested(phases, s, threads);
      }
    }
    known_.clear();
    for (Phase& p : phases) compare(p);
    for (Statement& s : body) {
      if (s.kind != Kind::loop || is_column_loop(s)) continue;
      const int part = part_of(s, threads);
      if (part > 0) visit(s.first, part);
    }
  }

  /// Returns the threads that process one pass of an outer loop; 0 if unknown or if its inner loops
  /// differ.
  [[nodiscard]] int part_of(const Statement& outer, int threads) const {
    std::int64_t widest = 0;
    for (const Statement& s : outer.first) {
      if (s.kind == Kind::loop && !is_column_loop(s)) return 0;
      if (is_column_loop(s)) widest = std::max(widest, columns(s.var));
    }
    if (widest < kColumns || widest % kColumns != 0) return 0;
    const std::int64_t part = widest / kColumns;
    return part <= threads && (part & (part - 1)) == 0 ? static_cast<int>(part) : 0;
  }

  void add_phase(std::vector<Phase>& phases, Statement& s, VarId outer, std::int64_t all,
                 int threads) {
    const bool plain = std::none_of(s.first.begin(), s.first.end(),
                                    [](const Statement& q) { return q.kind == Kind::branch; });
    const std::int64_t each = threads * kColumns;
    if (!plain || all <= 0 || all % kColumns != 0) return;
    if (lanes_of(all) != std::min(threads, kMostLanes)) return;  // a reduction has its own lanes
    const std::int64_t passes = (all + each - 1) / each;
    if (passes <= kMostPasses) phases.push_back({&s, outer, all, threads, passes});
  }

  void add_nested(std::vector<Phase>& phases, Statement& outer, int threads) {
    const std::int64_t n = columns(outer.var);
    const int part = part_of(outer, threads);
    if (n < 1 || part == 0 || n % (threads / part) != 0) return;
    for (Statement& s : outer.first)
      if (is_column_loop(s) && columns(s.var) == part * kColumns)
        add_phase(phases, s, outer.var, n * part * kColumns, threads);
  }

  // ---- equal values

  /// Returns the place of a load, with the column substituted for the loop's variables.
  std::optional<std::vector<std::pair<std::size_t, std::int64_t>>> place(const Phase& p,
                                                                         IndexId index) {
    auto& indices = out_.program.indices;
    auto terms = indices.terms(index);
    if (!terms) return std::nullopt;
    const auto take = [&](VarId var) {
      const auto found = terms->factors.find(indices.use(var));
      if (found == terms->factors.end()) return std::int64_t{0};
      const std::int64_t out = found->second;
      terms->factors.erase(found);
      return out;
    };
    const std::int64_t factor = take(p.loop->var);
    if (p.outer.valid() && take(p.outer) != factor * columns(p.loop->var)) return std::nullopt;
    std::vector<std::pair<std::size_t, std::int64_t>> out{{0, terms->constant}, {1, factor}};
    for (const auto& [atom, times] : terms->factors) {
      for (VarId var : indices.vars(atom))
        if (var == p.loop->var || var == p.outer) return std::nullopt;
      out.emplace_back(atom.index + 2, times);
    }
    return out;
  }

  Key key_of(Parts parts) { return keys_.emplace(std::move(parts), keys_.size()).first->second; }

  /// Returns the keys of a loop's values; values that cannot be compared have none.
  std::map<SlotId, Key> keys(const Phase& p) {
    std::map<SlotId, Key> out;
    for (const Statement& s : p.loop->first) {
      if (!s.slot.valid()) continue;
      Parts parts{s.kind, s.operation, s.unit, out_.program.slots[s.slot], {}, 0, {}};
      bool known = true;
      if (s.kind == Kind::load || s.kind == Kind::place) {
        const auto at = place(p, s.index);
        known = at.has_value();
        if (at) std::get<6>(parts) = *at;
        if (s.kind == Kind::load) std::get<4>(parts).push_back(s.argument);
      } else if (s.kind == Kind::constant) {
        std::get<5>(parts) = std::bit_cast<std::uint64_t>(s.real);
      } else {
        for (SlotId operand : s.operands) {
          const auto found = out.find(operand);
          const bool inside = std::any_of(p.loop->first.begin(), p.loop->first.end(),
                                          [&](const Statement& q) { return q.slot == operand; });
          known = known && (found != out.end() || !inside);
          std::get<4>(parts).push_back(found != out.end() ? 2 * found->second
                                                          : 2 * operand.index + 1);
        }
      }
      if (known) out.emplace(s.slot, key_of(std::move(parts)));
    }
    return out;
  }

  // ---- what a loop needs

  using Needed = std::set<SlotId>;
  static void need(const Block& body, SlotId slot, const std::set<SlotId>& stop, Needed& out) {
    if (!slot.valid() || !out.insert(slot).second || stop.count(slot) != 0) return;
    for (const Statement& s : body)
      if (s.slot == slot)
        for (SlotId operand : s.operands) need(body, operand, stop, out);
  }
  static Needed needed(const Statement& loop, const std::set<SlotId>& stop) {
    Needed out;
    if (loop.kind == Kind::reduce) need(loop.first, loop.operands[0], stop, out);
    for (const Statement& s : loop.first)
      if (s.kind == Kind::store) need(loop.first, s.operands[0], stop, out);
    return out;
  }
  /// Returns the words of 4 bytes that the needed loads of a pass occupy.
  [[nodiscard]] std::int64_t loaded_words(const Statement& loop, const Needed& slots) const {
    std::set<std::pair<std::size_t, IndexId>> seen;
    std::int64_t out = 0;
    for (const Statement& s : loop.first) {
      if (s.kind != Kind::load || slots.count(s.slot) == 0) continue;
      if (!seen.insert({s.argument, s.index}).second) continue;
      out += static_cast<std::int64_t>(size_of(out_.program.type(s.argument).dtype)) * kColumns / 4;
    }
    return out;
  }

  /// Shortens a phase by earlier values, and registers its own values if it is a reduction over
  /// columns. First all equal values are tried, then only those that are kept anyway.
  void compare(Phase& p) {
    const std::map<SlotId, Key> mine = keys(p);
    if (!shorten(p, mine, false)) shorten(p, mine, true);
    for (const auto& [slot, key] : mine)
      if (p.loop->kind == Kind::reduce && !p.outer.valid()) known_[key].push_back({&p, slot, {}});
  }

  /// Makes a loop load values that an earlier loop computed: those that are kept already, or all.
  /// Returns false if that does not pay.
  bool shorten(Phase& p, const std::map<SlotId, Key>& mine, bool only_kept) {
    std::set<SlotId> equal;
    for (const Statement& s : p.loop->first) {
      const auto key = mine.find(s.slot);
      if (s.kind != Kind::compute || key == mine.end() || !is_narrow(s.slot)) continue;
      const Producer* from = producer(p, key->second);
      if (from != nullptr && (from->kept || !only_kept)) equal.insert(s.slot);
    }
    const Needed all = needed(*p.loop, {}), rest = needed(*p.loop, equal);
    std::set<SlotId> ends;
    for (SlotId slot : equal)
      if (rest.count(slot) != 0) ends.insert(slot);
    if (ends.empty() || !pays(p, mine, ends, all, rest)) return false;
    load_instead(p, mine, ends, rest);
    return true;
  }

  [[nodiscard]] bool is_narrow(SlotId slot) const {
    return static_cast<std::size_t>(size_of(out_.program.slots[slot])) == kNarrow;
  }

  /// Returns an earlier producer whose threads have the same columns.
  Producer* producer(const Phase& p, Key key) {
    const auto found = known_.find(key);
    if (found == known_.end()) return nullptr;
    for (Producer& q : found->second)
      if (q.phase->columns == p.columns && q.phase->threads == p.threads &&
          computes(*q.phase, q.slot))
        return &q;
    return nullptr;
  }
  static bool computes(const Phase& p, SlotId slot) {
    return std::any_of(p.loop->first.begin(), p.loop->first.end(),
                       [&](const Statement& s) { return s.slot == slot; });
  }

  /// Compares words loaded per pass before and after, and checks the register limit for newly kept
  /// values.
  bool pays(const Phase& p, const std::map<SlotId, Key>& mine, const std::set<SlotId>& ends,
            const Needed& all, const Needed& rest) {
    std::int64_t cost = 0, fresh = 0;
    for (SlotId slot : ends) {
      cost += kNarrow * kColumns / 4;
      fresh += producer(p, mine.at(slot))->kept ? 0 : kNarrow * kColumns / 4 * p.passes;
    }
    const std::int64_t before = loaded_words(*p.loop, all), after = loaded_words(*p.loop, rest);
    if (before - after < cost || fresh > words_left_) return false;
    words_left_ -= fresh;
    return true;
  }

  void load_instead(Phase& p, const std::map<SlotId, Key>& mine, const std::set<SlotId>& ends,
                    const Needed& rest) {
    for (Statement& s : p.loop->first) {
      if (ends.count(s.slot) == 0) continue;
      const std::size_t argument = kept(*producer(p, mine.at(s.slot)));
      Statement load;
      load.kind = Kind::load;
      load.slot = s.slot;
      load.argument = argument;
      load.index = column_of(p);
      s = std::move(load);
    }
    std::erase_if(p.loop->first,
                  [&](const Statement& s) { return s.slot.valid() && rest.count(s.slot) == 0; });
  }

  /// Returns the column of a phase in the combined loop over both levels.
  IndexId column_of(const Phase& p) {
    auto& indices = out_.program.indices;
    const IndexId own = indices.use(p.loop->var);
    if (!p.outer.valid()) return own;
    return indices.add(indices.mul(indices.use(p.outer), indices.constant(columns(p.loop->var))),
                       own);
  }

  /// Returns the argument that keeps a value, adding it on first use.
  std::size_t kept(Producer& producer) {
    if (producer.kept) return out_.values[*producer.kept].argument;
    rows::RowProgram& program = out_.program;
    Context& context = *program.context;
    const std::size_t argument = program.arguments.size();
    const Shape shape{context.dims.constant(producer.phase->columns)};
    program.arguments.push_back({context.types.get(program.slots[producer.slot], shape), false});
    Statement store;
    store.kind = Kind::store;
    store.argument = argument;
    store.operands = {producer.slot};
    store.index = column_of(*producer.phase);
    producer.phase->loop->first.push_back(std::move(store));
    producer.kept = out_.values.size();
    out_.values.push_back({argument, producer.phase->loop->var});
    return argument;
  }

  // ---- ahead of reductions

  /// Adds a loop before reductions in which several groups of threads take turns with several
  /// passes each. The loop computes the kept values, so that their inputs need not wait in
  /// registers.
  void compute_ahead(int threads) {
    Block& body = out_.program.body;
    for (std::size_t i = 0; i < body.size(); ++i) {
      const bool keeps = std::any_of(body[i].first.begin(), body[i].first.end(),
                                     [](const Statement& s) { return s.kind == Kind::store; });
      if (body[i].kind != Kind::reduce || !keeps || columns(body[i].var) <= threads * kColumns)
        continue;
      Statement ahead = taken_out(body[i]);
      body.insert(body.begin() + static_cast<std::ptrdiff_t>(i), std::move(ahead));
      ++i;
    }
  }

  /// Splits the computation of kept values out of a reduction into a loop of its own; the reduction
  /// then loads them.
  Statement taken_out(Statement& reduce) {
    rows::Indices& indices = out_.program.indices;
    Statement loop;
    loop.kind = Kind::loop;
    loop.var = indices.variable(indices.extent(reduce.var));
    const IndexId column = indices.use(loop.var);
    Needed computed;
    std::map<SlotId, std::size_t> kept;  // arguments of the kept values
    for (const Statement& s : reduce.first) {
      if (s.kind != Kind::store) continue;
      need(reduce.first, s.operands[0], {}, computed);
      kept.emplace(s.operands[0], s.argument);
      for (KeptValue& v : out_.values)
        if (v.argument == s.argument) v.producer = loop.var;
    }
    for (Statement s : reduce.first) {
      if (s.slot.valid() && computed.count(s.slot) == 0) continue;
      if (s.index.valid()) s.index = indices.substitute(s.index, reduce.var, column);
      loop.first.push_back(std::move(s));
    }
    std::erase_if(reduce.first, [](const Statement& s) { return s.kind == Kind::store; });
    for (Statement& s : reduce.first) {
      const auto found = kept.find(s.slot);
      if (found == kept.end()) continue;
      Statement load;
      load.kind = Kind::load;
      load.slot = s.slot;
      load.argument = found->second;
      load.index = indices.use(reduce.var);
      s = std::move(load);
    }
    const Needed rest = needed(reduce, {});
    std::erase_if(reduce.first, [&](const Statement& s) { return rest.count(s.slot) == 0; });
    return loop;
  }

  WithKeptValues out_;
  std::int64_t words_left_;
  std::map<Parts, Key> keys_;
  std::map<Key, std::vector<Producer>> known_;
};

}  // namespace

WithKeptValues keep_values(const rows::RowProgram& program, const TeamShape& team) {
  return Keeper(program, team).run(team.threads);
}

}  // namespace pw::cuda
