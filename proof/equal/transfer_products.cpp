// Reductions, matmuls, indexing, and ops without a meaning. A matmul keeps the cuts of rows,
// columns, and common leading axes; a cut of the contracted axis gives partial sums. An op without
// a meaning passes a cut through only along axes that are granted to be independent.
#include <algorithm>

#include "proof/equal/transfer_rules.hpp"

namespace pw::proof {

/// A reduction over the cut axis reduces each part, and the join combines them. A mean is not
/// joined by a sum, and no join for products exists here.
Found ProductTransfer::reduce() {
  if (!is({Primitive::sum, Primitive::mean, Primitive::amax, Primitive::amin, Primitive::prod}) ||
      in_[0]->kind != Spread::Kind::cut)
    return std::nullopt;
  const Spread& x = *in_[0];
  const auto at = axis();
  if (!at) return std::nullopt;
  if (*at == x.axis) {
    if (is({Primitive::mean, Primitive::prod})) return std::nullopt;
    return one(partial(made(), op_.primitive));
  }
  const bool keeps = *attribute("keepdim") == Attribute(true);
  return one(cut(made(), x.axis - (!keeps && *at < x.axis ? 1 : 0), x.parts));
}

/// These ops treat each row along `dim` separately, so a cut of any other axis remains.
Found ProductTransfer::along_axis() {
  if (!is({Primitive::cumsum, Primitive::cumprod, Primitive::sort, Primitive::topk,
           Primitive::argmax, Primitive::argmin}) ||
      in_[0]->kind != Spread::Kind::cut)
    return std::nullopt;
  const Spread& x = *in_[0];
  const auto at = axis();
  if (!at || *at == x.axis) return std::nullopt;
  const Attribute* keepdim = attribute("keepdim");
  const bool goes = keepdim != nullptr && *keepdim == Attribute(false);
  auto made = wholes_.make(graph().op(nodes_[0]), wholes_in(), attributes());
  if (!made) return std::nullopt;
  Results out;
  for (ValueId value : *made)
    out.push_back(cut(value, x.axis - (goes && *at < x.axis ? 1 : 0), x.parts));
  return out;
}

/// Propagates cuts of rows, columns, and common leading axes. A cut of the contracted axis gives a
/// partial sum.
Found ProductTransfer::product() {
  if (!is({Primitive::mm, Primitive::bmm, Primitive::addmm})) return std::nullopt;
  const std::size_t first = is(Primitive::addmm) ? 1 : 0;
  if (some(Spread::Kind::each) || some(Spread::Kind::partial)) return std::nullopt;
  const Spread &a = *in_[first], &b = *in_[first + 1];
  const std::size_t rank = local_operand(first).size(), columns = rank - 1, rows = rank - 2;
  const bool a_cut = a.kind == Spread::Kind::cut, b_cut = b.kind == Spread::Kind::cut;
  const Spread* bias = first == 1 ? in_[0] : nullptr;
  const bool whole_bias = bias == nullptr || bias->kind == Spread::Kind::whole;
  if (a_cut && !b_cut && a.axis == rows && whole_bias) return one(cut(made(), rows, a.parts));
  if (!a_cut && b_cut && b.axis == columns) {
    const bool fits =
        bias == nullptr || (bias->kind == Spread::Kind::cut && bias->parts == b.parts);
    return fits ? one(cut(made(), columns, b.parts)) : std::nullopt;
  }
  if (!a_cut || !b_cut || bias != nullptr || a.parts != b.parts) return std::nullopt;
  if (a.axis == b.axis && a.axis < rows) return one(cut(made(), a.axis, a.parts));
  // The sum over k splits into sums over each rank's part of k, if both parts are aligned.
  if (a.axis == columns && b.axis == rows) return one(partial(made(), Primitive::sum));
  return std::nullopt;
}

/// Propagates cuts of rows that are read, or of axes that are not indexed.
Found ProductTransfer::index() {
  if (!is({Primitive::index, Primitive::embedding})) return std::nullopt;
  const std::size_t dim = is(Primitive::index) ? axis().value_or(0) : 0;
  const std::size_t count = in_.size() - 1, rank = local_operand(0).size();
  std::size_t spread_rank = 0;
  for (std::size_t i = 1; i < in_.size(); ++i)
    spread_rank = std::max(spread_rank, local_operand(i).size());
  if (const Spread* table = only_cut(0)) {
    if (table->axis >= dim && table->axis < dim + count) return std::nullopt;
    const std::size_t at = table->axis < dim ? table->axis : table->axis - count + spread_rank;
    return one(cut(made(), at, table->parts));
  }
  if (rank < dim + count || in_[0]->kind != Spread::Kind::whole) return std::nullopt;
  const Spread* taken = nullptr;
  std::size_t place = 0;
  for (std::size_t i = 1; i < in_.size(); ++i) {
    if (in_[i]->kind == Spread::Kind::whole && local_operand(i).empty()) continue;
    if (in_[i]->kind != Spread::Kind::cut) return std::nullopt;
    const std::size_t at = in_[i]->axis + spread_rank - local_operand(i).size();
    if (taken != nullptr && (at != place || taken->parts != in_[i]->parts)) return std::nullopt;
    taken = in_[i];
    place = at;
  }
  return taken == nullptr ? std::nullopt : one(cut(made(), dim + place, taken->parts));
}

/// Handles an op without a body that processes each position of an axis independently, because a
/// line grants it or the op is rowwise. The single graph must apply it to the whole value.
Found ProductTransfer::granted() {
  if (!some(Spread::Kind::cut) || some(Spread::Kind::each) || some(Spread::Kind::partial))
    return std::nullopt;
  const auto found = granted_.find(op_.name);
  if (found == granted_.end() && !op_.traits.rowwise) return std::nullopt;
  std::optional<std::size_t> at;
  Shape parts;
  for (std::size_t i = 0; i < in_.size(); ++i) {
    if (in_[i] == nullptr || in_[i]->kind != Spread::Kind::cut) continue;
    const bool consistent = !at || *at == in_[i]->axis;
    const bool even = parts.size() <= 1 && in_[i]->parts.size() == 1;
    if (!consistent || (at && parts != in_[i]->parts && !even)) return std::nullopt;
    at = in_[i]->axis;
    parts = in_[i]->parts;
  }
  // A rowwise op reads whole rows of the last axis, so any axis before it may be cut.
  const bool by_rows = op_.traits.rowwise && *at + 1 < local_operand(0).size();
  const bool by_word =
      found != granted_.end() && found->second.contains(static_cast<std::int64_t>(*at));
  if (!by_rows && !by_word) return std::nullopt;
  // Only a value that the single graph computes is accepted. No new value is made for an op without
  // a meaning.
  const auto there = wholes_.find(graph().op(nodes_[0]), wholes_in(), attributes());
  if (!there) return std::nullopt;
  Results out;
  for (std::size_t i = 0; i < there->size(); ++i) {
    const Shape small = local_result(i);
    const Shape& large = wholes_.shape((*there)[i]);
    std::optional<Spread> result;
    const bool empty = std::any_of(small.begin(), small.end(),
                                   [&](DimId d) { return wholes_.dims().value(d) == 0; });
    if (empty && small == large) result = replicated_as((*there)[i]);
    if (*at < small.size() && small.size() == large.size() &&
        spreader_.times_ranks(small[*at]) == large[*at]) {
      result = cut((*there)[i], *at, {small[*at]});
      for (std::size_t d = 0; d < small.size(); ++d)
        if (d != *at && small[d] != large[d]) result.reset();
    }
    if (!result) {
      if (auto each = each_result(i)) {
        result.emplace();
        result->each = std::move(*each);
      }
    }
    out.push_back(std::move(result));
  }
  wholes_.granted.insert("`" + op_.name + "` takes each place of axis " + std::to_string(*at) +
                         " by itself");
  return out;
}

}  // namespace pw::proof
