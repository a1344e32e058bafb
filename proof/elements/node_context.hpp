// One element of one node's result: what the meanings of all ops read.
// The members are shortcuts for the node, its attributes, and the position `at_` of the element.
// Attributes that are missing or of another kind throw NoMeaning, which leaves the pair unproved.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "graph/build.hpp"
#include "graph/infer/dim_value.hpp"
#include "proof/elements.hpp"

namespace pw::proof {

class NodeContext {
 public:
  NodeContext(Elements& elements, NodeId node, std::size_t result, std::vector<Ix> at, Ix rank,
              std::uint32_t level)
      : e_(elements),
        graph_(elements.graph_),
        i_(elements.integers_),
        terms_(elements.terms_),
        granted_(elements.granted_),
        world_(elements.world_),
        node_(node),
        result_(result),
        at_(std::move(at)),
        rank_(rank),
        level_(level) {}
  [[nodiscard]] Primitive primitive() const { return graph_.op_of(node_).primitive; }

 protected:
  [[nodiscard]] Context& context() const { return graph_.context(); }
  [[nodiscard]] DType dtype() const {
    const TypeId type = graph_.type(graph_.result(node_, result_));
    return context().types[type].dtype;
  }
  [[nodiscard]] ValueId input(std::size_t i) const { return graph_.operand(node_, i); }
  std::vector<Ix> shape(std::size_t i) { return e_.extents(input(i)); }
  TermId operand(std::size_t i, const std::vector<Ix>& at) {
    return element(input(i), at, rank_, level_);
  }
  // An integer beyond 53 bits has no exact double, and rounding it here would change the term.
  [[nodiscard]] double real(std::string_view name) const {
    const Attribute* a = graph_.attribute(node_, name);
    if (a != nullptr)
      if (const auto* x = std::get_if<double>(a)) return *x;
    if (a != nullptr)
      if (const auto* x = std::get_if<std::int64_t>(a)) {
        constexpr std::int64_t kExact = std::int64_t{1} << 53;
        if (*x > kExact || *x < -kExact) throw NoMeaning{"an integer beyond 53 bits"};
        return static_cast<double>(*x);
      }
    throw NoMeaning{fmt::format("`{}` without a number", graph_.op_of(node_).name)};
  }
  Ix size(std::string_view name) {
    const Attribute* a = graph_.attribute(node_, name);
    if (a != nullptr)
      if (const auto dim = dim_value(context().dims, *a)) return i_.of(context().dims, *dim);
    throw NoMeaning{fmt::format("`{}` of `{}` is not a size", name, graph_.op_of(node_).name)};
  }
  [[nodiscard]] std::size_t axis(std::string_view name, std::size_t rank) const {
    const Attribute* a = graph_.attribute(node_, name);
    const auto* x = a == nullptr ? nullptr : std::get_if<std::int64_t>(a);
    const auto r = static_cast<std::int64_t>(rank);
    const std::int64_t at = x == nullptr ? 0 : *x < 0 ? *x + r : *x;
    if (at < 0 || at >= r) throw NoMeaning{"an axis outside of the rank"};
    return static_cast<std::size_t>(at);
  }
  [[nodiscard]] bool flag(std::string_view name) const {
    const Attribute* a = graph_.attribute(node_, name);
    const auto* x = a == nullptr ? nullptr : std::get_if<bool>(a);
    return x != nullptr && *x;
  }
  std::vector<Ix> sizes(std::string_view name) {
    const Attribute* a = graph_.attribute(node_, name);
    const auto* list = a == nullptr ? nullptr : std::get_if<std::vector<DimId>>(a);
    if (list == nullptr) throw NoMeaning{fmt::format("`{}` is not a list of sizes", name)};
    std::vector<Ix> out;
    for (DimId dim : *list) out.push_back(i_.of(context().dims, dim));
    return out;
  }
  /// Returns the index of an operand that broadcasts to the result: 0 along its axes of size 1.
  std::vector<Ix> broadcast(std::size_t i) {
    const std::vector<Ix> extents = shape(i);
    if (extents.size() > at_.size()) throw NoMeaning{"an operand of a higher rank"};
    std::vector<Ix> at(at_.end() - static_cast<std::ptrdiff_t>(extents.size()), at_.end());
    for (std::size_t k = 0; k < extents.size(); ++k)
      if (i_.number(extents[k]) == 1) at[k] = i_.constant(0);
    return at;
  }
  /// Returns the number of an integer value: an index, a literal, or an unknown value. Every
  /// integer has the same value as an i64, which can represent all.
  Ix exact(TermId term) {
    while (terms_[term].function == Function::cast && terms_[term].dtype == DType::i64 &&
           !is_float(terms_[terms_[term].args[0]].dtype))
      term = terms_[term].args[0];
    const Term& t = terms_[term];
    if (t.kind == Term::Kind::index) return t.at[0];
    if (t.kind == Term::Kind::number) return i_.constant(static_cast<std::int64_t>(t.number));
    return i_.value(term.index);
  }
  /// Returns true if a dtype represents an integer made of indices and sizes. The sizes that no
  /// number bounds are granted to be practical: with factors up to 2^31 (2^15 in i32) their
  /// products do not wrap around.
  bool represents(DType dtype, Ix integer);
  /// Returns the position that an integer gives. Sums and products of positions do not wrap around.
  /// Example: for x[i + 1] with i from a tensor, the position is value(i) + 1, so x[i + 1] and y[1
  /// + i] agree. Wrapping is excluded by an assumption, because an index that wraps is outside the
  /// table.
  Ix as_index(TermId term) {
    const Term t = terms_[term];
    const bool wide = t.dtype == DType::i64 || t.dtype == DType::i32;
    if (t.kind == Term::Kind::call && wide &&
        among(t.function, {Function::add, Function::sub, Function::mul})) {
      const Ix a = as_index(t.args[0]), b = as_index(t.args[1]);
      granted_.insert("whole numbers made of indices do not wrap around");
      return t.function == Function::add   ? i_.add(a, b)
             : t.function == Function::sub ? i_.sub(a, b)
                                           : i_.mul(a, b);
    }
    return exact(term);
  }
  /// Records that the element reads a table at a position, which has to lie inside.
  void read_at(Ix position, Ix extent) {
    granted_.insert("indices lie inside their tables");
    e_.positions_.emplace(position, extent);
  }
  std::vector<Ix> extents(ValueId value) { return e_.extents(value); }
  TermId element(ValueId value, const std::vector<Ix>& at, Ix rank, std::uint32_t level) {
    return e_.element(value, at, rank, level);
  }
  /// Splits the range where the body splits at a position of the index.
  TermId reduce(Function function, DType dtype, Ix extent, std::uint32_t level,
                const std::function<std::vector<TermId>(Ix, std::uint32_t)>& body) {
    return e_.reduce(function, dtype, extent, level, body);
  }
  /// Returns true if an integer is at least 0; throws NeedSplit if that is not known.
  bool at_least(Ix difference) { return e_.at_least(difference); }

  Elements& e_;
  const Graph& graph_;
  Integers& i_;
  Terms& terms_;
  std::set<std::string>& granted_;
  Ix world_;
  NodeId node_;
  std::size_t result_;
  std::vector<Ix> at_;
  Ix rank_;
  std::uint32_t level_;
};

/// Elements of ops by kind. The node's op has to be of that kind.
TermId pointwise_element(NodeContext node);
TermId layout_element(NodeContext node);
TermId indexed_element(NodeContext node);
/// Returns an element of an ordered scatter; nothing if the order is not determined.
std::optional<TermId> scattered_element(NodeContext node);
TermId reduced_element(NodeContext node);
/// Returns an element of an op without operands, or of one without a meaning here.
TermId leaf_element(NodeContext node);

}  // namespace pw::proof
