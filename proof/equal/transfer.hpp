// Transfer function of one op: computes the layouts of its results on all ranks from those of its
// operands.
#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proof/equal/spread.hpp"

namespace pw::proof {

class Transfer {
 public:
  using Results = std::vector<std::optional<Spread>>;

  Transfer(Spreader& spreader, const std::vector<NodeId>& nodes);
  Results run();

 private:
  // The result of one transfer function; nothing if it does not apply.
  using Found = std::optional<Results>;

  Found replicated();
  Found collective();
  Found all_reduce(Primitive join);
  Found all_gather();
  Found reduce_scatter();
  Found shard();
  Found pointwise();
  Found linear();
  Found masked();
  Found layout_of_partial();
  Found reshape();
  Found transpose();
  Found slice();
  Found split();
  Found cat();
  Found expand();
  Found reduce();
  Found along_axis();
  Found product();
  Found index();
  Found lookup();
  Found stepped();
  Found granted();
  Found by_itself();

  [[nodiscard]] Found one(std::optional<Spread> spread) const;
  std::optional<Spread> cut(ValueId whole, std::size_t axis, Shape parts) const;
  /// Creates the whole result with these attributes; invalid if they do not fit.
  ValueId made(AttributeList attributes);
  ValueId made() { return made(attributes()); }
  std::optional<Spread> partial(ValueId whole, Primitive join);
  std::optional<Spread> replicated_as(ValueId whole) const;
  ValueId widened(ValueId whole, std::size_t axis, DimId extent);
  [[nodiscard]] std::optional<Spread> taken_apart(const Wholes::Values& each) const;
  std::optional<Wholes::Values> joined_sum(const Spread& spread);
  std::optional<Wholes::Values> each_result(std::size_t result);
  ValueId looked_up(const Lookup& lookup, const Wholes::Values& masks, bool where);
  [[nodiscard]] bool reads_rows(const Lookup& lookup, const Wholes::Values& masks,
                                bool where) const;
  std::optional<std::pair<DimId, DimId>> inside_parts(const Spread& x, DimId start, DimId end,
                                                      Shape& kept) const;

  [[nodiscard]] const Graph& graph(std::size_t rank = 0) const { return *spreader_.ranks_[rank]; }
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

  Spreader& spreader_;
  Wholes& wholes_;
  std::vector<NodeId> nodes_;
  const Op op_;
  std::vector<const Spread*> in_;  ///< null for an absent operand
  bool unknown_ = false;           ///< an operand's layout is unknown
  std::optional<std::vector<Wholes::Values>> each_results_;
};

/// Returns the axes, with their parts, that a cut axis may map to when a rank's tensor is reshaped;
/// outermost first.
std::vector<std::pair<std::size_t, Shape>> reshaped_cuts(Dims& dims, const Shape& from,
                                                         std::size_t axis, const Shape& parts,
                                                         const Shape& to);

}  // namespace pw::proof
