#include "import/onnx/axis_product.hpp"

#include "import/onnx/tensors.hpp"

namespace pw::onnx {

fx::Value times_matrix(OnnxCall& c, const fx::Value& x, std::size_t axis, std::int64_t rows,
                       const std::vector<double>& matrix) {
  const Type type = c.type(x);
  const std::size_t rank = type.shape.size();
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < rank; ++i)
    if (i != axis) order.push_back(i);
  order.push_back(axis);
  const fx::Value last = c.permute(x, order);
  Shape shape = c.type(last).shape;
  DimId count = c.dims().constant(1);
  for (std::size_t i = 0; i + 1 < rank; ++i) count = c.dims().mul(count, shape[i]);
  const std::int64_t from = c.extents({shape.back()})[0];
  const fx::Value weights = c.permute(c.constant(stored(type.dtype, {rows, from}, matrix)), {1, 0});
  const fx::Value product = c.op("mm", {c.reshape(last, {count, shape.back()}), weights});
  shape.back() = c.dims().constant(rows);
  std::vector<std::size_t> back(rank);
  for (std::size_t i = 0; i < rank; ++i) back[order[i]] = i;
  return c.permute(c.reshape(product, shape), back);
}

}  // namespace pw::onnx
