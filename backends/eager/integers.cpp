// Exports the integer and b8 forms of pointwise ops: plain loops over int64.
#include "backends/eager/kernels.hpp"
#include "backends/scalar.hpp"

namespace pw::eager {
namespace {

using namespace scalar;
using Done = Result<std::monostate>;
constexpr std::int64_t kRun = 512;

template <class F, std::size_t N>
Done loop(Call& call) {
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
      if constexpr (N == 1) in[0][i] = F::template of<std::int64_t>(in[0][i]);
      if constexpr (N == 2) in[0][i] = F::template of<std::int64_t>(in[0][i], in[1][i]);
      if constexpr (N == 3) in[0][i] = in[0][i] != 0 ? in[1][i] : in[2][i];
    }
    store_run(y.dtype, y.at(run.offsets[N]), run.steps[N], run.length, in[0]);
  });
  return Done{};
}

Done bitwise_not(Call& call) {
  return call.result_dtype() == DType::b8 ? loop<Flip, 1>(call) : loop<Not, 1>(call);
}

constexpr KernelEntry kIntegers[] = {
    {"add", loop<Add, 2>},         {"sub", loop<Sub, 2>},         {"mul", loop<Mul, 2>},
    {"div", loop<Div, 2>},         {"pow", loop<Pow, 2>},         {"maximum", loop<Maximum, 2>},
    {"minimum", loop<Minimum, 2>}, {"eq", loop<Eq, 2>},           {"ne", loop<Ne, 2>},
    {"lt", loop<Lt, 2>},           {"le", loop<Le, 2>},           {"gt", loop<Gt, 2>},
    {"ge", loop<Ge, 2>},           {"bitwise_and", loop<And, 2>}, {"bitwise_or", loop<Or, 2>},
    {"bitwise_not", bitwise_not},  {"select", loop<Same, 3>},     {"neg", loop<Neg, 1>},
    {"abs", loop<Abs, 1>},         {"cast", loop<Same, 1>},
};

}  // namespace

Done run_integers(Call& call) {
  for (std::size_t i = 0; i < call.operands.size(); ++i) {
    if (is_float(call.operand_dtype(i)))
      return fail_call(call, "PW1203", "a bitwise op takes integers and b8 only");
  }
  return find_kernel(kIntegers, call.graph.op_of(call.node).name)(call);
}

}  // namespace pw::eager
