#include <vector>

#include <fmt/format.h>

#include "backends/interpreter/kernels.hpp"
#include "graph/ops/scalar_functions.hpp"
#include "tensor/numerics.hpp"

namespace pw {

template <class Real>
void store_declared(DType declared, const Array& array, std::int64_t offset, std::int64_t step,
                    std::int64_t n, Real* values) {
  if (declared != array.dtype && (declared == DType::f8e4m3 || declared == DType::f8e5m2)) {
    for (std::int64_t i = 0; i < n; ++i)
      values[i] = static_cast<Real>(rounded(declared, static_cast<double>(values[i])));
  }
  store_run(array.dtype, array.at(offset), step, n, values);
}
template void store_declared(DType, const Array&, std::int64_t, std::int64_t, std::int64_t, float*);
template void store_declared(DType, const Array&, std::int64_t, std::int64_t, std::int64_t,
                             double*);
template void store_declared(DType, const Array&, std::int64_t, std::int64_t, std::int64_t,
                             std::int64_t*);

namespace {

constexpr std::int64_t kRun = 512;

template <class T, class F, std::size_t N>
Status loop(Call& call) {
  Array& y = call.result();
  std::vector<Extents> strides;
  for (const Array* x : call.operands) strides.push_back(broadcast_strides(*x, y.extents));
  strides.push_back(y.strides);
  const DType declared = call.result_dtype();
  T in[N][kRun];
  for_each_run(y.extents, strides, kRun, [&](const Run& run) {
    for (std::size_t a = 0; a < N; ++a)
      load_run(call.operand(a).dtype, call.operand(a).at(run.offsets[a]), run.steps[a], run.length,
               in[a]);
    for (std::int64_t i = 0; i < run.length; ++i) {
      if constexpr (N == 1) in[0][i] = F::of(in[0][i]);
      if constexpr (N == 2) in[0][i] = F::of(in[0][i], in[1][i]);
      if constexpr (N == 3) in[0][i] = F::of(in[0][i], in[1][i], in[2][i]);
    }
    store_declared(declared, y, run.offsets[N], run.steps[N], run.length, in[0]);
  });
  return {};
}

template <class Real, class F, std::size_t N>
Status pointwise(Call& call) {
  const DType common = call.common_dtype(N == 3 ? 1 : 0);
  if (!is_float(common)) return loop<std::int64_t, F, N>(call);
  return common == DType::f64 ? loop<double, F, N>(call) : loop<Real, F, N>(call);
}
template <class Real, class F>
Status real_unary(Call& call) {
  return call.operand_dtype(0) == DType::f64 ? loop<double, F, 1>(call) : loop<Real, F, 1>(call);
}
template <class F, std::size_t N>
Status bitwise(Call& call) {
  return call.result_dtype() == DType::b8 ? loop<std::int64_t, scalar::Truth<F>, N>(call)
                                          : loop<std::int64_t, F, N>(call);
}

/// Casts go through double, which holds every value but large i64 exactly; between integers through
/// int64.
Status cast(Call& call) {
  const bool integral = !is_float(call.operand_dtype(0)) && !is_float(call.result_dtype());
  return integral ? loop<std::int64_t, scalar::Same, 1>(call) : loop<double, scalar::Same, 1>(call);
}

/// Returns true if a dtype holds each value of another.
bool holds(DType to, DType from) {
  if (!is_float(to) || !is_float(from)) return to == from;
  const FloatFormat a = format_of(to), b = format_of(from);
  return a.mantissa >= b.mantissa && a.largest >= b.largest &&
         a.smallest - a.mantissa <= b.smallest - b.mantissa;
}

/// A cast that rounds although its result is stored as double.
Status stated_cast(Call& call) {
  if (auto done = cast(call); !done) return done;
  const DType to = call.result_dtype();
  const Array& y = call.results[0];
  if (y.dtype == to || holds(to, call.operand_dtype(0))) return {};
  auto* const values = reinterpret_cast<double*>(y.data);
  for (std::int64_t i = 0; i < y.count(); ++i) values[i] = rounded(to, values[i]);
  return {};
}

Status embedding(Call& call) {
  const Array& table = call.operand(0);
  const Array ids = contiguous(call.operand(1));
  Array& y = call.result();
  const std::int64_t width = table.extents[0] == 0 ? 0 : table.count() / table.extents[0];
  Array row = table;
  row.extents.erase(row.extents.begin());
  row.strides.erase(row.strides.begin());
  Array target = y;
  target.extents = row.extents;
  target.strides = row_major(row.extents);
  for (std::int64_t i = 0; i < ids.count(); ++i) {
    const auto id = static_cast<std::int64_t>(load(ids.dtype, ids.data, i));
    if (id < 0 || id >= table.extents[0])
      return fail_call(call, "PW1204",
                       fmt::format("index {} is outside a table of {} rows", id, table.extents[0]));
    row.data = table.at(id * table.strides[0]);
    target.data = y.at(i * width);
    copy(row, target);
  }
  return {};
}

#define PW_NUMBERS(name, operands) {Primitive::name, pointwise<Real, scalar::name, operands>},
#define PW_INTEGERS(name, operands) {Primitive::name, bitwise<scalar::name, operands>},
#define PW_REALS(name) {Primitive::name, real_unary<Real, scalar::name>},
template <class Real>
constexpr KernelEntry kPointwise[] = {PW_NUMBER_PRIMITIVES(PW_NUMBERS)
                                          PW_INTEGER_PRIMITIVES(PW_INTEGERS)
                                              PW_REAL_PRIMITIVES(PW_REALS){Primitive::cast, cast},
                                      {Primitive::embedding, embedding}};
#undef PW_NUMBERS
#undef PW_INTEGERS
#undef PW_REALS

template <class Real>
KernelTable whole_table() {
  static const std::vector<KernelEntry> table = [] {
    std::vector<KernelEntry> all;
    for (KernelTable part :
         {KernelTable(kPointwise<Real>), interpreter_reductions<Real>(),
          interpreter_products<Real>(), interpreter_indexing<Real>(), interpreter_scan<Real>(),
          interpreter_attention<Real>(), interpreter_latent<Real>(),
          interpreter_convolutions<Real>(), interpreter_windows<Real>()}) {
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }();
  return table;
}

}  // namespace

KernelTable exact_kernels() { return whole_table<double>(); }
KernelTable stated_kernels() {
  static const std::vector<KernelEntry> table = [] {
    std::vector<KernelEntry> all{
        {Primitive::cast, stated_cast}};  // the first entry of a primitive is used
    const KernelTable rest = exact_kernels();
    all.insert(all.end(), rest.begin(), rest.end());
    return all;
  }();
  return table;
}
KernelTable single_kernels() { return whole_table<float>(); }

}  // namespace pw
