// Private to the importer: the counts that symbols replaced, and the shape literals derived from
// them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "graph/context.hpp"

namespace pw::fx {

class Symbols {
 public:
  explicit Symbols(Context& context) : context_(context) {}
  void add(const std::string& name, std::int64_t count);
  [[nodiscard]] bool empty() const { return old_.empty(); }
  [[nodiscard]] const std::map<std::string, std::int64_t, std::less<>>& counts() const {
    return old_;
  }

  /// Renames a symbol of the dump, as other symbols may be renamed.
  void rename(const std::string& name, DimId to) {
    renamed_[name] = to;
    ++changes_;
  }
  [[nodiscard]] bool renames(const std::string& name) const { return renamed_.contains(name); }
  /// Replaces a symbol by an equal one, also in what was read before.
  void merge(const std::string& name, DimId to);
  /// Returns the dim with merged symbols replaced.
  DimId merged(DimId dim);
  [[nodiscard]] std::size_t merges() const { return merged_.size(); }
  /// Returns how many symbols were added, renamed or merged: what depends on them is then stale.
  [[nodiscard]] std::size_t changes() const { return changes_; }
  DimId renamed(DimId dim);
  TypeId renamed(TypeId type);

  /// Returns the dim or type as it was before symbols were introduced.
  DimId to_old(DimId dim);
  TypeId to_old(TypeId type);
  /// Returns true if the dim contains an introduced symbol.
  [[nodiscard]] bool in(DimId dim) const;
  [[nodiscard]] bool in(const Shape& shape) const;
  /// Returns the symbols whose old count is this literal.
  [[nodiscard]] std::vector<DimId> standing_for(DimId literal) const;
  /// Returns the shape with literals replaced by symbols so that it has as many elements as `from`;
  /// nothing if none fits. May hold a -1.
  std::optional<Shape> fit_view(const Shape& from, const Shape& literal);

 private:
  [[nodiscard]] bool views(DimId total, const Shape& shape);
  DimId product(const Shape& shape, std::size_t except = SIZE_MAX);
  std::optional<Shape> solve_one(DimId total, const Shape& literal);
  std::optional<Shape> replace_equal(const Shape& from, DimId total, const Shape& literal);

  Context& context_;
  std::map<std::string, std::int64_t, std::less<>> old_;
  std::map<std::string, DimId, std::less<>> constants_, renamed_, merged_;
  std::size_t changes_ = 0;
};

}  // namespace pw::fx
