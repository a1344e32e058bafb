// Elementwise and linear ops. A linear op on a partial sum gives a partial sum.
// f(sum of x_r) = sum of f(x_r) holds for linear f over the reals. In floats the rounding differs,
// so verdicts report `rounds` after the all_reduce.
#include "proof/equal/transfer_rules.hpp"

namespace pw::proof {

/// Requires equal attributes on all ranks: a slice at a rank's own offset is not replicated.
Found ElementTransfer::replicated() {
  if (!all(Spread::Kind::whole)) return std::nullopt;
  for (std::size_t r = 1; r < spreader_.ranks(); ++r)
    if (graph(r).attributes(nodes_[r]) != graph().attributes(nodes_[0])) return std::nullopt;
  std::optional<Wholes::Values> made;
  if (is_pointwise(op_.primitive))
    made = wholes_.lifted(graph().op(nodes_[0]), wholes_in(), attributes());
  if (!made) made = wholes_.make(graph().op(nodes_[0]), wholes_in(), attributes(), result_types(0));
  if (!made) return std::nullopt;
  Results out;
  for (ValueId value : *made) out.push_back(replicated_as(value));
  return out;
}

/// Extends a tensor that repeats along an axis.
/// A constant of a part's extent has a counterpart of the whole extent. Invalid for a tensor whose
/// elements may differ along the axis.
ValueId ElementTransfer::widened(ValueId whole, std::size_t axis, DimId extent) {
  const Graph& made = wholes_.graph();
  if (made.is_input(whole)) return {};
  const NodeId node = made.producer(whole);
  const Primitive op = made.op_of(node).primitive;
  if (!among(op, {Primitive::full, Primitive::expand, Primitive::empty})) return {};
  Shape shape = wholes_.shape(whole);
  if (op == Primitive::expand) {
    const Shape& from = wholes_.shape(made.operand(node, 0));
    const std::size_t front = shape.size() - from.size();
    if (axis >= front && wholes_.dims().value(from[axis - front]) != 1) return {};
  }
  shape[axis] = extent;
  auto results =
      wholes_.make(made.op(node), made.operands(node),
                   with(wholes_.context().strings,
                        wholes_.context().attributes[made.attributes(node)], "shape", shape));
  return results ? results->front() : ValueId();
}

/// All cut operands must be cut alike. A whole operand must repeat along the cut axis, or be one
/// that can be extended.
Found ElementTransfer::pointwise() {
  if (!is_pointwise(op_.primitive) || !some(Spread::Kind::cut)) return std::nullopt;
  if (some(Spread::Kind::each) || some(Spread::Kind::partial)) return std::nullopt;
  const std::size_t rank = local_result().size();
  std::optional<std::size_t> at;
  Shape parts;
  DimId extent;
  for (std::size_t i = 0; i < in_.size(); ++i) {
    if (in_[i]->kind != Spread::Kind::cut) continue;
    const Shape& shape = wholes_.shape(in_[i]->whole);
    const std::size_t place = in_[i]->axis + rank - shape.size();
    if (at && (*at != place || parts != in_[i]->parts)) return std::nullopt;
    at = place;
    parts = in_[i]->parts;
    extent = shape[in_[i]->axis];
  }
  Wholes::Values operands = wholes_in();
  for (std::size_t i = 0; i < in_.size(); ++i) {
    if (in_[i]->kind != Spread::Kind::whole) continue;
    const Shape& shape = wholes_.shape(operands[i]);
    const std::size_t front = rank - shape.size();
    if (*at < front || wholes_.dims().value(shape[*at - front]) == 1) continue;
    operands[i] = widened(operands[i], *at - front, extent);
    if (!operands[i].valid()) return std::nullopt;
  }
  auto made = wholes_.make(graph().op(nodes_[0]), operands, attributes());
  return made ? one(cut(made->front(), *at, parts)) : std::nullopt;
}

/// Moves sums over ranks past linear ops.
Found ElementTransfer::linear() {
  if (!some(Spread::Kind::partial) || some(Spread::Kind::each) || some(Spread::Kind::cut))
    return std::nullopt;
  if (std::find(in_.begin(), in_.end(), nullptr) != in_.end()) return std::nullopt;
  for (const Spread* spread : in_)
    if (spread->kind == Spread::Kind::partial && spread->join != Primitive::sum)
      return std::nullopt;
  const bool sums = is({Primitive::add, Primitive::sub}) && all(Spread::Kind::partial);
  // A product of two sums is not the sum of the products, so one factor must be whole.
  const bool both = all(Spread::Kind::partial);
  // Division and casts to integers truncate each part of a sum, not the sum.
  const auto real = [&](ValueId whole) { return is_float(wholes_.dtype(whole)); };
  const bool scaled =
      (is(Primitive::mul) && !both) ||
      (is(Primitive::div) && in_[1]->kind == Spread::Kind::whole && real(in_[0]->whole));
  const bool matmul = is({Primitive::mm, Primitive::bmm}) && !both;
  if (!sums && !is({Primitive::neg, Primitive::cast}) && !scaled && !matmul) return std::nullopt;
  if (is(Primitive::cast)) {
    const DType from = wholes_.dtype(in_[0]->whole);
    const auto* to = std::get_if<DType>(graph().attribute(nodes_[0], "dtype"));
    if (from == DType::b8 || to == nullptr || is_float(from) != is_float(*to) || *to == DType::b8)
      return std::nullopt;
  }
  return one(partial(made(), Primitive::sum));
}

}  // namespace pw::proof
