// Finds the first cross-token op in topological order. A primitive is decided by its op and by
// whether the tokens dim is reduced, sorted, contracted, sliced, cut or reshaped; an op with a body
// by its primitives, analysed once for each op, types and attributes. In addition, values that are
// a rank's part of the rows are followed: with padding they are different rows until they are
// gathered.
//
// Invariant: the analysis is conservative; an op about which nothing is known counts as mixing.
// Cost: linear in the nodes and their dims.
#include "splitter/row_mixing.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <tuple>

#include <fmt/format.h>

#include "graph/build.hpp"
#include "graph/ops/product.hpp"

namespace pw {
namespace {

using P = Primitive;

constexpr int kMaxDepth = 16;  // nesting of bodies

class Search {
 public:
  Search(const Graph& graph, Reductions reductions)
      : context_(graph.context()), facts_(graph.facts), reductions_(reductions) {
    tokens_ = facts_.tokens();
  }

  std::optional<std::string> first(const Graph& graph) {
    if (tokens_.empty()) return std::nullopt;
    for (NodeId n = graph.first(); n.valid(); n = graph.next(n)) {
      std::string how = mixing(graph, n, 0);
      if (how.empty()) how = through(graph, n);
      if (!how.empty())
        return fmt::format("node {} ({}) mixes rows: {}", graph.node_name(n), graph.op_of(n).name,
                           how);
    }
    return parts_.empty() ? std::nullopt : of_outputs(graph);
  }

 private:
  using Key = std::tuple<OpId, std::vector<TypeId>, AttributesId>;

  // ---- a rank's part of the rows: with padding these are other rows until they are gathered
  /// Follows parts through a node of the whole graph. Returns how a part meets rows that are not a
  /// part, or empty.
  std::string through(const Graph& graph, NodeId n) {
    const bool scatters =
        graph.op_of(n).traits.collective || graph.op_of(n).primitive == Primitive::shard;
    if (scatters) {
      if (const std::string how = scattered(graph, n); !how.empty()) return how;
    }
    if (parts_.empty()) return "";
    for (ValueId v : graph.operands(n)) {
      const auto part = v.valid() ? parts_.find(v) : parts_.end();
      if (part == parts_.end()) continue;
      const DimId dim = part->second;
      for (ValueId other : graph.operands(n))
        if (other.valid() && parts_.count(other) == 0 && holds(graph, other, dim))
          return fmt::format("its operand {} is not a rank's part of dim {}",
                             graph.value_name(other), context_.dims.print(dim));
      for (std::size_t i = 0; i < graph.result_count(n); ++i)
        if (holds(graph, graph.result(n, i), dim)) parts_.emplace(graph.result(n, i), dim);
    }
    return "";
  }
  /// Returns a reason if a tokens dim exists only in the results (it is cut), or only in the
  /// operands (it is joined).
  std::string scattered(const Graph& graph, NodeId n) {
    for (ValueId v : graph.operands(n)) {
      for (DimId dim : dims_of(graph, v)) {
        if (!has_tokens(dim) || made_by(graph, n, dim) || parts_.count(v) != 0) continue;
        if (extent(dim) < largest_made(graph, n))
          return fmt::format("it has parts of dim {} that are padded separately",
                             context_.dims.print(dim));
      }
    }
    for (std::size_t i = 0; i < graph.result_count(n); ++i)
      for (DimId dim : dims_of(graph, graph.result(n, i)))
        if (has_tokens(dim) && cut_from(graph, n, dim)) parts_.emplace(graph.result(n, i), dim);
    return "";
  }
  /// Returns true if the operands have a larger tokens dim that the results lack.
  bool cut_from(const Graph& graph, NodeId n, DimId part) {
    for (ValueId v : graph.operands(n))
      for (DimId dim : dims_of(graph, v))
        if (has_tokens(dim) && !made_by(graph, n, dim) && extent(dim) > extent(part)) return true;
    return false;
  }
  std::int64_t largest_made(const Graph& graph, NodeId n) {
    std::int64_t most = 0;
    for (std::size_t i = 0; i < graph.result_count(n); ++i)
      for (DimId dim : dims_of(graph, graph.result(n, i)))
        if (has_tokens(dim)) most = std::max(most, extent(dim));
    return most;
  }
  /// Evaluates the dim at a size that is large and divides well, for comparisons.
  [[nodiscard]] std::int64_t extent(DimId dim) const {
    std::map<std::string, std::int64_t, std::less<>> sizes;
    for (const std::string& symbol : context_.dims.symbols(dim)) sizes[symbol] = 1 << 20;
    return context_.dims.evaluate(dim, sizes).value_or(0);
  }
  std::optional<std::string> of_outputs(const Graph& graph) {
    for (ValueId v : graph.outputs())
      if (const auto part = parts_.find(v); part != parts_.end())
        return fmt::format(
            "output {} is a rank's part of dim {}, whose rows differ if it is padded",
            graph.value_name(v), context_.dims.print(part->second));
    return std::nullopt;
  }
  [[nodiscard]] std::span<const DimId> dims_of(const Graph& graph, ValueId v) const {
    if (!v.valid() || graph.type(v) == Types::unknown()) return {};
    return context_.types[graph.type(v)].shape;
  }
  [[nodiscard]] bool holds(const Graph& graph, ValueId v, DimId dim) const {
    const auto dims = dims_of(graph, v);
    return std::find(dims.begin(), dims.end(), dim) != dims.end();
  }
  [[nodiscard]] bool made_by(const Graph& graph, NodeId n, DimId dim) const {
    for (std::size_t i = 0; i < graph.result_count(n); ++i)
      if (holds(graph, graph.result(n, i), dim)) return true;
    return false;
  }

  /// Returns how a node mixes rows, or empty.
  std::string mixing(const Graph& graph, NodeId n, int depth) {
    if (!graph.op_of(n).has_body()) return of_primitive(graph, n);
    if (depth >= kMaxDepth) return "";
    std::vector<TypeId> types;
    for (ValueId v : graph.operands(n)) types.push_back(v.valid() ? graph.type(v) : TypeId());
    if (std::none_of(types.begin(), types.end(), [&](TypeId t) { return has_tokens(t); }) &&
        !has_tokens(graph.attributes(n)))
      return "";
    const auto [known, fresh] =
        bodies_.try_emplace({graph.op(n), types, graph.attributes(n)}, std::string());
    if (!fresh) return known->second;
    const auto meaning =
        instantiate_body(context_, graph.op(n), types, graph.attributes(n), facts_);
    if (!meaning) return "";
    std::string how;
    for (NodeId m = meaning->graph.first(); m.valid() && how.empty(); m = meaning->graph.next(m)) {
      how = mixing(meaning->graph, m, depth + 1);
      if (!how.empty() && !meaning->graph.op_of(m).has_body())
        how = fmt::format("{} {}", meaning->graph.op_of(m).name, how.substr(how.find(' ') + 1));
    }
    return known->second = how;
  }

  std::string of_primitive(const Graph& graph, NodeId n) {
    const P op = graph.op_of(n).primitive;
    if (class_of(op) == PrimitiveClass::reduction || among(op, {P::prod, P::argmax, P::argmin}))
      return of_reduction(graph, n);
    if (among(op, {P::sort, P::topk}))
      return over(graph, n, 0, axis(graph, n, 0), "it sorts dim {}");
    if (among(op, {P::index, P::index_put})) return of_indices(graph, n, op == P::index ? 1 : 2);
    if (op == P::keep_topk) return over(graph, n, 0, rank(graph, n, 0) - 1, "it sorts dim {}");
    if (const auto product = product_of(graph.op_of(n)))
      return over(graph, n, product->a, rank(graph, n, product->a) - 1, "it sums over dim {}");
    if (op == P::bmm) return over(graph, n, 0, rank(graph, n, 0) - 1, "it sums over dim {}");
    if (const auto first = first_mixed(op))
      return of_window(graph, n, [&](std::size_t ranks) { return ranks == 1 ? 0 : *first; });
    if (const auto last = window_dims(graph, n))
      return of_window(graph, n, [&](std::size_t ranks) { return ranks - std::min(ranks, *last); });
    if (op == P::extent) return of_extent(graph, n);
    if (op == P::slice) return of_slice(graph, n);
    if (graph.op_of(n).traits.collective) return of_collective(graph, n);
    if (op == P::split) return of_split(graph, n);
    if (op == P::cat) return of_cat(graph, n);
    if (op == P::reshape) return of_reshape(graph, n);
    return "";
  }

  /// Returns, for ops that attend or convolve, the operands' first dim whose places interact.
  static std::optional<std::size_t> first_mixed(Primitive op) {
    if (op == P::convolution_weight_gradient) return 0;
    if (among(op, {P::scaled_attention, P::scaled_attention_gradient, P::convolution,
                   P::transposed_convolution}))
      return 1;
    return std::nullopt;
  }
  /// Returns the number of last dims over which an op moves windows, from the length of its
  /// attribute.
  std::optional<std::size_t> window_dims(const Graph& graph, NodeId n) {
    if (class_of(graph.op_of(n).primitive) != PrimitiveClass::window) return std::nullopt;
    std::size_t most = 0;
    for (const char* of : {"kernel", "size", "scales"}) {
      const Attribute* given = graph.attribute(n, of);
      if (given == nullptr) continue;
      if (const auto* dims = std::get_if<std::vector<DimId>>(given))
        most = std::max(most, dims->size());
      if (const auto* numbers = std::get_if<std::vector<double>>(given))
        most = std::max(most, numbers->size());
    }
    return most;
  }
  /// Checks a windowed op. `first_of`: for the rank of an operand or result, its first dim whose
  /// places interact.
  template <class FirstOf>
  std::string of_window(const Graph& graph, NodeId n, const FirstOf& first_of) {
    for (std::size_t i = 0; i < graph.operands(n).size(); ++i)
      for (std::size_t at = first_of(rank(graph, n, i)); at < rank(graph, n, i); ++at)
        if (std::string how = over(graph, n, i, at, "it combines positions of dim {}");
            !how.empty())
          return how;
    // If an attribute alone determines the number of places, the contents of each place depend on
    // it.
    for (std::size_t i = 0; i < graph.result_count(n); ++i) {
      const std::span<const DimId> dims = dims_of(graph, graph.result(n, i));
      for (std::size_t at = first_of(dims.size()); at < dims.size(); ++at)
        if (has_tokens(dims[at]))
          return fmt::format("it sizes an axis by dim {}", context_.dims.print(dims[at]));
    }
    return "";
  }

  std::string over(const Graph& graph, NodeId n, std::size_t operand, std::size_t at,
                   const char* how) {
    const Shape* shape = shape_of(graph, n, operand);
    if (shape == nullptr || at >= shape->size() || !has_tokens((*shape)[at])) return "";
    return fmt::format(fmt::runtime(how), context_.dims.print((*shape)[at]));
  }

  /// Checks a reduction. Backends exclude the padding of a dim that grows by whole rows with the
  /// tokens, since it is at the dim's end. For other dims, such as a rank's part of the rows, they
  /// cannot.
  std::string of_reduction(const Graph& graph, NodeId n) {
    const std::string how = over(graph, n, 0, axis(graph, n, 0), "it reduces over dim {}");
    if (how.empty() || reductions_ == Reductions::all_rows) return how;
    const DimId dim = (*shape_of(graph, n, 0))[axis(graph, n, 0)];
    if (context_.dims.rising(dim, tokens_, facts_)) return "";
    return how + ", whose padding may be anywhere";
  }

  std::string of_extent(const Graph& graph, NodeId n) {
    const Attribute* value = graph.attribute(n, "value");
    const auto* dim = value == nullptr ? nullptr : std::get_if<DimId>(value);
    if (dim == nullptr || !has_tokens(*dim)) return "";
    return fmt::format("it counts the rows of dim {}", context_.dims.print(*dim));
  }

  /// Checks indexing. Padding rows read anything without effect, but they write to places of other
  /// rows; and an index that counts from the end counts from that of the padding. Operands from
  /// `first` on are indices.
  std::string of_indices(const Graph& graph, NodeId n, std::size_t first) {
    const Attribute* given = graph.attribute(n, "wrap");
    const auto* wrap = given == nullptr ? nullptr : std::get_if<bool>(given);
    const std::size_t count = graph.operands(n).size();
    for (std::size_t i = first; i < count; ++i) {
      const std::string how =
          over(graph, n, 0, axis(graph, n, 0) + i - first, "it counts from the end of dim {}");
      if (wrap != nullptr && *wrap && !how.empty()) return how;
      for (std::size_t at = 0; first == 2 && at < rank(graph, n, i); ++at)
        if (std::string put = over(graph, n, i, at, "it moves rows of dim {} to others");
            !put.empty())
          return put;
    }
    return "";
  }

  std::string of_slice(const Graph& graph, NodeId n) {
    const Attribute* start = graph.attribute(n, "start");
    if (start == nullptr) return "";
    DimId first;
    if (const auto* dim = std::get_if<DimId>(start)) first = *dim;
    const auto* number = std::get_if<std::int64_t>(start);
    const Shape* shape = shape_of(graph, n, 0);
    const std::size_t at = axis(graph, n, 0);
    if (number != nullptr && *number < 0 && shape != nullptr && at < shape->size())
      first = context_.dims.add((*shape)[at], context_.dims.constant(*number));
    if (!first.valid() || !has_tokens(first)) return "";
    return fmt::format("it starts at row {}", context_.dims.print(first));
  }

  /// Checks a collective. Ranks have parts of the padded rows. If the dim of a part is not a
  /// quotient, its symbol states that each part has its own tokens, and thus its own padding.
  std::string of_collective(const Graph& graph, NodeId n) {
    const Shape* from = shape_of(graph, n, 0);
    const TypeId type = graph.type(graph.result(n));
    if (from == nullptr || type == Types::unknown()) return "";
    const Shape& to = context_.types[type].shape;
    if (*from == to || from->size() != to.size()) return "";
    const Shape& part = graph.op_of(n).primitive == Primitive::all_gather ? *from : to;
    for (std::size_t i = 0; i < part.size(); ++i)
      if ((*from)[i] != to[i] && context_.dims.rising(part[i], tokens_, facts_))
        return fmt::format("it has parts of dim {} that are padded separately",
                           context_.dims.print(part[i]));
    return "";
  }

  /// Checks a split: a part after one of the tokens begins at their end.
  std::string of_split(const Graph& graph, NodeId n) {
    const Attribute* sizes = graph.attribute(n, "sizes");
    const auto* list = sizes == nullptr ? nullptr : std::get_if<std::vector<DimId>>(sizes);
    if (list == nullptr || list->empty()) return "";
    for (std::size_t i = 0; i + 1 < list->size(); ++i)
      if (has_tokens((*list)[i]))
        return fmt::format("it cuts after row {}", context_.dims.print((*list)[i]));
    return "";
  }

  std::string of_cat(const Graph& graph, NodeId n) {
    const std::size_t at = axis(graph, n, 0);
    for (std::size_t i = 0; i + 1 < graph.operands(n).size(); ++i) {
      const std::string how = over(graph, n, i, at, "it appends to dim {}");
      if (!how.empty()) return how;
    }
    return "";
  }

  /// Checks a reshape: rows stay rows if the number of elements before the tokens dim is unchanged.
  std::string of_reshape(const Graph& graph, NodeId n) {
    const Shape* from = shape_of(graph, n, 0);
    const TypeId type = graph.type(graph.result(n));
    if (from == nullptr || type == Types::unknown()) return "";
    const Shape& to = context_.types[type].shape;
    if (*from == to) return "";
    const auto a = before_tokens(*from), b = before_tokens(to);
    const bool once = count_tokens(*from) == 1 && count_tokens(to) == 1;
    if (count_tokens(*from) == 0 || (once && a.valid() && a == b)) return "";
    return fmt::format("it forms other rows from dim {}", tokens_);
  }
  DimId before_tokens(const Shape& shape) {
    DimId product = context_.dims.constant(1);
    for (const DimId dim : shape) {
      if (has_tokens(dim)) break;
      if (product.valid()) product = context_.dims.mul(product, dim);
    }
    return product;
  }
  [[nodiscard]] std::ptrdiff_t count_tokens(const Shape& shape) {
    return std::count_if(shape.begin(), shape.end(), [&](DimId d) { return has_tokens(d); });
  }

  [[nodiscard]] const Shape* shape_of(const Graph& graph, NodeId n, std::size_t operand) const {
    const auto& operands = graph.operands(n);
    if (operand >= operands.size() || !operands[operand].valid()) return nullptr;
    const TypeId type = graph.type(operands[operand]);
    return type == Types::unknown() ? nullptr : &context_.types[type].shape;
  }
  [[nodiscard]] std::size_t rank(const Graph& graph, NodeId n, std::size_t operand) const {
    const Shape* shape = shape_of(graph, n, operand);
    return shape == nullptr ? 0 : shape->size();
  }
  [[nodiscard]] std::size_t axis(const Graph& graph, NodeId n, std::size_t operand) const {
    const Attribute* given = graph.attribute(n, "dim");
    const auto* at = given == nullptr ? nullptr : std::get_if<std::int64_t>(given);
    const auto ranks = static_cast<std::int64_t>(rank(graph, n, operand));
    const std::int64_t a = at == nullptr ? -1 : *at;
    return static_cast<std::size_t>(a < 0 ? a + ranks : a);
  }

  bool has_tokens(TypeId type) {
    if (!type.valid() || type == Types::unknown()) return false;
    const Shape& shape = context_.types[type].shape;
    return std::any_of(shape.begin(), shape.end(), [&](DimId d) { return has_tokens(d); });
  }
  bool has_tokens(AttributesId attributes) {
    const auto with_tokens = [&](DimId dim) { return has_tokens(dim); };
    const AttributeList& list = context_.attributes[attributes];
    return std::any_of(list.begin(), list.end(), [&](const auto& named) {
      if (const auto* dim = std::get_if<DimId>(&named.second)) return with_tokens(*dim);
      const auto* dims = std::get_if<std::vector<DimId>>(&named.second);
      return dims != nullptr && std::any_of(dims->begin(), dims->end(), with_tokens);
    });
  }
  /// Looked up for few dims, very often.
  bool has_tokens(DimId dim) {
    if (dim.index >= known_.size()) known_.resize(dim.index + 1, 0);
    char& known = known_[dim.index];
    if (known == 0) {
      const std::vector<std::string> symbols = context_.dims.symbols(dim);
      known = std::find(symbols.begin(), symbols.end(), tokens_) == symbols.end() ? 1 : 2;
    }
    return known == 2;
  }

  Context& context_;
  const Facts& facts_;
  const Reductions reductions_;
  std::string tokens_;
  std::vector<char> known_;  // by dim: 0 unknown, 1 no, 2 yes
  std::map<Key, std::string> bodies_;
  std::map<ValueId, DimId> parts_;  // in the whole graph: a rank's part, and the dim that is cut
};

}  // namespace

std::optional<std::string> row_mixing(const Graph& graph, Reductions reductions) {
  return Search(graph, reductions).first(graph);
}

}  // namespace pw
