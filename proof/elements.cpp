// Symbolic evaluation of a graph, element by element. For a value and an index expression per axis,
// a recursive descent over the defining nodes returns a term over input elements. Layout ops
// rewrite the index: a reshape renumbers mixed-radix digits, a slice or pad adds an offset.
// Pointwise ops build a call, and reductions bind an index of a deeper level. Invariant: the term
// has the same bits as the element for all sizes that satisfy the facts. If the meaning depends on
// the sign of an index that no fact decides, NeedSplit is thrown and the caller proves both cases.
// Elements are memoized by value and index.
#include "proof/elements.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include <fmt/format.h>

#include "proof/elements/node_context.hpp"

namespace pw::proof {
namespace {

// Terms are shared, but a long chain of reshapes or nested sums still multiplies positions.
constexpr std::size_t kMostTerms = 200000;
constexpr int kDeepestChain = 400;  // ops in a chain; each is one recursive call

/// Counts the depth of a recursive call during its lifetime.
class Nesting {
 public:
  explicit Nesting(int& depth) : depth_(depth) { ++depth_; }
  ~Nesting() { --depth_; }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;

 private:
  int& depth_;
};

/// Computes the element of one node's result by the meaning of its op.
TermId element_of(NodeContext node) {
  const Primitive op = node.primitive();
  if (is_pointwise(op)) return pointwise_element(std::move(node));
  if (among(op, {Primitive::detach, Primitive::clone, Primitive::reshape, Primitive::transpose,
                 Primitive::expand, Primitive::slice, Primitive::split, Primitive::cat,
                 Primitive::reverse, Primitive::pad_last}))
    return layout_element(std::move(node));
  if (among(op, {Primitive::embedding, Primitive::index})) return indexed_element(std::move(node));
  if (among(op, {Primitive::sum, Primitive::mean, Primitive::amax, Primitive::amin, Primitive::prod,
                 Primitive::mm, Primitive::bmm, Primitive::addmm, Primitive::convolution,
                 Primitive::all_reduce, Primitive::all_gather, Primitive::reduce_scatter,
                 Primitive::shard}))
    return reduced_element(std::move(node));
  if (op == Primitive::index_put)
    if (const auto placed = scattered_element(node)) return *placed;
  return leaf_element(std::move(node));
}

}  // namespace

bool NodeContext::represents(DType dtype, Ix integer) {
  constexpr double kPracticalI64 = 0x1p31, kPracticalI32 = 0x1p15;
  const bool wide = dtype == DType::i64 || dtype == DType::i32;
  if (terms_.any_dtype() && dtype != DType::i64) return false;
  double most = 0;
  bool open = false;
  for (const auto& [monomial, factor] : i_.polynomial(integer)) {
    double product = std::abs(static_cast<double>(factor));
    for (Integers::AtomNumber number : monomial) {
      const Integers::Atom& atom = i_.atom(number);
      const bool index = atom.kind == Integers::Atom::Kind::variable;
      const auto extent = index ? i_.number(atom.a) : std::nullopt;
      open = open || !extent;
      if (extent) product *= static_cast<double>(std::max<std::int64_t>(*extent - 1, 1));
    }
    most += product;
  }
  if (open) {
    if (!wide || most > (dtype == DType::i64 ? kPracticalI64 : kPracticalI32)) return false;
    granted_.insert("whole numbers made of indices do not wrap around");
    return true;
  }
  if (is_float(dtype)) return most <= std::ldexp(1.0, mantissa_bits(dtype));
  if (dtype == DType::b8 || dtype == DType::u8) {
    const auto value = i_.number(integer);
    return most <= (dtype == DType::b8 ? 1 : 255) &&
           (value ? *value >= 0 : i_.nonnegative(integer));
  }
  return most < std::ldexp(1.0, 8 * size_of(dtype) - 1);
}

/// Graphs without collectives have no rank. Several groups, or groups of different sizes, have no
/// meaning here: one general rank could not represent them.
Elements::Elements(const Graph& graph, Terms& terms)
    : graph_(graph), terms_(terms), integers_(terms.integers()) {
  std::set<std::string> groups;
  for (NodeId node = graph.first(); node.valid(); node = graph.next(node)) {
    const Attribute* group = graph.attribute(node, "group");
    const auto* name = group == nullptr ? nullptr : std::get_if<std::string>(group);
    if (name == nullptr) continue;
    groups.insert(*name);
    const Attribute* world = graph.attribute(node, "world");
    if (world == nullptr) continue;
    Ix size;
    Dims& dims = graph.context().dims;
    if (const auto dim = dim_value(dims, *world)) size = integers_.of(dims, *dim);
    if (size.valid() && world_.valid() && !integers_.equal(size, world_)) groups.insert("");
    world_ = size;
  }
  if (groups.empty()) return;
  if (groups.size() > 1) {
    group_ = "?";
    return;
  }
  group_ = *groups.begin();
  if (!world_.valid()) world_ = integers_.symbol("ranks");
  rank_ = integers_.variable(kRankLevel, world_);
}

std::vector<Ix> Elements::extents(ValueId value) {
  const TypeId type = graph_.type(value);
  if (type == Types::unknown()) throw NoMeaning{"a type that is not known"};
  std::vector<Ix> out;
  for (DimId dim : graph_.context().types[type].shape)
    out.push_back(integers_.of(graph_.context().dims, dim));
  return out;
}

/// Axes of size 1 get index 0. Both sides of a rule have equal sizes, so one index serves both.
TermId Elements::general(ValueId value, ValueId like) {
  const std::vector<Ix> sizes = extents(like);
  std::vector<Ix> at;
  for (std::size_t k = 0; k < sizes.size(); ++k)
    at.push_back(integers_.variable(kAxisLevel + static_cast<std::uint32_t>(k), sizes[k]));
  return element(value, at);
}

bool Elements::at_least(Ix difference) {
  if (integers_.nonnegative(difference)) return true;
  if (integers_.nonnegative(integers_.sub(integers_.constant(-1), difference))) return false;
  throw NeedSplit{difference};
}

TermId Elements::element(ValueId value, const std::vector<Ix>& at, Ix rank, std::uint32_t level) {
  if (group_ == "?") throw NoMeaning{"collectives over several groups"};
  const auto key = std::tuple(value, at, rank, level);
  const auto found = known_.find(key);
  if (found != known_.end()) return found->second;
  if (terms_.size() > kMostTerms) throw NoMeaning{"limit: more than 200000 terms"};
  if (depth_ > kDeepestChain) throw NoMeaning{"limit: a chain of more than 400 ops"};
  const Nesting nesting(depth_);
  TermId out;
  if (graph_.is_input(value)) {
    Term term;
    term.kind = Term::Kind::read;
    term.dtype = graph_.context().types[graph_.type(value)].dtype;
    term.name = graph_.value_name(value);
    term.at = at;
    const auto& groups = graph_.replicated_over(value);
    // Any other input may differ from rank to rank, so the rank is part of the position.
    const bool alike = std::find(groups.begin(), groups.end(), group_) != groups.end();
    if (rank.valid() && !alike) term.at.push_back(rank);
    out = terms_.make(std::move(term));
  } else {
    out = element_of(
        NodeContext(*this, graph_.producer(value), graph_.result_index(value), at, rank, level));
  }
  known_.emplace(key, out);
  return out;
}

/// Splits the range where the body splits at a position of the index.
TermId Elements::reduce(Function function, DType dtype, Ix extent, std::uint32_t level,
                        const std::function<std::vector<TermId>(Ix, std::uint32_t)>& body) {
  if (integers_.number(extent) == 0 &&
      !among(function, {Function::amax, Function::amin, Function::mean}))
    return terms_.number(function == Function::prod ? 1 : 0, dtype);
  // The reduction over from … from + count - 1, whose bound index starts at 0.
  const auto over = [&](Ix from, Ix count) {
    const Ix v = integers_.add(from, integers_.variable(level, count));
    Term term;
    term.kind = Term::Kind::reduce;
    term.dtype = dtype;
    term.level = level;
    term.function = function;
    term.at = {count};
    term.args = body(v, level + 1);
    if (among(function, {Function::amax, Function::amin}) && integers_.number(count) == 1)
      return term.args[0];
    return terms_.make(std::move(term));
  };
  std::vector<std::pair<Ix, Ix>> ranges = {{integers_.constant(0), extent}};
  std::vector<TermId> parts;
  constexpr int kMostParts = 16;
  for (int tries = 0; !ranges.empty(); ++tries) {
    if (tries > kMostParts) throw NoMeaning{"a sum over too many parts"};
    const auto [from, count] = ranges.front();
    try {
      parts.push_back(over(from, count));
      ranges.erase(ranges.begin());
    } catch (const NeedSplit& split) {
      const auto line = integers_.line(split.at_least_zero, level);
      // A mean cannot be divided: its parts would have other divisors. An index with another factor
      // would give a cut that need not be an integer.
      if (!line || line->factor == integers_.constant(0) || function == Function::mean) throw;
      const auto factor = integers_.number(line->factor);
      if (!factor || (*factor != 1 && *factor != -1)) throw;
      std::set<std::uint32_t> bound;  // indices of inner sums, which the range must not depend on
      integers_.collect_levels(line->rest, bound);
      if (std::any_of(bound.begin(), bound.end(),
                      [&](std::uint32_t other) { return other > level && other < kAxisLevel; }))
        throw;
      // factor * v + rest >= 0 from v = -rest on, or up to v = rest.
      const Ix cut = *factor == 1 ? integers_.sub(integers_.constant(0), line->rest)
                                  : integers_.add(line->rest, integers_.constant(1));
      // Both parts must be non-empty, or the same split would repeat.
      if (!at_least(integers_.sub(cut, integers_.constant(1))) ||
          !at_least(integers_.sub(integers_.sub(count, cut), integers_.constant(1))))
        throw;
      ranges.front() = {integers_.add(from, cut), integers_.sub(count, cut)};
      ranges.insert(ranges.begin(), {from, cut});
    }
  }
  // Joins have names of their own, because a reduction of parts rounds differently from the whole
  // one.
  TermId out = parts[0];
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const Function join = function == Function::amax   ? Function::maximum
                          : function == Function::amin ? Function::minimum
                          : function == Function::prod ? Function::join_product
                                                       : Function::join_sum;
    out = terms_.call(join, dtype, {out, parts[i]});
  }
  return out;
}

}  // namespace pw::proof
