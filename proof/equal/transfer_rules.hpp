// Transfer functions by kind of op. Each returns nothing if it does not apply.
#pragma once

#include <utility>

#include "proof/equal/transfer_part.hpp"

namespace pw::proof {

/// Collectives.
class CollectiveTransfer : TransferPart {
 public:
  explicit CollectiveTransfer(TransferState& state) : TransferPart(state) {}
  Found collective();

 private:
  Found all_reduce(Primitive join);
  Found all_gather();
  Found reduce_scatter();
  Found shard();
  std::optional<Wholes::Values> joined_sum(const Spread& spread);
};

/// Replicated operands, and elementwise and linear ops.
class ElementTransfer : TransferPart {
 public:
  explicit ElementTransfer(TransferState& state) : TransferPart(state) {}
  Found replicated();
  Found pointwise();
  Found linear();

 private:
  ValueId widened(ValueId whole, std::size_t axis, DimId extent);
};

/// Ops that move elements.
class LayoutTransfer : TransferPart {
 public:
  explicit LayoutTransfer(TransferState& state) : TransferPart(state) {}
  Found reshape();
  Found transpose();
  Found slice();
  Found split();
  Found cat();
  Found expand();
  Found layout_of_partial();

 private:
  std::optional<std::pair<DimId, DimId>> inside_parts(const Spread& x, DimId start, DimId end,
                                                      Shape& kept) const;
};

/// Reductions, matmuls, indexing, and granted ops.
class ProductTransfer : TransferPart {
 public:
  explicit ProductTransfer(TransferState& state) : TransferPart(state) {}
  Found reduce();
  Found along_axis();
  Found product();
  Found index();
  Found granted();
};

/// Lookups in sharded tables, and their masks.
class LookupTransfer : TransferPart {
 public:
  explicit LookupTransfer(TransferState& state) : TransferPart(state) {}
  Found masked();
  Found lookup();
  Found stepped();

 private:
  ValueId looked_up(const Lookup& lookup, const Wholes::Values& masks, bool where);
  [[nodiscard]] bool reads_rows(const Lookup& lookup, const Wholes::Values& masks,
                                bool where) const;
};

/// Returns the axes, with their parts, that a cut axis may map to when a rank's tensor is reshaped;
/// outermost first.
std::vector<std::pair<std::size_t, Shape>> reshaped_cuts(Dims& dims, const Shape& from,
                                                         std::size_t axis, const Shape& parts,
                                                         const Shape& to);

}  // namespace pw::proof
