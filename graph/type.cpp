// Exports Types.
#include "graph/type.hpp"

namespace pw {

TypeId Types::get(DType dtype, const Shape& shape) {
  auto [it, fresh] = ids_.try_emplace({dtype, shape});
  if (fresh) it->second = types_.push_back({dtype, shape});
  return it->second;
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
