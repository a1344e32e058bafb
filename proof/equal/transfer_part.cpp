// Properties of an op that all transfer functions read, and the layouts they make.
#include "proof/equal/transfer_part.hpp"

#include <algorithm>

#include "graph/infer/dim_value.hpp"

namespace pw::proof {

TransferState::TransferState(Spreader& spread, std::vector<NodeId> same)
    : spreader(spread), nodes(std::move(same)), op(spread.ranks_[0]->op_of(nodes[0])) {
  for (ValueId v : spreader.ranks_[0]->operands(nodes[0])) {
    in.push_back(v.valid() ? spreader.find(v) : nullptr);
    if (v.valid() && in.back() == nullptr) unknown = true;
  }
}

TransferPart::TransferPart(TransferState& state)
    : spreader_(state.spreader),
      wholes_(state.spreader.wholes_),
      ranks_(state.spreader.ranks_),
      granted_(state.spreader.granted_),
      nodes_(state.nodes),
      op_(state.op),
      in_(state.in),
      state_(state) {}

void TransferPart::reorders_sums() { spreader_.rounds_ = true; }

const AttributeList& TransferPart::attributes(std::size_t rank) const {
  return wholes_.context().attributes[graph(rank).attributes(nodes_[rank])];
}

const Attribute* TransferPart::attribute(std::string_view name) const {
  return graph().attribute(nodes_[0], name);
}

/// Nothing for a negative axis: rules compare axes as positions.
std::optional<std::size_t> TransferPart::axis(std::string_view name) const {
  const auto* at = std::get_if<std::int64_t>(attribute(name));
  if (at == nullptr || *at < 0) return std::nullopt;
  return static_cast<std::size_t>(*at);
}

std::optional<DimId> TransferPart::dim(std::string_view name) const {
  const Attribute* value = attribute(name);
  return value == nullptr ? std::nullopt : dim_value(wholes_.dims(), *value);
}

AttributeList TransferPart::changed(std::string_view name, Attribute value) const {
  return with(wholes_.context().strings, attributes(), name, std::move(value));
}

Shape TransferPart::local(ValueId value) const {
  const TypeId type = graph().type(value);
  return type == Types::unknown() ? Shape() : wholes_.context().types[type].shape;
}

Shape TransferPart::local_operand(std::size_t i) const {
  return local(graph().operand(nodes_[0], i));
}

Shape TransferPart::local_result(std::size_t i) const {
  return local(graph().result(nodes_[0], i));
}

/// Replaces a rank's extent by that of the whole: the parts' sum times the number of ranks.
Shape TransferPart::global(Shape local, std::size_t axis, const Shape& parts) const {
  DimId sum = wholes_.dims().constant(0);
  for (DimId part : parts) sum = wholes_.dims().add(sum, part);
  local[axis] = spreader_.times_ranks(sum);
  return local;
}

std::vector<TypeId> TransferPart::result_types(std::size_t rank) const {
  std::vector<TypeId> out;
  for (std::size_t i = 0; i < graph(rank).result_count(nodes_[rank]); ++i)
    out.push_back(graph(rank).type(graph(rank).result(nodes_[rank], i)));
  return out;
}

/// The operands as a single device would pass them; invalid for absent ones and for separate
/// values.
Wholes::Values TransferPart::wholes_in() const {
  Wholes::Values out;
  for (const Spread* spread : in_) out.push_back(spread == nullptr ? ValueId() : spread->whole);
  return out;
}

bool TransferPart::all(Spread::Kind kind) const {
  return std::all_of(in_.begin(), in_.end(),
                     [&](const Spread* s) { return s == nullptr || s->kind == kind; });
}

bool TransferPart::some(Spread::Kind kind) const {
  return std::any_of(in_.begin(), in_.end(),
                     [&](const Spread* s) { return s != nullptr && s->kind == kind; });
}

const Spread* TransferPart::only_cut(std::size_t operand) const {
  for (std::size_t i = 0; i < in_.size(); ++i) {
    if (in_[i] == nullptr) continue;
    const auto wanted = i == operand ? Spread::Kind::cut : Spread::Kind::whole;
    if (in_[i]->kind != wanted) return nullptr;
  }
  return operand < in_.size() ? in_[operand] : nullptr;
}

Found TransferPart::one(std::optional<Spread> spread) const {
  if (!spread) return std::nullopt;
  Results out;
  out.push_back(std::move(spread));
  return out;
}

std::optional<Spread> TransferPart::cut(ValueId whole, std::size_t axis, Shape parts) const {
  if (!whole.valid()) return std::nullopt;
  Spread out;
  out.kind = Spread::Kind::cut;
  out.whole = whole;
  out.axis = axis;
  out.parts = std::move(parts);
  return out;
}

std::optional<Spread> TransferPart::replicated_as(ValueId whole) const {
  if (!whole.valid()) return std::nullopt;
  Spread out;
  out.kind = Spread::Kind::whole;
  out.whole = whole;
  return out;
}

/// The ranks' own values are kept if they can be made; joined_sum may need them.
std::optional<Spread> TransferPart::partial(ValueId whole, Primitive join) {
  if (!whole.valid()) return std::nullopt;
  Spread out;
  out.kind = Spread::Kind::partial;
  out.whole = whole;
  out.join = join;
  if (auto each = each_result(0)) out.each = std::move(*each);
  return out;
}

/// Requires all operands to have a whole value.
ValueId TransferPart::made(AttributeList attributes) {
  auto results = wholes_.make(graph().op(nodes_[0]), wholes_in(), std::move(attributes));
  return results && results->size() == 1 ? results->front() : ValueId();
}

/// Evaluates the op on each rank separately, by result and rank.
std::optional<Wholes::Values> TransferPart::each_result(std::size_t result) {
  // Computed once for all results. An empty list records that some operand or result is unknown.
  if (!state_.each_results) {
    state_.each_results.emplace();
    std::vector<std::optional<Wholes::Values>> operands;
    for (const Spread* spread : in_)
      operands.push_back(spread == nullptr ? Wholes::Values(spreader_.ranks())
                                           : spreader_.each_of(*spread));
    std::vector<Wholes::Values> results(graph().result_count(nodes_[0]));
    for (std::size_t r = 0; r < spreader_.ranks(); ++r) {
      Wholes::Values own;
      for (const auto& operand : operands) {
        if (!operand) return std::nullopt;
        own.push_back((*operand)[r]);
      }
      auto made = wholes_.make(graph(r).op(nodes_[r]), own, attributes(r), result_types(r));
      if (!made || made->size() != results.size()) return std::nullopt;
      for (std::size_t i = 0; i < results.size(); ++i) results[i].push_back((*made)[i]);
    }
    state_.each_results = std::move(results);
  }
  if (state_.each_results->empty()) return std::nullopt;
  return (*state_.each_results)[result];
}

}  // namespace pw::proof
