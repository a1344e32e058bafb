#include "backends/eager/kernels.hpp"
#include "graph/ops/scalar_functions.hpp"

namespace pw::eager {
namespace {

constexpr std::int64_t kRun = 512;

template <class F, std::size_t N>
Status loop(Call& call) {
  Array& y = call.result();
  std::vector<Extents> strides;
  for (const Array* x : call.operands) strides.push_back(broadcast_strides(*x, y.extents));
  strides.push_back(y.strides);
  std::int64_t in[N][kRun];
  for_each_run(y.extents, strides, kRun, [&](const Run& run) {
    for (std::size_t a = 0; a < N; ++a)
      load_run(call.operand(a).dtype, call.operand(a).at(run.offsets[a]), run.steps[a], run.length,
               in[a]);
    for (std::int64_t i = 0; i < run.length; ++i) {
      if constexpr (N == 1) in[0][i] = F::of(in[0][i]);
      if constexpr (N == 2) in[0][i] = F::of(in[0][i], in[1][i]);
      if constexpr (N == 3) in[0][i] = F::of(in[0][i], in[1][i], in[2][i]);
    }
    store_run(y.dtype, y.at(run.offsets[N]), run.steps[N], run.length, in[0]);
  });
  return {};
}

template <class F, std::size_t N>
Status bitwise(Call& call) {
  return call.result_dtype() == DType::b8 ? loop<scalar::Truth<F>, N>(call) : loop<F, N>(call);
}

#define PW_NUMBERS(name, operands) {Primitive::name, loop<scalar::name, operands>},
#define PW_INTEGERS(name, operands) {Primitive::name, bitwise<scalar::name, operands>},
constexpr KernelEntry kIntegers[] = {PW_NUMBER_PRIMITIVES(PW_NUMBERS) PW_INTEGER_PRIMITIVES(
    PW_INTEGERS){Primitive::cast, loop<scalar::Same, 1>}};
#undef PW_NUMBERS
#undef PW_INTEGERS

}  // namespace

Status run_integers(Call& call) {
  for (std::size_t i = 0; i < call.operands.size(); ++i) {
    if (is_float(call.operand_dtype(i)))
      return fail_call(call, "PW1203", "a bitwise op requires integers or b8");
  }
  return find_kernel(kIntegers, call.graph.op_of(call.node).primitive)(call);
}

}  // namespace pw::eager
