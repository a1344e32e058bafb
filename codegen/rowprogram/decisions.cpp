#include "codegen/rowprogram/decisions.hpp"

#include <algorithm>
#include <set>

namespace pw::rows {
namespace {

/// Returns true if an error of the last bit of an operand may change the result by more.
bool is_decision(const RowProgram& program, const Statement& s) {
  if (s.kind != Statement::Kind::compute || !is_float(program.slots[s.operands[0]])) return false;
  const DType to = program.slots[s.slot];
  if (s.operation == Primitive::cast) return !is_float(to) && size_of(to) > 1;
  return among(s.operation,
               {Primitive::eq, Primitive::ne, Primitive::lt, Primitive::le, Primitive::gt,
                Primitive::ge, Primitive::floor, Primitive::ceil, Primitive::trunc});
}

/// Returns true if a statement's float result may need rounding.
bool may_round(const RowProgram& program, const Statement& s) {
  if (!is_float(program.slots[s.slot])) return false;
  if (s.kind == Statement::Kind::reduce)
    return s.operation != Primitive::amax && s.operation != Primitive::amin;
  return s.kind == Statement::Kind::compute &&
         !among(s.operation, {Primitive::cast, Primitive::select, Primitive::maximum,
                              Primitive::minimum, Primitive::neg, Primitive::abs});
}

/// Walks backwards from decisions; `decided` holds the slots that they read.
bool decides_in(const RowProgram& program, const Block& block, std::set<SlotId>& decided) {
  for (auto s = block.rbegin(); s != block.rend(); ++s) {
    const bool read = s->slot.valid() && decided.count(s->slot) != 0;
    if (read && may_round(program, *s)) return true;
    if (read || is_decision(program, *s)) decided.insert(s->operands.begin(), s->operands.end());
    if (decides_in(program, s->second, decided) || decides_in(program, s->first, decided))
      return true;
  }
  return false;
}

}  // namespace

bool decides(const RowProgram& program) {
  std::set<SlotId> decided;
  return decides_in(program, program.body, decided);
}

bool any_decides(const std::vector<RunUnit>& units) {
  return std::any_of(units.begin(), units.end(), [](const RunUnit& unit) {
    return unit.kind == RunUnit::Kind::rows && decides(unit.program);
  });
}

}  // namespace pw::rows
