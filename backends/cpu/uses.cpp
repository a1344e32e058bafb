#include "backends/cpu/uses.hpp"

#include "backends/cpu/phases.hpp"
#include "codegen/rowprogram/cxx.hpp"

namespace pw::cpu {

using rows::Block;
using rows::SlotId;
using rows::Statement;

void find_uses(const Block& block, std::set<SlotId>& stored, std::set<SlotId>& read) {
  for (const Statement& s : block) {
    (s.kind == Statement::Kind::store ? stored : read).insert(s.operands.begin(), s.operands.end());
    find_uses(s.first, stored, read);
    find_uses(s.second, stored, read);
  }
}

void find_divisions(const rows::RowProgram& program, const Block& block, Divisions& out) {
  for (const Statement& s : block) {
    find_divisions(program, s.first, out);
    find_divisions(program, s.second, out);
  }
  if (!is_flat(block)) return;
  std::set<SlotId> inside, halfway;
  for (const Statement& s : block) inside.insert(s.slot);
  for (auto s = block.rbegin(); s != block.rend(); ++s) {
    if (s->kind != Statement::Kind::compute) continue;
    const DType to = program.slots[s->slot];
    const bool coarse = !is_float(to) || size_of(to) == 1;
    const bool bounds = s->operation == Primitive::maximum || s->operation == Primitive::minimum ||
                        s->operation == Primitive::cast;
    if (coarse || (bounds && halfway.count(s->slot) != 0))
      halfway.insert(s->operands.begin(), s->operands.end());
    if (s->operation == Primitive::div && s->unit == rows::Unit::f32 && !coarse &&
        halfway.count(s->slot) == 0 && inside.count(s->operands[1]) == 0) {
      out.quotients.insert(s->slot);
      out.divisors.insert(s->operands[1]);
    }
  }
}

bool of_magnitudes(const rows::RowProgram& program, const Statement& reduce) {
  SlotId operand = reduce.operands[0];
  for (auto s = reduce.first.rbegin(); s != reduce.first.rend(); ++s) {
    if (s->slot != operand) continue;
    const bool kept =
        s->kind == Statement::Kind::compute && rows::cxx::held(program.slots[operand]) == "float";
    if (!kept || s->operation == Primitive::abs) return kept;
    if (s->operation != Primitive::cast) return false;
    operand = s->operands[0];
  }
  return false;
}

std::int64_t lanes_beside(const rows::RowProgram& program, const Statement& reduce) {
  constexpr std::int64_t kBytes = 256, kLongRow = 256, kShortest = 8;
  if (!is_flat(reduce.first)) return 0;
  const std::int64_t width = program.indices.interval(program.indices.extent(reduce.var)).high;
  std::int64_t lanes = kBytes / (reduce.unit == rows::Unit::f32 ? 4 : 8);
  if (width < kLongRow) lanes /= 2;
  while (lanes > width) lanes /= 2;
  return lanes < kShortest ? 0 : lanes;
}

}  // namespace pw::cpu
