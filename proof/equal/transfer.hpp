// Transfer function of one op: computes the layouts of its results on all ranks from those of its
// operands.
#pragma once

#include "proof/equal/transfer_rules.hpp"

namespace pw::proof {

class Transfer : TransferPart {
 public:
  explicit Transfer(TransferState& state);
  Results run();

 private:
  Found by_itself();
  [[nodiscard]] std::optional<Spread> taken_apart(const Wholes::Values& each) const;

  CollectiveTransfer collectives_;
  ElementTransfer elements_;
  LayoutTransfer layouts_;
  ProductTransfer products_;
  LookupTransfer lookups_;
};

}  // namespace pw::proof
