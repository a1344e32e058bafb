// Abstract interpretation of the graphs of several ranks over one device's values. Each op is
// evaluated once for all ranks: the layout of its results follows from that of its operands.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "proof/equal/wholes.hpp"

namespace pw::proof {

/// The layout of one value over the ranks, as an element of an abstract domain. `whole` is the
/// value that a single device would hold.
struct Spread {
  enum class Kind : std::uint8_t {
    whole,    ///< the same on all ranks
    cut,      ///< each part along `axis` is concatenated in rank order
    partial,  ///< the ranks' values reduced by `join` give the whole
    each,     ///< a separate value on each rank
  } kind = Kind::each;
  ValueId whole;                     ///< the complete value; invalid for each
  std::size_t axis = 0;              ///< for cut
  Shape parts;                       ///< for cut: the length of each part on one rank
  Primitive join = Primitive::none;  ///< for partial: sum, amax, amin
  Wholes::Values each;               ///< for partial and each: by rank
  std::optional<Lookup> lookup;      ///< for each
};

class Spreader {
 public:
  /// The graphs must be unfolded and have the same nodes in the same order.
  Spreader(Wholes& wholes, const std::vector<const Graph*>& ranks,
           const std::map<std::string, std::set<std::int64_t>>& granted);

  void set(ValueId input, Spread spread) { known_[input] = std::move(spread); }
  /// Returns an empty string if all ranks have the nodes of the first one; otherwise describes the
  /// first difference.
  [[nodiscard]] std::string mismatch() const;
  /// Evaluates all nodes in order.
  void run();
  /// Returns the layout of a value of the first rank; null if it is unknown.
  [[nodiscard]] const Spread* find(ValueId value) const;
  [[nodiscard]] std::size_t ranks() const { return ranks_.size(); }
  /// Returns the value on each rank; nothing if it cannot be constructed.
  std::optional<Wholes::Values> each_of(const Spread& spread);
  [[nodiscard]] DimId times_ranks(DimId dim) const;
  /// Returns true if sums were evaluated in another order than on one device.
  [[nodiscard]] bool rounds() const { return rounds_; }

 private:
  friend struct TransferState;
  friend class TransferPart;
  using Spreads = std::vector<Spread>;

  std::vector<std::optional<Spread>> step(const std::vector<NodeId>& nodes);

  Wholes& wholes_;
  std::vector<const Graph*> ranks_;
  const std::map<std::string, std::set<std::int64_t>>& granted_;
  std::map<ValueId, Spread> known_;
  bool rounds_ = false;
};

}  // namespace pw::proof
