// Chooses what a pattern leaves open: dims, dtypes, attributes. The first two attempts take the
// simplest choices, all dims symbolic or all constant; later ones are drawn at random. The same
// attempt always makes the same choices.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/hash.hpp"
#include "graph/build.hpp"

namespace pw {

class Choices {
 public:
  Choices(Context& context, std::uint64_t attempt)
      : context_(context), symbolic_(attempt % 2 == 0), first_(attempt < 2), random_(attempt) {}

  /// Reserves a name that no symbol may have.
  void reserve(const std::string& name) { taken_.insert(name); }
  [[nodiscard]] bool symbolic() const { return symbolic_; }
  [[nodiscard]] bool first() const { return first_; }
  /// Returns a number below n; 0 is the simplest choice.
  std::size_t pick(std::size_t n) { return first_ ? 0 : random_.below(n); }
  template <class T>
  T one_of(std::initializer_list<T> all) {
    return *(all.begin() + static_cast<std::ptrdiff_t>(pick(all.size())));
  }

  DType float_dtype() { return one_of({DType::bf16, DType::f32, DType::f16}); }
  /// Returns a dim for a variable of that name, distinct from earlier ones unless drawn otherwise.
  DimId dim(const std::string& name);
  Shape rows();  ///< of a sequence `*b`
  Shape shape();
  /// Returns an attribute by its kind and the conventions of its name.
  Attribute attribute(const std::string& name, AttributeKind kind,
                      const std::vector<TypeId>& operands, std::size_t results);
  /// Binds every unbound dim and sequence of a type.
  void bind_dims(const TypeExpr& type, Env& env);
  void bind_dims(const Expr& expr, Env& env);

 private:
  DimId symbol(const std::string& name);
  std::vector<DimId> parts(const Shape& shape, std::size_t count);
  std::vector<DimId> other_shape(const Shape& shape);

  Context& context_;
  bool symbolic_, first_;
  Random random_;
  std::vector<DimId> drawn_;
  std::set<std::string> taken_;
};

}  // namespace pw
