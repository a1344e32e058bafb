#include "verify/samples/contents.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "backends/collectives.hpp"
#include "backends/program.hpp"
#include "base/hash.hpp"
#include "base/try.hpp"
#include "graph/build.hpp"
#include "tensor/numerics.hpp"
#include "verify/samples/special_values.hpp"

namespace pw {
namespace {

class Filler {
 public:
  /// `column`: index of the input. `first`: first row of special values.
  Filler(DType dtype, Contents contents, std::uint64_t key, std::uint64_t column,
         std::uint64_t first, const std::vector<double>& literals)
      : literals_(literals),
        dtype_(dtype),
        contents_(contents),
        column_(column),
        first_(first),
        random_(key),
        decisions_(~key),
        format_(format_of(dtype)) {}

  void fill(const Tensor& tensor, std::optional<std::int64_t> rows) {
    const std::int64_t count = tensor.view().count();
    const std::vector<ElementBits>& values = special_values(dtype_, contents_);
    for (std::int64_t i = 0; i < count; ++i) {
      if (rows) {
        const auto most = static_cast<std::uint64_t>(std::max<std::int64_t>(*rows, 1));
        store(dtype_, tensor.data(), i, static_cast<double>(random_.below(most)));
        continue;
      }
      const std::size_t special =
          special_at(dtype_, contents_, first_ + static_cast<std::uint64_t>(i), column_);
      if (special < values.size())
        store_bits(tensor, i, values[special]);
      else if (is_float(dtype_))
        store(dtype_, tensor.data(), i, contents_ == Contents::wide ? wide() : random_.normal());
      else
        store_bits(tensor, i, whole());
      if (contents_ == Contents::ordinary && 4 * i >= 3 * count && decisions_.below(2) == 0)
        decide(tensor, i);
    }
  }

 private:
  bool once_in(std::uint64_t n) { return random_.below(n) == 0; }

  /// Stores a number on which decisions depend: one of the last elements, or a literal; exactly, or
  /// one step off. Draws from numbers of its own, so that other elements do not change.
  void decide(const Tensor& tensor, std::int64_t i) {
    constexpr std::int64_t kNear = 8;
    const auto most = static_cast<std::uint64_t>(std::min(i, kNear));
    const bool repeats = most > 0 && (literals_.empty() || decisions_.below(2) == 0);
    if (!repeats && literals_.empty()) return;
    if (repeats)
      store_bits(tensor, i,
                 load_bits(tensor, i - 1 - static_cast<std::int64_t>(decisions_.below(most))));
    else
      store(dtype_, tensor.data(), i, literals_[decisions_.below(literals_.size())]);
    if (dtype_ != DType::b8 && decisions_.below(2) == 0)
      store_bits(tensor, i,
                 load_bits(tensor, i) + (decisions_.below(2) == 0 ? 1 : ~ElementBits{0}));
    const double stored = load(dtype_, tensor.data(), i);
    if (is_float(dtype_) && !std::isfinite(stored)) store(dtype_, tensor.data(), i, 0);
  }

  double wide() {
    if (once_in(8)) return 0;
    const int exponent =
        format_.smallest + static_cast<int>(random_.below(
                               static_cast<std::uint64_t>(format_.greatest - format_.smallest)));
    return (once_in(2) ? -1 : 1) * std::ldexp(1 + random_.uniform(), exponent);
  }

  /// Small numbers of both signs if the type has them; any number of the type if contents are wide.
  ElementBits whole() {
    if (contents_ == Contents::wide)
      return random_.next() >> random_.below(static_cast<std::uint64_t>(8 * size_of(dtype_)));
    const std::uint64_t value = random_.below(10);
    return dtype_ == DType::u8 ? value : value - 3;
  }

  const std::vector<double>& literals_;
  DType dtype_;
  Contents contents_;
  std::uint64_t column_, first_;
  Random random_, decisions_;
  FloatFormat format_;
};

/// Returns true if a result holds the first operand's own numbers, in another shape or dtype.
bool passes_on(const Op& op) {
  return op.traits.view || among(op.primitive, {Primitive::cast, Primitive::clone});
}

/// The number of rows of the tables that inputs index, by input name; the minimum over several
/// tables.
class Lookups {
 public:
  Lookups(const Graph& graph, const Symbols& symbols) : graph_(graph.compact()), symbols_(symbols) {
    if (!inline_bodies(graph_)) graph_ = graph.compact();
    for (NodeId node = graph_.first(); node.valid(); node = graph_.next(node)) at(node);
  }
  [[nodiscard]] std::map<std::string, std::int64_t, std::less<>> take() { return std::move(rows_); }

 private:
  void at(NodeId node) {
    const Primitive op = graph_.op_of(node).primitive;
    const std::size_t first = op == Primitive::index_put ? 2 : 1;
    if (!among(op, {Primitive::embedding, Primitive::index, Primitive::index_put})) return;
    const auto table = extents_of(graph_, graph_.operand(node, 0), symbols_);
    if (!table || table->empty()) return;
    const auto rank = static_cast<std::int64_t>(table->size());
    const Attribute* dim = graph_.attribute(node, "dim");
    const auto* given = dim == nullptr ? nullptr : std::get_if<std::int64_t>(dim);
    std::int64_t axis = given == nullptr ? 0 : *given;
    if (axis < 0) axis += rank;
    for (std::size_t i = first; i < graph_.operand_count(node); ++i, ++axis)
      if (axis >= 0 && axis < rank)
        bound(graph_.operand(node, i), (*table)[static_cast<std::size_t>(axis)]);
  }

  void bound(ValueId ids, std::int64_t rows) {
    while (graph_.producer(ids).valid() && passes_on(graph_.op_of(graph_.producer(ids))))
      ids = graph_.operand(graph_.producer(ids), 0);
    if (graph_.producer(ids).valid()) return;
    const auto [entry, first] = rows_.emplace(graph_.value_name(ids), rows);
    if (!first) entry->second = std::min(entry->second, rows);
  }

  Graph graph_;
  const Symbols& symbols_;
  std::map<std::string, std::int64_t, std::less<>> rows_;
};

}  // namespace

std::string_view name(Contents contents) {
  switch (contents) {
    case Contents::ordinary: return "ordinary numbers";
    case Contents::wide: return "numbers of all magnitudes";
    case Contents::edges: return "the largest and smallest numbers";
    case Contents::infinite: return "infinities";
    case Contents::nan: return "NaN";
  }
  return "?";
}

SampleInputs::SampleInputs(const Graph& graph, const Symbols& symbols, const RankGroups& groups,
                           std::vector<double> literals)
    : graph_(graph),
      symbols_(symbols),
      groups_(stated_groups(graph).value_or(RankGroups())),
      literals_(std::move(literals)),
      rows_(Lookups(graph, symbols).take()) {
  for (const auto& [name, group] : groups) groups_.insert_or_assign(name, group);
}

bool SampleInputs::looks_up(ValueId input) const {
  return rows_.contains(graph_.value_name(input));
}

std::uint64_t SampleInputs::rounds(Contents contents) const {
  std::int64_t rounds = 1;
  for (ValueId input : graph_.inputs()) {
    if (graph_.type(input) == Types::unknown() || looks_up(input)) continue;
    const auto extents = extents_of(graph_, input, symbols_);
    const std::int64_t count = extents ? element_count(*extents) : 0;
    const std::int64_t cycle = cycle_of(graph_.context().types[graph_.type(input)].dtype, contents);
    if (count > 0) rounds = std::max(rounds, (cycle + count - 1) / count);
  }
  return static_cast<std::uint64_t>(rounds);
}

Status SampleInputs::give(std::span<Weights> ranks, Contents contents, std::uint64_t round) const {
  std::uint64_t column = 0;
  for (ValueId input : graph_.inputs()) {
    const std::uint64_t position = column++;
    if (graph_.type(input) == Types::unknown()) continue;
    const std::string_view input_name = graph_.value_name(input);
    const DType dtype = graph_.context().types[graph_.type(input)].dtype;
    const bool index = !is_float(dtype) && looks_up(input);
    auto extents = PW_TRY(extents_of(graph_, input, symbols_));
    const auto count = static_cast<std::uint64_t>(element_count(extents));
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      const std::int64_t place = index ? 0
                                       : replica_of(graph_.replicated_over(input),
                                                    static_cast<std::int64_t>(rank), groups_);
      const auto replica = static_cast<std::uint64_t>(place);
      const std::uint64_t key =
          combine(combine(round, replica), combine(position, static_cast<std::uint64_t>(contents)));
      const Tensor tensor(dtype, extents);
      Filler(dtype, contents, key, position, (round + replica) * count, literals_)
          .fill(tensor, index ? std::optional(rows_.find(input_name)->second) : std::nullopt);
      ranks[rank].give(input_name, tensor);
    }
  }
  return {};
}

std::vector<double> literals_of(const Graph& graph) {
  std::set<double> out;
  for (NodeId node = graph.first(); node.valid(); node = graph.next(node)) {
    if (!among(graph.op_of(node).primitive, {Primitive::constant, Primitive::full})) continue;
    const Attribute* value = graph.attribute(node, "value");
    const auto* number = value == nullptr ? nullptr : std::get_if<double>(value);
    if (number != nullptr && std::isfinite(*number)) out.insert(*number);
  }
  return {out.begin(), out.end()};
}

Status give_contents(std::span<Weights> ranks, const Graph& graph, const Symbols& symbols,
                     Contents contents, std::uint64_t round) {
  return SampleInputs(graph, symbols).give(ranks, contents, round);
}

}  // namespace pw
