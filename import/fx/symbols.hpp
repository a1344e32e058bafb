// Private to the importer: the counts that symbols replaced, and how shape literals follow them.
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

  /// A symbol of the dump is called something else, as others of it may be.
  void rename(const std::string& name, DimId to) { renamed_[name] = to; }
  [[nodiscard]] bool renames(const std::string& name) const { return renamed_.contains(name); }
  DimId renamed(DimId dim);
  TypeId renamed(TypeId type);

  /// The dim or type as it was before symbols came in.
  DimId to_old(DimId dim);
  TypeId to_old(TypeId type);
  /// Whether a symbol that came in is in it.
  [[nodiscard]] bool in(DimId dim) const;
  [[nodiscard]] bool in(const Shape& shape) const;
  /// Symbols whose old count is this literal.
  [[nodiscard]] std::vector<DimId> standing_for(DimId literal) const;
  /// The same shape with literals made symbols so that it has the elements of `from`; nothing if
  /// none fits. May hold a -1.
  std::optional<Shape> fit_view(const Shape& from, const Shape& literal);

 private:
  [[nodiscard]] bool views(DimId total, const Shape& shape);
  DimId product(const Shape& shape, std::size_t except = SIZE_MAX);
  std::optional<Shape> solve_one(DimId total, const Shape& literal);
  std::optional<Shape> replace_equal(const Shape& from, DimId total, const Shape& literal);

  Context& context_;
  std::map<std::string, std::int64_t, std::less<>> old_;
  std::map<std::string, DimId, std::less<>> constants_, renamed_;
};

}  // namespace pw::fx
