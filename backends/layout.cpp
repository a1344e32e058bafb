#include <algorithm>
#include <cstdint>
#include <cstring>

#include "backends/kernel.hpp"
#include "backends/sequences.hpp"
#include "base/assert.hpp"
#include "tensor/numerics.hpp"

namespace pw {
namespace {

Array view(const Array& of, Extents extents, Extents strides, std::int64_t offset = 0) {
  return {of.dtype, std::move(extents), std::move(strides), of.at(offset), of.owner};
}

/// A view where the elements lie in order; otherwise they are copied to the result's place.
Status reshape(Call& call) {
  const Array& x = call.operand(0);
  if (x.count() != element_count(call.extents[0]))
    return fail_call(call, "PW1203", "a reshape changes the number of elements");
  if (x.contiguous()) {
    call.results[0] = view(x, call.extents[0], row_major(call.extents[0]));
  } else {
    const Array& y = call.result();
    copy(x, view(y, x.extents, row_major(x.extents)));
  }
  return {};
}

Status transpose(Call& call) {
  const Array& x = call.operand(0);
  Array y = x;
  const std::size_t a = call.axis("dim0", 0, x.rank()), b = call.axis("dim1", 1, x.rank());
  std::swap(y.extents[a], y.extents[b]);
  std::swap(y.strides[a], y.strides[b]);
  call.results[0] = std::move(y);
  return {};
}

std::int64_t clamp_index(std::int64_t i, std::int64_t extent) {
  if (i < 0) i += extent;
  return i < 0 ? 0 : i > extent ? extent : i;
}

Status slice(Call& call) {
  const Array& x = call.operand(0);
  Array y = x;
  const std::size_t axis = call.axis("dim", 0, x.rank());
  const std::int64_t start = clamp_index(call.integer("start", 0), x.extents[axis]);
  const std::int64_t step = call.integer("step", 1);
  y.extents = call.extents[0];
  const std::int64_t last = start + (y.extents[axis] - 1) * step;
  if (step < 1 || (y.extents[axis] > 0 && last >= x.extents[axis]))
    return fail_call(call, "PW1203", "a slice reaches beyond its operand");
  y.data = x.at(start * x.strides[axis]);
  y.strides[axis] *= step;
  call.results[0] = std::move(y);
  return {};
}

Status split(Call& call) {
  const Array& x = call.operand(0);
  const std::size_t axis = call.axis("dim", -1, x.rank());
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < call.results.size(); ++i) {
    call.results[i] = view(x, call.extents[i], x.strides, offset * x.strides[axis]);
    offset += call.extents[i][axis];
  }
  if (offset > x.extents[axis])
    return fail_call(call, "PW1203", "the parts of a split are larger than its operand");
  return {};
}

Status expand(Call& call) {
  const Array& x = call.operand(0);
  call.results[0] = view(x, call.extents[0], broadcast_strides(x, call.extents[0]));
  return {};
}

Status cat(Call& call) {
  Array& y = call.result();
  const std::size_t axis = call.axis("dim", 0, y.rank());
  std::int64_t offset = 0;
  for (const Array* x : call.operands) {
    Extents part = y.extents;
    part[axis] = x->extents[axis];
    if (part != x->extents || offset + part[axis] > y.extents[axis])
      return fail_call(call, "PW1203", "the operands of a cat do not fit its result");
    copy(*x, view(y, part, y.strides, offset * y.strides[axis]));
    offset += part[axis];
  }
  return {};
}

template <class Bits>
void repeat_first(const Array& array) {
  auto* const bits = reinterpret_cast<Bits*>(array.data);
  std::fill_n(bits, array.count(), Bits(*bits));
}

void fill(const Array& array, double value) {
  if (array.count() == 0) return;
  store(array.dtype, array.data, 0, value);
  switch (size_of(array.dtype)) {
    case 1: return repeat_first<std::uint8_t>(array);
    case 2: return repeat_first<std::uint16_t>(array);
    case 4: return repeat_first<std::uint32_t>(array);
    default: return repeat_first<std::uint64_t>(array);
  }
}

Status constant(Call& call) {
  fill(call.result(), call.real("value", 0));
  return {};
}

/// Where no place needs the elements, all of them are one.
Status full(Call& call) {
  if (!call.places.empty() && call.places[0] != nullptr) return constant(call);
  const Extents extents = call.extents[0];
  Array one = make_array(call.storage(call.result_dtype()), {});
  fill(one, call.real("value", 0));
  call.results[0] = view(one, extents, Extents(extents.size(), 0));
  return {};
}

/// A whole number may have more digits than a double.
Status extent(Call& call) {
  if (call.result().dtype != DType::i64) return constant(call);
  const std::int64_t value = call.integer("value", 0);
  std::memcpy(call.result().data, &value, sizeof value);
  return {};
}

Status empty(Call& call) {
  fill(call.result(), 0);
  return {};
}

constexpr KernelEntry kTable[] = {
    {Primitive::reshape, reshape},
    {Primitive::transpose, transpose},
    {Primitive::slice, slice},
    {Primitive::split, split},
    {Primitive::expand, expand},
    {Primitive::cat, cat},
    {Primitive::constant, constant},
    {Primitive::full, full},
    {Primitive::empty, empty},
    {Primitive::extent, extent},
    {Primitive::unified_kv_cache_update, update_cache},
};

}  // namespace

KernelTable layout_kernels() { return kTable; }

}  // namespace pw
