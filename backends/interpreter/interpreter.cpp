#include "backends/interpreter/interpreter.hpp"

#include "backends/interpreter/kernels.hpp"
#include "backends/program.hpp"
#include "base/try.hpp"

namespace pw {
namespace {

Engine engine_of(Precision precision) {
  if (precision != Precision::single) {
    return {"interpreter", precision == Precision::exact ? exact_kernels() : stated_kernels(),
            [](DType declared) { return is_float(declared) ? DType::f64 : declared; }};
  }
  return {"interpreter", single_kernels(), [](DType declared) { return declared; }};
}

class Interpreter final : public Backend {
 public:
  explicit Interpreter(Precision precision) : precision_(precision) {}
  [[nodiscard]] std::string name() const override { return "interpreter"; }
  [[nodiscard]] Result<std::unique_ptr<Executable>> compile(const Graph& piece) override {
    return compile_program(piece, engine_of(precision_));
  }

 private:
  Precision precision_;
};

}  // namespace

Result<std::vector<std::vector<Tensor>>> interpret_ranks(
    const Graph& graph, std::span<const std::vector<TensorView>> inputs, const RunContext& context,
    Precision precision) {
  auto program = PW_TRY(OpProgram::make(graph, engine_of(precision)));
  std::vector<std::vector<Tensor>> outputs(inputs.size());
  std::vector<RankTensors> ranks;
  for (std::size_t rank = 0; rank < inputs.size(); ++rank) {
    ranks.push_back({inputs[rank], {}});
    for (ValueId output : program.graph().outputs()) {
      auto extents = PW_TRY(extents_of(program.graph(), output, context.symbols));
      outputs[rank].emplace_back(DType::f64, std::move(extents));
      ranks[rank].outputs.push_back(outputs[rank].back().view());
    }
  }
  PW_TRY(program.run_ranks(ranks, context));
  return outputs;
}

Result<std::vector<Tensor>> interpret(const Graph& graph, std::span<const TensorView> inputs,
                                      const RunContext& context, Precision precision) {
  const std::vector<TensorView> alone[] = {{inputs.begin(), inputs.end()}};
  auto outputs = PW_TRY(interpret_ranks(graph, alone, context, precision));
  return std::move(outputs.front());
}

std::unique_ptr<Backend> make_interpreter(Precision precision) {
  return std::make_unique<Interpreter>(precision);
}

BackendKind interpreter_backend() {
  const auto make = [](const BackendOptions& options) {
    return make_interpreter(options.strict ? Precision::single : Precision::stated);
  };
  return {.name = "interpreter",
          .what = "runs op by op in double precision (slow)",
          .can = {.ranks = true, .strict = true},
          .make = make,
          .runs = [](const Op& op) { return runs_op(exact_kernels(), op); },
          .own_whole = true};
}

}  // namespace pw
