// Visits the ranks' nodes in order and applies the transfer function of each op (transfer.hpp).
// Requires all ranks to have the same nodes, so that node i of each rank is one operation on all
// ranks. Layouts of values are recorded once and never revised.
// This is a forward data-flow analysis without loops, so one visit per node is a fixed point. An
// unknown layout is the top element: it claims nothing.
#include "proof/equal/spread.hpp"

#include <fmt/format.h>

#include "proof/equal/transfer.hpp"

namespace pw::proof {

Spreader::Spreader(Wholes& wholes, const std::vector<const Graph*>& ranks,
                   const std::map<std::string, std::set<std::int64_t>>& granted)
    : wholes_(wholes), ranks_(ranks), granted_(granted) {}

DimId Spreader::times_ranks(DimId dim) const {
  return wholes_.dims().mul(dim, wholes_.dims().constant(static_cast<std::int64_t>(ranks())));
}

const Spread* Spreader::find(ValueId value) const {
  const auto found = known_.find(value);
  return found == known_.end() ? nullptr : &found->second;
}

/// Attributes may differ from rank to rank, such as the offset of a slice. Ops and wiring may not.
std::string Spreader::mismatch() const {
  const Graph& first = *ranks_[0];
  for (std::size_t r = 1; r < ranks_.size(); ++r) {
    const Graph& other = *ranks_[r];
    std::map<ValueId, ValueId> same;
    if (first.inputs().size() != other.inputs().size())
      return fmt::format("rank {} has {} inputs, rank 0 has {}", r, other.inputs().size(),
                         first.inputs().size());
    for (std::size_t i = 0; i < first.inputs().size(); ++i)
      same[other.inputs()[i]] = first.inputs()[i];
    NodeId a = first.first(), b = other.first();
    for (; a.valid() && b.valid(); a = first.next(a), b = other.next(b)) {
      bool alike = first.op(a) == other.op(b) && first.operand_count(a) == other.operand_count(b) &&
                   first.result_count(a) == other.result_count(b);
      for (std::size_t i = 0; alike && i < first.operand_count(a); ++i) {
        const ValueId x = first.operand(a, i), y = other.operand(b, i);
        alike = x.valid() == y.valid() && (!x.valid() || same[y] == x);
      }
      if (!alike) return fmt::format("rank {} differs from rank 0 at `{}`", r, first.node_name(a));
      for (std::size_t i = 0; i < first.result_count(a); ++i)
        same[other.result(b, i)] = first.result(a, i);
    }
    if (a.valid() || b.valid()) return fmt::format("rank {} has a different number of nodes", r);
  }
  return {};
}

/// A rank's part of a cut value is the concatenation of its slices of all parts. Example: for q, k,
/// and v fused along one axis, rank r holds slice r of q, then of k, then of v.
std::optional<Wholes::Values> Spreader::each_of(const Spread& spread) {
  if (spread.kind == Spread::Kind::whole) return Wholes::Values(ranks(), spread.whole);
  if (spread.kind != Spread::Kind::cut) {
    if (spread.each.empty()) return std::nullopt;
    return spread.each;
  }
  Dims& dims = wholes_.dims();
  Wholes::Values out;
  for (std::size_t r = 0; r < ranks(); ++r) {
    Wholes::Values parts;
    DimId before = dims.constant(0);
    for (DimId part : spread.parts) {
      const DimId start =
          dims.add(before, dims.mul(part, dims.constant(static_cast<std::int64_t>(r))));
      parts.push_back(wholes_.slice(spread.whole, spread.axis, start, dims.add(start, part)));
      if (!parts.back().valid()) return std::nullopt;
      before = dims.add(before, times_ranks(part));
    }
    out.push_back(wholes_.cat(parts, spread.axis));
    if (!out.back().valid()) return std::nullopt;
  }
  return out;
}

void Spreader::run() {
  std::vector<NodeId> nodes;
  nodes.reserve(ranks());
  for (const Graph* graph : ranks_) nodes.push_back(graph->first());
  while (nodes[0].valid()) {
    auto results = step(nodes);
    for (std::size_t i = 0; i < results.size(); ++i)
      if (results[i]) known_[ranks_[0]->result(nodes[0], i)] = std::move(*results[i]);
    for (std::size_t r = 0; r < ranks(); ++r) nodes[r] = ranks_[r]->next(nodes[r]);
  }
}

std::vector<std::optional<Spread>> Spreader::step(const std::vector<NodeId>& nodes) {
  TransferState state(*this, nodes);
  return Transfer(state).run();
}

}  // namespace pw::proof
