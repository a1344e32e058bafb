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

#include "graph/build.hpp"

namespace pw::proof {
namespace {

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

}  // namespace

/// Computes the element of one node's result.
class NodeElements {
 public:
  NodeElements(Elements& elements, NodeId node, std::size_t result, std::vector<Ix> at, Ix rank,
               std::uint32_t level)
      : e_(elements),
        graph_(elements.graph_),
        i_(elements.integers_),
        node_(node),
        result_(result),
        at_(std::move(at)),
        rank_(rank),
        level_(level) {}

  TermId run() {
    const Primitive op = graph_.op_of(node_).primitive;
    if (is_pointwise(op)) return pointwise(function_of(op));
    if (op == Primitive::constant) return e_.terms_.number(real("value"), dtype());
    if (op == Primitive::full) return e_.terms_.number(real("value"), dtype());
    if (op == Primitive::empty) return e_.terms_.number(0, dtype());
    if (op == Primitive::iota)
      return e_.terms_.index(at_.empty() ? i_.constant(0) : at_.back(), dtype());
    if (op == Primitive::extent) return e_.terms_.index(size("value"), dtype());
    if (among(op, {Primitive::detach, Primitive::clone})) return operand(0, at_);
    if (op == Primitive::reshape) return reshape();
    if (op == Primitive::transpose) return transpose();
    if (op == Primitive::expand) return operand(0, broadcast(0));
    if (op == Primitive::slice) return slice();
    if (op == Primitive::split) return split();
    if (op == Primitive::cat) return cat();
    if (op == Primitive::reverse) return reverse();
    if (op == Primitive::pad_last) return padded();
    if (op == Primitive::embedding) return embedding();
    if (op == Primitive::index) return index();
    if (among(op,
              {Primitive::sum, Primitive::mean, Primitive::amax, Primitive::amin, Primitive::prod}))
      return reduction(function_of(op));
    if (among(op, {Primitive::mm, Primitive::bmm})) return product(0);
    if (op == Primitive::addmm) return addmm();
    if (op == Primitive::convolution) return convolution();
    if (op == Primitive::index_put)
      if (const auto placed = index_put()) return *placed;
    if (among(op, {Primitive::all_reduce, Primitive::all_gather, Primitive::reduce_scatter,
                   Primitive::shard}))
      return collective(op);
    return opaque();
  }

 private:
  [[nodiscard]] Context& context() const { return graph_.context(); }
  [[nodiscard]] DType dtype() const {
    const TypeId type = graph_.type(graph_.result(node_, result_));
    return context().types[type].dtype;
  }
  [[nodiscard]] ValueId input(std::size_t i) const { return graph_.operand(node_, i); }
  std::vector<Ix> shape(std::size_t i) { return e_.extents(input(i)); }
  TermId operand(std::size_t i, const std::vector<Ix>& at) {
    return e_.element(input(i), at, rank_, level_);
  }
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
      if (const auto* x = std::get_if<std::int64_t>(a)) return i_.constant(*x);
    if (a != nullptr)
      if (const auto* x = std::get_if<DimId>(a)) return i_.of(context().dims, *x);
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

  TermId pointwise(Function op) {
    std::vector<TermId> args;
    for (std::size_t i = 0; i < graph_.operand_count(node_); ++i) {
      if (!input(i).valid()) throw NoMeaning{fmt::format("an absent operand of `{}`", name(op))};
      args.push_back(operand(i, broadcast(i)));
    }
    if (const auto whole = on_indices(op, args)) return *whole;
    if (const auto bounded = extreme_of_integers(op, args)) return *bounded;
    return e_.terms_.call(op, dtype(), std::move(args));
  }

  /// Computes integer arithmetic on indices as an index. In i64 such values cannot wrap.
  std::optional<TermId> on_indices(Function op, const std::vector<TermId>& args) {
    std::vector<Ix> of;
    bool any = false, all_wide = dtype() == DType::i64;  // indices that became i64 numbers
    for (TermId arg : args) {
      const Term& term = e_.terms_[arg];
      all_wide = all_wide && term.dtype == DType::i64;
      if (term.kind == Term::Kind::index || is_position(arg)) {
        any = true;
        of.push_back(exact(arg));
      } else if (term.kind == Term::Kind::number && std::floor(term.number) == term.number &&
                 std::abs(term.number) < 1e15) {
        of.push_back(i_.constant(static_cast<std::int64_t>(term.number)));
      } else {
        return std::nullopt;
      }
    }
    if (!any && !all_wide) return std::nullopt;
    const bool wide = dtype() == DType::i64 || (dtype() == DType::i32 && !e_.terms_.any_dtype());
    if (wide) e_.granted_.insert("whole numbers made of indices do not wrap around");
    if (op == Function::cast && wide) return e_.terms_.index(of[0], dtype());
    if (op == Function::add && wide) return e_.terms_.index(i_.add(of[0], of[1]), dtype());
    if (op == Function::sub && wide) return e_.terms_.index(i_.sub(of[0], of[1]), dtype());
    if (op == Function::mul && wide) return e_.terms_.index(i_.mul(of[0], of[1]), dtype());
    if (op == Function::neg && wide) return e_.terms_.index(i_.sub(i_.constant(0), of[0]), dtype());
    if (among(op, {Function::remainder, Function::fmod}) && wide &&
        i_.nonnegative(i_.sub(of[1], i_.constant(1))) && i_.nonnegative(of[0]))
      return e_.terms_.index(i_.mod(of[0], of[1]), dtype());
    const auto truth = [&](bool value) { return e_.terms_.number(value ? 1 : 0, DType::b8); };
    const Ix one = i_.constant(1);
    if (op == Function::lt) return truth(e_.at_least(i_.sub(i_.sub(of[1], of[0]), one)));
    if (op == Function::gt) return truth(e_.at_least(i_.sub(i_.sub(of[0], of[1]), one)));
    if (op == Function::le) return truth(e_.at_least(i_.sub(of[1], of[0])));
    if (op == Function::ge) return truth(e_.at_least(i_.sub(of[0], of[1])));
    if (among(op, {Function::eq, Function::ne})) {
      const bool equal = e_.at_least(i_.sub(of[0], of[1])) && e_.at_least(i_.sub(of[1], of[0]));
      return truth(equal == (op == Function::eq));
    }
    return std::nullopt;
  }

  /// Returns true if an integer that a tensor holds is known to lie between 0 and a size.
  bool is_position(TermId term) {
    const DType dtype = e_.terms_[term].dtype;
    if (dtype != DType::i64 && dtype != DType::i32) return false;
    const Ix value = exact(term);
    std::set<std::uint32_t> held;
    i_.collect_values(value, held);
    if (held.size() != 1 || i_.facts().empty()) return false;
    const auto bounds = [&](Ix fact) {
      std::set<std::uint32_t> left;
      i_.collect_values(i_.add(fact, value), left);
      std::set<std::uint32_t> before;
      i_.collect_values(fact, before);
      return left.empty() && !before.empty();
    };
    const std::vector<Ix> facts = i_.facts();
    return std::any_of(facts.begin(), facts.end(), bounds) && i_.nonnegative(value);
  }

  /// The extreme of two integers of which one is an index or a number; each choice is a case.
  std::optional<TermId> extreme_of_integers(Function op, const std::vector<TermId>& args) {
    if (!among(op, {Function::maximum, Function::minimum})) return std::nullopt;
    if (dtype() != DType::i64 && (dtype() != DType::i32 || e_.terms_.any_dtype()))
      return std::nullopt;
    bool known = false;
    for (TermId arg : args) {
      const Term& term = e_.terms_[arg];
      const bool literal = term.kind == Term::Kind::number &&
                           std::floor(term.number) == term.number && std::abs(term.number) < 1e15;
      if (!literal && term.kind != Term::Kind::index && term.dtype != dtype()) return std::nullopt;
      known = known || literal || term.kind == Term::Kind::index;
    }
    if (!known) return std::nullopt;
    const bool first =
        e_.at_least(i_.sub(exact(args[0]), exact(args[1]))) == (op == Function::maximum);
    const TermId taken = args[first ? 0 : 1];
    const Term term = e_.terms_[taken];
    if (term.kind == Term::Kind::index) return e_.terms_.index(term.at[0], dtype());
    if (term.kind == Term::Kind::number) return e_.terms_.number(term.number, dtype());
    return e_.terms_.call(Function::cast, dtype(), {taken});
  }

  // ---- layout

  /// Renumbers a row-major index, separately for each group of axes with equal numbers of elements.
  TermId reshape() {
    const std::vector<Ix> from = shape(0), to = e_.extents(graph_.result(node_, result_));
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
    const auto source = ones(from, a0, a), target = ones(to, b0, b);
    if (source.size() == 1 && target.size() == 1) {
      at[source[0]] = at_[target[0]];
      return;
    }
    Ix number = i_.constant(0);
    for (std::size_t k : target) number = i_.add(i_.mul(number, to[k]), at_[k]);
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
  Ix bound(std::string_view name, Ix extent) {
    Ix value = size(name);
    if (!e_.at_least(value)) {
      value = i_.add(value, extent);
      if (!e_.at_least(value)) value = i_.constant(0);
    }
    return e_.at_least(i_.sub(extent, value)) ? value : extent;
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

  TermId cat() {
    std::vector<Ix> at = at_;
    const std::size_t k = axis("dim", at.size()), count = graph_.operand_count(node_);
    for (std::size_t i = 0; i + 1 < count; ++i) {
      const Ix beyond = i_.sub(at[k], shape(i)[k]);
      if (!e_.at_least(beyond)) return operand(i, at);
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
  TermId padded() {
    std::vector<Ix> at = at_;
    const Ix n = shape(0).back(), one = i_.constant(1);
    const Ix stride = i_.add(size("interior"), one), place = i_.sub(at.back(), size("low"));
    if (!i_.nonnegative(i_.sub(stride, one))) throw NoMeaning{"fewer than no elements between two"};
    const auto value = [&] { return operand(1, {}); };
    if (!e_.at_least(place)) return value();
    const Ix last = i_.mul(i_.sub(n, one), stride);
    if (!e_.at_least(i_.sub(last, place))) return value();
    const Ix rest = i_.mod(place, stride);
    if (e_.at_least(i_.sub(rest, one))) return value();
    at.back() = i_.div(place, stride);
    return operand(0, at);
  }

  // ---- by indices

  /// Returns the number of an integer value: an index, a literal, or an unknown value. Every
  /// integer has the same value as an i64, which can represent all.
  Ix exact(TermId term) {
    while (e_.terms_[term].function == Function::cast && e_.terms_[term].dtype == DType::i64 &&
           !is_float(e_.terms_[e_.terms_[term].args[0]].dtype))
      term = e_.terms_[term].args[0];
    const Term& t = e_.terms_[term];
    if (t.kind == Term::Kind::index) return t.at[0];
    if (t.kind == Term::Kind::number) return i_.constant(static_cast<std::int64_t>(t.number));
    return i_.value(term.index);
  }
  /// Returns the position that an integer gives. Sums and products of positions do not wrap around.
  Ix as_index(TermId term) {
    const Term t = e_.terms_[term];
    const bool wide = t.dtype == DType::i64 || t.dtype == DType::i32;
    if (t.kind == Term::Kind::call && wide &&
        among(t.function, {Function::add, Function::sub, Function::mul})) {
      const Ix a = as_index(t.args[0]), b = as_index(t.args[1]);
      e_.granted_.insert("whole numbers made of indices do not wrap around");
      return t.function == Function::add   ? i_.add(a, b)
             : t.function == Function::sub ? i_.sub(a, b)
                                           : i_.mul(a, b);
    }
    return exact(term);
  }

  TermId embedding() {
    const std::size_t ids = shape(1).size();
    const std::vector<Ix> at(at_.begin(), at_.begin() + static_cast<std::ptrdiff_t>(ids));
    std::vector<Ix> row = {as_index(operand(1, at))};
    row.insert(row.end(), at_.begin() + static_cast<std::ptrdiff_t>(ids), at_.end());
    e_.granted_.insert("indices lie inside their tables");
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
      if (flag("wrap") && !e_.at_least(value)) value = i_.add(value, extents[from + n]);
      at.push_back(value);
    }
    at.insert(at.end(), begin + static_cast<std::ptrdiff_t>(rank), at_.end());
    e_.granted_.insert("indices lie inside their tables");
    return operand(0, at);
  }

  /// Evaluates an ordered scatter; nothing if the order is not determined.
  std::optional<TermId> index_put() {
    const Attribute* reduce = graph_.attribute(node_, "reduce");
    const auto* how = reduce == nullptr ? nullptr : std::get_if<std::string>(reduce);
    if (how == nullptr || *how != "set" || flag("wrap") || graph_.operand_count(node_) != 3)
      return std::nullopt;
    const std::vector<Ix> values = shape(1), places = shape(2);
    const std::size_t k = axis("dim", at_.size());
    if (places.size() != 1 || values.size() != at_.size()) return std::nullopt;
    const Ix v = i_.variable(level_, places[0]);
    const Term place = e_.terms_[e_.element(input(2), {v}, rank_, level_ + 1)];
    Ix first;
    if (place.kind == Term::Kind::index) {
      const auto line = i_.line(place.at[0], level_);
      if (!line) return std::nullopt;
      first = line->rest;
      if (v != i_.constant(0) && line->factor != i_.constant(1)) return std::nullopt;
    } else if (v == i_.constant(0)) {
      first = as_index(e_.element(input(2), {v}, rank_, level_ + 1));
    } else {
      return std::nullopt;
    }
    if (reads_level(first)) return std::nullopt;
    for (std::size_t d = 0; d < values.size(); ++d)
      if (!i_.equal(values[d], d == k ? places[0] : shape(0)[d])) return std::nullopt;
    e_.granted_.insert("indices lie inside their tables");
    std::vector<Ix> at = at_;
    at[k] = i_.sub(at_[k], first);
    const Ix one = i_.constant(1);
    if (!e_.at_least(at[k]) || !e_.at_least(i_.sub(i_.sub(places[0], one), at[k])))
      return operand(0, at_);
    return operand(1, at);
  }
  /// Returns true if a value in the term differs for each position.
  bool reads_level(Ix index) {
    std::set<std::uint32_t> values;
    i_.collect_values(index, values);
    return std::any_of(values.begin(), values.end(), [&](std::uint32_t value) {
      return e_.terms_.mentions(TermId(std::size_t{value}), level_);
    });
  }

  // ---- reductions

  /// Computes a convolution: a sum over the channels of the group and the kernel positions of each
  /// axis.
  TermId convolution() {
    const std::vector<Ix> x = shape(0), w = shape(1);
    const std::size_t axes = w.size() - 2;
    const std::vector<Ix> stride = sizes("stride"), padding = sizes("padding"),
                          dilation = sizes("dilation");
    if (x.size() != w.size() || stride.size() != axes || padding.size() != axes ||
        dilation.size() != axes)
      throw NoMeaning{"a convolution without a batch"};
    const Ix groups = size("groups"), each = i_.div(w[0], groups);
    const Ix group = i_.div(at_[1], each);
    e_.granted_.insert("convolutions add in an order that their sizes decide");
    std::vector<Ix> places(axes + 1);
    // Products are not rounded before the summation.
    const auto factors = [&](std::uint32_t level) -> std::vector<TermId> {
      std::vector<Ix> from = {at_[0], i_.add(i_.mul(group, w[1]), places[0])};
      std::vector<Ix> kernel = {at_[1], places[0]};
      for (std::size_t a = 0; a < axes; ++a) {
        const Ix place = i_.sub(
            i_.add(i_.mul(at_[a + 2], stride[a]), i_.mul(places[a + 1], dilation[a])), padding[a]);
        const bool inside =
            e_.at_least(place) && e_.at_least(i_.sub(i_.sub(x[a + 2], i_.constant(1)), place));
        if (!inside) return {e_.terms_.number(0, dtype()), e_.terms_.number(0, dtype())};
        from.push_back(place);
        kernel.push_back(places[a + 1]);
      }
      return {e_.element(input(0), from, rank_, level), e_.element(input(1), kernel, rank_, level)};
    };
    const std::function<TermId(std::size_t, std::uint32_t)> over = [&](std::size_t k,
                                                                       std::uint32_t level) {
      return e_.reduce(k == axes ? Function::dot : Function::sum, dtype(), w[k + 1], level,
                       [&, k](Ix v, std::uint32_t inner) {
                         places[k] = v;
                         return k == axes ? factors(inner)
                                          : std::vector<TermId>{over(k + 1, inner)};
                       });
    };
    const TermId sum = over(0, level_);
    if (graph_.operand_count(node_) < 3 || !input(2).valid()) return sum;
    return e_.terms_.call(Function::addmm, dtype(), {operand(2, {at_[1]}), sum});
  }

  TermId reduction(Function function) {
    const std::vector<Ix> extents = shape(0);
    const std::size_t k = axis("dim", extents.size());
    const bool keep = flag("keepdim");
    return e_.reduce(function, dtype(), extents[k], level_, [&](Ix v, std::uint32_t level) {
      std::vector<Ix> at = at_;
      if (keep)
        at[k] = v;
      else
        at.insert(at.begin() + static_cast<std::ptrdiff_t>(k), v);
      return std::vector<TermId>{e_.element(input(0), at, rank_, level)};
    });
  }

  TermId product(std::size_t first) {
    const std::vector<Ix> a = shape(first);
    e_.granted_.insert("products of matrices add in an order that the length of the sum decides");
    return e_.reduce(Function::dot, dtype(), a.back(), level_, [&](Ix v, std::uint32_t level) {
      std::vector<Ix> left = at_, right = at_;
      left.back() = v;
      right[right.size() - 2] = v;
      return std::vector<TermId>{e_.element(input(first), left, rank_, level),
                                 e_.element(input(first + 1), right, rank_, level)};
    });
  }

  TermId addmm() {
    const TermId sum = product(1);
    return e_.terms_.call(Function::addmm, dtype(), {operand(0, {at_.back()}), sum});
  }

  // ---- ranks

  TermId collective(Primitive op) {
    if (!rank_.valid()) throw NoMeaning{"a collective without ranks"};
    const Ix world = e_.world_;
    if (op == Primitive::all_reduce) return over_ranks(at_);
    const std::size_t k = axis("dim", at_.size());
    std::vector<Ix> at = at_;
    if (op == Primitive::all_gather) {
      const Ix part = shape(0)[k];
      const Ix rank = i_.div(at_[k], part);
      at[k] = i_.sub(at_[k], i_.mul(part, rank));
      return e_.element(input(0), at, rank, level_);
    }
    const Ix part = e_.extents(graph_.result(node_, result_))[k];
    if (!i_.equal(i_.mul(part, world), shape(0)[k]))
      throw NoMeaning{fmt::format("{} has to divide {}", i_.print(world), i_.print(shape(0)[k]))};
    at[k] = i_.add(i_.mul(rank_, part), at_[k]);
    return op == Primitive::shard ? operand(0, at) : over_ranks(at);
  }
  TermId over_ranks(const std::vector<Ix>& at) {
    return e_.reduce(Function::ranks, dtype(), e_.world_, level_, [&](Ix v, std::uint32_t level) {
      return std::vector<TermId>{e_.element(input(0), at, v, level)};
    });
  }

  // ---- opaque ops

  TermId opaque() {
    const Op& op = graph_.op_of(node_);
    e_.granted_.insert(fmt::format("`{}` gives equal results for equal operands", op.name));
    Term term;
    term.kind = Term::Kind::opaque;
    term.dtype = dtype();
    term.level = static_cast<std::uint32_t>(result_);
    term.name = op.name + context().attributes.print(graph_.attributes(node_));
    for (std::size_t i = 0; i < graph_.operand_count(node_); ++i) {
      if (!input(i).valid()) {
        term.args.push_back(e_.terms_.number(0, DType::b8));
        term.name += fmt::format(" none {}", i);
        continue;
      }
      Term lambda;
      lambda.kind = Term::Kind::lambda;
      lambda.dtype = context().types[graph_.type(input(i))].dtype;
      lambda.at = shape(i);
      lambda.level = level_;
      std::vector<Ix> at;
      for (std::size_t k = 0; k < lambda.at.size(); ++k)
        at.push_back(i_.variable(level_ + static_cast<std::uint32_t>(k), lambda.at[k]));
      lambda.args = {
          e_.element(input(i), at, rank_, level_ + static_cast<std::uint32_t>(lambda.at.size()))};
      term.args.push_back(e_.terms_.make(std::move(lambda)));
    }
    term.at = at_;
    return e_.terms_.make(std::move(term));
  }

  Elements& e_;
  const Graph& graph_;
  Integers& i_;
  NodeId node_;
  std::size_t result_;
  std::vector<Ix> at_;
  Ix rank_;
  std::uint32_t level_;
};

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
    if (const auto* x = std::get_if<std::int64_t>(world)) size = integers_.constant(*x);
    if (const auto* x = std::get_if<DimId>(world)) size = integers_.of(graph.context().dims, *x);
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
    const bool alike = std::find(groups.begin(), groups.end(), group_) != groups.end();
    if (rank.valid() && !alike) term.at.push_back(rank);
    out = terms_.make(std::move(term));
  } else {
    out = NodeElements(*this, graph_.producer(value), graph_.result_index(value), at, rank, level)
              .run();
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
      if (!line || line->factor == integers_.constant(0) || function == Function::mean) throw;
      const auto factor = integers_.number(line->factor);
      if (!factor || (*factor != 1 && *factor != -1)) throw;
      // factor * v + rest >= 0 from v = -rest on, or up to v = rest.
      const Ix cut = *factor == 1 ? integers_.sub(integers_.constant(0), line->rest)
                                  : integers_.add(line->rest, integers_.constant(1));
      if (!at_least(integers_.sub(cut, integers_.constant(1))) ||
          !at_least(integers_.sub(integers_.sub(count, cut), integers_.constant(1))))
        throw;
      ranges.front() = {integers_.add(from, cut), integers_.sub(count, cut)};
      ranges.insert(ranges.begin(), {from, cut});
    }
  }
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
