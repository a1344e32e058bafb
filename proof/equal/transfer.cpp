// Transfer functions from operand layouts to result layouts, for collectives, elementwise ops, and
// reductions. The rules for each kind of op are tried in order, and the first applicable one
// decides. A linear op on a partial sum gives a partial sum; an all-reduce makes it whole; a slice
// at the rank's own offset cuts a whole value. Invariant: a rule that is inapplicable leaves the
// layout unknown, which is sound. Each op is visited once.
#include "proof/equal/transfer.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "proof/equal/masked.hpp"

namespace pw::proof {
namespace {

/// Opaque collectives, and their reductions.
std::optional<Primitive> foreign_join(const Graph& graph, NodeId node) {
  if (graph.op_of(node).name.rfind("_c10d_functional.all_reduce", 0) != 0) return std::nullopt;
  const auto* how = std::get_if<std::string>(graph.attribute(node, "arg1"));
  if (how == nullptr) return std::nullopt;
  if (*how == "sum") return Primitive::sum;
  if (*how == "max") return Primitive::amax;
  if (*how == "min") return Primitive::amin;
  return std::nullopt;
}

}  // namespace

Transfer::Transfer(Spreader& spreader, const std::vector<NodeId>& nodes)
    : spreader_(spreader),
      wholes_(spreader.wholes_),
      nodes_(nodes),
      op_(spreader.ranks_[0]->op_of(nodes[0])) {
  for (ValueId v : graph().operands(nodes_[0])) {
    in_.push_back(v.valid() ? spreader_.find(v) : nullptr);
    if (v.valid() && in_.back() == nullptr) unknown_ = true;
  }
}

Transfer::Results Transfer::run() {
  const std::size_t count = graph().result_count(nodes_[0]);
  if (unknown_) return Results(count);
  using Rule = Found (Transfer::*)();
  constexpr std::array<Rule, 18> kRules = {&Transfer::collective,
                                           &Transfer::masked,
                                           &Transfer::stepped,
                                           &Transfer::replicated,
                                           &Transfer::pointwise,
                                           &Transfer::linear,
                                           &Transfer::layout_of_partial,
                                           &Transfer::reshape,
                                           &Transfer::transpose,
                                           &Transfer::slice,
                                           &Transfer::split,
                                           &Transfer::cat,
                                           &Transfer::expand,
                                           &Transfer::reduce,
                                           &Transfer::along_axis,
                                           &Transfer::product,
                                           &Transfer::index,
                                           &Transfer::granted};
  for (const Rule rule : kRules)
    if (auto found = (this->*rule)()) return std::move(*found);
  if (auto found = by_itself()) return std::move(*found);
  return Results(count);
}

// ---- common to all rules

const AttributeList& Transfer::attributes(std::size_t rank) const {
  return wholes_.context().attributes[graph(rank).attributes(nodes_[rank])];
}

const Attribute* Transfer::attribute(std::string_view name) const {
  return graph().attribute(nodes_[0], name);
}

std::optional<std::size_t> Transfer::axis(std::string_view name) const {
  const auto* at = std::get_if<std::int64_t>(attribute(name));
  if (at == nullptr || *at < 0) return std::nullopt;
  return static_cast<std::size_t>(*at);
}

std::optional<DimId> Transfer::dim(std::string_view name) const {
  const Attribute* value = attribute(name);
  if (value == nullptr) return std::nullopt;
  if (const auto* number = std::get_if<std::int64_t>(value))
    return wholes_.dims().constant(*number);
  if (const auto* dim = std::get_if<DimId>(value)) return *dim;
  return std::nullopt;
}

AttributeList Transfer::changed(std::string_view name, Attribute value) const {
  return with(wholes_.context().strings, attributes(), name, std::move(value));
}

Shape Transfer::local(ValueId value) const {
  const TypeId type = graph().type(value);
  return type == Types::unknown() ? Shape() : wholes_.context().types[type].shape;
}
Shape Transfer::local_operand(std::size_t i) const { return local(graph().operand(nodes_[0], i)); }
Shape Transfer::local_result(std::size_t i) const { return local(graph().result(nodes_[0], i)); }

Shape Transfer::global(Shape local, std::size_t axis, const Shape& parts) const {
  DimId sum = wholes_.dims().constant(0);
  for (DimId part : parts) sum = wholes_.dims().add(sum, part);
  local[axis] = spreader_.times_ranks(sum);
  return local;
}

std::vector<TypeId> Transfer::result_types(std::size_t rank) const {
  std::vector<TypeId> out;
  for (std::size_t i = 0; i < graph(rank).result_count(nodes_[rank]); ++i)
    out.push_back(graph(rank).type(graph(rank).result(nodes_[rank], i)));
  return out;
}

Wholes::Values Transfer::wholes_in() const {
  Wholes::Values out;
  for (const Spread* spread : in_) out.push_back(spread == nullptr ? ValueId() : spread->whole);
  return out;
}

bool Transfer::all(Spread::Kind kind) const {
  return std::all_of(in_.begin(), in_.end(),
                     [&](const Spread* s) { return s == nullptr || s->kind == kind; });
}
bool Transfer::some(Spread::Kind kind) const {
  return std::any_of(in_.begin(), in_.end(),
                     [&](const Spread* s) { return s != nullptr && s->kind == kind; });
}

const Spread* Transfer::only_cut(std::size_t operand) const {
  for (std::size_t i = 0; i < in_.size(); ++i) {
    if (in_[i] == nullptr) continue;
    const auto wanted = i == operand ? Spread::Kind::cut : Spread::Kind::whole;
    if (in_[i]->kind != wanted) return nullptr;
  }
  return operand < in_.size() ? in_[operand] : nullptr;
}

Transfer::Found Transfer::one(std::optional<Spread> spread) const {
  if (!spread) return std::nullopt;
  Results out;
  out.push_back(std::move(spread));
  return out;
}

std::optional<Spread> Transfer::cut(ValueId whole, std::size_t axis, Shape parts) const {
  if (!whole.valid()) return std::nullopt;
  Spread out;
  out.kind = Spread::Kind::cut;
  out.whole = whole;
  out.axis = axis;
  out.parts = std::move(parts);
  return out;
}

std::optional<Spread> Transfer::replicated_as(ValueId whole) const {
  if (!whole.valid()) return std::nullopt;
  Spread out;
  out.kind = Spread::Kind::whole;
  out.whole = whole;
  return out;
}

std::optional<Spread> Transfer::partial(ValueId whole, Primitive join) {
  if (!whole.valid()) return std::nullopt;
  Spread out;
  out.kind = Spread::Kind::partial;
  out.whole = whole;
  out.join = join;
  if (auto each = each_result(0)) out.each = std::move(*each);
  return out;
}

ValueId Transfer::made(AttributeList attributes) {
  auto results = wholes_.make(graph().op(nodes_[0]), wholes_in(), std::move(attributes));
  return results && results->size() == 1 ? results->front() : ValueId();
}

/// Evaluates the op on each rank separately, by result and rank.
std::optional<Wholes::Values> Transfer::each_result(std::size_t result) {
  if (!each_results_) {
    each_results_.emplace();
    std::vector<std::optional<Wholes::Values>> operands;
    for (const Spread* spread : in_)
      operands.push_back(spread == nullptr ? Wholes::Values(spreader_.ranks())
                                           : spreader_.each_of(*spread));
    std::vector<Wholes::Values> results(graph().result_count(nodes_[0]));
    for (std::size_t r = 0; r < spreader_.ranks(); ++r) {
      Wholes::Values own;
      for (const auto& operand : operands) {
        if (!operand) return std::nullopt;
        own.push_back((*operand)[r]);
      }
      auto made = wholes_.make(graph(r).op(nodes_[r]), own, attributes(r), result_types(r));
      if (!made || made->size() != results.size()) return std::nullopt;
      for (std::size_t i = 0; i < results.size(); ++i) results[i].push_back((*made)[i]);
    }
    each_results_ = std::move(results);
  }
  if (each_results_->empty()) return std::nullopt;
  return (*each_results_)[result];
}

// ---- replicated operands, and unknown layouts

Transfer::Found Transfer::replicated() {
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

Transfer::Found Transfer::by_itself() {
  Results out;
  for (std::size_t i = 0; i < graph().result_count(nodes_[0]); ++i) {
    auto each = each_result(i);
    if (!each) return std::nullopt;
    const bool same = std::all_of(each->begin(), each->end(),
                                  [&](ValueId value) { return value == each->front(); });
    if (same) {
      out.push_back(replicated_as(each->front()));
      continue;
    }
    if (!in_.empty() && in_[0] != nullptr && in_[0]->kind == Spread::Kind::each &&
        in_[0]->each == *each) {  // a view of the whole value
      out.push_back(*in_[0]);
      continue;
    }
    if (auto shared_out = taken_apart(*each)) {
      out.push_back(std::move(shared_out));
      continue;
    }
    Spread spread;
    spread.each = std::move(*each);
    out.push_back(std::move(spread));
  }
  if (auto found = lookup(); found && out.size() == 1 && out[0]->kind == Spread::Kind::each)
    out[0]->lookup = std::move((*found)[0]->lookup);
  return out;
}

/// Recognizes slices of one value, one for each rank in order.
std::optional<Spread> Transfer::taken_apart(const Wholes::Values& each) const {
  Dims& dims = wholes_.dims();
  std::optional<Wholes::Slice> first;
  for (std::size_t r = 0; r < each.size(); ++r) {
    const auto slice = wholes_.slice_at(each[r]);
    if (!slice) return std::nullopt;
    if (!first) first = slice;
    const DimId length = dims.sub(first->end, first->start);
    const DimId start = dims.mul(length, dims.constant(static_cast<std::int64_t>(r)));
    if (slice->of != first->of || slice->axis != first->axis || slice->start != start ||
        slice->end != dims.add(start, length))
      return std::nullopt;
  }
  const DimId length = dims.sub(first->end, first->start);
  if (spreader_.times_ranks(length) != wholes_.shape(first->of)[first->axis]) return std::nullopt;
  return cut(first->of, first->axis, {length});
}

// ---- collectives

Transfer::Found Transfer::collective() {
  if (is(Primitive::all_reduce)) return all_reduce(Primitive::sum);
  if (is(Primitive::all_gather)) return all_gather();
  if (is(Primitive::reduce_scatter)) return reduce_scatter();
  if (is(Primitive::shard)) return shard();
  if (const auto join = foreign_join(graph(), nodes_[0])) return all_reduce(*join);
  if (op_.name.rfind("_c10d_functional.broadcast", 0) == 0 && in_.size() == 1) {
    const auto each = spreader_.each_of(*in_[0]);
    return each ? one(replicated_as(each->front())) : std::nullopt;
  }
  return std::nullopt;
}

/// Returns the layout of a reduction over the ranks that is not a sum of the single device.
std::optional<Wholes::Values> Transfer::joined_sum(const Spread& spread) {
  const auto each = spreader_.each_of(spread);
  if (!each) return std::nullopt;
  ValueId sum = each->front();
  for (std::size_t r = 1; r < each->size() && sum.valid(); ++r)
    sum = wholes_.one(Primitive::add, {sum, (*each)[r]}, {});
  if (!sum.valid()) return std::nullopt;
  return Wholes::Values{sum};
}

Transfer::Found Transfer::all_reduce(Primitive join) {
  const Spread& x = *in_[0];
  if (spreader_.ranks() == 1) return one(replicated_as(x.whole));
  if (x.kind == Spread::Kind::partial && x.join == join) {
    spreader_.rounds_ = spreader_.rounds_ || join == Primitive::sum;
    return one(replicated_as(x.whole));
  }
  if (join != Primitive::sum) {
    if (x.kind == Spread::Kind::whole) return one(replicated_as(x.whole));
    return std::nullopt;
  }
  const auto sum = joined_sum(x);
  return sum ? one(replicated_as(sum->front())) : std::nullopt;
}

Transfer::Found Transfer::all_gather() {
  const Spread& x = *in_[0];
  const auto at = axis();
  if (!at) return std::nullopt;
  if (spreader_.ranks() == 1) return one(replicated_as(x.whole));
  if (x.kind == Spread::Kind::cut && x.axis == *at && x.parts.size() == 1)
    return one(replicated_as(x.whole));
  const auto each = spreader_.each_of(x);
  return each ? one(replicated_as(wholes_.cat(*each, *at))) : std::nullopt;
}

Transfer::Found Transfer::reduce_scatter() {
  const Spread& x = *in_[0];
  const auto at = axis();
  if (!at) return std::nullopt;
  if (spreader_.ranks() == 1) return one(replicated_as(x.whole));
  ValueId sum = x.whole;
  if (x.kind == Spread::Kind::partial && x.join == Primitive::sum) {
    spreader_.rounds_ = true;
  } else {
    const auto joined = joined_sum(x);
    if (!joined) return std::nullopt;
    sum = joined->front();
  }
  return one(cut(sum, *at, {local_result()[*at]}));
}

Transfer::Found Transfer::shard() {
  const auto at = axis();
  if (!at || in_[0]->kind != Spread::Kind::whole) return std::nullopt;
  if (spreader_.ranks() == 1) return one(replicated_as(in_[0]->whole));
  return one(cut(in_[0]->whole, *at, {local_result()[*at]}));
}

// ---- elements

/// Extends a tensor that repeats along an axis.
ValueId Transfer::widened(ValueId whole, std::size_t axis, DimId extent) {
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

Transfer::Found Transfer::pointwise() {
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
Transfer::Found Transfer::linear() {
  if (!some(Spread::Kind::partial) || some(Spread::Kind::each) || some(Spread::Kind::cut))
    return std::nullopt;
  for (const Spread* spread : in_)
    if (spread->kind == Spread::Kind::partial && spread->join != Primitive::sum)
      return std::nullopt;
  const bool sums = is({Primitive::add, Primitive::sub}) && all(Spread::Kind::partial);
  const bool both = all(Spread::Kind::partial);
  const bool scaled =
      (is(Primitive::mul) && !both) || (is(Primitive::div) && in_[1]->kind == Spread::Kind::whole);
  const bool matmul = is({Primitive::mm, Primitive::bmm}) && !both;
  if (!sums && !is({Primitive::neg, Primitive::cast}) && !scaled && !matmul) return std::nullopt;
  if (is(Primitive::cast) && wholes_.dtype(in_[0]->whole) == DType::b8) return std::nullopt;
  return one(partial(made(), Primitive::sum));
}

/// Recognizes a masked lookup as one summand of the whole lookup.
Transfer::Found Transfer::masked() {
  if (!is(Primitive::select) || in_[0] == nullptr) return std::nullopt;
  for (const std::size_t side : {std::size_t{1}, std::size_t{2}}) {
    const Spread* taken = in_[side];
    const Spread* other = in_[3 - side];
    if (taken == nullptr || other == nullptr || other->kind != Spread::Kind::whole ||
        wholes_.number_of(other->whole) != 0.0)
      continue;
    const auto masks = spreader_.each_of(*in_[0]);
    if (!masks) continue;
    if (taken->lookup) {
      const ValueId whole = looked_up(*taken->lookup, *masks, side == 1);
      if (whole.valid()) return one(partial(whole, Primitive::sum));
    }
    if (taken->kind != Spread::Kind::whole || in_[0]->kind != Spread::Kind::whole) continue;
    for (const Lookup& lookup : wholes_.lookups_of(taken->whole))
      if (const ValueId whole = looked_up(lookup, {masks->front()}, side == 1); whole.valid())
        return one(replicated_as(whole));
  }
  return std::nullopt;
}

/// Returns the lookup at the parts' common index, without a mask; invalid if they do not match.
ValueId Transfer::looked_up(const Lookup& lookup, const Wholes::Values& masks, bool where) {
  if (!reads_rows(lookup, masks, where)) return {};
  const auto base = common_index(wholes_, lookup.each_at[0], masks[0]);
  Wholes::Values operands = {lookup.table};
  operands.insert(operands.end(), lookup.at.begin(), lookup.at.end());
  operands[lookup.slot + 1] =
      wholes_.one(Primitive::reshape, {*base}, {{"shape", wholes_.shape(lookup.each_at[0])}});
  if (!operands[lookup.slot + 1].valid()) return {};
  const ValueId whole = wholes_.one(Primitive::index, operands, {{"dim", std::int64_t{0}}});
  if (!whole.valid()) return {};
  wholes_.granted.insert("indices into tables are inside them");
  return wholes_.one(Primitive::reshape, {whole}, {{"shape", local_result()}});
}

bool Transfer::reads_rows(const Lookup& lookup, const Wholes::Values& masks, bool where) const {
  std::optional<ValueId> base;
  // The mask broadcasts only along axes after those of the indices.
  const Shape result = local_result();
  Dims& dims = wholes_.dims();
  DimId wanted = dims.constant(1), seen = dims.constant(1);
  for (DimId d : wholes_.shape(lookup.each_at[0])) wanted = dims.mul(wanted, d);
  const auto rows = static_cast<std::int64_t>(masks.size()) * lookup.part;
  for (std::size_t r = 0; r < masks.size(); ++r) {
    ValueId plain = masks[r];
    const Graph& made = wholes_.graph();
    while (!made.is_input(plain) && made.op_of(made.producer(plain)).primitive == Primitive::expand)
      plain = made.operand(made.producer(plain), 0);
    const Shape& shape = wholes_.shape(plain);
    if (shape.size() > result.size()) return false;
    const std::size_t front = result.size() - shape.size();
    if (front != 0) return false;
    seen = dims.constant(1);
    std::size_t i = 0;
    for (; i < shape.size() && seen != wanted; ++i) {
      if (shape[i] != result[i]) return false;
      seen = dims.mul(seen, shape[i]);
    }
    for (; i < shape.size(); ++i)
      if (dims.value(shape[i]) != 1) return false;
    if (seen != wanted) return false;
    const auto common = common_index(wholes_, lookup.each_at[r], plain);
    if (!common || (base && *base != *common)) return false;
    base = common;
    MaskedLookup one{lookup.each_at[r], plain, where, 0, 0, rows};
    one.first = static_cast<std::int64_t>(r) * lookup.part;
    one.last = one.first + lookup.part;
    if (!reads_its_rows(wholes_, one, *base)) return false;
  }
  return true;
}

}  // namespace pw::proof
