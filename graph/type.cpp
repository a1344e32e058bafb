#include "graph/type.hpp"

namespace pw {

TypeId Types::get(DType dtype, const Shape& shape) {
  std::uint64_t hash = static_cast<std::uint64_t>(dtype);
  for (DimId dim : shape) hash = combine(hash, dim.index);
  const std::uint32_t found = index_.find(hash, [&](std::uint32_t i) {
    return types_[TypeId(i)].dtype == dtype && types_[TypeId(i)].shape == shape;
  });
  if (found != HashIndex::kNone) return TypeId(found);
  const TypeId id = types_.push_back({dtype, shape});
  index_.insert(hash, id.index);
  return id;
}

std::string Types::print(const Shape& shape) const {
  std::string out = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) out += (i ? ", " : "") + dims_.print(shape[i]);
  return out + "]";
}

std::string Types::print(TypeId id) const {
  if (id == unknown()) return "?";
  const Type& type = types_[id];
  return std::string(name(type.dtype)) + print(type.shape);
}

}  // namespace pw
