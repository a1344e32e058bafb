// Integer index expressions over row and column variables, hash-consed and simplified on
// construction. Invariant: every evaluated expression is non-negative, so floor and truncated
// division agree.
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
  /// `slot` is an integer read from memory; `clamp` limits `a` to [0, b).
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
  std::int64_t constant = 0;  ///< the constant, or the id of the variable, parameter or slot
  IndexId a, b;
};

/// An interval with inclusive ends.
struct Interval {
  std::int64_t low = std::numeric_limits<std::int64_t>::min(),
               high = std::numeric_limits<std::int64_t>::max();
};

/// constant + the sum of factors · atoms; an atom is neither a sum nor a multiple.
struct Terms {
  std::map<IndexId, std::int64_t> factors;  ///< factors are nonzero
  std::int64_t constant = 0;
};

class Indices {
 public:
  IndexId constant(std::int64_t value);
  /// Returns a parameter; parameter 0 is the number of rows. `low` is its lower bound.
  IndexId param(ParamId param, std::int64_t low);
  /// Creates a variable with values from 0 to below `extent`.
  VarId variable(IndexId extent);
  IndexId use(VarId var);
  /// Returns the value of an integer slot, which depends on `vars`.
  IndexId slot(SlotId slot, const std::vector<VarId>& vars);

  IndexId add(IndexId a, IndexId b);
  IndexId sub(IndexId a, IndexId b);
  IndexId mul(IndexId a, IndexId b);
  IndexId div(IndexId a, IndexId b);
  IndexId mod(IndexId a, IndexId b);
  IndexId clamp(IndexId a, IndexId extent);

  /// Returns the linear form; nothing if a value or the number of terms overflows.
  [[nodiscard]] std::optional<Terms> terms(IndexId id) const;
  IndexId sum(const Terms& terms);
  /// Replaces a variable with `by` and simplifies. Slot contents stay unchanged.
  IndexId substitute(IndexId id, VarId var, IndexId by);

  [[nodiscard]] const Index& operator[](IndexId id) const { return nodes_[id]; }
  [[nodiscard]] bool is_constant(IndexId id, std::int64_t value) const;
  [[nodiscard]] Interval interval(IndexId id) const { return intervals_[id]; }
  [[nodiscard]] const std::vector<VarId>& vars(IndexId id) const { return vars_[id]; }  ///< sorted
  [[nodiscard]] bool depends(IndexId id, VarId var) const {
    return std::binary_search(vars_[id].begin(), vars_[id].end(), var);
  }
  /// Returns true if the value depends on integers that are read from memory.
  [[nodiscard]] bool reads_slot(IndexId id) const;
  [[nodiscard]] IndexId extent(VarId var) const { return extents_[var]; }
  /// Returns true if 0 <= a < b is proved.
  [[nodiscard]] bool within(IndexId a, IndexId b) const;
  /// Returns the number of nodes of the printed form; shared parts count each time.
  [[nodiscard]] std::uint64_t size(IndexId id) const { return sizes_[id]; }
  /// Returns text such as "c0 + 4096 * row" with the given names of variables and parameters.
  [[nodiscard]] std::string print(IndexId id) const;

 private:
  using Key = std::tuple<Index::Kind, std::int64_t, IndexId, IndexId>;
  IndexId make(Index node, Interval interval, std::vector<VarId> vars);
  IndexId make(Index::Kind kind, IndexId a, IndexId b, Interval interval);
  [[nodiscard]] IndexId joined(IndexId quotient, IndexId remainder) const;
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
  IdVec<IndexId, std::uint64_t> sizes_;  ///< capped to avoid overflow of sums
  IdVec<VarId, IndexId> extents_;
  std::map<Key, IndexId> ids_;
};

/// Returns the sorted union without duplicates.
[[nodiscard]] std::vector<VarId> union_of(const std::vector<VarId>& a, const std::vector<VarId>& b);

}  // namespace pw::rows
