// Private to the importer: parts of tuples that statements name.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "import/fx/emit/values.hpp"
#include "import/fx/text/ast.hpp"

namespace pw::fx {

/// Statements that name the parts of tuples, `a = t[0]`: their names and types belong to the
/// results. Items taken by key are numbered in order of first use.
class TupleItems {
 public:
  using Items = std::map<int, Wanted>;
  using Keys = std::vector<std::string>;

  /// Returns the number of an item; nothing if the index is not a small number or a key.
  std::optional<int> number(const std::string& tuple, const Expr& index);
  void add(const std::string& tuple, int item, Wanted wanted) {
    items_[tuple].emplace(item, std::move(wanted));
  }
  /// Returns the items of a tuple, or null.
  [[nodiscard]] const Items* items(const std::string& tuple) const {
    const auto found = items_.find(tuple);
    return found == items_.end() ? nullptr : &found->second;
  }
  /// Returns the keys of a tuple's items, or null.
  [[nodiscard]] const Keys* keys(const std::string& tuple) const {
    const auto found = keys_.find(tuple);
    return found == keys_.end() ? nullptr : &found->second;
  }

 private:
  std::unordered_map<std::string, Items> items_;
  std::unordered_map<std::string, Keys> keys_;
};

}  // namespace pw::fx
