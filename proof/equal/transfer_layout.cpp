// Transfer functions of ops that move elements: reshape, slice, concatenation. A cut axis is traced
// through a reshape by grouping neighboring axes of both shapes whose products agree, which is the
// mixed-radix argument of elements.cpp on whole shapes. Invariant: a part must not be cut across
// two axes; otherwise no layout is known.
#include <algorithm>
#include <optional>

#include "proof/equal/transfer_rules.hpp"

namespace pw::proof {
namespace {

constexpr std::size_t kMostParts = 4096;

/// The number of elements of a range of axes.
DimId product(Dims& dims, const Shape& shape, std::size_t from, std::size_t to) {
  DimId out = dims.constant(1);
  for (std::size_t i = from; i < to; ++i) out = dims.mul(out, shape[i]);
  return out;
}

/// A group of neighboring axes in both shapes with the same elements.
struct Group {
  std::size_t from = 0, from_end = 0, to = 0, to_end = 0;
};

/// Returns the narrowest group around an axis. Symbolic extents correspond only if equal.
/// Example: from [2, 6] to [3, 4] is one group, and from [b, 2, 6] to [b, 3, 4] has two. Equal axes
/// at both ends are groups of their own, also with symbolic extents. Between them, extents must be
/// numbers; otherwise the rest is one group.
std::optional<Group> group_of(Dims& dims, const Shape& from, std::size_t axis, const Shape& to) {
  Group g{0, from.size(), 0, to.size()};
  while (g.from < g.from_end && g.to < g.to_end && from[g.from] == to[g.to]) {
    if (g.from == axis) return Group{g.from, g.from + 1, g.to, g.to + 1};
    ++g.from;
    ++g.to;
  }
  while (g.from_end > g.from && g.to_end > g.to && from[g.from_end - 1] == to[g.to_end - 1]) {
    --g.from_end;
    --g.to_end;
    if (g.from_end == axis) return Group{axis, axis + 1, g.to_end, g.to_end + 1};
  }
  // A group begins where the products of all preceding extents agree.
  Group inner = g;
  for (std::size_t i = g.from, j = g.to; i < g.from_end && j < g.to_end;) {
    Group next{i, i + 1, j, j + 1};
    DimId a = from[i], b = to[j];
    while (a != b) {
      const auto x = dims.value(a), y = dims.value(b);
      if (!x || !y) return inner;
      if (*x < *y ? next.from_end == g.from_end : next.to_end == g.to_end) return inner;
      if (*x < *y)
        a = dims.mul(a, from[next.from_end++]);
      else
        b = dims.mul(b, to[next.to_end++]);
    }
    if (axis < next.from_end) return next;
    i = next.from_end;
    j = next.to_end;
    inner.from = i;
    inner.to = j;
  }
  return std::nullopt;
}

/// Converts parts of the merged group to parts of the axis; nothing if a part would be divided.
std::optional<Shape> parts_of_axis(Dims& dims, const Shape& flat, DimId outer, DimId inner,
                                   DimId extent) {
  const auto times = dims.value(outer);
  if (!times || *times <= 0 || flat.size() % static_cast<std::size_t>(*times) != 0)
    return std::nullopt;
  const std::size_t period = flat.size() / static_cast<std::size_t>(*times);
  Shape out;
  DimId sum = dims.constant(0);
  for (std::size_t i = 0; i < flat.size(); ++i) {
    if (i >= period) {
      if (flat[i] != flat[i - period]) return std::nullopt;
      continue;
    }
    const DimId part = dims.div(flat[i], inner);
    if (!part.valid() || dims.mul(part, inner) != flat[i]) return std::nullopt;
    out.push_back(part);
    sum = dims.add(sum, part);
  }
  if (sum != extent) return std::nullopt;
  return out;
}

}  // namespace

/// Requires a constant number of positions before the cut axis, because each repeats the parts. The
/// limit bounds their product.
std::vector<std::pair<std::size_t, Shape>> reshaped_cuts(Dims& dims, const Shape& from,
                                                         std::size_t axis, const Shape& parts,
                                                         const Shape& to) {
  auto group = group_of(dims, from, axis, to);
  if (!group) return {};
  // An adjacent axis of size 1 may receive all parts.
  while (group->to > 0 && dims.value(to[group->to - 1]) == 1) --group->to;
  while (group->to_end < to.size() && dims.value(to[group->to_end]) == 1) ++group->to_end;
  const auto outer = dims.value(product(dims, from, group->from, axis));
  const DimId inner = product(dims, from, axis + 1, group->from_end);
  if (!outer || *outer <= 0 || static_cast<std::size_t>(*outer) * parts.size() > kMostParts)
    return {};
  Shape flat;
  for (std::int64_t i = 0; i < *outer; ++i)
    for (DimId part : parts) flat.push_back(dims.mul(part, inner));
  std::vector<std::pair<std::size_t, Shape>> out;
  for (std::size_t j = group->to; j < group->to_end; ++j) {
    auto own = parts_of_axis(dims, flat, product(dims, to, group->to, j),
                             product(dims, to, j + 1, group->to_end), to[j]);
    if (own) out.emplace_back(j, std::move(*own));
  }
  return out;
}

Found LayoutTransfer::reshape() {
  if (!is(Primitive::reshape)) return std::nullopt;
  const Spread& x = *in_[0];
  if (x.kind == Spread::Kind::each && x.lookup) {
    auto each = each_result(0);
    if (!each) return std::nullopt;
    Spread out = x;
    out.each = std::move(*each);
    return one(std::move(out));
  }
  if (x.kind != Spread::Kind::cut) return std::nullopt;
  const Shape to = local_result();
  std::optional<Spread> best;
  for (const auto& [at, parts] :
       reshaped_cuts(wholes_.dims(), local_operand(0), x.axis, x.parts, to)) {
    // If several axes qualify, the single device's shape decides.
    const ValueId whole = made(changed("shape", global(to, at, parts)));
    const bool fits = whole.valid() && wholes_.part_of_single(whole);
    if (!best || fits) best = cut(whole, at, parts);
    if (fits) break;
  }
  return one(std::move(best));
}

Found LayoutTransfer::transpose() {
  if (!is(Primitive::transpose) || in_[0]->kind != Spread::Kind::cut) return std::nullopt;
  const auto a = axis("dim0"), b = axis("dim1");
  if (!a || !b) return std::nullopt;
  const std::size_t at = in_[0]->axis;
  return one(cut(made(), at == *a ? *b : at == *b ? *a : at, in_[0]->parts));
}

/// Matches a slice of a rank's part with a slice of the whole value: from the first part to the end
/// of the last part that it contains completely.
std::optional<std::pair<DimId, DimId>> LayoutTransfer::inside_parts(const Spread& x, DimId start,
                                                                    DimId end, Shape& kept) const {
  Dims& dims = wholes_.dims();
  DimId before = dims.constant(0);
  std::optional<DimId> from, to;
  for (std::size_t i = 0; start == end && i <= x.parts.size(); ++i) {  // an empty slice
    if (before == start) {
      const DimId at = spreader_.times_ranks(before);
      return std::make_pair(at, at);
    }
    if (i < x.parts.size()) before = dims.add(before, x.parts[i]);
  }
  if (start == end) return std::nullopt;
  for (DimId part : x.parts) {
    if (before == start) from = before;
    const DimId after = dims.add(before, part);
    if (from && !to) kept.push_back(part);
    if (after == end) to = after;
    before = after;
  }
  if (!from || !to) return std::nullopt;
  return std::make_pair(spreader_.times_ranks(*from), spreader_.times_ranks(*to));
}

/// A slice along another axis keeps the cut. Along the cut axis it must consist of complete parts.
Found LayoutTransfer::slice() {
  if (!is(Primitive::slice) || in_[0]->kind != Spread::Kind::cut) return std::nullopt;
  const Spread& x = *in_[0];
  const auto at = axis();
  if (!at) return std::nullopt;
  if (*at != x.axis) return one(cut(made(), x.axis, x.parts));
  const auto start = dim("start"), end = dim("end");
  if (!start || !end || *attribute("step") != Attribute(std::int64_t{1})) return std::nullopt;
  Shape kept;
  const auto range = inside_parts(x, *start, *end, kept);
  if (!range) return std::nullopt;
  return one(cut(wholes_.slice(x.whole, *at, range->first, range->second), *at, kept));
}

Found LayoutTransfer::split() {
  if (!is(Primitive::split) || in_[0]->kind != Spread::Kind::cut) return std::nullopt;
  const Spread& x = *in_[0];
  const auto at = axis();
  const auto* sizes = std::get_if<std::vector<DimId>>(attribute("sizes"));
  if (!at || sizes == nullptr) return std::nullopt;
  Dims& dims = wholes_.dims();
  Results out;
  DimId from = dims.constant(0);
  for (DimId size : *sizes) {
    const DimId to = dims.add(from, size);
    Shape kept = x.parts;
    std::pair<DimId, DimId> range(from, to);
    if (*at == x.axis) {
      kept.clear();
      const auto inside = inside_parts(x, from, to, kept);
      if (!inside) return std::nullopt;
      range = *inside;
    }
    out.push_back(cut(wholes_.slice(x.whole, *at, range.first, range.second), x.axis, kept));
    if (!out.back()) return std::nullopt;
    from = to;
  }
  return out;
}

/// Along the cut axis, the parts of all operands follow each other on every rank: cat(q, k) has
/// parts q and k.
Found LayoutTransfer::cat() {
  const auto at = axis();
  if (!is(Primitive::cat) || !at) return std::nullopt;
  const Spread* filled = nullptr;  // empty operands add nothing
  std::size_t count = 0;
  for (std::size_t i = 0; i < in_.size(); ++i) {
    if (wholes_.dims().value(local_operand(i)[*at]) == 0) continue;
    filled = in_[i];
    ++count;
  }
  if (count == 1) return one(*filled);
  if (!all(Spread::Kind::cut)) return std::nullopt;
  Shape parts;
  for (const Spread* x : in_) {
    if (x->axis != in_[0]->axis) return std::nullopt;
    if (*at != x->axis && x->parts != in_[0]->parts) return std::nullopt;
    parts.insert(parts.end(), x->parts.begin(), x->parts.end());
  }
  return one(cut(made(), in_[0]->axis, *at == in_[0]->axis ? parts : in_[0]->parts));
}

/// The cut axis itself may not be repeated.
Found LayoutTransfer::expand() {
  if (!is(Primitive::expand) || in_[0]->kind != Spread::Kind::cut) return std::nullopt;
  const Spread& x = *in_[0];
  const Shape to = local_result(), from = local_operand(0);
  const std::size_t at = x.axis + to.size() - from.size();
  if (to[at] != from[x.axis]) return std::nullopt;
  return one(cut(made(changed("shape", global(to, at, x.parts))), at, x.parts));
}

/// Applies data movement to each summand of a partial value.
Found LayoutTransfer::layout_of_partial() {
  const bool moves =
      is({Primitive::reshape, Primitive::transpose, Primitive::slice, Primitive::expand});
  if (moves && in_[0]->kind == Spread::Kind::partial) return one(partial(made(), in_[0]->join));
  return std::nullopt;
}

}  // namespace pw::proof
