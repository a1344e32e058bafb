#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "backends/eager/kernels.hpp"
#include "base/try.hpp"
#include "graph/ops/scalar_functions.hpp"
#include "tensor/parallel.hpp"

namespace pw::eager {
namespace {

constexpr std::int64_t kIndexRun = 1024;
constexpr std::int64_t kIndexGrain = 1 << 14;  ///< elements that justify a thread

/// The array of a call viewed as [outer, indexed axes, inner], row-major.
struct Split {
  std::int64_t outer = 1, block = 1, inner = 1;  ///< block: elements of the indexed axes and inner
  Extents indexed;                               ///< the extents of the indexed axes
};

Split split_of(const Call& call, const Extents& extents, std::size_t first) {
  const std::size_t axis = call.axis("dim", 0, static_cast<std::int64_t>(extents.size()));
  const std::size_t after = axis + call.operands.size() - first;
  Split out;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    (i < axis ? out.outer : out.block) *= extents[i];
    if (i >= after) out.inner *= extents[i];
    if (i >= axis && i < after) out.indexed.push_back(extents[i]);
  }
  return out;
}

Extents common_extents(const Call& call, std::size_t first) {
  Extents out;
  for (std::size_t k = first; k < call.operands.size(); ++k) {
    const Extents& from = call.operand(k).extents;
    if (from.size() > out.size()) out.insert(out.begin(), from.size() - out.size(), 1);
    for (std::size_t i = 0; i < from.size(); ++i)
      if (from[i] != 1) out[out.size() - from.size() + i] = from[i];
  }
  return out;
}

/// The index tensors of a call: the operands from `first` on.
struct Indices {
  const Call& call;
  const Split& split;
  std::size_t first;
  Extents common;                ///< broadcast extents
  std::vector<Extents> strides;  ///< of each, and of the places
  bool wrap;
};

Indices indices_of(const Call& call, const Split& split, std::size_t first) {
  Indices out{call, split, first, common_extents(call, first), {}, call.integer("wrap", 0) != 0};
  for (std::size_t k = first; k < call.operands.size(); ++k)
    out.strides.push_back(broadcast_strides(call.operand(k), out.common));
  out.strides.push_back(row_major(out.common));
  return out;
}

/// An index outside its axis, and the axis's extent.
using Outside = std::optional<std::pair<std::int64_t, std::int64_t>>;

/// The elements that a run of index tensors chooses, as offsets in a block. A tensor that is
/// constant in the run, such as the indices of other axes in a gather, counts once.
class RunPlaces {
 public:
  /// Includes the indices of the next axis: `count` of them if `step` is not 0, else one.
  void include(const Array& at, std::int64_t offset, std::int64_t step, std::int64_t count,
               std::int64_t extent, bool wrap) {
    std::int64_t loaded[kIndexRun];
    const bool fixed = step == 0, direct = at.dtype == DType::i64 && step == 1;
    const std::int64_t length = fixed ? 1 : count;
    if (!direct) load_run(at.dtype, at.at(offset), step, length, loaded);
    const auto* given = direct ? reinterpret_cast<const std::int64_t*>(at.at(offset)) : loaded;
    if (wrap) {
      for (std::int64_t i = 0; i < length; ++i)
        loaded[i] = given[i] < 0 ? given[i] + extent : given[i];
      given = loaded;
    }
    bool bad = false;
    for (std::int64_t i = 0; i < length; ++i)
      bad |= static_cast<std::uint64_t>(given[i]) >= static_cast<std::uint64_t>(extent);
    if (bad && !outside_) note(at, offset, step, given, length, extent);
    if (fixed && !varies_) {
      base_ = base_ * extent + given[0];
    } else if (fixed) {
      for (std::int64_t i = 0; i < count; ++i) sum_[i] = sum_[i] * extent + given[0];
    } else if (varies_) {
      for (std::int64_t i = 0; i < count; ++i) sum_[i] = sum_[i] * extent + given[i];
    } else {
      for (std::int64_t i = 0; i < count; ++i) sum_[i] = base_ * extent + given[i];
      varies_ = true;
    }
  }
  const std::int64_t* places(std::int64_t count) {
    if (!varies_) std::fill(sum_, sum_ + count, base_);
    return sum_;
  }
  [[nodiscard]] const Outside& outside() const { return outside_; }

 private:
  void note(const Array& at, std::int64_t offset, std::int64_t step, const std::int64_t* given,
            std::int64_t length, std::int64_t extent) {
    const auto* const bad = std::find_if(
        given, given + length, [&](std::int64_t from) { return from < 0 || from >= extent; });
    std::int64_t index = 0;  // before it wrapped around
    load_run(at.dtype, at.at(offset + (bad - given) * step), 1, 1, &index);
    outside_ = {index, extent};
  }

  std::int64_t sum_[kIndexRun], base_ = 0;
  bool varies_ = false;
  Outside outside_;
};

/// Calls use(first place, step, count, offsets) for runs of rows [begin, end) of the first common
/// axis: `count` places, and their offsets in a block. Stops at the first run with an index outside
/// its axis and returns that index; nothing if all are inside.
template <class Use>
Outside over_places(const Indices& all, std::int64_t begin, std::int64_t end, const Use& use) {
  Extents part = all.common;
  if (!part.empty()) part[0] = end - begin;
  const auto offset = [&](const Run& run, std::size_t k) {
    return run.offsets[k] + (part.empty() ? 0 : begin * all.strides[k][0]);
  };
  const std::size_t axes = all.split.indexed.size();
  Outside outside;
  for_each_run(part, all.strides, kIndexRun, [&](const Run& run) {
    if (outside) return;
    RunPlaces places;
    for (std::size_t k = 0; k < axes; ++k)
      places.include(all.call.operand(all.first + k), offset(run, k), run.steps[k], run.length,
                     all.split.indexed[k], all.wrap);
    outside = places.outside();
    if (!outside) use(offset(run, axes), run.steps[axes], run.length, places.places(run.length));
  });
  return outside;
}

Status report(const Call& call, const std::pair<std::int64_t, std::int64_t>& outside) {
  return fail_call(call, "PW1204",
                   fmt::format("index {} is outside an axis of {}", outside.first, outside.second));
}

/// Calls over_places on several threads; the first index outside is reported.
template <class Use>
Status in_parallel(const Call& call, const Indices& all, const Use& use) {
  const std::int64_t rows = all.common.empty() ? 1 : all.common[0];
  const std::int64_t count = element_count(all.common), width = rows == 0 ? 0 : count / rows;
  std::atomic<bool> fits = true;
  parallel_for(rows, 1 + kIndexGrain / (width + 1), [&](std::int64_t begin, std::int64_t end) {
    if (over_places(all, begin, end, use)) fits = false;
  });
  if (fits) return {};
  const auto nothing = [](std::int64_t, std::int64_t, std::int64_t, const std::int64_t*) {};
  return report(call, *over_places(all, 0, rows, nothing));
}

/// Returns the offsets in a block at which the chosen elements, or rows of `inner` elements, begin.
Result<std::vector<std::int64_t>> chosen(const Call& call, const Split& split, std::size_t first) {
  const Indices all = indices_of(call, split, first);
  std::vector<std::int64_t> places(static_cast<std::size_t>(element_count(all.common)));
  PW_TRY(in_parallel(
      call, all,
      [&](std::int64_t at, std::int64_t step, std::int64_t count, const std::int64_t* from) {
        for (std::int64_t i = 0; i < count; ++i)
          places[static_cast<std::size_t>(at + i * step)] = from[i] * split.inner;
      }));
  return places;
}

/// Calls `visit` with a function that copies `bytes` bytes; the usual sizes are compile-time
/// constants.
template <class Visit>
void with_bytes(std::int64_t bytes, const Visit& visit) {
  const auto fixed = [&](auto constant) {
    visit([](std::byte* to, const std::byte* from) {
      std::memcpy(to, from, decltype(constant)::value);
    });
  };
  if (bytes == 1) return fixed(std::integral_constant<std::size_t, 1>());
  if (bytes == 2) return fixed(std::integral_constant<std::size_t, 2>());
  if (bytes == 4) return fixed(std::integral_constant<std::size_t, 4>());
  if (bytes == 8) return fixed(std::integral_constant<std::size_t, 8>());
  visit([bytes](std::byte* to, const std::byte* from) {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
  });
}

/// Copies each chosen row as its place is found, where none is needed twice.
Status index_once(Call& call, const Array& x, const Split& split) {
  Array& y = call.result();
  const std::int64_t bytes = split.inner * size_of(y.dtype);
  Status done;
  with_bytes(bytes, [&](auto move) {
    done = in_parallel(
        call, indices_of(call, split, 1),
        [&](std::int64_t at, std::int64_t step, std::int64_t count, const std::int64_t* from) {
          for (std::int64_t i = 0; i < count; ++i)
            move(y.data + (at + i * step) * bytes, x.data + from[i] * bytes);
        });
  });
  return done;
}

Status index(Call& call) {
  const Array x = contiguous(call.operand(0));
  const Split split = split_of(call, x.extents, 1);
  if (split.outer == 1) return index_once(call, x, split);
  auto places = PW_TRY(chosen(call, split, 1));
  Array& y = call.result();
  const auto count = static_cast<std::int64_t>(places.size());
  const std::int64_t bytes = split.inner * size_of(y.dtype), size = size_of(y.dtype);
  with_bytes(bytes, [&](auto move) {
    parallel_for(split.outer * count, 1 + kIndexGrain / (split.inner + 1),
                 [&](std::int64_t begin, std::int64_t end) {
                   std::byte* to = y.data + begin * bytes;
                   while (begin < end) {
                     const std::int64_t outer = begin / count;
                     const std::byte* from = x.at(outer * split.block);
                     const std::int64_t stop = std::min(end, (outer + 1) * count);
                     const std::int64_t* place = places.data() + (begin - outer * count);
                     for (; begin < stop; ++begin, to += bytes) move(to, from + *place++ * size);
                   }
                 });
  });
  return {};
}

// ---- index_put

/// Calls work(outer, first column, end column) on disjoint parts of the outer axes or of the
/// columns, so that rows with one destination are added in order.
void over_parts(const Split& split, std::int64_t count,
                const std::function<void(std::int64_t, std::int64_t, std::int64_t)>& work) {
  if (split.outer == 1) {
    parallel_for(split.inner, 16 + kIndexGrain / (count + 1),
                 [&](std::int64_t begin, std::int64_t end) { work(0, begin, end); });
    return;
  }
  parallel_for(split.outer, 1 + kIndexGrain / (count * split.inner + 1),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t o = begin; o < end; ++o) work(o, 0, split.inner);
               });
}

void set_rows(const Split& split, const std::vector<std::int64_t>& places, const Array& values,
              const Array& y) {
  const auto count = static_cast<std::int64_t>(places.size());
  over_parts(split, count, [&](std::int64_t outer, std::int64_t begin, std::int64_t end) {
    with_bytes((end - begin) * size_of(y.dtype), [&](auto move) {
      for (std::int64_t i = 0; i < count; ++i)
        move(y.at(outer * split.block + places[static_cast<std::size_t>(i)] + begin),
             values.at((outer * count + i) * split.inner + begin));
    });
  });
}

/// Returns the elements of an array as T: in place if stored as T, otherwise in `buffer`.
template <class T>
T* elements(const Array& x, std::vector<T>& buffer) {
  if (x.dtype == kStoredAs<T>) return reinterpret_cast<T*>(x.data);
  buffer.resize(static_cast<std::size_t>(x.count()));
  load_run(x.dtype, x.data, 1, x.count(), buffer.data());
  return buffer.data();
}

template <class T, class F>
void join_rows(const Split& split, const std::vector<std::int64_t>& places, const Array& values,
               const Array& y) {
  std::vector<T> wide_y, wide_values;
  T* const to = elements(y, wide_y);
  const T* const from = elements(values, wide_values);
  const auto count = static_cast<std::int64_t>(places.size());
  over_parts(split, count, [&](std::int64_t outer, std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = 0; i < count; ++i) {
      T* row = to + outer * split.block + places[static_cast<std::size_t>(i)];
      const T* more = from + (outer * count + i) * split.inner;
      for (std::int64_t c = begin; c < end; ++c) row[c] = F::of(row[c], more[c]);
    }
  });
  if (!wide_y.empty()) store_run(y.dtype, y.data, 1, y.count(), to);
}

/// Joins single elements in order, as their places are found.
template <class T, class F>
Status join_each(const Call& call, const Indices& all, const Array& values, const Array& y) {
  std::vector<T> wide_y, wide_values;
  T* const to = elements(y, wide_y);
  const T* const from = elements(values, wide_values);
  const std::int64_t rows = all.common.empty() ? 1 : all.common[0];
  const Outside outside = over_places(
      all, 0, rows,
      [&](std::int64_t at, std::int64_t step, std::int64_t count, const std::int64_t* places) {
        for (std::int64_t i = 0; i < count; ++i)
          to[places[i]] = F::of(to[places[i]], from[at + i * step]);
      });
  if (outside) return report(call, *outside);
  if (!wide_y.empty()) store_run(y.dtype, y.data, 1, y.count(), to);
  return {};
}

Status set_each(const Call& call, const Indices& all, const Array& values, const Array& y) {
  const std::int64_t rows = all.common.empty() ? 1 : all.common[0], size = size_of(y.dtype);
  Outside outside;
  with_bytes(size, [&](auto move) {
    outside = over_places(
        all, 0, rows,
        [&](std::int64_t at, std::int64_t step, std::int64_t count, const std::int64_t* places) {
          for (std::int64_t i = 0; i < count; ++i)
            move(y.data + places[i] * size, values.at(at + i * step));
        });
  });
  return outside ? report(call, *outside) : Status();
}

/// Broadcasts the values to the elements to write, row-major, in the result's dtype.
Array spread(const Call& call, const Array& x, const Array& values) {
  const std::size_t axis = call.axis("dim", 0, x.rank());
  Extents extents = common_extents(call, 2);
  const auto after = x.extents.begin() + static_cast<std::ptrdiff_t>(axis);
  extents.insert(extents.begin(), x.extents.begin(), after);
  extents.insert(extents.end(), after + static_cast<std::ptrdiff_t>(call.operands.size() - 2),
                 x.extents.end());
  return contiguous(
      {values.dtype, extents, broadcast_strides(values, extents), values.data, values.owner});
}

/// Rows to write, or single elements: with one outer place and rows of one element.
struct Put {
  const Call& call;
  const Split split;
  const Array values, y;
  [[nodiscard]] bool singly() const { return split.outer == 1 && split.inner == 1; }
  [[nodiscard]] Indices indices() const { return indices_of(call, split, 2); }
};

Status set(const Put& put) {
  if (put.singly()) return set_each(put.call, put.indices(), put.values, put.y);
  set_rows(put.split, PW_TRY(chosen(put.call, put.split, 2)), put.values, put.y);
  return {};
}

template <class T, class F>
Status join_as(const Put& put) {
  if (put.singly()) return join_each<T, F>(put.call, put.indices(), put.values, put.y);
  join_rows<T, F>(put.split, PW_TRY(chosen(put.call, put.split, 2)), put.values, put.y);
  return {};
}

template <class F>
Status join(const Put& put) {
  if (!is_float(put.y.dtype)) return join_as<std::int64_t, F>(put);
  return put.y.dtype == DType::f64 ? join_as<double, F>(put) : join_as<float, F>(put);
}

Status index_put(Call& call) {
  const Array& x = call.operand(0);
  const Put put{call, split_of(call, x.extents, 2), spread(call, x, call.operand(1)),
                call.result()};
  copy(x, put.y);
  const Attribute* reduce = call.graph.attribute(call.node, "reduce");
  const std::string how = reduce == nullptr ? "set" : std::get<std::string>(*reduce);
  if (how == "set") return set(put);
  if (how == "sum") return join<scalar::add>(put);
  if (how == "prod") return join<scalar::mul>(put);
  if (how == "amax") return join<scalar::maximum>(put);
  if (how == "amin") return join<scalar::minimum>(put);
  return fail_call(call, "PW1203", fmt::format("elements cannot be joined by `{}`", how),
                   "set, sum, prod, amax, amin");
}

Status iota(Call& call) {
  Array& y = call.result();
  const std::int64_t width = y.extents.empty() ? 1 : y.extents.back();
  const std::int64_t rows = width == 0 ? 0 : y.count() / width;
  std::int64_t buffer[kIndexRun];
  for (std::int64_t begin = 0; begin < width; begin += kIndexRun) {
    const std::int64_t length = std::min(kIndexRun, width - begin);
    for (std::int64_t i = 0; i < length; ++i) buffer[i] = begin + i;
    for (std::int64_t row = 0; row < rows; ++row)
      store_run(y.dtype, y.at(row * width + begin), 1, length, buffer);
  }
  return {};
}

constexpr KernelEntry kIndexing[] = {
    {Primitive::iota, iota}, {Primitive::index, index}, {Primitive::index_put, index_put}};

}  // namespace

KernelTable indexing() { return kIndexing; }

}  // namespace pw::eager
