// Transfer functions from operand layouts to result layouts, for collectives, elementwise ops, and
// reductions. The rules for each kind of op are tried in order, and the first applicable one
// decides. A linear op on a partial sum gives a partial sum; an all-reduce makes it whole; a slice
// at the rank's own offset cuts a whole value. Invariant: a rule that is inapplicable leaves the
// layout unknown, which is sound. Each op is visited once.
#include "proof/equal/transfer.hpp"

#include <algorithm>

namespace pw::proof {

Transfer::Transfer(TransferState& state)
    : TransferPart(state),
      collectives_(state),
      elements_(state),
      layouts_(state),
      products_(state),
      lookups_(state) {}

/// Collectives come first, since no other rule may treat them as local ops. Masked lookups precede
/// elementwise ops, which would treat the mask as that of any select.
Results Transfer::run() {
  const std::size_t count = graph().result_count(nodes_[0]);
  if (state_.unknown) return Results(count);
  Found found = collectives_.collective();
  const auto or_else = [&](auto& part, auto rule) {
    if (!found) found = (part.*rule)();
  };
  or_else(lookups_, &LookupTransfer::masked);
  or_else(lookups_, &LookupTransfer::stepped);
  or_else(elements_, &ElementTransfer::replicated);
  or_else(elements_, &ElementTransfer::pointwise);
  or_else(elements_, &ElementTransfer::linear);
  or_else(layouts_, &LayoutTransfer::layout_of_partial);
  or_else(layouts_, &LayoutTransfer::reshape);
  or_else(layouts_, &LayoutTransfer::transpose);
  or_else(layouts_, &LayoutTransfer::slice);
  or_else(layouts_, &LayoutTransfer::split);
  or_else(layouts_, &LayoutTransfer::cat);
  or_else(layouts_, &LayoutTransfer::expand);
  or_else(products_, &ProductTransfer::reduce);
  or_else(products_, &ProductTransfer::along_axis);
  or_else(products_, &ProductTransfer::product);
  or_else(products_, &ProductTransfer::index);
  or_else(products_, &ProductTransfer::granted);
  if (!found) found = by_itself();
  return found ? std::move(*found) : Results(count);
}

/// The last resort: evaluates the op on each rank and compares the results. Equal results are
/// replicated, and slices of one value in rank order are a cut.
Found Transfer::by_itself() {
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
  if (auto found = lookups_.lookup();
      found && out.size() == 1 && out[0]->kind == Spread::Kind::each)
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

}  // namespace pw::proof
