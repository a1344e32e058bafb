// Integer expressions over row and column variables, with which elements are addressed: hash-consed
// and simplified as they are made. Every expression that is evaluated is non-negative, so that
// floor and truncated division agree.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/id.hpp"

namespace pw::rows {

using IndexId = Id<struct IndexTag>;
using VarId = Id<struct VarTag>;
using SlotId = Id<struct SlotTag>;
using ParamId = Id<struct ParamTag>;

struct Index {
  /// `slot` is an integer read from memory; `clamp` is `a` brought into [0, b).
  enum class Kind : std::uint8_t {
    constant,
    variable,
    param,
    slot,
    add,
    sub,
    mul,
    div,
    mod,
    clamp
  };
  Kind kind = Kind::constant;
  std::int64_t constant = 0;  ///< or the id of the variable, parameter or slot
  IndexId a, b;
};

/// Inclusive.
struct Interval {
  std::int64_t low = std::numeric_limits<std::int64_t>::min(),
               high = std::numeric_limits<std::int64_t>::max();
};

/// constant + the sum of factors * atoms; an atom is no sum and no multiple.
struct Terms {
  std::map<IndexId, std::int64_t> factors;  ///< none is 0
  std::int64_t constant = 0;
};

class Indices {
 public:
  IndexId constant(std::int64_t value);
  /// Parameter 0 is the number of rows. `low`: what it is at least.
  IndexId param(ParamId param, std::int64_t low);
  /// A fresh variable that runs from 0 up to `extent`.
  VarId variable(IndexId extent);
  IndexId use(VarId var);
  /// Depends on `vars`, through the slot.
  IndexId slot(SlotId slot, const std::vector<VarId>& vars);

  IndexId add(IndexId a, IndexId b);
  IndexId sub(IndexId a, IndexId b);
  IndexId mul(IndexId a, IndexId b);
  IndexId div(IndexId a, IndexId b);
  IndexId mod(IndexId a, IndexId b);
  IndexId clamp(IndexId a, IndexId extent);

  /// Nothing where numbers or their number overflow.
  [[nodiscard]] std::optional<Terms> terms(IndexId id) const;
  IndexId sum(const Terms& terms);
  /// `by` in the place of a variable, simplified again. What a slot holds stays.
  IndexId substitute(IndexId id, VarId var, IndexId by);

  [[nodiscard]] const Index& operator[](IndexId id) const { return nodes_[id]; }
  [[nodiscard]] bool is_constant(IndexId id, std::int64_t value) const;
  [[nodiscard]] Interval interval(IndexId id) const { return intervals_[id]; }
  [[nodiscard]] const std::vector<VarId>& vars(IndexId id) const { return vars_[id]; }  ///< sorted
  [[nodiscard]] bool depends(IndexId id, VarId var) const {
    return std::binary_search(vars_[id].begin(), vars_[id].end(), var);
  }
  [[nodiscard]] IndexId extent(VarId var) const { return extents_[var]; }
  /// Whether 0 <= a < b is known.
  [[nodiscard]] bool within(IndexId a, IndexId b) const;
  /// How many nodes the printed form has: shared parts count each time.
  [[nodiscard]] std::uint64_t size(IndexId id) const { return sizes_[id]; }
  /// "c0 + 4096 * row"; variables and parameters as given.
  [[nodiscard]] std::string print(IndexId id) const;

 private:
  using Key = std::tuple<Index::Kind, std::int64_t, IndexId, IndexId>;
  IndexId make(Index node, Interval interval, std::vector<VarId> vars);
  IndexId make(Index::Kind kind, IndexId a, IndexId b, Interval interval);
  void print(IndexId id, bool factor, std::string& out) const;
  struct Parts {
    std::int64_t step;
    IndexId quotient, rest;
  };
  std::optional<Parts> parts(IndexId a, std::int64_t by);
  bool collect(IndexId id, std::int64_t factor, Terms& out) const;

  IdVec<IndexId, Index> nodes_;
  IdVec<IndexId, Interval> intervals_;
  IdVec<IndexId, std::vector<VarId>> vars_;
  IdVec<IndexId, std::uint64_t> sizes_;  ///< capped, so that sums do not overflow
  IdVec<VarId, IndexId> extents_;
  std::map<Key, IndexId> ids_;
};

/// Sorted, without repetition.
[[nodiscard]] std::vector<VarId> union_of(const std::vector<VarId>& a, const std::vector<VarId>& b);

}  // namespace pw::rows
