// Private to the importer: names of a dump, those that are bound and those that are generated.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/hash_index.hpp"
#include "base/strings.hpp"

namespace pw::fx {

/// Table of values by name, in the order in which names were first bound. A bound value stays in
/// place for the life of the table.
template <class T>
class BoundNames {
 public:
  struct Bound {
    std::string name;
    T value;
  };

  /// Returns the value, or null if the name is not bound.
  [[nodiscard]] T* find(std::string_view name) {
    const std::uint32_t at = place(name);
    return at == HashIndex::kNone ? nullptr : &bound_[at].value;
  }
  [[nodiscard]] const T* find(std::string_view name) const {
    const std::uint32_t at = place(name);
    return at == HashIndex::kNone ? nullptr : &bound_[at].value;
  }
  [[nodiscard]] bool contains(std::string_view name) const { return find(name) != nullptr; }
  T& operator[](std::string_view name) {
    if (T* found = find(name)) return *found;
    index_.insert(hash(name), static_cast<std::uint32_t>(bound_.size()));
    return bound_.emplace_back(Bound{std::string(name), T()}).value;
  }
  [[nodiscard]] auto begin() { return bound_.begin(); }
  [[nodiscard]] auto end() { return bound_.end(); }
  [[nodiscard]] auto begin() const { return bound_.begin(); }
  [[nodiscard]] auto end() const { return bound_.end(); }

 private:
  static std::uint64_t hash(std::string_view name) { return std::hash<std::string_view>()(name); }
  [[nodiscard]] std::uint32_t place(std::string_view name) const {
    return index_.find(hash(name), [&](std::uint32_t i) { return bound_[i].name == name; });
  }

  std::deque<Bound> bound_;
  HashIndex index_;
};

/// Set of names, whose characters are stored together.
class WordSet {
 public:
  /// Adds a word; returns true if it is new.
  bool insert(std::string_view word) {
    const std::size_t before = words_.size();
    words_.intern(word);
    return words_.size() > before;
  }
  [[nodiscard]] bool contains(std::string_view word) const { return words_.find(word).valid(); }
  [[nodiscard]] std::size_t size() const { return words_.size(); }

 private:
  Strings words_;
};

/// Names that are in use: those of the dump, and generated ones, `base__0`, which equal no other.
class UniqueNames {
 public:
  /// Adds a name; returns true if it is new.
  bool insert(std::string_view name) { return all_.insert(name); }
  /// Adds a name that the dump binds.
  void bind(std::string_view name) { distinct_ = insert(name) && distinct_; }
  [[nodiscard]] bool contains(std::string_view name) const { return all_.contains(name); }
  /// Returns true if the dump binds no name twice.
  [[nodiscard]] bool distinct() const { return distinct_; }
  void set_not_distinct() { distinct_ = false; }
  /// Generates a name from a base, which may itself be generated.
  std::string fresh(std::string base);
  [[nodiscard]] bool generated(std::string_view name) const { return generated_.contains(name); }
  [[nodiscard]] std::size_t generated_count() const { return generated_.size(); }

 private:
  WordSet all_, generated_;
  std::unordered_map<std::string, int> counters_;  ///< of generated names, by their base
  bool distinct_ = true;
};

}  // namespace pw::fx
