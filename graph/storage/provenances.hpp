// The groups and sources of a graph's nodes. No pair is held twice; number 0 has neither.
#pragma once

#include <cstdint>
#include <vector>

#include "base/hash_index.hpp"
#include "graph/value_names.hpp"

namespace pw {

struct Provenance {
  TextId group, source;
  friend bool operator==(const Provenance&, const Provenance&) = default;
};

class Provenances {
 public:
  const Provenance& operator[](std::uint32_t number) const { return pairs_[number]; }
  /// Returns the number of a pair, which is added if it is new.
  std::uint32_t intern(const Provenance& wanted);
  /// Releases memory that only building needs.
  void settle();
  [[nodiscard]] std::size_t bytes() const {
    return pairs_.size() * sizeof(Provenance) + index_.bytes();
  }

 private:
  std::vector<Provenance> pairs_{{}};
  HashIndex index_;  // built by the first query
};

}  // namespace pw
