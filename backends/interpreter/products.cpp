#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include <fmt/format.h>

#include "backends/interpreter/kernels.hpp"
#include "backends/sequences.hpp"
#include "graph/ops/scalar_functions.hpp"
#include "tensor/linalg/gemm.hpp"

namespace pw {
namespace {

Matrix matrix_of(const Array& x) {
  return {x.dtype, x.data, x.extents[0], x.extents[1], x.strides[0], x.strides[1]};
}

template <class Real>
std::vector<Real> product(const Array& a, const Array& b) {
  std::vector<Real> c(static_cast<std::size_t>(a.extents[0] * b.extents[1]));
  if constexpr (std::is_same_v<Real, double>) {
    gemm(matrix_of(a), matrix_of(b), c.data());
  } else {
    gemm_in_order(matrix_of(a), matrix_of(b), c.data());
  }
  return c;
}

Status mm_of_integers(Call& call) {
  Array& y = call.result();
  std::vector<std::int64_t> c(static_cast<std::size_t>(y.count()));
  gemm(matrix_of(call.operand(0)), matrix_of(call.operand(1)), c.data());
  store_run(y.dtype, y.data, 1, y.count(), c.data());
  return {};
}

template <class Real>
Status mm(Call& call) {
  if (is_integer(call.operand_dtype(0))) return mm_of_integers(call);
  std::vector<Real> c = product<Real>(call.operand(0), call.operand(1));
  Array& y = call.result();
  store_declared(call.result_dtype(), y, 0, 1, y.count(), c.data());
  return {};
}

/// Calls `make(a, b, at)` for each pair of matrices; `at` is the offset of the result's.
template <class Make>
Status each_product(Call& call, const Make& make) {
  Array a = contiguous(call.operand(0)), b = contiguous(call.operand(1));
  Array& y = call.result();
  const auto rank = static_cast<std::size_t>(y.rank());
  const std::int64_t n = y.extents[rank - 2], m = y.extents[rank - 1], k = a.extents[rank - 1];
  const Array left{a.dtype, {n, k}, {k, 1}, a.data, a.owner},
      right{b.dtype, {k, m}, {m, 1}, b.data, b.owner};
  for (std::int64_t i = 0; i * n * m < y.count(); ++i) {
    Array x = left, z = right;
    x.data = a.at(i * n * k);
    z.data = b.at(i * k * m);
    make(x, z, i * n * m);
  }
  return {};
}

Status bmm_of_integers(Call& call) {
  Array& y = call.result();
  return each_product(call, [&](const Array& a, const Array& b, std::int64_t at) {
    std::vector<std::int64_t> c(static_cast<std::size_t>(a.extents[0] * b.extents[1]));
    gemm(matrix_of(a), matrix_of(b), c.data());
    store_run(y.dtype, y.at(at), 1, static_cast<std::int64_t>(c.size()), c.data());
  });
}

template <class Real>
Status bmm(Call& call) {
  if (is_integer(call.operand_dtype(0))) return bmm_of_integers(call);
  Array& y = call.result();
  return each_product(call, [&](const Array& a, const Array& b, std::int64_t at) {
    std::vector<Real> c = product<Real>(a, b);
    store_declared(call.result_dtype(), y, at, 1, static_cast<std::int64_t>(c.size()), c.data());
  });
}

template <class Real>
Status grouped_mm(Call& call) {
  const Array x = contiguous(call.operand(0)), w = contiguous(call.operand(1));
  Array& y = call.result();
  const auto ends = group_ends(call);
  if (!ends) return tl::unexpected(ends.error());
  const std::int64_t k = x.extents[1], m = y.extents[1];
  std::vector<Real> rows(static_cast<std::size_t>(y.count()), Real(0));
  std::int64_t begin = 0;
  for (std::size_t g = 0; g < ends->size(); begin = (*ends)[g++]) {
    const Array part{x.dtype, {(*ends)[g] - begin, k}, {k, 1}, x.at(begin * k), x.owner},
        weight{w.dtype, {k, m}, {m, 1}, w.at(static_cast<std::int64_t>(g) * k * m), w.owner};
    const std::vector<Real> c = product<Real>(part, weight);
    std::copy(c.begin(), c.end(), rows.begin() + begin * m);
  }
  store_declared(call.result_dtype(), y, 0, 1, y.count(), rows.data());
  return {};
}

template <class Real>
Status addmm(Call& call) {
  const std::vector<Real> bias = elements_of<Real>(call.operand(0));
  std::vector<Real> c = product<Real>(call.operand(1), call.operand(2));
  for (std::size_t i = 0; i < c.size(); ++i) c[i] += bias[i % bias.size()];
  Array& y = call.result();
  store_declared(call.result_dtype(), y, 0, 1, y.count(), c.data());
  return {};
}

template <class Real>
Status scaled_mm(Call& call) {
  std::vector<Real> c = product<Real>(call.operand(0), call.operand(1));
  const std::vector<Real> sa = elements_of<Real>(call.operand(2)),
                          sb = elements_of<Real>(call.operand(3));
  Array& y = call.result();
  const auto rows = static_cast<std::size_t>(y.extents[0]),
             columns = static_cast<std::size_t>(y.extents[1]);
  if ((sa.size() != 1 && sa.size() != rows) || (sb.size() != 1 && sb.size() != columns)) {
    return fail_call(call, "PW1203",
                     "the scales need one element, or one per row (sa) and one per column (sb)");
  }
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < columns; ++j)
      c[i * columns + j] *= sa[sa.size() == 1 ? 0 : i] * sb[sb.size() == 1 ? 0 : j];
  }
  store_declared(call.result_dtype(), y, 0, 1, y.count(), c.data());
  return {};
}

/// Adds a product like single-precision products do; `a * b + c` in double.
template <class Real>
Real add_product(Real a, Real b, Real c) {
  if constexpr (std::is_same_v<Real, float>) return std::fma(a, b, c);
  return a * b + c;
}
/// Attends from one query row to the keys of its sequence up to itself; `scores` must have room for
/// them.
template <class Real>
void attend(const Real* q, const Real* k, const Real* v, std::int64_t step, std::int64_t keys,
            std::int64_t width, Real* scores, Real* out) {
  const Real scale = 1 / std::sqrt(static_cast<Real>(width));
  Real largest = -INFINITY, total = 0;
  for (std::int64_t j = 0; j < keys; ++j) {
    Real dot = 0;
    for (std::int64_t d = 0; d < width; ++d) dot = add_product(q[d], k[j * step + d], dot);
    scores[j] = dot * scale;
    largest = scores[j] > largest || scores[j] != scores[j] ? scores[j] : largest;
  }
  for (std::int64_t d = 0; d < width; ++d) out[d] = 0;
  for (std::int64_t j = 0; j < keys; ++j) {
    const Real weight = scalar::exp::of(scores[j] - largest);
    total += weight;
    for (std::int64_t d = 0; d < width; ++d) out[d] = add_product(weight, v[j * step + d], out[d]);
  }
  for (std::int64_t d = 0; d < width; ++d) out[d] /= total;
}

template <class Real>
Status attention(Call& call) {
  const Array& query = call.operand(0);
  const std::int64_t heads = query.extents[1], width = query.extents[2];
  const std::int64_t kv_heads = call.operand(1).extents[1];
  if (kv_heads == 0 || heads % kv_heads != 0)
    return fail_call(
        call, "PW1203",
        fmt::format("{} query heads are not a multiple of {} key heads", heads, kv_heads));
  const auto keys = seen_keys(call);
  if (!keys) return tl::unexpected(keys.error());
  const std::vector<Real> q = elements_of<Real>(query), k = elements_of<Real>(keys->k),
                          v = elements_of<Real>(keys->v);
  const Real divisor = call.operands.size() > 3 && call.operands[3] != nullptr
                           ? elements_of<Real>(call.operand(3))[0]
                           : Real(1);
  std::vector<Real> out(q.size(), Real(0)), scores(static_cast<std::size_t>(keys->k.extents[0]));
  for (std::size_t s = 0; s < keys->keys.size(); ++s) {
    const RowSpan& queries = keys->queries[s];
    for (std::int64_t row = queries.begin; row < queries.end; ++row) {
      for (std::int64_t head = 0; head < heads; ++head) {
        const std::int64_t first = keys->keys[s].begin;
        const std::int64_t key = (first * kv_heads + head / (heads / kv_heads)) * width;
        const std::int64_t at = (row * heads + head) * width;
        Real* o = out.data() + at;
        attend(q.data() + at, k.data() + key, v.data() + key, kv_heads * width,
               keys->past(s) + row - queries.begin + 1, width, scores.data(), o);
        for (std::int64_t d = 0; d < width && divisor != 1; ++d) o[d] /= divisor;
      }
    }
  }
  Array& y = call.result();
  store_declared(call.result_dtype(), y, 0, 1, y.count(), out.data());
  return {};
}

template <class Real>
constexpr KernelEntry kProducts[] = {{Primitive::mm, mm<Real>},
                                     {Primitive::addmm, addmm<Real>},
                                     {Primitive::bmm, bmm<Real>},
                                     {Primitive::grouped_mm, grouped_mm<Real>},
                                     {Primitive::scaled_mm, scaled_mm<Real>},
                                     {Primitive::unified_attention, attention<Real>}};

}  // namespace

template <class Real>
KernelTable interpreter_products() {
  return kProducts<Real>;
}
template KernelTable interpreter_products<float>();
template KernelTable interpreter_products<double>();

}  // namespace pw
