// Lowers one element of a computed value: pointwise ops, casts and reductions. Invariant: every
// rounding point of the meaning becomes one rounding of the row program, and each is exact before
// it: an operand is converted to a type that holds it exactly. Cost: one statement for each op and
// distinct index.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "codegen/rowprogram/element_lowering.hpp"
#include "tensor/numerics.hpp"

namespace pw::rows {
namespace {

#define PW_PRIMITIVE(name) Primitive::name,
constexpr std::array kReals{PW_REAL_PRIMITIVES(PW_PRIMITIVE)};
#undef PW_PRIMITIVE

bool real_valued(Primitive operation) {
  return std::find(kReals.begin(), kReals.end(), operation) != kReals.end();
}
bool computes(Primitive op) {
  return is_pointwise(op) || class_of(op) == PrimitiveClass::reduction;
}

Unit unit_of(DType dtype) {
  return !is_float(dtype) ? Unit::i64 : dtype == DType::f64 ? Unit::f64 : Unit::f32;
}

/// Returns the type through which a cast rounds. Casts round once, from a type that holds the
/// operand exactly: f32 for narrow floats and one-byte numbers, f64 for the rest. An i32 becomes an
/// f32 by one conversion, which rounds once. f64 is avoided where possible: it is slow on devices,
/// and ptxas 13.0 drops some conversions of an f64 selected by a condition, which gives another
/// element's value.
Unit cast_unit(DType from, DType to) {
  if (!is_float(from) && !is_float(to)) return Unit::i64;
  const bool exact = unit_of(from) == Unit::f32 || size_of(from) == 1;
  return exact || (from == DType::i32 && to == DType::f32) ? Unit::f32 : Unit::f64;
}

}  // namespace

bool is_row_primitive(Primitive op) {
  return computes(op) ||
         among(op, {Primitive::reshape, Primitive::expand, Primitive::cat, Primitive::embedding,
                    Primitive::transpose, Primitive::slice, Primitive::split, Primitive::constant,
                    Primitive::full, Primitive::empty, Primitive::iota});
}
std::string_view name(Unit unit) {
  return unit == Unit::f32 ? "f32" : unit == Unit::f64 ? "f64" : "i64";
}

ElementLowering::ElementLowering(const Graph& graph, RowProgram& program, Addresses& addresses,
                                 Scopes& scopes, LoopCuts& cuts, bool checks)
    : graph_(graph),
      context_(graph.context()),
      tokens_(graph.facts.tokens()),
      program_(program),
      addresses_(addresses),
      scopes_(scopes),
      cuts_(cuts),
      checks_(checks) {}

SlotId ElementLowering::element(ValueId value, Position at) {
  if (graph_.type(value) == Types::unknown())
    throw Opaque{"the type of a value in its body is unknown"};
  const Shape& s = addresses_.shape(value);
  for (std::size_t i = 0; i < s.size(); ++i) {
    if (addresses_.is_one(s[i])) at[i] = program_.indices.constant(0);
  }
  const std::pair<ValueId, Position> key{value, at};
  if (const SlotId slot = scopes_.known(key); slot.valid()) return slot;
  SlotId slot;
  if (graph_.is_input(value)) {
    const auto& inputs = graph_.inputs();
    slot = load(
        static_cast<std::size_t>(std::find(inputs.begin(), inputs.end(), value) - inputs.begin()),
        at);
  } else {
    slot = computed(graph_.producer(value), graph_.result_index(value), at);
  }
  scopes_.remember(key, slot);
  return slot;
}

SlotId ElementLowering::computed(NodeId node, std::size_t result, const Position& at) {
  const Op& op = graph_.op_of(node);
  if (is_pointwise(op.primitive)) return pointwise(node, op.primitive, at);
  if (computes(op.primitive)) return reduction(node, op.primitive, at);
  if (among(op.primitive, {Primitive::constant, Primitive::full, Primitive::empty}))
    return number(node);
  if (op.primitive == Primitive::iota) return counted(node, at);
  return moved(node, result, at);
}

SlotId ElementLowering::load(std::size_t argument, const Position& at) {
  const ValueId value = graph_.inputs()[argument];
  Statement statement;
  statement.kind = Statement::Kind::load;
  statement.argument = argument;
  statement.index = addresses_.linear(addresses_.shape(value), at);
  const std::vector<VarId> vars = program_.indices.vars(statement.index);
  return scopes_.emit(std::move(statement), addresses_.dtype(value), vars);
}

SlotId ElementLowering::number(NodeId node) {
  const DType to = addresses_.dtype(graph_.result(node));
  double value = 0;
  if (const Attribute* attribute = graph_.attribute(node, "value")) {
    if (const auto* real = std::get_if<double>(attribute)) value = *real;
    if (const auto* integer = std::get_if<std::int64_t>(attribute))
      value = static_cast<double>(*integer);
  }
  Statement statement;
  statement.kind = Statement::Kind::constant;
  statement.real = rounded(to, value);
  return scopes_.emit(std::move(statement), to, {});
}

/// The place along the last axis, converted to the dtype of the result.
SlotId ElementLowering::counted(NodeId node, const Position& at) {
  Statement place;
  place.kind = Statement::Kind::place;
  place.unit = Unit::i64;
  place.index = at.empty() ? program_.indices.constant(0) : at.back();
  const std::vector<VarId> vars = program_.indices.vars(place.index);
  const SlotId slot = scopes_.emit(std::move(place), DType::i64, vars);
  const DType to = addresses_.dtype(graph_.result(node));
  if (to == DType::i64) return slot;
  Statement converted;
  converted.kind = Statement::Kind::compute;
  converted.unit = cast_unit(DType::i64, to);
  converted.operands = {slot};
  return scopes_.emit(std::move(converted), to, vars);
}

SlotId ElementLowering::broadcast(ValueId operand, const Position& at) {
  if (!operand.valid()) throw Opaque{"an operand of a primitive is absent"};
  const std::size_t rank = addresses_.shape(operand).size();
  if (rank > at.size()) throw Opaque{"an operand of a primitive has more dims than its result"};
  return element(operand, Position(at.end() - static_cast<std::ptrdiff_t>(rank), at.end()));
}

SlotId ElementLowering::pointwise(NodeId node, Primitive operation, const Position& at) {
  Statement statement;
  statement.kind = Statement::Kind::compute;
  statement.operation = operation;
  std::vector<VarId> vars;
  for (ValueId v : graph_.operands(node)) {
    statement.operands.push_back(broadcast(v, at));
    vars = union_of(vars, scopes_.vars(statement.operands.back()));
  }
  const std::size_t first = operation == Primitive::select ? 1 : 0;
  if (statement.operands.size() <= first)
    throw Opaque{fmt::format("primitive {} lacks operands", name(operation))};
  // The common dtype of the operands, so that a comparison of integers is exact.
  DType common = addresses_.dtype(graph_.operand(node, first));
  bool weak = addresses_.shape(graph_.operand(node, first)).empty();
  for (std::size_t i = first + 1; i < statement.operands.size(); ++i) {
    const bool also = addresses_.shape(graph_.operand(node, i)).empty();
    common = promote(common, weak, addresses_.dtype(graph_.operand(node, i)), also);
    weak = weak && also;
  }
  const DType to = addresses_.dtype(graph_.result(node));
  statement.unit = unit_of(common);
  if (real_valued(operation) && statement.unit == Unit::i64) statement.unit = Unit::f32;
  if (operation == Primitive::cast) statement.unit = cast_unit(common, to);
  return scopes_.emit(std::move(statement), to, vars);
}

/// Throws Opaque if a reduction would be repeated. It pays only if it is computed once for each
/// distinct place: not in every pass of a loop (or every row) that it does not depend on, nor for
/// each column of a group.
void ElementLowering::check_reduction(NodeId node, const Position& at) {
  const std::string& op = graph_.op_of(node).name;
  const std::vector<VarId> vars = addresses_.vars_of(at);
  const auto varies = [&](VarId v) { return std::binary_search(vars.begin(), vars.end(), v); };
  const std::optional<std::int64_t> rows =
      context_.dims.bounds(program_.params.front(), graph_.facts).max;
  if (!(rows && *rows <= 1) && !varies(program_.row)) {
    throw Opaque{fmt::format("{} does not run along the rows: every row would recompute it", op)};
  }
  for (IndexId i : at) {
    if (!repeats(i)) continue;
    cuts_.cut_into_groups(i);
    throw Opaque{fmt::format("{} over groups of columns would be recomputed for each column", op)};
  }
  for (std::size_t i = scopes_.scope_of(vars); i-- > 1;) {
    if (std::none_of(scopes_[i].vars.begin(), scopes_[i].vars.end(), varies))
      throw Opaque{fmt::format("{} would be recomputed in a loop", op)};
  }
}

IndexId ElementLowering::covered(DimId dim) {
  const auto line = context_.dims.rising(dim, tokens_, graph_.facts);
  if (!line) return addresses_.extent(dim);
  if (!valid_.valid()) {
    Statement read, wide;
    read.kind = Statement::Kind::load;
    read.argument = *program_.valid;
    read.index = program_.indices.constant(0);
    wide.kind = Statement::Kind::compute;
    wide.unit = Unit::i64;
    wide.operands = {scopes_.emit(std::move(read), DType::i32, {})};
    valid_ = program_.indices.slot(scopes_.emit(std::move(wide), DType::i64, {}), {});
  }
  Indices& indices = program_.indices;
  return indices.add(indices.mul(valid_, addresses_.extent(line->factor)),
                     addresses_.extent(line->rest));
}

SlotId ElementLowering::reduction(NodeId node, Primitive operation, const Position& at) {
  check_reduction(node, at);
  const ValueId x = graph_.operand(node, 0);
  const std::size_t reduced = addresses_.axis(node, "dim", addresses_.shape(x).size());
  const std::vector<VarId> vars = addresses_.vars_of(at);
  Statement statement;
  statement.kind = Statement::Kind::reduce;
  statement.operation = operation;
  statement.unit = unit_of(addresses_.dtype(x));
  statement.var = program_.indices.variable(covered(addresses_.shape(x)[reduced]));
  Position inner = at;
  if (inner.size() == addresses_.shape(x).size())
    inner[reduced] = program_.indices.use(statement.var);
  else
    inner.insert(inner.begin() + static_cast<std::ptrdiff_t>(reduced),
                 program_.indices.use(statement.var));
  if (inner.size() != addresses_.shape(x).size())
    throw Opaque{fmt::format("the result of {} does not fit its operand", name(operation))};
  statement.first = scopes_.inside(scopes_.scope_of(vars), {statement.var},
                                   [&] { statement.operands = {element(x, inner)}; });
  return scopes_.emit(std::move(statement), addresses_.dtype(graph_.result(node)), vars);
}

bool ElementLowering::repeats(IndexId place) const {
  const auto terms = program_.indices.terms(place);
  if (!terms) return true;
  return std::any_of(terms->factors.begin(), terms->factors.end(), [&](const auto& term) {
    const Index::Kind kind = program_.indices[term.first].kind;
    const std::vector<VarId>& vars = program_.indices.vars(term.first);
    const bool inner =
        std::any_of(vars.begin(), vars.end(), [&](VarId v) { return v != program_.row; });
    return inner && kind != Index::Kind::variable;
  });
}

}  // namespace pw::rows
