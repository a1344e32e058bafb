// Exports iota, index and index_put: elements that tensors of indices choose.
#include <algorithm>
#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "backends/eager/kernels.hpp"
#include "backends/parallel.hpp"
#include "backends/primitives.hpp"

namespace pw::eager {
namespace {

using Done = Result<std::monostate>;
constexpr std::int64_t kIndexRun = 1024;
constexpr std::int64_t kIndexGrain = 1 << 14;  ///< elements that are worth a thread

/// The array of a call seen as [outer, indexed axes, inner], row-major.
struct Split {
  std::int64_t outer = 1, block = 1, inner = 1;  ///< block: elements of the indexed axes and inner
  Extents indexed;                               ///< the extents of the indexed axes
};

Split split_of(const Call& call, const Extents& extents, std::size_t first) {
  const std::size_t axis = call.axis("dim", 0, static_cast<std::int64_t>(extents.size()));
  const std::size_t behind = axis + call.operands.size() - first;
  Split out;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    (i < axis ? out.outer : out.block) *= extents[i];
    if (i >= behind) out.inner *= extents[i];
    if (i >= axis && i < behind) out.indexed.push_back(extents[i]);
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

/// Where in a block each of the chosen elements, or rows of `inner` ones, begins. The operands from
/// `first` on are the indices.
Result<std::vector<std::int64_t>> chosen(const Call& call, const Split& split, std::size_t first) {
  const Extents common = common_extents(call, first);
  const bool wrap = call.integer("wrap", 0) != 0;
  std::vector<std::int64_t> places(static_cast<std::size_t>(element_count(common)), 0);
  std::int64_t step = split.inner, buffer[kIndexRun];
  for (std::size_t k = call.operands.size(); k-- > first;) {
    const Array& at = call.operand(k);
    const std::int64_t extent = split.indexed[k - first];
    std::int64_t outside = 0;
    bool fits = true;
    const Extents strides[] = {broadcast_strides(at, common), row_major(common)};
    for_each_run(common, strides, kIndexRun, [&](const Run& run) {
      load_run(at.dtype, at.at(run.offsets[0]), run.steps[0], run.length, buffer);
      for (std::int64_t i = 0; i < run.length; ++i) {
        const std::int64_t from = wrap && buffer[i] < 0 ? buffer[i] + extent : buffer[i];
        if (from < 0 || from >= extent) {
          outside = buffer[i];
          fits = false;
        } else {
          places[static_cast<std::size_t>(run.offsets[1] + i * run.steps[1])] += from * step;
        }
      }
    });
    if (!fits)
      return fail_call(call, "PW1204",
                       fmt::format("index {} is outside an axis of {}", outside, extent));
    step *= extent;
  }
  return places;
}

/// to[i] = from[i], of rows of so many bytes; the usual sizes are known to the compiler.
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

Done index(Call& call) {
  const Array x = contiguous(call.operand(0));
  const Split split = split_of(call, x.extents, 1);
  auto places = chosen(call, split, 1);
  if (!places) return forward(places);
  Array& y = call.result();
  const auto count = static_cast<std::int64_t>(places->size());
  with_bytes(split.inner * size_of(y.dtype), [&](auto move) {
    parallel_for(
        split.outer * count, 1 + kIndexGrain / (split.inner + 1),
        [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t i = begin; i < end; ++i)
            move(y.at(i * split.inner),
                 x.at(i / count * split.block + (*places)[static_cast<std::size_t>(i % count)]));
        });
  });
  return Done{};
}

// ---- index_put

/// work(outer, first column, end column) on disjoint parts: of the outer axes, or of the columns,
/// so that rows that go to one place meet in their order.
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

template <class T, class F>
void join_rows(const Split& split, const std::vector<std::int64_t>& places, const Array& values,
               const Array& y) {
  std::vector<T> to(static_cast<std::size_t>(y.count())), from(to.size());
  from.resize(static_cast<std::size_t>(values.count()));
  load_run(y.dtype, y.data, 1, y.count(), to.data());
  load_run(values.dtype, values.data, 1, values.count(), from.data());
  const auto count = static_cast<std::int64_t>(places.size());
  over_parts(split, count, [&](std::int64_t outer, std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = 0; i < count; ++i) {
      T* row = to.data() + outer * split.block + places[static_cast<std::size_t>(i)];
      const T* more = from.data() + (outer * count + i) * split.inner;
      for (std::int64_t c = begin; c < end; ++c) row[c] = F::of(row[c], more[c]);
    }
  });
  store_run(y.dtype, y.data, 1, y.count(), to.data());
}

template <class F>
void join(const Split& split, const std::vector<std::int64_t>& places, const Array& values,
          const Array& y) {
  if (!is_float(y.dtype)) return join_rows<std::int64_t, F>(split, places, values, y);
  if (y.dtype == DType::f64) return join_rows<double, F>(split, places, values, y);
  join_rows<float, F>(split, places, values, y);
}

/// The values as many as there are elements to write, row-major, in the dtype of the result.
Array spread(const Call& call, const Array& x, const Array& values) {
  const std::size_t axis = call.axis("dim", 0, x.rank());
  Extents extents = common_extents(call, 2);
  const auto behind = x.extents.begin() + static_cast<std::ptrdiff_t>(axis);
  extents.insert(extents.begin(), x.extents.begin(), behind);
  extents.insert(extents.end(), behind + static_cast<std::ptrdiff_t>(call.operands.size() - 2),
                 x.extents.end());
  return contiguous(
      {values.dtype, extents, broadcast_strides(values, extents), values.data, values.owner});
}

Done index_put(Call& call) {
  const Array& x = call.operand(0);
  const Split split = split_of(call, x.extents, 2);
  auto places = chosen(call, split, 2);
  if (!places) return forward(places);
  const Array values = spread(call, x, call.operand(1));
  Array& y = call.result();
  copy(x, y);
  const Attribute* reduce = call.graph.attribute(call.node, "reduce");
  const std::string how = reduce == nullptr ? "set" : std::get<std::string>(*reduce);
  if (how == "set") {
    set_rows(split, *places, values, y);
  } else if (how == "sum") {
    join<scalar::add>(split, *places, values, y);
  } else if (how == "prod") {
    join<scalar::mul>(split, *places, values, y);
  } else if (how == "amax") {
    join<scalar::maximum>(split, *places, values, y);
  } else if (how == "amin") {
    join<scalar::minimum>(split, *places, values, y);
  } else {
    return fail_call(call, "PW1203", fmt::format("elements cannot be joined by `{}`", how),
                     "set, sum, prod, amax, amin");
  }
  return Done{};
}

Done iota(Call& call) {
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
  return Done{};
}

constexpr KernelEntry kIndexing[] = {{"iota", iota}, {"index", index}, {"index_put", index_put}};

}  // namespace

KernelTable indexing() { return kIndexing; }

}  // namespace pw::eager
