#include "tensor/array.hpp"

#include <algorithm>
#include <vector>

#include "base/assert.hpp"
#include "tensor/numerics.hpp"
#include "tensor/parallel.hpp"
#include "tensor/pool.hpp"

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
  std::shared_ptr<void> owner = pooled_memory(bytes);
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

/// A matrix of words to be copied: its extents, and the steps on both sides.
struct WordGrid {
  std::int64_t rows, columns;
  std::int64_t from_row, from_column, to_row, to_column;
};

/// Copies a matrix in tiles, so that the lines of both sides stay in the cache.
template <class Word>
void copy_grid(const WordGrid& grid, const Word* from, Word* to) {
  constexpr std::int64_t kTile = 16;
  const auto [rows, columns, from_row, from_column, to_row, to_column] = grid;
  for (std::int64_t r = 0; r < rows; r += kTile)
    for (std::int64_t c = 0; c < columns; c += kTile) {
      const std::int64_t height = std::min(kTile, rows - r), width = std::min(kTile, columns - c);
      for (std::int64_t i = 0; i < height; ++i) {
        const Word* const source = from + (r + i) * from_row + c * from_column;
        Word* const target = to + (r + i) * to_row + c * to_column;
        if (to_column == 1) {
          for (std::int64_t k = 0; k < width; ++k) target[k] = source[k * from_column];
        } else {
          for (std::int64_t k = 0; k < width; ++k) target[k * to_column] = source[k * from_column];
        }
      }
    }
}

/// Returns the dim with the smallest step.
std::size_t nearest(const Extents& strides) {
  return static_cast<std::size_t>(std::min_element(strides.begin(), strides.end()) -
                                  strides.begin());
}

/// Copies elements of one dtype. If the two sides have neighbours in different dims, these two dims
/// form the matrices.
template <class Word>
void copy_words(const Array& from, const Array& to) {
  Extents shape = from.extents;
  std::vector<Extents> strides{from.strides, to.strides};
  merge_dims(shape, strides);
  WordGrid grid{1, 1, 0, 0, 0, 0};
  const auto take = [&](std::size_t dim, std::int64_t& extent, std::int64_t& from_step,
                        std::int64_t& to_step) {
    const auto at = static_cast<std::ptrdiff_t>(dim);
    extent = shape[dim], from_step = strides[0][dim], to_step = strides[1][dim];
    shape.erase(shape.begin() + at);
    for (Extents& steps : strides) steps.erase(steps.begin() + at);
  };
  if (!shape.empty()) take(nearest(strides[1]), grid.columns, grid.from_column, grid.to_column);
  if (!shape.empty()) take(nearest(strides[0]), grid.rows, grid.from_row, grid.to_row);
  const bool runs = grid.from_column == 1 && grid.to_column == 1;
  const bool same = grid.from_column == 0 && grid.to_column == 1;
  const auto* const source = reinterpret_cast<const Word*>(from.data);
  auto* const target = reinterpret_cast<Word*>(to.data);
  for_each_run(shape, strides, std::int64_t{1} << 60, [&](const Run& run) {
    for (std::int64_t i = 0; i < run.length; ++i) {
      const Word* const x = source + run.offsets[0] + i * run.steps[0];
      Word* const y = target + run.offsets[1] + i * run.steps[1];
      if (same) {
        for (std::int64_t row = 0; row < grid.rows; ++row)
          std::fill_n(y + row * grid.to_row, grid.columns, x[row * grid.from_row]);
        continue;
      }
      if (!runs) {
        copy_grid(grid, x, y);
        continue;
      }
      for (std::int64_t row = 0; row < grid.rows; ++row)
        std::copy_n(x + row * grid.from_row, grid.columns, y + row * grid.to_row);
    }
  });
}

void copy_part(const Array& from, const Array& to) {
  if (from.dtype == to.dtype) {
    switch (size_of(from.dtype)) {
      case 1: return copy_words<std::uint8_t>(from, to);
      case 2: return copy_words<std::uint16_t>(from, to);
      case 4: return copy_words<std::uint32_t>(from, to);
      default: return copy_words<std::uint64_t>(from, to);
    }
  }
  const Extents strides[] = {from.strides, to.strides};
  constexpr std::int64_t kLimit = 1024;
  double buffer[kLimit];
  std::int64_t integers[kLimit];
  const bool integral = !is_float(from.dtype) && !is_float(to.dtype);
  for_each_run(from.extents, strides, kLimit, [&](const Run& run) {
    const std::byte* source = from.at(run.offsets[0]);
    std::byte* target = to.at(run.offsets[1]);
    if (integral) {
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
