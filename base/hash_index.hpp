// Finds an equal object among objects numbered 0, 1, 2, …: an open-addressed table of numbers and
// hashes. The objects stay with their owner. Numbers follow the order of insertion, so nothing
// depends on the hash.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/hash.hpp"

namespace pw {

class HashIndex {
 public:
  static constexpr std::uint32_t kNone = 0xffffffffu;

  /// Returns the number with this hash for which `equal(number)` holds, or kNone.
  template <class Equal>
  [[nodiscard]] std::uint32_t find(std::uint64_t hash, const Equal& equal) const {
    if (slots_.empty()) return kNone;
    const std::uint32_t wanted = fold(hash);
    for (std::size_t i = wanted & mask();; i = (i + 1) & mask()) {
      const Slot& slot = slots_[i];
      if (slot.number == kNone) return kNone;
      if (slot.hash == wanted && equal(slot.number)) return slot.number;
    }
  }
  /// Inserts a number that the table does not contain yet.
  void insert(std::uint64_t hash, std::uint32_t number) {
    if ((size_ + 1) * 4 > slots_.size() * 3) grow();
    place({fold(hash), number});
    ++size_;
  }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::size_t bytes() const { return slots_.size() * sizeof(Slot); }
  void clear() {
    std::vector<Slot>().swap(slots_);
    size_ = 0;
  }

 private:
  struct Slot {
    std::uint32_t hash = 0, number = kNone;
  };
  static std::uint32_t fold(std::uint64_t hash) { return static_cast<std::uint32_t>(mix(hash)); }
  [[nodiscard]] std::size_t mask() const { return slots_.size() - 1; }
  void place(Slot slot) {
    std::size_t i = slot.hash & mask();
    while (slots_[i].number != kNone) i = (i + 1) & mask();
    slots_[i] = slot;
  }
  void grow() {
    std::vector<Slot> old = std::exchange(slots_, {});
    slots_.resize(old.empty() ? 16 : old.size() * 2);
    for (const Slot& slot : old)
      if (slot.number != kNone) place(slot);
  }

  std::vector<Slot> slots_;
  std::size_t size_ = 0;
};

}  // namespace pw
