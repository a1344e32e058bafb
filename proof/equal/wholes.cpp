// A hash-consed graph of whole values with local simplification. Nodes are found by op, attributes,
// and operands before they are created. Inverse views cancel, slices of slices compose, and
// neighboring slices that a concatenation joins become one slice. Invariant: each simplification
// preserves all bits, so equal ids denote equal tensors. Values up to close() belong to the single
// graph. Each lookup is logarithmic in the number of nodes.
// This is an e-graph without unions: every value has one canonical form that is chosen when it is
// created. An equality that needs a non-local rewrite is missed, which makes a proof incomplete but
// not unsound.
#include "proof/equal/wholes.hpp"

#include <algorithm>

#include "graph/infer/dim_value.hpp"
#include "tensor/numerics.hpp"

namespace pw::proof {

AttributeList with(Strings& strings, AttributeList list, std::string_view name, Attribute value) {
  const NameId id = strings.intern(name);
  for (auto& [key, held] : list) {
    if (key != id) continue;
    held = std::move(value);
    return list;
  }
  list.emplace_back(id, std::move(value));
  return list;
}

/// Each call creates a new value, even for a known name.
ValueId Wholes::input(const std::string& name, TypeId type) {
  return graph_.add_input(graph_.fresh_name(name), type, InputKind::input);
}

const Shape& Wholes::shape(ValueId value) const {
  return context().types[graph_.type(value)].shape;
}

DType Wholes::dtype(ValueId value) const { return context().types[graph_.type(value)].dtype; }

const Attribute* Wholes::get(const AttributeList& list, std::string_view name) const {
  for (const auto& [key, value] : list)
    if (context().strings.text(key) == name) return &value;
  return nullptr;
}

/// Nothing if the attribute is absent or not a size.
std::optional<DimId> Wholes::dim_of(const Attribute* attribute) const {
  return attribute == nullptr ? std::nullopt : dim_value(dims(), *attribute);
}

Attribute Wholes::dim_attribute(DimId dim) const {
  if (const auto number = dims().value(dim)) return *number;
  return dim;
}

/// Returns the producer if it is this op; otherwise an invalid id.
NodeId Wholes::made_by(ValueId value, Primitive op) const {
  if (!value.valid() || graph_.is_input(value)) return {};
  const NodeId node = graph_.producer(value);
  return graph_.op_of(node).primitive == op ? node : NodeId();
}

ValueId Wholes::number(double value, DType dtype) {
  return one(Primitive::constant, {}, {{"value", value}, {"dtype", dtype}});
}

/// Requires a step of 1: other slices are not contiguous.
std::optional<Wholes::Slice> Wholes::slice_at(ValueId value) const {
  const NodeId node = made_by(value, Primitive::slice);
  if (!node.valid() || *graph_.attribute(node, "step") != Attribute(std::int64_t{1}))
    return std::nullopt;
  const auto start = dim_of(graph_.attribute(node, "start")),
             end = dim_of(graph_.attribute(node, "end"));
  if (!start || !end) return std::nullopt;
  const auto axis = std::get<std::int64_t>(*graph_.attribute(node, "dim"));
  return Slice{graph_.operand(node, 0), static_cast<std::size_t>(axis), *start, *end};
}

/// Looks through reshapes. On one device, any index tensor may be the one that ranks would shard.
std::vector<Lookup> Wholes::lookups_of(ValueId value) const {
  for (NodeId view = made_by(value, Primitive::reshape); view.valid();
       view = made_by(value, Primitive::reshape))
    value = graph_.operand(view, 0);
  const NodeId node = made_by(value, Primitive::index);
  if (!node.valid() || *graph_.attribute(node, "dim") != Attribute(std::int64_t{0})) return {};
  std::vector<Lookup> out;
  const Values operands = graph_.operands(node);
  const Values at(operands.begin() + 1, operands.end());
  for (std::size_t slot = 0; slot < at.size(); ++slot) {
    const auto rows = dims().value(shape(operands[0])[slot]);
    const bool alike =
        std::all_of(at.begin(), at.end(), [&](ValueId v) { return shape(v) == shape(at[slot]); });
    if (rows && alike) out.push_back({operands[0], slot, at, {at[slot]}, *rows});
  }
  return out;
}

/// A slice of such a value, or a concatenation of them, counts as well.
bool Wholes::part_of_single(ValueId value) const {
  while (!of_single(value)) {
    if (graph_.is_input(value)) return false;
    const NodeId node = graph_.producer(value);
    if (graph_.op_of(node).primitive == Primitive::cat) {
      const auto parts = graph_.operands(node);
      return std::all_of(parts.begin(), parts.end(),
                         [&](ValueId part) { return part_of_single(part); });
    }
    if (graph_.op_of(node).primitive != Primitive::slice) return false;
    value = graph_.operand(node, 0);
  }
  return true;
}

/// f(x[a:b], y[a:b]) ⇒ f(x, y)[a:b], for an elementwise f. All sliced operands must have one range
/// on one axis of the result. The others must repeat along it, so slicing them changes nothing.
std::optional<Wholes::Values> Wholes::lifted(OpId op, const Values& operands,
                                             const AttributeList& attributes) {
  std::size_t rank = 0;
  for (ValueId v : operands) {
    if (!v.valid()) return std::nullopt;
    rank = std::max(rank, shape(v).size());
  }
  std::optional<Slice> like;
  std::size_t place = 0;
  Values whole = operands;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const auto part = slice_at(operands[i]);
    if (!part) continue;
    const std::size_t at = part->axis + rank - shape(operands[i]).size();
    whole[i] = part->of;
    if (like && (at != place || part->start != like->start || part->end != like->end ||
                 shape(part->of)[part->axis] != shape(like->of)[like->axis]))
      return std::nullopt;
    like = part;
    place = at;
  }
  if (!like) return std::nullopt;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const std::size_t front = rank - shape(operands[i]).size();
    const bool repeats = place < front || dims().value(shape(operands[i])[place - front]) == 1;
    if (whole[i] == operands[i] && !repeats) return std::nullopt;
  }
  const auto found = find(op, whole, attributes);
  if (!found || found->size() != 1) return std::nullopt;
  return std::optional(Values{slice(found->front(), place, like->start, like->end)});
}

/// Looks through views, which do not change the number, and through casts that represent it.
std::optional<double> Wholes::number_of(ValueId value) const {
  std::vector<DType> dtypes;
  while (value.valid() && !graph_.is_input(value)) {
    const NodeId node = graph_.producer(value);
    const Primitive op = graph_.op_of(node).primitive;
    dtypes.push_back(dtype(value));
    if (among(op, {Primitive::constant, Primitive::full})) {
      const auto* real = std::get_if<double>(graph_.attribute(node, "value"));
      if (real == nullptr) return std::nullopt;
      const bool held = std::all_of(dtypes.begin(), dtypes.end(), [&](DType to) {
        return to == DType::b8 ? *real == 0 || *real == 1
                               : to == DType::i64 || rounded(to, *real) == *real;
      });
      return held ? std::optional(*real) : std::nullopt;
    }
    const bool moves = among(op, {Primitive::reshape, Primitive::expand, Primitive::cast,
                                  Primitive::transpose, Primitive::slice});
    if (!moves) return std::nullopt;
    value = graph_.operand(node, 0);
  }
  return std::nullopt;
}

ValueId Wholes::one(Primitive op, Values operands, const Given& attributes) {
  const OpId id = context().ops.find(op);
  if (!id.valid()) return {};
  AttributeList list;
  for (const auto& [name, value] : attributes)
    list.emplace_back(context().strings.intern(name), value);
  auto made = make(id, std::move(operands), std::move(list));
  return made && made->size() == 1 ? made->front() : ValueId();
}

ValueId Wholes::slice(ValueId x, std::size_t axis, DimId start, DimId end) {
  return one(Primitive::slice, {x},
             {{"dim", static_cast<std::int64_t>(axis)},
              {"start", dim_attribute(start)},
              {"end", dim_attribute(end)},
              {"step", std::int64_t{1}}});
}

ValueId Wholes::cat(const Values& parts, std::size_t axis) {
  return one(Primitive::cat, parts, {{"dim", static_cast<std::int64_t>(axis)}});
}

/// cat(a, b)[i:k] ⇒ a slice of the one part that contains the range. Invalid if the facts do not
/// place the range in one part.
ValueId Wholes::slice_of_cat(NodeId node, std::size_t axis, DimId start, DimId end) {
  const auto* dim = std::get_if<std::int64_t>(graph_.attribute(node, "dim"));
  if (dim == nullptr || static_cast<std::size_t>(*dim) != axis) return {};
  DimId from = dims().constant(0);
  for (ValueId part : graph_.operands(node)) {
    const DimId to = dims().add(from, shape(part)[axis]);
    const bool inside = dims().prove(Compare::le, from, start, graph_.facts) == Truth::yes &&
                        dims().prove(Compare::le, end, to, graph_.facts) == Truth::yes;
    if (inside) return slice(part, axis, dims().sub(start, from), dims().sub(end, from));
    from = to;
  }
  return {};
}

/// x[0:n] ⇒ x for an axis of extent n, and x[a:b][c:d] ⇒ x[a + c : a + d].
ValueId Wholes::simpler_slice(ValueId x, const AttributeList& attributes) {
  const auto* axis = std::get_if<std::int64_t>(get(attributes, "dim"));
  const auto start = dim_of(get(attributes, "start")), end = dim_of(get(attributes, "end"));
  const Attribute* step = get(attributes, "step");
  if (axis == nullptr || !start || !end) return {};
  if (step != nullptr && *step != Attribute(std::int64_t{1})) return {};
  const auto at = static_cast<std::size_t>(*axis);
  if (dims().value(*start) == 0 && *end == shape(x)[at]) return x;
  if (NodeId cat = made_by(x, Primitive::cat); cat.valid())
    return slice_of_cat(cat, at, *start, *end);
  const NodeId inner = made_by(x, Primitive::slice);
  if (!inner.valid() || *graph_.attribute(inner, "dim") != Attribute(*axis) ||
      *graph_.attribute(inner, "step") != Attribute(std::int64_t{1}))
    return {};
  const auto from = dim_of(graph_.attribute(inner, "start"));
  // Negative bounds count from the end, each slice from another one.
  const auto from_front = [&](DimId bound) {
    return dims().prove(Compare::le, dims().constant(0), bound, graph_.facts) == Truth::yes;
  };
  if (!from || !from_front(*from) || !from_front(*start) || !from_front(*end)) return {};
  return slice(graph_.operand(inner, 0), at, dims().add(*from, *start), dims().add(*from, *end));
}

/// Merges adjacent slices of one value into one slice.
/// Empty parts are removed first, since they would separate neighbors.
ValueId Wholes::simpler_cat(const Values& operands, const AttributeList& attributes) {
  if (operands.size() == 1) return operands.front();
  const auto* axis = std::get_if<std::int64_t>(get(attributes, "dim"));
  if (axis == nullptr) return {};
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (dims().value(shape(operands[i])[static_cast<std::size_t>(*axis)]) != 0) continue;
    Values fewer = operands;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    return cat(fewer, static_cast<std::size_t>(*axis));
  }
  for (std::size_t i = 0; i + 1 < operands.size(); ++i) {
    const NodeId a = made_by(operands[i], Primitive::slice),
                 b = made_by(operands[i + 1], Primitive::slice);
    if (!a.valid() || !b.valid() || graph_.operand(a, 0) != graph_.operand(b, 0)) continue;
    const auto is = [&](NodeId node, std::string_view name, const Attribute& value) {
      return *graph_.attribute(node, name) == value;
    };
    const Attribute once = std::int64_t{1};
    if (!is(a, "dim", *axis) || !is(b, "dim", *axis) || !is(a, "step", once) ||
        !is(b, "step", once) || *graph_.attribute(a, "end") != *graph_.attribute(b, "start"))
      continue;
    Values fewer = operands;
    fewer[i] = slice(graph_.operand(a, 0), static_cast<std::size_t>(*axis),
                     *dim_of(graph_.attribute(a, "start")), *dim_of(graph_.attribute(b, "end")));
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    return fewer[i].valid() ? cat(fewer, static_cast<std::size_t>(*axis)) : ValueId();
  }
  return {};
}

/// A split is a list of slices, so that slices and splits of one value have one form.
std::optional<Wholes::Values> Wholes::split(ValueId x, const AttributeList& attributes) {
  const auto* axis = std::get_if<std::int64_t>(get(attributes, "dim"));
  const auto* sizes = std::get_if<std::vector<DimId>>(get(attributes, "sizes"));
  if (axis == nullptr || sizes == nullptr) return std::nullopt;
  Values out;
  DimId from = dims().constant(0);
  for (DimId size : *sizes) {
    const DimId to = dims().add(from, size);
    out.push_back(slice(x, static_cast<std::size_t>(*axis), from, to));
    if (!out.back().valid()) return std::nullopt;
    from = to;
  }
  return out;
}

/// Returns an existing or simpler value that equals the op's result; invalid if no rule applies. A
/// reshape of a reshape reads the same elements in the same order, so the first one is skipped.
ValueId Wholes::simpler(const Op& op, const Values& operands, const AttributeList& attributes) {
  if (operands.empty() || !operands[0].valid()) return {};
  const ValueId x = operands[0];
  const auto* wanted = std::get_if<std::vector<DimId>>(get(attributes, "shape"));
  if (among(op.primitive, {Primitive::reshape, Primitive::expand})) {
    if (wanted != nullptr && *wanted == shape(x)) return x;
    const NodeId inner = made_by(x, op.primitive);
    if (inner.valid() && wanted != nullptr)
      return one(op.primitive, {graph_.operand(inner, 0)}, {{"shape", *wanted}});
  }
  if (op.primitive == Primitive::transpose) {
    const Attribute &a = *get(attributes, "dim0"), &b = *get(attributes, "dim1");
    if (a == b) return x;
    const NodeId inner = made_by(x, Primitive::transpose);
    if (!inner.valid()) return {};
    const Attribute &p = *graph_.attribute(inner, "dim0"), &q = *graph_.attribute(inner, "dim1");
    if ((a == p && b == q) || (a == q && b == p)) return graph_.operand(inner, 0);
  }
  if (op.primitive == Primitive::cast && *get(attributes, "dtype") == Attribute(dtype(x))) return x;
  if (op.primitive == Primitive::slice) return simpler_slice(x, attributes);
  if (op.primitive == Primitive::cat) return simpler_cat(operands, attributes);
  return {};
}

/// Returns an index before its widening to 64 bits.
/// Widening an i32 to i64 changes no index.
ValueId Wholes::narrow_index(ValueId index) const {
  const NodeId cast = made_by(index, Primitive::cast);
  if (!cast.valid() || dtype(index) != DType::i64) return index;
  const ValueId before = graph_.operand(cast, 0);
  return dtype(before) == DType::i32 ? before : index;
}

/// Completes default attributes first, so that an explicit default matches an omitted one.
std::optional<Wholes::Values> Wholes::find(OpId op, const Values& operands,
                                           AttributeList attributes) const {
  std::vector<TypeId> types;
  for (ValueId v : operands) types.push_back(v.valid() ? graph_.type(v) : TypeId());
  auto complete = complete_attributes(context(), context().ops[op], std::move(attributes), types);
  if (!complete) return std::nullopt;
  Values sorted = operands;
  if (context().ops[op].traits.commutative && sorted.size() >= 2 && sorted[1] < sorted[0])
    std::swap(sorted[0], sorted[1]);
  const auto found = known_.find(Key(op, *complete, sorted));
  if (found == known_.end()) return std::nullopt;
  Values out;
  for (std::size_t i = 0; i < graph_.result_count(found->second); ++i)
    out.push_back(graph_.result(found->second, i));
  return out;
}

/// Normal forms: operands of commutative ops are sorted, an embedding is an index, and a split is
/// slices. Simplification precedes the lookup.
std::optional<Wholes::Values> Wholes::make(OpId id, Values operands, AttributeList attributes,
                                           const std::vector<TypeId>& stated) {
  const Op op = context().ops[id];
  if (op.traits.commutative && operands.size() >= 2 && operands[1] < operands[0])
    std::swap(operands[0], operands[1]);
  std::vector<TypeId> types;
  for (ValueId v : operands) types.push_back(v.valid() ? graph_.type(v) : TypeId());
  auto complete = complete_attributes(context(), op, std::move(attributes), types);
  if (!complete) return std::nullopt;
  const AttributeList list = context().attributes[*complete];
  if (op.primitive == Primitive::split) return split(operands[0], list);
  if (op.primitive == Primitive::embedding)
    return std::optional(Values{one(Primitive::index, operands, {{"dim", std::int64_t{0}}})});
  // Ranks compare indices with offsets, so a negative index has no meaning there. Its absence is an
  // assumption.
  if (op.primitive == Primitive::index && *get(list, "wrap") == Attribute(true)) {
    granted.insert("indices into tables count from the front: none is negative");
    return make(id, std::move(operands), with(context().strings, list, "wrap", false), stated);
  }
  if (op.primitive == Primitive::index)
    for (std::size_t i = 1; i < operands.size(); ++i) operands[i] = narrow_index(operands[i]);
  if (ValueId same = simpler(op, operands, list); same.valid()) return std::optional(Values{same});
  const Key key(id, *complete, operands);
  auto found = known_.find(key);
  if (found == known_.end()) {
    auto results = infer_types(context(), id, types, *complete,
                               stated.empty() ? -1 : static_cast<int>(stated.size()));
    if (!results) return std::nullopt;
    NodeSpec spec;
    spec.op = id;
    spec.operands = operands;
    spec.attributes = *complete;
    for (std::size_t i = 0; i < results->size(); ++i) {
      const bool open = (*results)[i] == Types::unknown() && i < stated.size();
      spec.results.push_back({open ? stated[i] : (*results)[i], {}});
    }
    found = known_.emplace(key, graph_.add_node(spec)).first;
  }
  Values out;
  for (std::size_t i = 0; i < graph_.result_count(found->second); ++i)
    out.push_back(graph_.result(found->second, i));
  return out;
}

}  // namespace pw::proof
