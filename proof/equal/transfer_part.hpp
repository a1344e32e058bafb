// One op of all ranks, and what its transfer functions share.
#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "proof/equal/spread.hpp"

namespace pw::proof {

using Results = std::vector<std::optional<Spread>>;
using Found = std::optional<Results>;  ///< of one transfer function; nothing if it does not apply

/// The op is the same on each rank, but its attributes may differ.
struct TransferState {
  TransferState(Spreader& spread, std::vector<NodeId> same);

  Spreader& spreader;
  std::vector<NodeId> nodes;  ///< the op on each rank
  const Op op;
  std::vector<const Spread*> in;  ///< null for an absent operand
  bool unknown = false;           ///< an operand's layout is unknown
  std::optional<std::vector<Wholes::Values>> each_results;
};

class TransferPart {
 protected:
  explicit TransferPart(TransferState& state);
  [[nodiscard]] Found one(std::optional<Spread> spread) const;
  std::optional<Spread> cut(ValueId whole, std::size_t axis, Shape parts) const;
  /// Creates the whole result with these attributes; invalid if they do not fit.
  ValueId made(AttributeList attributes);
  ValueId made() { return made(attributes()); }
  /// Makes a layout; nothing if `whole` is invalid, so that failures propagate.
  std::optional<Spread> partial(ValueId whole, Primitive join);
  std::optional<Spread> replicated_as(ValueId whole) const;
  std::optional<Wholes::Values> each_result(std::size_t result);
  [[nodiscard]] const Graph& graph(std::size_t rank = 0) const { return *ranks_[rank]; }
  [[nodiscard]] const AttributeList& attributes(std::size_t rank = 0) const;
  [[nodiscard]] const Attribute* attribute(std::string_view name) const;
  [[nodiscard]] std::optional<std::size_t> axis(std::string_view name = "dim") const;
  [[nodiscard]] std::optional<DimId> dim(std::string_view name) const;
  [[nodiscard]] AttributeList changed(std::string_view name, Attribute value) const;
  [[nodiscard]] Shape local(ValueId value) const;
  [[nodiscard]] Shape local_operand(std::size_t i) const;
  [[nodiscard]] Shape local_result(std::size_t i = 0) const;
  [[nodiscard]] Shape global(Shape local, std::size_t axis, const Shape& parts) const;
  [[nodiscard]] std::vector<TypeId> result_types(std::size_t rank) const;
  [[nodiscard]] Wholes::Values wholes_in() const;
  [[nodiscard]] bool is(Primitive op) const { return op_.primitive == op; }
  [[nodiscard]] bool is(std::initializer_list<Primitive> several) const {
    return among(op_.primitive, several);
  }
  [[nodiscard]] bool all(Spread::Kind kind) const;
  [[nodiscard]] bool some(Spread::Kind kind) const;
  /// Returns this operand if it is cut and all others are whole; otherwise null.
  [[nodiscard]] const Spread* only_cut(std::size_t operand) const;
  /// Records that sums are evaluated in another order than on one device.
  void reorders_sums();

  Spreader& spreader_;
  Wholes& wholes_;
  const std::vector<const Graph*>& ranks_;
  const std::map<std::string, std::set<std::int64_t>>& granted_;
  const std::vector<NodeId>& nodes_;
  const Op& op_;
  const std::vector<const Spread*>& in_;
  TransferState& state_;
};

}  // namespace pw::proof
