// Ops that read or write at positions that a tensor holds.
// The position read is an integer of a tensor, so an index may contain the value of a term (Ix of
// kind value). Two reads are equal if their positions are the same expression, whatever the tensor
// holds.
#include <algorithm>

#include "proof/elements/node_context.hpp"

namespace pw::proof {
namespace {

class IndexedElement : NodeContext {
 public:
  explicit IndexedElement(NodeContext node) : NodeContext(std::move(node)) {}

  TermId run() { return primitive() == Primitive::embedding ? embedding() : index(); }
  /// Evaluates an ordered scatter; nothing if the order is not determined.
  /// The places must be first, first + 1, …, as from iota plus an offset. Then each position is
  /// written at most once, and the inverse index is a subtraction.
  std::optional<TermId> index_put() {
    const Attribute* reduce = graph_.attribute(node_, "reduce");
    const auto* how = reduce == nullptr ? nullptr : std::get_if<std::string>(reduce);
    if (how == nullptr || *how != "set" || flag("wrap") || graph_.operand_count(node_) != 3)
      return std::nullopt;
    const std::vector<Ix> values = shape(1), places = shape(2);
    const std::size_t k = axis("dim", at_.size());
    if (places.size() != 1 || values.size() != at_.size()) return std::nullopt;
    const Ix v = i_.variable(level_, places[0]);
    const Term place = terms_[element(input(2), {v}, rank_, level_ + 1)];
    Ix first;
    if (place.kind == Term::Kind::index) {
      const auto line = i_.line(place.at[0], level_);
      if (!line) return std::nullopt;
      first = line->rest;
      if (v != i_.constant(0) && line->factor != i_.constant(1)) return std::nullopt;
    } else if (v == i_.constant(0)) {
      first = as_index(element(input(2), {v}, rank_, level_ + 1));
    } else {
      return std::nullopt;
    }
    if (reads_level(first)) return std::nullopt;
    for (std::size_t d = 0; d < values.size(); ++d)
      if (!i_.equal(values[d], d == k ? places[0] : shape(0)[d])) return std::nullopt;
    const Ix one = i_.constant(1);
    read_at(first, i_.add(i_.sub(shape(0)[k], places[0]), one));
    std::vector<Ix> at = at_;
    at[k] = i_.sub(at_[k], first);
    if (!at_least(at[k]) || !at_least(i_.sub(i_.sub(places[0], one), at[k])))
      return operand(0, at_);
    return operand(1, at);
  }

 private:
  // Row ids[i] of the table, for all positions i of the ids.
  TermId embedding() {
    const std::size_t ids = shape(1).size();
    const std::vector<Ix> at(at_.begin(), at_.begin() + static_cast<std::ptrdiff_t>(ids));
    std::vector<Ix> row = {as_index(operand(1, at))};
    read_at(row[0], shape(0)[0]);
    row.insert(row.end(), at_.begin() + static_cast<std::ptrdiff_t>(ids), at_.end());
    return operand(0, row);
  }
  TermId index() {
    const std::vector<Ix> extents = shape(0);
    const std::size_t from = axis("dim", extents.size()), count = graph_.operand_count(node_) - 1;
    const std::size_t rank = at_.size() + count - extents.size();
    const auto begin = at_.begin() + static_cast<std::ptrdiff_t>(from);
    const std::vector<Ix> middle(begin, begin + static_cast<std::ptrdiff_t>(rank));
    std::vector<Ix> at(at_.begin(), begin);
    for (std::size_t n = 0; n < count; ++n) {
      const std::vector<Ix> own = shape(1 + n);
      std::vector<Ix> place(middle.end() - static_cast<std::ptrdiff_t>(own.size()), middle.end());
      for (std::size_t k = 0; k < own.size(); ++k)
        if (i_.number(own[k]) == 1) place[k] = i_.constant(0);
      Ix value = as_index(operand(1 + n, place));
      if (flag("wrap") && !at_least(value)) value = i_.add(value, extents[from + n]);
      read_at(value, extents[from + n]);
      at.push_back(value);
    }
    at.insert(at.end(), begin + static_cast<std::ptrdiff_t>(rank), at_.end());
    return operand(0, at);
  }
  /// Returns true if a value in the term differs for each position.
  bool reads_level(Ix index) {
    std::set<std::uint32_t> values;
    i_.collect_values(index, values);
    return std::any_of(values.begin(), values.end(), [&](std::uint32_t value) {
      return terms_.mentions(TermId(std::size_t{value}), level_);
    });
  }
};

}  // namespace

TermId indexed_element(NodeContext node) { return IndexedElement(std::move(node)).run(); }

std::optional<TermId> scattered_element(NodeContext node) {
  return IndexedElement(std::move(node)).index_put();
}

}  // namespace pw::proof
