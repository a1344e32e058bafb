// Lookups in sharded tables. A lookup is recorded until a mask removes the other ranks' rows
// (masked.hpp).
// Vocabulary parallelism: rank r holds rows [r p, (r + 1) p) of an embedding table. It shifts the
// index by r p, reads any row for foreign indices, and replaces such rows by 0. Exactly one rank
// keeps the row of each index, so the sum over the ranks is the lookup. The sum adds zeros only; it
// changes at most the sign of a zero.
#include <algorithm>

#include "proof/equal/masked.hpp"
#include "proof/equal/transfer_rules.hpp"

namespace pw::proof {
namespace {

/// Matches values = x[at] - step and returns the step.
/// Invalid if the values have another form.
ValueId step_from(const Wholes& wholes, ValueId values, ValueId table, const Wholes::Values& at) {
  const Graph& graph = wholes.graph();
  if (graph.is_input(values) || graph.op_of(graph.producer(values)).primitive != Primitive::sub)
    return {};
  const NodeId difference = graph.producer(values);
  const ValueId read = graph.operand(difference, 0);
  if (!read.valid() || graph.is_input(read) ||
      graph.op_of(graph.producer(read)).primitive != Primitive::index)
    return {};
  const NodeId index = graph.producer(read);
  Wholes::Values wanted = {table};
  wanted.insert(wanted.end(), at.begin(), at.end());
  return graph.operands(index) == wanted ? graph.operand(difference, 1) : ValueId();
}

/// Rows are counted by iota, so every row is written once.
bool counts_all(const Wholes& wholes, ValueId at) {
  const Graph& graph = wholes.graph();
  return wholes.shape(at).size() == 1 && !graph.is_input(at) &&
         graph.op_of(graph.producer(at)).primitive == Primitive::iota;
}

}  // namespace

/// Recognizes a masked lookup as one summand of the whole lookup.
Found LookupTransfer::masked() {
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
ValueId LookupTransfer::looked_up(const Lookup& lookup, const Wholes::Values& masks, bool where) {
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

/// All ranks must derive their indices from one tensor, and their ranges must cover the table
/// without gaps. Ranks then contribute one unmasked row for each index, and zeros otherwise.
bool LookupTransfer::reads_rows(const Lookup& lookup, const Wholes::Values& masks,
                                bool where) const {
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
    // Each rank must compute its positions and steps from one and the same tensor.
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

/// Recognizes a lookup in a sharded table, with a different index on each rank.
/// The indices may differ from rank to rank in the slot of the sharded axis only.
Found LookupTransfer::lookup() {
  if (!is({Primitive::index, Primitive::embedding}) || in_[0]->kind != Spread::Kind::cut)
    return std::nullopt;
  const Spread& table = *in_[0];
  const std::size_t dim = is(Primitive::index) ? axis().value_or(1) : 0;
  if (dim != 0 || table.axis + 1 >= in_.size() || table.parts.size() != 1) return std::nullopt;
  const auto part = wholes_.dims().value(table.parts[0]);
  if (!part) return std::nullopt;
  Lookup found;
  found.table = table.whole;
  found.slot = table.axis;
  found.part = *part;
  for (std::size_t i = 1; i < in_.size(); ++i) {
    found.at.push_back(in_[i]->whole);
    if (i - 1 != found.slot && in_[i]->kind != Spread::Kind::whole) return std::nullopt;
    if (local_operand(i) != local_operand(found.slot + 1)) return std::nullopt;
  }
  const auto each = spreader_.each_of(*in_[found.slot + 1]);
  if (!each) return std::nullopt;
  found.each_at = *each;
  Spread out;
  out.lookup = std::move(found);
  return one(std::move(out));
}

/// Recognizes the gradient of a loss: one element of each row is reduced, at an index of which each
/// rank handles those in its part.
Found LookupTransfer::stepped() {
  if (!is(Primitive::index_put) || in_.size() != 4 || axis() != std::optional<std::size_t>(0) ||
      *attribute("reduce") != Attribute(std::string("set")))
    return std::nullopt;
  const Spread& x = *in_[0];
  const bool is_cut = x.kind == Spread::Kind::cut;
  const std::size_t ranks = is_cut ? spreader_.ranks() : 1;
  if (is_cut ? x.axis != 1 || x.parts.size() != 1
             : !all(Spread::Kind::whole) || local_operand(0).size() < 2)
    return std::nullopt;
  const auto part = wholes_.dims().value(is_cut ? x.parts[0] : local_operand(0)[1]);
  const auto tables = spreader_.each_of(x), values = spreader_.each_of(*in_[1]),
             rows = spreader_.each_of(*in_[2]), places = spreader_.each_of(*in_[3]);
  if (!part || !tables || !values || !rows || !places || !counts_all(wholes_, rows->front()))
    return std::nullopt;
  std::optional<ValueId> base;
  std::optional<double> amount;
  for (std::size_t r = 0; r < ranks; ++r) {
    MaskedStep step;
    step.index = (*places)[r];
    step.step = step_from(wholes_, (*values)[r], (*tables)[r], {(*rows)[r], (*places)[r]});
    step.first = static_cast<std::int64_t>(r) * *part;
    step.last = step.first + *part;
    // The whole table has this many columns.
    step.rows = static_cast<std::int64_t>(ranks) * *part;
    if (!step.step.valid()) return std::nullopt;
    const auto common = common_index(wholes_, step.index, step.step);
    if (!common || (base && *base != *common)) return std::nullopt;
    base = common;
    const auto by = step_of_rows(wholes_, step, *base);
    if (!by || (amount && *amount != *by)) return std::nullopt;
    amount = by;
  }
  const ValueId at =
      wholes_.one(Primitive::reshape, {*base}, {{"shape", wholes_.shape(places->front())}});
  if (!at.valid()) return std::nullopt;
  const ValueId read =
      wholes_.one(Primitive::index, {x.whole, rows->front(), at}, {{"dim", std::int64_t{0}}});
  if (!read.valid()) return std::nullopt;
  const ValueId less =
      wholes_.one(Primitive::sub, {read, wholes_.number(*amount, wholes_.dtype(read))}, {});
  if (!less.valid()) return std::nullopt;
  const ValueId whole = wholes_.one(Primitive::index_put, {x.whole, less, rows->front(), at},
                                    {{"dim", std::int64_t{0}}, {"reduce", std::string("set")}});
  wholes_.granted.insert("indices into tables are inside them");
  return one(is_cut ? cut(whole, 1, x.parts) : replicated_as(whole));
}

}  // namespace pw::proof
