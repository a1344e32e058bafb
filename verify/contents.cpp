// Exports SampleInputs, give_contents.
#include "verify/contents.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "backends/collectives.hpp"
#include "backends/numerics.hpp"
#include "backends/program.hpp"
#include "base/hash.hpp"
#include "graph/build.hpp"

namespace pw {
namespace {

class Filler {
 public:
  Filler(DType dtype, Contents contents, std::uint64_t key)
      : dtype_(dtype), contents_(contents), random_(key), format_(format_of(dtype)) {}

  void fill(const Tensor& tensor, std::optional<std::int64_t> rows) {
    const std::int64_t count = tensor.view().count();
    for (std::int64_t i = 0; i < count; ++i) {
      if (dtype_ == DType::b8 || rows) {
        const auto most = static_cast<std::uint64_t>(std::max<std::int64_t>(rows.value_or(2), 1));
        store(dtype_, tensor.data(), i, static_cast<double>(random_.below(most)));
      } else if (!is_float(dtype_)) {
        store(dtype_, tensor.data(), i, integer());
      } else {
        element(tensor, i);
      }
    }
  }

 private:
  bool once_in(std::uint64_t n) { return random_.below(n) == 0; }
  double sign() { return once_in(2) ? -1 : 1; }

  void element(const Tensor& tensor, std::int64_t i) {
    constexpr std::uint64_t kSpecialEvery = 5;
    const bool special = once_in(kSpecialEvery);
    if (special && contents_ == Contents::nan)
      return store(dtype_, tensor.data(), i, std::numeric_limits<double>::quiet_NaN());
    if (special && contents_ == Contents::infinite) return infinity(tensor, i);
    store(dtype_, tensor.data(), i, finite());
  }

  double finite() {
    switch (contents_) {
      case Contents::wide: return once_in(8) ? 0 : power();
      case Contents::edges: return once_in(2) ? edge() : ordinary();
      case Contents::ordinary:
      case Contents::infinite:
      case Contents::nan: break;
    }
    return ordinary();
  }

  double ordinary() { return random_.normal(); }
  double power() {
    const int exponent =
        format_.smallest + static_cast<int>(random_.below(
                               static_cast<std::uint64_t>(format_.greatest - format_.smallest)));
    return sign() * std::ldexp(1 + random_.uniform(), exponent);
  }
  double edge() {
    const double least = std::ldexp(1.0, format_.smallest),
                 step = std::ldexp(1.0, -format_.mantissa);
    const double smallest = least * step;
    const std::array edges = {0.0,
                              smallest,
                              least - smallest,
                              least,
                              0.5,
                              1.0,
                              1 + step,
                              1 - step / 2,
                              1.5,
                              2.5,
                              448.0,
                              65504.0,
                              1e5,
                              format_.largest / 2,
                              format_.largest};
    const double value = edges[random_.below(edges.size())];
    return sign() * std::min(value, format_.largest);
  }

  /// Stored as bits where storing saturates; fp8 of the kind without infinity gets none.
  void infinity(const Tensor& tensor, std::int64_t i) {
    if (dtype_ == DType::f8e4m3) return store(dtype_, tensor.data(), i, ordinary());
    if (dtype_ == DType::f8e5m2) {
      tensor.data()[i] = once_in(2) ? std::byte{0xfc} : std::byte{0x7c};
      return;
    }
    store(dtype_, tensor.data(), i, sign() * std::numeric_limits<double>::infinity());
  }

  /// Small, of both signs, and at the edges any that a double holds.
  double integer() {
    const bool whole_range = contents_ == Contents::edges || contents_ == Contents::wide;
    if (whole_range && once_in(2)) {
      const double most = dtype_ == DType::i64 ? 0x1p53 : dtype_ == DType::i32 ? 0x1p31 - 1 : 127;
      return std::floor(sign() * most * random_.uniform());
    }
    const auto value = static_cast<double>(random_.below(10));
    return dtype_ == DType::u8 ? value : value - 3;
  }

  DType dtype_;
  Contents contents_;
  Random random_;
  FloatFormat format_;
};

/// Whether a result holds the first operand's own numbers, in another shape or dtype.
bool passes_on(const Op& op) { return op.traits.view || op.name == "cast" || op.name == "clone"; }

/// The rows of the tables that inputs look up, by name: the fewest where there are several.
class Lookups {
 public:
  Lookups(const Graph& graph, const Symbols& symbols) : graph_(graph.compact()), symbols_(symbols) {
    if (!inline_bodies(graph_)) graph_ = graph.compact();
    for (NodeId node = graph_.first(); node.valid(); node = graph_.next(node))
      if (graph_.op_of(node).name == "embedding") at(node);
  }
  [[nodiscard]] std::map<std::string, std::int64_t, std::less<>> take() { return std::move(rows_); }

 private:
  void at(NodeId node) {
    const auto table = extents_of(graph_, graph_.operand(node, 0), symbols_);
    ValueId ids = graph_.operand(node, 1);
    while (graph_.producer(ids).valid() && passes_on(graph_.op_of(graph_.producer(ids))))
      ids = graph_.operand(graph_.producer(ids), 0);
    if (!table || table->empty() || graph_.producer(ids).valid()) return;
    const auto [entry, first] = rows_.emplace(graph_.value_name(ids), table->front());
    if (!first) entry->second = std::min(entry->second, table->front());
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

SampleInputs::SampleInputs(const Graph& graph, const Symbols& symbols, const RankGroups& groups)
    : graph_(graph),
      symbols_(symbols),
      groups_(stated_groups(graph).value_or(RankGroups())),
      rows_(Lookups(graph, symbols).take()) {
  for (const auto& [name, group] : groups) groups_.insert_or_assign(name, group);
}

Result<std::monostate> SampleInputs::give(std::span<Weights> ranks, Contents contents,
                                          std::uint64_t seed) const {
  for (ValueId input : graph_.inputs()) {
    if (graph_.type(input) == Types::unknown()) continue;
    const std::string input_name(graph_.value_name(input));
    const DType dtype = graph_.context().types[graph_.type(input)].dtype;
    const auto table = is_float(dtype) ? rows_.end() : rows_.find(input_name);
    const bool looks_up = table != rows_.end();
    auto extents = extents_of(graph_, input, symbols_);
    if (!extents) return forward(extents);
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      const std::int64_t place = looks_up ? 0
                                          : replica_of(graph_.replicated_over(input),
                                                       static_cast<std::int64_t>(rank), groups_);
      const std::uint64_t key =
          combine(combine(seed, static_cast<std::uint64_t>(place)),
                  combine(hash_text(input_name), static_cast<std::uint64_t>(contents)));
      const Tensor tensor(dtype, *extents);
      Filler(dtype, contents, key)
          .fill(tensor, looks_up ? std::optional(table->second) : std::nullopt);
      ranks[rank].give(input_name, tensor);
    }
  }
  return std::monostate{};
}

Result<std::monostate> give_contents(std::span<Weights> ranks, const Graph& graph,
                                     const Symbols& symbols, Contents contents,
                                     std::uint64_t seed) {
  return SampleInputs(graph, symbols).give(ranks, contents, seed);
}

}  // namespace pw
