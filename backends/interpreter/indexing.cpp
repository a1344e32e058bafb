#include <type_traits>
#include <vector>

#include <fmt/format.h>

#include "backends/interpreter/kernels.hpp"
#include "base/try.hpp"
#include "graph/ops/scalar_functions.hpp"

namespace pw {
namespace {

/// Advances to the coordinates of the next element in row-major order.
void advance(Extents& at, const Extents& extents) {
  for (std::size_t i = extents.size(); i-- > 0;) {
    if (++at[i] < extents[i]) return;
    at[i] = 0;
  }
}

/// Returns the offset of a broadcast array's element at the last coordinates.
std::size_t place_in(const Extents& extents, const std::int64_t* at, std::size_t rank) {
  const Extents strides = row_major(extents);
  std::int64_t place = 0;
  for (std::size_t i = 0; i < extents.size(); ++i)
    if (extents[i] != 1) place += at[rank - extents.size() + i] * strides[i];
  return static_cast<std::size_t>(place);
}

/// The index tensors, and their positions among the axes of the array that they index.
struct Chooser {
  std::vector<std::vector<std::int64_t>> indices;
  std::vector<Extents> extents;
  std::size_t axis = 0, rank = 0;  ///< rank: of the indices together
  bool wrap = false;
};

Chooser chooser_of(const Call& call, std::size_t first) {
  Chooser out;
  out.axis = call.axis("dim", 0, call.operand(0).rank());
  out.wrap = call.integer("wrap", 0) != 0;
  for (std::size_t k = first; k < call.operands.size(); ++k) {
    out.indices.push_back(elements_of<std::int64_t>(call.operand(k)));
    out.extents.push_back(call.operand(k).extents);
    out.rank = std::max(out.rank, out.extents.back().size());
  }
  return out;
}

/// The extents of the selected elements of x.
Extents chosen_extents(const Chooser& chooser, const Extents& x) {
  Extents out(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(chooser.axis));
  out.resize(chooser.axis + chooser.rank, 1);
  for (const Extents& extents : chooser.extents)
    for (std::size_t i = 0; i < extents.size(); ++i)
      if (extents[i] != 1) out[out.size() - extents.size() + i] = extents[i];
  out.insert(out.end(),
             x.begin() + static_cast<std::ptrdiff_t>(chooser.axis + chooser.extents.size()),
             x.end());
  return out;
}

/// Returns the offset in x of the element at `at` of the result.
Result<std::size_t> source_of(const Call& call, const Chooser& chooser, const Extents& x,
                              const Extents& at) {
  const Extents strides = row_major(x);
  std::int64_t place = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    std::int64_t from = 0;
    if (i < chooser.axis) {
      from = at[i];
    } else if (const std::size_t k = i - chooser.axis; k < chooser.indices.size()) {
      const std::int64_t given =
          chooser.indices[k][place_in(chooser.extents[k], at.data() + chooser.axis, chooser.rank)];
      from = chooser.wrap && given < 0 ? given + x[i] : given;
      if (from < 0 || from >= x[i])
        return fail_call(call, "PW1204",
                         fmt::format("index {} is outside an axis of {}", given, x[i]));
    } else {
      from = at[i - chooser.indices.size() + chooser.rank];
    }
    place += from * strides[i];
  }
  return static_cast<std::size_t>(place);
}

template <class T>
Status index_as(Call& call) {
  const Chooser chooser = chooser_of(call, 1);
  const Extents& x = call.operand(0).extents;
  const std::vector<T> from = elements_of<T>(call.operand(0));
  Array& y = call.result();
  std::vector<T> to(static_cast<std::size_t>(y.count()));
  Extents at(y.extents.size(), 0);
  for (T& value : to) {
    auto place = PW_TRY(source_of(call, chooser, x, at));
    value = from[place];
    advance(at, y.extents);
  }
  store_declared(call.result_dtype(), y, 0, 1, y.count(), to.data());
  return {};
}

template <class T>
T joined(std::string_view how, T a, T b) {
  if (how == "sum") return scalar::add::of(a, b);
  if (how == "prod") return scalar::mul::of(a, b);
  if (how == "amax") return scalar::maximum::of(a, b);
  return how == "amin" ? scalar::minimum::of(a, b) : b;
}

template <class T>
Status index_put_as(Call& call) {
  const Attribute* reduce = call.graph.attribute(call.node, "reduce");
  const std::string how = reduce == nullptr ? "set" : std::get<std::string>(*reduce);
  if (how != "set" && how != "sum" && how != "prod" && how != "amax" && how != "amin")
    return fail_call(call, "PW1203", fmt::format("elements cannot be joined by `{}`", how),
                     "set, sum, prod, amax, amin");
  const Chooser chooser = chooser_of(call, 2);
  const Extents& x = call.operand(0).extents;
  std::vector<T> to = elements_of<T>(call.operand(0));
  const std::vector<T> values = elements_of<T>(call.operand(1));
  const Extents extents = chosen_extents(chooser, x);
  Extents at(extents.size(), 0);
  for (std::int64_t n = element_count(extents); n > 0; --n) {
    auto place = PW_TRY(source_of(call, chooser, x, at));
    to[place] =
        joined(how, to[place], values[place_in(call.operand(1).extents, at.data(), at.size())]);
    advance(at, extents);
  }
  Array& y = call.result();
  store_declared(call.result_dtype(), y, 0, 1, y.count(), to.data());
  return {};
}

template <class Real>
Status index(Call& call) {
  const DType dtype = call.operand_dtype(0);
  if (!is_float(dtype)) return index_as<std::int64_t>(call);
  return dtype == DType::f64 ? index_as<double>(call) : index_as<Real>(call);
}

template <class Real>
Status index_put(Call& call) {
  const DType dtype = call.operand_dtype(0);
  if (!is_float(dtype)) return index_put_as<std::int64_t>(call);
  return dtype == DType::f64 ? index_put_as<double>(call) : index_put_as<Real>(call);
}

Status iota(Call& call) {
  Array& y = call.result();
  const std::int64_t width = y.extents.empty() ? 1 : y.extents.back();
  for (std::int64_t i = 0; i < y.count(); ++i) {
    std::int64_t value = i % width;
    store_declared(call.result_dtype(), y, i, 1, 1, &value);
  }
  return {};
}

template <class Real>
constexpr KernelEntry kIndexing[] = {{Primitive::iota, iota},
                                     {Primitive::index, index<Real>},
                                     {Primitive::index_put, index_put<Real>}};

}  // namespace

template <class Real>
KernelTable interpreter_indexing() {
  return kIndexing<Real>;
}
template KernelTable interpreter_indexing<float>();
template KernelTable interpreter_indexing<double>();

}  // namespace pw
