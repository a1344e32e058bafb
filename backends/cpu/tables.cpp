#include "backends/cpu/tables.hpp"

#include <set>

#include "backends/cpu/pairs.hpp"
#include "backends/cpu/phases.hpp"

namespace pw::cpu {
namespace {

using rows::Block;
using rows::Index;
using rows::IndexId;
using rows::Indices;
using rows::SlotId;
using rows::Statement;

constexpr std::int64_t kFewestTurns = 4, kMostColumns = 1024;

void note_slots(const Block& block, std::set<SlotId>& slots) {
  for (const Statement& s : block) {
    if (s.slot.valid()) slots.insert(s.slot);
    note_slots(s.first, slots);
    note_slots(s.second, slots);
  }
}

bool picks(const Indices& indices, IndexId id, const std::set<SlotId>& slots) {
  const Index& node = indices[id];
  if (node.kind == Index::Kind::slot &&
      slots.count(SlotId(static_cast<std::size_t>(node.constant))) != 0)
    return true;
  return (node.a.valid() && picks(indices, node.a, slots)) ||
         (node.b.valid() && picks(indices, node.b, slots));
}

}  // namespace

std::vector<PairedLoad> read_each_turn(const rows::RowProgram& program, const Statement& outer) {
  std::vector<PairedLoad> out;
  const Indices& indices = program.indices;
  if (is_flat(outer.first) || indices.interval(indices.extent(outer.var)).low < kFewestTurns)
    return out;
  const std::set<rows::VarId> pairs = loops_in_pairs(program, outer.first);
  std::set<SlotId> inside;
  note_slots(outer.first, inside);
  for (const Statement& loop : outer.first) {
    if (pairs.count(loop.var) == 0 ||
        (loop.kind != Statement::Kind::loop && loop.kind != Statement::Kind::reduce) ||
        indices.interval(indices.extent(loop.var)).high > kMostColumns)
      continue;
    for (const Statement& s : loop.first)
      if (s.kind == Statement::Kind::load && program.type(s.argument).dtype == DType::f32 &&
          !program.arguments[s.argument].result && indices.depends(s.index, loop.var) &&
          !indices.depends(s.index, outer.var) && !picks(indices, s.index, inside))
        out.push_back({&loop, &s});
  }
  return out;
}

}  // namespace pw::cpu
