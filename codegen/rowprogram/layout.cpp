// Lowers layout ops: maps the index of a result's element to the operand's, without computing
// anything. Reshapes are decomposed into the finest matching blocks of dims, so that only dims that
// are really split or joined need division. Invariant: the mapped index addresses the same element,
// and stays inside the operand's extents for every index inside the result's.
#include <algorithm>

#include <fmt/format.h>

#include "codegen/rowprogram/lowering.hpp"

namespace pw::rows {

SlotId Lowering::moved(NodeId node, std::size_t result, const Position& at) {
  const Op& declared = graph_.op_of(node);
  const Primitive op = declared.primitive;
  const auto operand = [&]() -> ValueId {
    if (graph_.operand_count(node) == 0 || !graph_.operand(node, 0).valid())
      refuse(fmt::format("op {} has no operand", declared.name));
    return graph_.operand(node, 0);
  };
  if (op == Primitive::reshape)
    return element(operand(), reshaped(shape(operand()), shape(graph_.result(node)), at));
  if (op == Primitive::expand) return broadcast(operand(), at);
  if (op == Primitive::cat) return concatenated(node, axis(node, "dim", at.size()), 0, at);
  if (op == Primitive::embedding) return gathered(node, at);
  Position inner = at;
  if (op == Primitive::transpose) {
    std::swap(inner[axis(node, "dim0", at.size())], inner[axis(node, "dim1", at.size())]);
    return element(operand(), inner);
  }
  if (op == Primitive::slice) {
    const std::size_t a = axis(node, "dim", at.size());
    const Attribute* attribute = graph_.attribute(node, "start");
    const auto* number = attribute ? std::get_if<std::int64_t>(attribute) : nullptr;
    const auto* symbolic = attribute ? std::get_if<DimId>(attribute) : nullptr;
    DimId start = symbolic ? *symbolic : context_.dims.constant(number ? *number : 0);
    if (number && *number < 0) start = context_.dims.add(shape(operand())[a], start);
    if (context_.dims.value(start).value_or(0) < 0) start = context_.dims.constant(0);
    const Attribute* step = graph_.attribute(node, "step");
    const auto* stride = step ? std::get_if<std::int64_t>(step) : nullptr;
    inner[a] = program_.indices.mul(inner[a], program_.indices.constant(stride ? *stride : 1));
    inner[a] = program_.indices.add(inner[a], extent(start));
    return element(operand(), inner);
  }
  if (op == Primitive::split) {
    const std::size_t a = axis(node, "dim", at.size());
    DimId offset = context_.dims.constant(0);
    for (std::size_t i = 0; i < result; ++i)
      offset = context_.dims.add(offset, shape(graph_.result(node, i))[a]);
    inner[a] = program_.indices.add(inner[a], extent(offset));
    return element(operand(), inner);
  }
  refuse(fmt::format("op {} has no body and is not a row primitive", declared.name));
}

/// Returns the element at `at` of the operands from `operand` on: a branch for each, unless the
/// place is known.
SlotId Lowering::concatenated(NodeId node, std::size_t axis, std::size_t operand, Position at) {
  while (operand + 1 < graph_.operand_count(node) &&
         context_.dims.value(shape(graph_.operand(node, operand))[axis]) == 0)
    ++operand;
  const ValueId x = graph_.operand(node, operand);
  const DimId size = shape(x)[axis];
  bool last = true;
  for (std::size_t i = operand + 1; i < graph_.operand_count(node); ++i)
    last = last && context_.dims.value(shape(graph_.operand(node, i))[axis]) == 0;
  if (last || program_.indices.within(at[axis], extent(size))) return element(x, at);
  Position rest = at;
  rest[axis] = program_.indices.sub(at[axis], extent(size));
  if (program_.indices.interval(rest[axis]).low >= 0)
    return concatenated(node, axis, operand + 1, rest);
  if (const auto known = context_.dims.value(size)) cut_at(at[axis], *known);

  Statement statement;
  statement.kind = Statement::Kind::branch;
  statement.index = at[axis];
  statement.bound = extent(size);
  const std::vector<VarId> vars = vars_of(at), condition = program_.indices.vars(at[axis]);
  const std::size_t scope = scope_of(vars);
  SlotId first, second;
  statement.first = inside(scope, condition, [&] { first = element(x, at); });
  statement.second =
      inside(scope, condition, [&] { second = concatenated(node, axis, operand + 1, rest); });
  statement.operands = {first, second};
  return emit(std::move(statement), dtype(graph_.result(node)), vars);
}

SlotId Lowering::gathered(NodeId node, const Position& at) {
  const ValueId table = graph_.operand(node, 0), ids = graph_.operand(node, 1);
  const auto split = at.begin() + static_cast<std::ptrdiff_t>(shape(ids).size());
  const SlotId id = element(ids, Position(at.begin(), split));
  const IndexId rows = extent(shape(table)[0]);
  if (checks_) check(id, rows);
  Position inner{program_.indices.clamp(program_.indices.slot(id, slot_vars_[id]), rows)};
  inner.insert(inner.end(), split, at.end());
  return element(table, inner);
}

/// Emits the check in the scope in which the index is computed.
void Lowering::check(SlotId index, IndexId bound) {
  if (!checked_.emplace(index, bound).second) return;
  Statement statement;
  statement.kind = Statement::Kind::check;
  statement.operands = {index};
  statement.bound = bound;
  scopes_[scope_of(slot_vars_[index])]->block.push_back(std::move(statement));
  program_.checks = true;
}

/// Matches dims at equal products of leading extents, so that only dims that are split or joined
/// need division.
Position Lowering::reshaped(const Shape& from, const Shape& to, const Position& at) {
  const auto products = [&](const Shape& s) {
    std::vector<DimId> out{context_.dims.constant(1)};
    for (DimId d : s)
      out.push_back(out.back().valid() ? context_.dims.mul(out.back(), d) : out.back());
    return out;
  };
  const std::vector<DimId> before = products(from), after = products(to);
  Indices& indices = program_.indices;
  Position inner(from.size());
  for (std::size_t i = 0, j = 0; i < from.size() || j < to.size();) {
    std::size_t i2 = from.size(),
                j2 = to.size();  // the whole rest, unless a nearer match is found
    for (std::size_t a = i + 1; a < from.size() && i2 == from.size(); ++a) {
      for (std::size_t b = j + 1; b < to.size(); ++b) {
        if (before[a].valid() && before[a] == after[b]) {
          i2 = a, j2 = b;
          break;
        }
      }
    }
    IndexId rest = indices.constant(0);
    for (; j < j2; ++j) rest = indices.add(indices.mul(rest, extent(to[j])), at[j]);
    for (std::size_t k = i2; k-- > i;) {
      inner[k] = k == i ? rest : indices.mod(rest, extent(from[k]));
      if (k != i) rest = indices.div(rest, extent(from[k]));
    }
    i = i2;
  }
  return inner;
}

}  // namespace pw::rows
