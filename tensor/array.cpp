#include "tensor/array.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/assert.hpp"
#include "tensor/numerics.hpp"
#include "tensor/parallel.hpp"

namespace pw {
namespace {

/// Merges dim i+1 into i where all arrays step through both as one; drops dims of extent 1.
void merge_dims(Extents& shape, std::vector<Extents>& strides) {
  Extents merged;
  std::vector<Extents> merged_strides(strides.size());
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 1) continue;
    bool joins = !merged.empty();
    for (std::size_t a = 0; a < strides.size() && joins; ++a)
      joins = merged_strides[a].back() == strides[a][i] * shape[i];
    if (joins) {
      merged.back() *= shape[i];
    } else {
      merged.push_back(shape[i]);
    }
    for (std::size_t a = 0; a < strides.size(); ++a) {
      if (joins) {
        merged_strides[a].back() = strides[a][i];
      } else {
        merged_strides[a].push_back(strides[a][i]);
      }
    }
  }
  shape = std::move(merged);
  strides = std::move(merged_strides);
}

}  // namespace

bool Array::contiguous() const {
  std::int64_t expected = 1;
  for (std::size_t i = extents.size(); i-- > 0;) {
    if (extents[i] != 1 && strides[i] != expected) return false;
    expected *= extents[i];
  }
  return true;
}

Extents row_major(const Extents& extents) {
  Extents strides(extents.size());
  std::int64_t step = 1;
  for (std::size_t i = extents.size(); i-- > 0;) {
    strides[i] = step;
    step *= extents[i];
  }
  return strides;
}

Array make_array(DType dtype, const Extents& extents) {
  const std::size_t bytes =
      static_cast<std::size_t>(element_count(extents)) * static_cast<std::size_t>(size_of(dtype));
  constexpr std::align_val_t kAlign{64};
  std::shared_ptr<void> owner(::operator new(bytes + 1, kAlign),
                              [](void* p) { ::operator delete(p, std::align_val_t{64}); });
  auto* data = static_cast<std::byte*>(owner.get());
  return {dtype, extents, row_major(extents), data, std::move(owner)};
}

Array array_of(const TensorView& view) {
  return {view.dtype, view.extents, row_major(view.extents), view.data, nullptr};
}

Array contiguous(const Array& array) {
  if (array.contiguous()) return array;
  Array fresh = make_array(array.dtype, array.extents);
  copy(array, fresh);
  return fresh;
}

Extents broadcast_strides(const Array& array, const Extents& shape) {
  PW_ASSERT(array.extents.size() <= shape.size(), "an operand has more dims than the result");
  Extents strides(shape.size(), 0);
  const std::size_t lead = shape.size() - array.extents.size();
  for (std::size_t i = 0; i < array.extents.size(); ++i) {
    PW_ASSERT(array.extents[i] == shape[lead + i] || array.extents[i] == 1,
              "an operand does not broadcast to the result");
    if (array.extents[i] != 1) strides[lead + i] = array.strides[i];
  }
  return strides;
}

void for_each_run(const Extents& shape, std::span<const Extents> strides, std::int64_t limit,
                  const std::function<void(const Run&)>& visit) {
  if (element_count(shape) == 0) return;
  Extents dims = shape;
  std::vector<Extents> steps(strides.begin(), strides.end());
  merge_dims(dims, steps);
  const std::size_t arrays = steps.size();
  const std::size_t outer = dims.empty() ? 0 : dims.size() - 1;
  const std::int64_t inner = dims.empty() ? 1 : dims.back();
  Extents inner_steps(arrays, 0), base(arrays, 0), offsets(arrays, 0), index(outer, 0);
  for (std::size_t a = 0; a < arrays && !dims.empty(); ++a) inner_steps[a] = steps[a].back();
  for (;;) {
    for (std::int64_t begin = 0; begin < inner; begin += limit) {
      for (std::size_t a = 0; a < arrays; ++a) offsets[a] = base[a] + begin * inner_steps[a];
      visit({offsets, inner_steps, std::min(limit, inner - begin)});
    }
    std::size_t d = outer;
    while (d-- > 0) {
      for (std::size_t a = 0; a < arrays; ++a) base[a] += steps[a][d];
      if (++index[d] < dims[d]) break;
      for (std::size_t a = 0; a < arrays; ++a) base[a] -= steps[a][d] * dims[d];
      index[d] = 0;
      if (d == 0) return;
    }
    if (outer == 0) return;
  }
}

namespace {

/// Copies elements of a constant size, so that a copy is one instruction.
template <std::size_t size>
void move_run(std::byte* to, std::int64_t to_step, const std::byte* from, std::int64_t from_step,
              std::int64_t n) {
  constexpr auto bytes = static_cast<std::int64_t>(size);
  for (std::int64_t i = 0; i < n; ++i)
    std::memcpy(to + i * to_step * bytes, from + i * from_step * bytes, size);
}

/// Transposes a plane in tiles: each is read along contiguous columns and written along contiguous
/// rows, so that no cache line is moved twice.
template <std::size_t size>
void transpose(const Array& from, const Array& to, std::size_t column, const Run& run) {
  constexpr std::int64_t kTile = 16;
  const std::size_t last = from.extents.size() - 1;
  const std::int64_t rows = from.extents[column], columns = from.extents[last];
  std::byte tile[kTile][kTile][size];
  for (std::int64_t i = 0; i < rows; i += kTile)
    for (std::int64_t j = 0; j < columns; j += kTile) {
      const std::int64_t height = std::min(kTile, rows - i), width = std::min(kTile, columns - j);
      for (std::int64_t c = 0; c < width; ++c) {
        const std::byte* source = from.at(run.offsets[0] + i + (j + c) * from.strides[last]);
        for (std::int64_t r = 0; r < height; ++r)
          std::memcpy(tile[r][c], source + r * static_cast<std::int64_t>(size), size);
      }
      for (std::int64_t r = 0; r < height; ++r)
        std::memcpy(to.at(run.offsets[1] + (i + r) * to.strides[column] + j), tile[r],
                    static_cast<std::size_t>(width) * size);
    }
}

/// Copies an array with contiguous columns to one with contiguous rows. Returns false for others.
bool copy_transposed(const Array& from, const Array& to) {
  constexpr std::int64_t kWorthTiles = 16;
  if (from.extents.size() < 2 || from.dtype != to.dtype) return false;
  const std::size_t last = from.extents.size() - 1;
  const auto column = static_cast<std::size_t>(
      std::find(from.strides.begin(), from.strides.end() - 1, 1) - from.strides.begin());
  if (column == last || from.strides[last] == 1 || to.strides[last] != 1 ||
      from.extents[column] < kWorthTiles || from.extents[last] < kWorthTiles)
    return false;
  Extents others = from.extents;
  others[column] = others[last] = 1;
  const Extents strides[] = {from.strides, to.strides};
  const auto move = size_of(from.dtype) == 1   ? transpose<1>
                    : size_of(from.dtype) == 2 ? transpose<2>
                    : size_of(from.dtype) == 4 ? transpose<4>
                                               : transpose<8>;
  for_each_run(others, strides, 1, [&](const Run& run) { move(from, to, column, run); });
  return true;
}

void copy_part(const Array& from, const Array& to) {
  if (copy_transposed(from, to)) return;
  const Extents strides[] = {from.strides, to.strides};
  const bool same = from.dtype == to.dtype;
  const auto size = static_cast<std::size_t>(size_of(from.dtype));
  constexpr std::int64_t kLimit = 1024;
  double buffer[kLimit];
  std::int64_t integers[kLimit];
  const bool integral = !is_float(from.dtype) && !is_float(to.dtype);
  for_each_run(from.extents, strides, same ? std::int64_t{1} << 60 : kLimit, [&](const Run& run) {
    const std::byte* source = from.at(run.offsets[0]);
    std::byte* target = to.at(run.offsets[1]);
    if (same && run.steps[0] == 1 && run.steps[1] == 1) {
      std::memcpy(target, source, static_cast<std::size_t>(run.length) * size);
    } else if (same) {
      const auto move = size == 1   ? move_run<1>
                        : size == 2 ? move_run<2>
                        : size == 4 ? move_run<4>
                                    : move_run<8>;
      move(target, run.steps[1], source, run.steps[0], run.length);
    } else if (integral) {
      load_run(from.dtype, source, run.steps[0], run.length, integers);
      store_run(to.dtype, target, run.steps[1], run.length, integers);
    } else {
      load_run(from.dtype, source, run.steps[0], run.length, buffer);
      store_run(to.dtype, target, run.steps[1], run.length, buffer);
    }
  });
}

/// Elements [begin, end) of an axis.
Array cut_along(const Array& x, std::size_t axis, std::int64_t begin, std::int64_t end) {
  Array out = x;
  out.extents[axis] = end - begin;
  out.data = x.at(begin * x.strides[axis]);
  return out;
}

}  // namespace

void copy(const Array& from, const Array& to) {
  PW_ASSERT(from.extents == to.extents, "a copy between different extents");
  if (from.dtype == to.dtype && from.data == to.data && from.strides == to.strides)
    return;                                        // a view that lives where its operand does
  constexpr std::int64_t kWorthAThread = 1 << 15;  // elements
  const auto axis = static_cast<std::size_t>(
      std::find_if(from.extents.begin(), from.extents.end(), [](std::int64_t n) { return n > 1; }) -
      from.extents.begin());
  if (axis == from.extents.size() || from.count() < 2 * kWorthAThread) return copy_part(from, to);
  const std::int64_t extent = from.extents[axis];
  parallel_for(extent, 1 + kWorthAThread / (from.count() / extent),
               [&](std::int64_t begin, std::int64_t end) {
                 copy_part(cut_along(from, axis, begin, end), cut_along(to, axis, begin, end));
               });
}

}  // namespace pw
