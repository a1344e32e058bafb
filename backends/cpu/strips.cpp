// A block becomes one loop over the strip for each run of plain statements, and for each reduction
// or loop one over its elements with the strip inside. Slots that later statements read are arrays
// over the strip. An element's sum takes its terms in order, in blocks that are added afterwards.
#include "backends/cpu/strips.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include <fmt/format.h>

namespace pw::cpu {
namespace {

using rows::Block;
using rows::Index;
using rows::SlotId;
using rows::Statement;
using rows::VarId;
using namespace rows::cxx;
using StatementKind = Statement::Kind;

constexpr std::int64_t kFewest = 8, kMost = 512;  // places of a strip
constexpr std::int64_t kElementsNear = 1 << 17;   // of a strip that several loops read
constexpr std::int64_t kElementsOnStack = 1 << 14;
constexpr std::int64_t kAddedInOrder = 64;  // terms

/// Returns the step of an address for the next value of a variable; nothing if it varies.
std::optional<std::int64_t> step_of(const rows::Indices& indices, rows::IndexId id, VarId var) {
  const auto terms = indices.terms(id);
  if (!terms) return std::nullopt;
  std::int64_t step = 0;
  for (const auto& [atom, factor] : terms->factors) {
    if (!indices.depends(atom, var)) continue;
    if (indices[atom].kind != Index::Kind::variable) return std::nullopt;
    step = factor;
  }
  return step;
}

/// Returns the name of the reduction's function of the prelude.
std::string function_of(const Statement& s, std::string_view type) {
  return fmt::format("pw_{}<{}>", s.operation == Primitive::mean ? "sum" : name(s.operation), type);
}

bool is_nested(const Statement& s) {
  return s.kind == StatementKind::reduce || s.kind == StatementKind::loop;
}

/// Returns true if a loop over `var` with this body accesses neighbours more often than the loops
/// inside it do.
bool suits(const rows::RowProgram& program, const Block& block, VarId var) {
  const rows::Indices& indices = program.indices;
  if (indices.interval(indices.extent(var)).high < kFewest) return false;
  std::int64_t gain = 0;
  for (const Statement& s : block) {
    if (s.kind == StatementKind::branch || !is_flat(s.first)) return false;
    if (!is_nested(s)) continue;
    for (const Statement& access : s.first) {
      if (access.kind != StatementKind::load && access.kind != StatementKind::store) continue;
      const auto step = step_of(indices, access.index, var);
      if (!step || *step < 0 || *step > 1) return false;
      if (*step == 0) continue;  // one element for the whole strip
      gain += step_of(indices, access.index, s.var) == 1 ? 0 : 1;
    }
  }
  return gain > 0;
}

void note_slots(const rows::Indices& indices, rows::IndexId id, std::set<SlotId>& out) {
  if (!id.valid()) return;
  const Index& node = indices[id];
  if (node.kind == Index::Kind::slot) out.insert(SlotId(static_cast<std::size_t>(node.constant)));
  note_slots(indices, node.a, out);
  note_slots(indices, node.b, out);
}

/// Adds the slots that a statement reads.
void note_reads(const rows::Indices& indices, const Statement& s, std::set<SlotId>& out) {
  out.insert(s.operands.begin(), s.operands.end());
  note_slots(indices, s.index, out);
  note_slots(indices, s.bound, out);
  if (is_nested(s)) note_slots(indices, indices.extent(s.var), out);
  for (const Block* block : {&s.first, &s.second})
    for (const Statement& inner : *block) note_reads(indices, inner, out);
}

/// A store, check or loop, with the statements that it needs.
struct Part {
  std::set<std::size_t> statements;
  bool strips = false;
};

/// Divides a block into parts that share no reduction.
std::vector<Part> parts_of(const rows::Indices& indices, const Block& block) {
  std::vector<Part> parts;
  for (std::size_t last = 0; last < block.size(); ++last) {
    if (block[last].slot.valid()) continue;
    Part part{{last}, false};
    std::set<SlotId> reads;
    note_reads(indices, block[last], reads);
    for (std::size_t i = last; i-- > 0;) {
      if (!block[i].slot.valid() || reads.count(block[i].slot) == 0) continue;
      part.statements.insert(i);
      note_reads(indices, block[i], reads);
    }
    for (auto other = parts.begin(); other != parts.end();) {
      const bool shares =
          std::any_of(part.statements.begin(), part.statements.end(), [&](std::size_t i) {
            return block[i].kind == StatementKind::reduce && other->statements.count(i) != 0;
          });
      if (shares) part.statements.merge(other->statements);
      other = shares ? parts.erase(other) : other + 1;
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

Block statements_of(const std::vector<Part>& parts, const Block& block, bool strips) {
  Block out;
  for (std::size_t i = 0; i < block.size(); ++i)
    if (std::any_of(parts.begin(), parts.end(), [&](const Part& part) {
          return part.strips == strips && part.statements.count(i) != 0;
        }))
      out.push_back(block[i]);
  return out;
}

}  // namespace

DividedLoop divide(const rows::RowProgram& program, const Block& block, VarId var) {
  if (suits(program, block, var)) return {block, {}};
  if (std::none_of(block.begin(), block.end(), is_nested)) return {};
  std::vector<Part> parts = parts_of(program.indices, block);
  for (Part& part : parts) {
    part.strips = true;
    part.strips = suits(program, statements_of({part}, block, true), var);
  }
  Block strips = statements_of(parts, block, true);
  if (strips.empty() || !suits(program, strips, var)) return {};
  return {std::move(strips), statements_of(parts, block, false)};
}

std::string Strips::name_of(VarId var) const { return var == program_.row ? "row" : variable(var); }

std::int64_t Strips::width_of(const Block& block, VarId var) const {
  std::int64_t loops = 0, longest = 1, arrays = 1;
  for (const Statement& s : block) {
    arrays += s.slot.valid() ? 1 : 0;
    if (!is_nested(s)) continue;
    ++loops;
    longest = std::max(longest, program_.indices.interval(program_.indices.extent(s.var)).high);
  }
  std::int64_t width = kMost;
  while (loops > 1 && width > 64 && width > kElementsNear / longest) width /= 2;
  while (width > 16 && width * arrays > kElementsOnStack) width /= 2;
  while (width / 2 >= program_.indices.interval(program_.indices.extent(var)).high) width /= 2;
  return width;
}

/// Values that loops share are kept only in results: a buffer would have to hold the whole strip.
Phases Strips::shared(const Block& block) {
  Phases phases = share_phases(program_, block);
  const bool in_results = std::all_of(phases.kept.begin(), phases.kept.end(), [](const auto& kept) {
    return kept.second.store != nullptr;
  });
  if (!in_results) return {};
  for (const auto& [read, kept] : phases.read) elements_.share(read, kept);
  for (const auto& [slot, one] : phases.kept) elements_.keep(slot);
  return phases;
}

void Strips::emit(const Block& block, VarId var, const std::string& from, const std::string& to,
                  int depth) {
  const Phases phases = shared(block);
  Strip strip{var, width_of(block, var), phases, {}};
  const std::size_t id = var.index;
  line(depth, fmt::format("for (long long s{0} = {1}; s{0} < {2}; s{0} += {3}) {{", id, from, to,
                          strip.width));
  line(depth + 1, fmt::format("const long long n{0} = {1} - s{0} < {2} ? {1} - s{0} : {2};", id, to,
                              strip.width));
  for (auto s = block.begin(); s != block.end();) {
    if (s->kind == StatementKind::reduce) {
      reduce(strip, *s++, depth + 1);
    } else if (s->kind == StatementKind::loop) {
      line(depth + 1, fmt::format("for (long long {0} = 0; {0} < {1}; ++{0}) {{", variable(s->var),
                                  extent(s->var)));
      places(strip, s->first, depth + 2, [&](int at) { inner_(s->first, at, phases, s->var); });
      line(depth + 1, "}");
      ++s;
    } else {
      const auto end = std::find_if(s, block.end(), is_nested);
      keep(strip, {s, end}, depth + 1);
      s = end;
    }
  }
  line(depth, "}");
}

/// Emits plain statements, and arrays of their slots.
void Strips::keep(Strip& strip, const Block& statements, int depth) {
  for (const Statement& s : statements) {
    if (s.slot.valid())
      line(depth, fmt::format("alignas(64) {} t{}[{}];", held(program_.slots[s.slot]), s.slot.index,
                              strip.width));
  }
  places(strip, statements, depth, [&](int at) {
    inner_(statements, at, {}, strip.var);
    for (const Statement& s : statements)
      if (s.slot.valid())
        line(at, fmt::format("t{0}[q{1}] = v{0};", s.slot.index, strip.var.index));
  });
  for (const Statement& s : statements) {
    if (!s.slot.valid()) continue;
    strip.kept.insert(s.slot);
    elements_.forget_bits(s.slot);
  }
}

/// Emits a loop over the places of the strip.
void Strips::places(const Strip& strip, const Block& body, int depth,
                    const std::function<void(int depth)>& work) {
  line(depth, simd_loop(body));
  line(depth, fmt::format("for (long long q{0} = 0; q{0} < n{0}; ++q{0}) {{", strip.var.index));
  line(depth + 1,
       fmt::format("const long long {0} = s{1} + q{1};", name_of(strip.var), strip.var.index));
  for (SlotId slot : strip.kept)
    line(depth + 1, fmt::format("const {0} v{1} = t{1}[q{2}];", held(program_.slots[slot]),
                                slot.index, strip.var.index));
  work(depth + 1);
  line(depth, "}");
}

/// Adds the terms of each place to `sum`, an element of an array.
void Strips::add(const Strip& strip, const Statement& s, int depth, const std::string& from,
                 const std::string& to, const std::string& sum) {
  line(depth,
       fmt::format("for (long long {0} = {1}; {0} < {2}; ++{0}) {{", variable(s.var), from, to));
  places(strip, s.first, depth + 1, [&](int at) {
    inner_(s.first, at, strip.phases, s.var);
    line(at, fmt::format("{0} = {1}::of({0}, {2});", sum, function_of(s, type_of(s.unit)),
                         in_unit(program_, s.operands[0], s.unit)));
  });
  line(depth, "}");
}

/// Adds blocks of terms; the blocks of floats meet in double precision.
void Strips::add_in_blocks(const Strip& strip, const Statement& s, int depth,
                           const std::string& sum, std::string_view wide) {
  const std::string id = std::to_string(s.slot.index), width = extent(s.var);
  const std::string one = fmt::format("b{}[q{}]", id, strip.var.index);
  line(depth, fmt::format("alignas(64) {} b{}[{}];", type_of(s.unit), id, strip.width));
  line(depth, fmt::format("for (long long c{0} = 0; c{0} < {1}; c{0} += {2}) {{", id, width,
                          kAddedInOrder));
  line(depth + 1, fmt::format("const long long x{0} = c{0} + {1} < {2} ? c{0} + {1} : {2};", id,
                              kAddedInOrder, width));
  places(strip, {}, depth + 1, [&](int at) {
    line(at, fmt::format("{} = {}::start();", one, function_of(s, type_of(s.unit))));
  });
  add(strip, s, depth + 1, "c" + id, "x" + id, one);
  places(strip, {}, depth + 1, [&](int at) {
    line(at, fmt::format("{0} = {1}::of({0}, ({2}){3});", sum, function_of(s, wide), wide, one));
  });
  line(depth, "}");
}

void Strips::reduce(Strip& strip, const Statement& s, int depth) {
  const bool sums = s.operation == Primitive::sum || s.operation == Primitive::mean;
  const std::int64_t most = program_.indices.interval(program_.indices.extent(s.var)).high;
  const bool blocks = sums && s.unit != rows::Unit::i64 && most > 2 * kAddedInOrder;
  const std::string_view type = type_of(s.unit), wide = blocks ? "double" : type;
  const std::string id = std::to_string(s.slot.index);
  const std::string sum = fmt::format("a{}[q{}]", id, strip.var.index);
  const DType dtype = program_.slots[s.slot];
  line(depth, fmt::format("alignas(64) {} a{}[{}];", wide, id, strip.width));
  line(depth, fmt::format("alignas(64) {} t{}[{}];", held(dtype), id, strip.width));
  places(strip, {}, depth,
         [&](int at) { line(at, fmt::format("{} = {}::start();", sum, function_of(s, wide))); });
  if (blocks)
    add_in_blocks(strip, s, depth, sum, wide);
  else
    add(strip, s, depth, "0", extent(s.var), sum);
  places(strip, {}, depth, [&](int at) {
    std::string total = blocks ? fmt::format("({}){}", type, sum) : sum;
    if (s.operation == Primitive::mean)
      total = fmt::format("pw_div({}, ({})({}))", total, type, extent(s.var));
    line(at, fmt::format("t{}[q{}] = {};", id, strip.var.index, rounded(total, s.unit, dtype)));
  });
  strip.kept.insert(s.slot);
}

}  // namespace pw::cpu
