// Layout ops. A reshape renumbers mixed-radix digits; a slice, a split, a concatenation, and a pad
// add an offset.
#include "proof/elements/node_context.hpp"

namespace pw::proof {
namespace {

class LayoutElement : NodeContext {
 public:
  explicit LayoutElement(NodeContext node) : NodeContext(std::move(node)) {}

  TermId run() {
    const Primitive op = primitive();
    if (op == Primitive::reshape) return reshape();
    if (op == Primitive::transpose) return transpose();
    if (op == Primitive::expand) return operand(0, broadcast(0));
    if (op == Primitive::slice) return slice();
    if (op == Primitive::split) return split();
    if (op == Primitive::cat) return cat();
    if (op == Primitive::reverse) return reverse();
    if (op == Primitive::pad_last) return padded();
    return operand(0, at_);  // detach, clone
  }

 private:
  /// Renumbers a row-major index, separately for each group of axes with equal numbers of elements.
  TermId reshape() {
    const std::vector<Ix> from = shape(0), to = extents(graph_.result(node_, result_));
    std::vector<Ix> at(from.size(), i_.constant(0));
    std::size_t a = 0, b = 0;
    while (a < from.size() || b < to.size()) {
      const std::size_t a0 = a, b0 = b;
      Ix x = a < from.size() ? from[a++] : i_.constant(1);
      Ix y = b < to.size() ? to[b++] : i_.constant(1);
      while (!i_.equal(x, y)) {
        if (a == from.size() && b == to.size()) break;
        // The side with fewer elements adds an axis; if unknown, the side whose product does not
        // divide the other's.
        const bool more_from = b == to.size() || (a < from.size() && grows(x, y));
        if (more_from)
          x = i_.mul(x, from[a++]);
        else
          y = i_.mul(y, to[b++]);
      }
      renumber(from, a0, a, to, b0, b, at);
    }
    return operand(0, at);
  }
  bool grows(Ix x, Ix y) {
    if (i_.nonnegative(i_.sub(y, x))) return true;
    if (i_.nonnegative(i_.sub(x, y))) return false;
    return i_.mod(y, x) == i_.constant(0);
  }
  void renumber(const std::vector<Ix>& from, std::size_t a0, std::size_t a,
                const std::vector<Ix>& to, std::size_t b0, std::size_t b, std::vector<Ix>& at) {
    // Axes of size 1 have index 0 and are skipped.
    const auto ones = [&](const std::vector<Ix>& shape, std::size_t from_, std::size_t to_) {
      std::vector<std::size_t> out;
      for (std::size_t k = from_; k < to_; ++k)
        if (i_.number(shape[k]) != 1) out.push_back(k);
      return out;
    };
    // A single axis on both sides keeps its index, without a division.
    const auto source = ones(from, a0, a), target = ones(to, b0, b);
    if (source.size() == 1 && target.size() == 1) {
      at[source[0]] = at_[target[0]];
      return;
    }
    Ix number = i_.constant(0);
    for (std::size_t k : target) number = i_.add(i_.mul(number, to[k]), at_[k]);
    // The last axis varies fastest. The first digit needs no remainder, since the index is in
    // range.
    for (std::size_t n = source.size(); n > 0; --n) {
      const std::size_t k = source[n - 1];
      at[k] = n == 1 ? number : i_.mod(number, from[k]);
      if (n > 1) number = i_.div(number, from[k]);
    }
  }
  TermId transpose() {
    std::vector<Ix> at = at_;
    std::swap(at[axis("dim0", at.size())], at[axis("dim1", at.size())]);
    return operand(0, at);
  }
  /// Normalizes a slice bound with Python's rules.
  /// Negative bounds count from the end, and bounds beyond an end are clamped.
  Ix bound(std::string_view name, Ix extent) {
    Ix value = size(name);
    if (!at_least(value)) {
      value = i_.add(value, extent);
      if (!at_least(value)) value = i_.constant(0);
    }
    return at_least(i_.sub(extent, value)) ? value : extent;
  }
  TermId slice() {
    std::vector<Ix> at = at_;
    const std::size_t k = axis("dim", at.size());
    const Ix start = bound("start", shape(0)[k]);
    at[k] = i_.add(start, i_.mul(at[k], size("step")));
    return operand(0, at);
  }
  TermId split() {
    std::vector<Ix> at = at_;
    const std::size_t k = axis("dim", at.size());
    const std::vector<Ix> parts = sizes("sizes");
    for (std::size_t i = 0; i < result_; ++i) at[k] = i_.add(at[k], parts[i]);
    return operand(0, at);
  }
  // Tests the parts in order; the first one that contains the position is read. The last needs no
  // test.
  TermId cat() {
    std::vector<Ix> at = at_;
    const std::size_t k = axis("dim", at.size()), count = graph_.operand_count(node_);
    for (std::size_t i = 0; i + 1 < count; ++i) {
      const Ix beyond = i_.sub(at[k], shape(i)[k]);
      if (!at_least(beyond)) return operand(i, at);
      at[k] = beyond;
    }
    return operand(count - 1, at);
  }
  TermId reverse() {
    std::vector<Ix> at = at_;
    const std::vector<Ix> extents = shape(0);
    const Attribute* a = graph_.attribute(node_, "dims");
    std::vector<std::int64_t> axes;
    if (a != nullptr)
      if (const auto* list = std::get_if<std::vector<DimId>>(a))
        for (DimId dim : *list)
          if (const auto value = context().dims.value(dim)) axes.push_back(*value);
    if (axes.empty()) axes.push_back(static_cast<std::int64_t>(axis("dim", at.size())));
    for (std::int64_t axis_ : axes) {
      const auto k = static_cast<std::size_t>(
          axis_ < 0 ? axis_ + static_cast<std::int64_t>(at.size()) : axis_);
      if (k >= at.size()) throw NoMeaning{"an axis outside of the rank"};
      at[k] = i_.sub(i_.sub(extents[k], i_.constant(1)), at[k]);
    }
    return operand(0, at);
  }
  /// Evaluates a pad of the last axis, before, after, and between elements.
  /// Position p reads x[(p - low) / stride] if that is an integer within the axis, and the fill
  /// value otherwise. A negative `low` crops.
  TermId padded() {
    std::vector<Ix> at = at_;
    const Ix n = shape(0).back(), one = i_.constant(1);
    const Ix stride = i_.add(size("interior"), one), place = i_.sub(at.back(), size("low"));
    if (!i_.nonnegative(i_.sub(stride, one))) throw NoMeaning{"fewer than no elements between two"};
    const auto value = [&] { return operand(1, {}); };
    if (!at_least(place)) return value();
    const Ix last = i_.mul(i_.sub(n, one), stride);
    if (!at_least(i_.sub(last, place))) return value();
    const Ix rest = i_.mod(place, stride);
    if (at_least(i_.sub(rest, one))) return value();
    at.back() = i_.div(place, stride);
    return operand(0, at);
  }
};

}  // namespace

TermId layout_element(NodeContext node) { return LayoutElement(std::move(node)).run(); }

}  // namespace pw::proof
