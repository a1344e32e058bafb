// What the values of several ranks are of a single device's values. Each op of the ranks is taken
// at once on all of them: from what its operands are follows what its results are.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "proof/equal/wholes.hpp"

namespace pw::proof {

struct Spread {
  enum class Kind : std::uint8_t {
    whole,    ///< the same on all ranks
    cut,      ///< each of the parts of `axis` lies rank after rank
    partial,  ///< joined over the ranks by `join`
    each,     ///< something on each rank
  } kind = Kind::each;
  ValueId whole;                 ///< what all of it is; not of each
  std::size_t axis = 0;          ///< of cut
  Shape parts;                   ///< of cut: how long each part is on one rank
  std::string join;              ///< of partial: sum, amax, amin
  Wholes::Values each;           ///< of partial and each: by rank
  std::optional<Lookup> lookup;  ///< of each
};

class Spreader {
 public:
  /// The graphs have no bodies left, and the same nodes in the same order.
  Spreader(Wholes& wholes, const std::vector<const Graph*>& ranks,
           const std::map<std::string, std::set<std::int64_t>>& granted);

  void set(ValueId input, Spread spread) { known_[input] = std::move(spread); }
  /// Whether all ranks have the nodes of the first one; else says where they do not.
  [[nodiscard]] std::string mismatch() const;
  /// All nodes, in order.
  void run();
  /// By the first rank's value; null where it could not be told what it is.
  [[nodiscard]] const Spread* find(ValueId value) const;
  [[nodiscard]] std::size_t ranks() const { return ranks_.size(); }
  /// By rank. Invalid where it cannot be made.
  std::optional<Wholes::Values> each_of(const Spread& spread);
  [[nodiscard]] DimId times_ranks(DimId dim) const;
  /// Whether sums were added up in another order than on one device.
  [[nodiscard]] bool rounds() const { return rounds_; }

 private:
  friend class Transfer;
  using Spreads = std::vector<Spread>;

  std::vector<std::optional<Spread>> step(const std::vector<NodeId>& nodes);

  Wholes& wholes_;
  std::vector<const Graph*> ranks_;
  const std::map<std::string, std::set<std::int64_t>>& granted_;
  std::map<ValueId, Spread> known_;
  bool rounds_ = false;
};

}  // namespace pw::proof
