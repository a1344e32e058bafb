// Tensor types: an element type and a shape of symbolic dims. Interned, so that equality is an
// integer compare.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/hash_index.hpp"
#include "graph/dim.hpp"
#include "graph/dtype.hpp"

namespace pw {

using TypeId = Id<struct TypeTag>;
using Shape = std::vector<DimId>;

struct Type {
  DType dtype = DType::f32;
  Shape shape;
};

class Types {
 public:
  explicit Types(Dims& dims) : dims_(dims) { types_.push_back({}); }  // id 0: unknown
  /// Copies the types with the same ids, over a copy of the other's dims.
  Types(const Types& other, Dims& dims) : dims_(dims), types_(other.types_), index_(other.index_) {}
  TypeId get(DType dtype, const Shape& shape);
  [[nodiscard]] static TypeId unknown() { return TypeId(0); }
  /// Returns the type. Undefined for unknown(), so check first.
  [[nodiscard]] const Type& operator[](TypeId id) const { return types_[id]; }
  [[nodiscard]] std::string print(TypeId id) const;           ///< "bf16[n, 4096]", "f32[]", "?"
  [[nodiscard]] std::string print(const Shape& shape) const;  ///< "[n, 4096]"

  [[nodiscard]] std::size_t size() const { return types_.size(); }

 private:
  Dims& dims_;
  IdVec<TypeId, Type> types_;
  HashIndex index_;
};

}  // namespace pw
