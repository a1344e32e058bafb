// Lowers layout ops: maps the index of a result's element to the operand's, without computing
// anything. Reshapes are decomposed into the finest matching blocks of dims, so that only dims that
// are really split or joined need division. Invariant: the mapped index addresses the same element,
// and stays inside the operand's extents for every index inside the result's.
#include <algorithm>

#include <fmt/format.h>

#include "codegen/rowprogram/element_lowering.hpp"

namespace pw::rows {

SlotId ElementLowering::moved(NodeId node, std::size_t result, const Position& at) {
  const Op& declared = graph_.op_of(node);
  const Primitive op = declared.primitive;
  const auto operand = [&]() -> ValueId {
    if (graph_.operand_count(node) == 0 || !graph_.operand(node, 0).valid())
      throw Opaque{fmt::format("op {} has no operand", declared.name)};
    return graph_.operand(node, 0);
  };
  if (op == Primitive::reshape)
    return element(operand(), addresses_.reshaped(addresses_.shape(operand()),
                                                  addresses_.shape(graph_.result(node)), at));
  if (op == Primitive::expand) return broadcast(operand(), at);
  if (op == Primitive::cat)
    return concatenated(node, addresses_.axis(node, "dim", at.size()), 0, at);
  if (op == Primitive::embedding) return gathered(node, at);
  if (op == Primitive::index && checks_) return indexed(node, at);
  Position inner = at;
  if (op == Primitive::transpose) {
    std::swap(inner[addresses_.axis(node, "dim0", at.size())],
              inner[addresses_.axis(node, "dim1", at.size())]);
    return element(operand(), inner);
  }
  if (op == Primitive::slice) {
    const std::size_t a = addresses_.axis(node, "dim", at.size());
    const Attribute* attribute = graph_.attribute(node, "start");
    const auto* number = attribute ? std::get_if<std::int64_t>(attribute) : nullptr;
    const auto* symbolic = attribute ? std::get_if<DimId>(attribute) : nullptr;
    DimId start = symbolic ? *symbolic : context_.dims.constant(number ? *number : 0);
    if (number && *number < 0) start = context_.dims.add(addresses_.shape(operand())[a], start);
    if (context_.dims.value(start).value_or(0) < 0) start = context_.dims.constant(0);
    const Attribute* step = graph_.attribute(node, "step");
    const auto* stride = step ? std::get_if<std::int64_t>(step) : nullptr;
    inner[a] = program_.indices.mul(inner[a], program_.indices.constant(stride ? *stride : 1));
    inner[a] = program_.indices.add(inner[a], addresses_.extent(start));
    return element(operand(), inner);
  }
  if (op == Primitive::split) {
    const std::size_t a = addresses_.axis(node, "dim", at.size());
    DimId offset = context_.dims.constant(0);
    for (std::size_t i = 0; i < result; ++i)
      offset = context_.dims.add(offset, addresses_.shape(graph_.result(node, i))[a]);
    inner[a] = program_.indices.add(inner[a], addresses_.extent(offset));
    return element(operand(), inner);
  }
  throw Opaque{fmt::format("op {} has no body and is not a row primitive", declared.name)};
}

/// Returns the element at `at` of the operands from `operand` on: a branch for each, unless the
/// place is known.
SlotId ElementLowering::concatenated(NodeId node, std::size_t axis, std::size_t operand,
                                     Position at) {
  while (operand + 1 < graph_.operand_count(node) &&
         context_.dims.value(addresses_.shape(graph_.operand(node, operand))[axis]) == 0)
    ++operand;
  const ValueId x = graph_.operand(node, operand);
  const DimId size = addresses_.shape(x)[axis];
  bool last = true;
  for (std::size_t i = operand + 1; i < graph_.operand_count(node); ++i)
    last = last && context_.dims.value(addresses_.shape(graph_.operand(node, i))[axis]) == 0;
  if (last || program_.indices.within(at[axis], addresses_.extent(size))) return element(x, at);
  Position rest = at;
  rest[axis] = program_.indices.sub(at[axis], addresses_.extent(size));
  if (program_.indices.interval(rest[axis]).low >= 0)
    return concatenated(node, axis, operand + 1, rest);
  if (const auto known = context_.dims.value(size)) cuts_.cut_at(at[axis], *known);

  Statement statement;
  statement.kind = Statement::Kind::branch;
  statement.index = at[axis];
  statement.bound = addresses_.extent(size);
  const std::vector<VarId> vars = addresses_.vars_of(at),
                           condition = program_.indices.vars(at[axis]);
  const std::size_t scope = scopes_.scope_of(vars);
  SlotId first, second;
  statement.first = scopes_.inside(scope, condition, [&] { first = element(x, at); });
  statement.second = scopes_.inside(scope, condition,
                                    [&] { second = concatenated(node, axis, operand + 1, rest); });
  statement.operands = {first, second};
  return scopes_.emit(std::move(statement), addresses_.dtype(graph_.result(node)), vars);
}

SlotId ElementLowering::gathered(NodeId node, const Position& at) {
  const ValueId table = graph_.operand(node, 0), ids = graph_.operand(node, 1);
  const auto split = at.begin() + static_cast<std::ptrdiff_t>(addresses_.shape(ids).size());
  const SlotId id = element(ids, Position(at.begin(), split));
  const IndexId rows = addresses_.extent(addresses_.shape(table)[0]);
  if (checks_) check(id, rows);
  Position inner{program_.indices.clamp(program_.indices.slot(id, scopes_.vars(id)), rows)};
  inner.insert(inner.end(), split, at.end());
  return element(table, inner);
}

/// Returns true if the value depends on no input, and a few nodes of whole numbers compute it.
bool ElementLowering::is_cheap_place(ValueId value, int depth) const {
  constexpr int kDeepest = 12;
  if (graph_.is_input(value) || is_float(addresses_.dtype(value)) || depth > kDeepest) return false;
  const NodeId node = graph_.producer(value);
  const std::vector<ValueId> operands = graph_.operands(node);
  return addresses_.shape(value).size() <= 1 && graph_.result_count(node) == 1 &&
         !graph_.op_of(node).has_body() &&
         std::all_of(operands.begin(), operands.end(),
                     [&](ValueId v) { return v.valid() && is_cheap_place(v, depth + 1); });
}

/// Elements at places along one axis that are computed from nothing are as near as those in memory.
bool ElementLowering::is_in_memory(ValueId value) const {
  if (graph_.is_input(value)) return true;
  const NodeId node = graph_.producer(value);
  const Primitive op = graph_.op_of(node).primitive;
  if (op == Primitive::index)
    return graph_.operand_count(node) == 2 && is_cheap_place(graph_.operand(node, 1), 0) &&
           is_in_memory(graph_.operand(node, 0));
  return among(op, {Primitive::reshape, Primitive::transpose, Primitive::slice, Primitive::split,
                    Primitive::expand}) &&
         is_in_memory(graph_.operand(node, 0));
}

SlotId ElementLowering::wrapped(SlotId index, IndexId extent) {
  const std::vector<VarId> vars = scopes_.vars(index);
  const auto emit = [&](Statement statement, DType dtype) {
    statement.unit = Unit::i64;
    return scopes_.emit(std::move(statement), dtype,
                        statement.kind == Statement::Kind::compute ? vars : std::vector<VarId>());
  };
  const auto compute = [&](Primitive operation, std::vector<SlotId> operands, DType dtype) {
    Statement statement;
    statement.kind = Statement::Kind::compute;
    statement.operation = operation;
    statement.operands = std::move(operands);
    return emit(std::move(statement), dtype);
  };
  Statement zero, end;
  end.kind = Statement::Kind::place;
  end.index = extent;
  const SlotId none = emit(std::move(zero), DType::i64), all = emit(std::move(end), DType::i64);
  const SlotId negative = compute(Primitive::lt, {index, none}, DType::b8);
  const SlotId from_end = compute(Primitive::add, {index, all}, DType::i64);
  return compute(Primitive::select, {negative, from_end, index}, DType::i64);
}

/// Only with checks, because a bad index is an error; and not of an axis that may be empty, because
/// it has no element to which a bad index can be brought.
/// The operand must be in memory: what computes it would run again for each element that is chosen.
SlotId ElementLowering::indexed(NodeId node, const Position& at) {
  const ValueId x = graph_.operand(node, 0);
  if (!is_in_memory(x)) throw Opaque{"elements chosen by an index are read from memory"};
  const Shape& shape = addresses_.shape(x);
  const std::size_t count = graph_.operand_count(node) - 1;
  const std::size_t axis =
      graph_.attribute(node, "dim") ? addresses_.axis(node, "dim", shape.size()) : 0;
  const Attribute* wrap = graph_.attribute(node, "wrap");
  const bool wraps = wrap && (*wrap == Attribute(true) || *wrap == Attribute(std::int64_t{1}));
  if (axis + count > shape.size()) throw Opaque{"an operand has fewer axes than indices"};
  const auto begin = at.begin() + static_cast<std::ptrdiff_t>(axis);
  const auto end = at.end() - static_cast<std::ptrdiff_t>(shape.size() - axis - count);
  Position inner(at.begin(), begin);
  for (std::size_t i = 0; i < count; ++i) {
    const IndexId extent = addresses_.extent(shape[axis + i]);
    SlotId index = broadcast(graph_.operand(node, i + 1), Position(begin, end));
    if (program_.indices.interval(extent).low <= 0) throw Opaque{"an indexed axis may be empty"};
    if (wraps) index = wrapped(index, extent);
    check(index, extent);
    inner.push_back(
        program_.indices.clamp(program_.indices.slot(index, scopes_.vars(index)), extent));
  }
  inner.insert(inner.end(), end, at.end());
  return element(x, inner);
}

/// Emits the check in the scope in which the index is computed.
void ElementLowering::check(SlotId index, IndexId bound) {
  if (!checked_.emplace(index, bound).second) return;
  Statement statement;
  statement.kind = Statement::Kind::check;
  statement.operands = {index};
  statement.bound = bound;
  scopes_[scopes_.scope_of(index)].block.push_back(std::move(statement));
  program_.checks = true;
}

}  // namespace pw::rows
