// Reductions over the tokens where steps run padded: every engine covers the valid tokens alone,
// which it reads anew in each step.
#include <cmath>

#include <fmt/format.h>

#include "backends/cpu/cpu.hpp"
#include "backends/eager/eager.hpp"
#include "backends/interpreter/interpreter.hpp"
#include "base/hash.hpp"
#include "cuda/device/host_driver.hpp"
#include "cuda/runtime.hpp"
#include "dsl/dsl.hpp"
#include "tensor/numerics.hpp"
#include "tests/backends_cuda/kernel_run.hpp"

using namespace pw;
using namespace pw::test;

namespace {

// One scale for all tokens, from the largest magnitude of any.
constexpr const char* kOps = R"(
op per_tensor_fp8_quant(x: T[n, d]) -> (q: f8e4m3[n, d], s: f32[]) {
  h = f32(x)
  s = maximum(amax(amax(abs(h)){dim = -1}){dim = 0} / f32(448.0), f32(1e-10))
  q = f8e4m3(h / s)
}
)";

constexpr const char* kReductions =
    "in x: f32[n, 24]  s = sum(x){dim = 0}  m = mean(x){dim = 0}  a = amax(x){dim = 0}  i = "
    "amin(x){dim = -2}  out s, m, a, i";
constexpr const char* kTexts[] = {
    kReductions,
    // Along the rows, of narrow numbers and of integers; the address keeps the padded width.
    "in x: bf16[3, n], k: i64[2, n]  m = mean(x)  a = amax(x){keepdim = true}  y = x - a  t = "
    "sum(k)  out m, y, t",
    // Several rows and a part of a token, and a row more than there are tokens.
    "in x: f32[n, 10], r: f32[1, 10]  s = sum(reshape(x){shape = [2 * n, 5]}){dim = 0}  a = "
    "amax(reshape(x){shape = [10 * n]})  c = amin(cat(r, x){dim = 0}){dim = 0}  out s, a, c",
    "in x: bf16[n, 40]  q, s = per_tensor_fp8_quant(x)  y = f32(q) * s  out q, s, y",
    // Pointwise ops broadcast it back, and their rows are reduced again.
    "in x: f32[n, 24]  c = x - mean(x){dim = 0}  v = mean(c * c){dim = 0, keepdim = true}  y = c * "
    "rsqrt(v + 1e-5)  t = sum(y)  z = y / (1.0 + amax(abs(t)){dim = 0})  out z",
};

constexpr const char* kDecoder = R"(
  in ids: i64[n]
  in weight table: bf16[50, 32], w: bf16[32, 64], u: bf16[32, 64]
  x = embedding(table, ids)
  q, k, v = split(mm(x, w)){dim = -1, sizes = [32, 16, 16]}
  o = unified_attention(reshape(q){shape = [n, 4, 8]}, reshape(k){shape = [n, 2, 8]}, reshape(v){shape = [n, 2, 8]}, none){layer = "0"}
  h = reshape(o){shape = [n, 32]} + x
  a, s = per_tensor_fp8_quant(h)
  c = bf16(f32(a) * s)
  q2, k2, v2 = split(mm(c - mean(c){dim = 0}, u)){dim = -1, sizes = [32, 16, 16]}
  o2 = unified_attention(reshape(q2){shape = [n, 4, 8]}, reshape(k2){shape = [n, 2, 8]}, reshape(v2){shape = [n, 2, 8]}, none){layer = "1"}
  y = reshape(o2){shape = [n, 32]} + amax(h){dim = 0}
  out y, s
)";

constexpr std::int64_t kSize = 40;
/// All run at the one captured size; 1, 3, 8, 9, 17 and 40 tokens are added up by 1, 2, 4 and 8
/// lanes.
constexpr std::int64_t kSteps[] = {kSize, 3, 17, 1, 9, kSize, 8};

/// A graph of tokens, cut, and planned for one size.
struct PlannedRows {
  explicit PlannedRows(const std::string& text)
      : context(std::make_shared<Context>()), graph(make(text)), pieces(cut()), plan(decide()) {}
  PlannedRows(const PlannedRows&) = delete;
  Graph make(const std::string& text) const {
    need(load_rule_texts(context, {{"ops.pwr", kOps}}), *context);
    return need(
        parse_graph(context, fmt::format("graph g {{ symbol n in 1..{} tokens  {} }}", kSize, text),
                    "test"),
        *context);
  }
  StitchedGraph cut() const {
    return need(split(graph, need(splitting_ops(context, nullptr, {}, {}), *context)), *context);
  }
  Plan decide() const {
    PlanOptions options;
    options.max_tokens = kSize;
    options.capture_sizes = {kSize};
    Plan made = need(make_plan(pieces, graph, options), *context);
    REQUIRE(made.mode_reason == "");
    REQUIRE(made.mode == "piecewise");
    return made;
  }
  /// At its own size, so that nothing is left out, by the interpreter in single precision.
  [[nodiscard]] std::vector<Tensor> alone(Weights& weights, std::int64_t tokens) const {
    return need(
        run_whole(graph, *make_interpreter(Precision::single), weights, one_sequence(tokens)),
        *context);
  }

  ContextPtr context;
  Graph graph;
  StitchedGraph pieces;
  Plan plan;
};

RunOptions poisoned() {
  RunOptions options;
  options.poison = true;
  return options;
}

/// The largest difference, in parts of an output's largest number; 2 if one is not a number.
double apart(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    double largest = 0, most = 0;
    for (std::int64_t e = 0; e < a[i].view().count(); ++e) {
      const double x = load(a[i].dtype(), a[i].data(), e), y = load(b[i].dtype(), b[i].data(), e);
      if (!std::isfinite(x) || !std::isfinite(y)) return 2;
      largest = std::max(largest, std::abs(y));
      most = std::max(most, std::abs(x - y));
    }
    if (most > 0) worst = std::max(worst, most / largest);
  }
  return worst;
}

std::unique_ptr<Backend> cpu_backend(bool strict) {
  BackendOptions options;
  options.strict = strict;
  return std::make_unique<CpuBackend>(options);
}

/// Steps on a backend; `strict`: with the bits of the interpreter.
void check_runner(const PlannedRows& planned, Backend& backend, bool strict) {
  INFO(backend.name() << (strict ? ", strict" : ""));
  Runner runner =
      need(Runner::make(planned.pieces, planned.graph, planned.plan, backend), *planned.context);
  Weights weights(planned.graph, 7);
  for (const std::int64_t tokens : kSteps) {
    INFO(tokens << " tokens");
    const StepResult got =
        need(runner.run(one_sequence(tokens), weights, poisoned()), *planned.context);
    CHECK(got.report.padded == kSize);
    const auto wanted = planned.alone(weights, tokens);
    if (strict)
      CHECK(bits_apart(got.outputs, wanted) == "");
    else  // a step of f8e4m3 or bf16 where a sum was rounded otherwise
      CHECK(apart(got.outputs, wanted) <= 0.07);
  }
}

void check_runtime(const PlannedRows& planned, const cuda::HostDriverOptions& how) {
  const bool captures = !how.refuse_graph;
  INFO("on the driver, " << (captures ? "captured" : "launched"));
  cuda::HostDriver driver(cached(how));
  cuda::RuntimeOptions options;
  options.strict = true;
  auto runtime =
      need(cuda::Runtime::make(planned.pieces, planned.graph, planned.plan, driver, options),
           *planned.context);
  CHECK(runtime->notes().empty());
  Weights weights(planned.graph, 7);
  need(runtime->load(weights), *planned.context);
  need(runtime->capture(), *planned.context);
  for (const std::int64_t tokens : kSteps) {
    INFO(tokens << " tokens");
    const StepResult got =
        need(runtime->run(one_sequence(tokens), weights, poisoned()), *planned.context);
    CHECK(got.report.padded == kSize);
    CHECK(bits_apart(got.outputs, planned.alone(weights, tokens)) == "");
  }
  const cuda::RuntimeCounters& counters = runtime->counters();
  CHECK(counters.executables == (captures ? planned.pieces.capturable() : 0));
  CHECK(counters.replays == counters.executables * std::size(kSteps));
  CHECK(counters.stale == 0);
}

/// Graphs of matrices [n, d], of what is left of them where tokens or columns are reduced, and of
/// what broadcasting makes of both. All numbers stay small.
std::string random_text(std::uint64_t seed) {
  Random random(seed);
  const std::int64_t d = std::int64_t{2} << random.below(5);
  std::string body;
  std::vector<std::string> matrices{"x"}, all{"x"};
  const auto any = [&](const std::vector<std::string>& from) {
    return from[random.below(from.size())];
  };
  const auto add = [&](const std::string& text, bool matrix) {
    all.push_back(fmt::format("v{}", all.size()));
    body += fmt::format("  {} = {}\n", all.back(), text);
    if (matrix) matrices.push_back(all.back());
  };
  const std::size_t steps = 3 + random.below(6);
  for (std::size_t i = 0; i < steps; ++i) {
    static constexpr const char* kOf[] = {"sum", "mean", "amax", "amin"};
    const char* of = kOf[random.below(4)];
    const std::string m = any(matrices);
    switch (random.below(7)) {
      case 0: add(fmt::format("tanh({}({}){{dim = 0, keepdim = true}})", of, m), false); break;
      case 1: add(fmt::format("tanh({}({}){{keepdim = true}})", of, m), false); break;
      case 2: add(fmt::format("tanh({}({}){{dim = 0}})", of, m), false); break;
      case 3: add(fmt::format("tanh({}(reshape({}){{shape = [{} * n]}}))", of, m, d), false); break;
      case 4:
        add(fmt::format("tanh({}(transpose({}){{dim0 = 0, dim1 = 1}}))", of, m), false);
        break;
      case 5: add(fmt::format("{} * {} + {}", m, any(all), any(all)), true); break;
      default: add(fmt::format("{} / (1.0 + abs({}))", m, any(all)), true);
    }
  }
  add(fmt::format("{} - {}", matrices.back(), any(all)), true);
  const std::string last = all.back(), other = any(all);
  add(fmt::format("amax({}){{dim = 0}}", last), false);
  return fmt::format("in x: f32[n, {}]\n{}  out {}, {}{}", d, body, last, all.back(),
                     other == "x" || other == last ? "" : ", " + other);
}

}  // namespace

TEST_CASE("valid tokens: padded steps give what unpadded ones give, on every engine",
          "[cuda][diff]") {
  for (const char* text : kTexts) {
    INFO(text);
    const PlannedRows planned(text);
    check_runner(planned, *make_interpreter(Precision::single), true);
    check_runner(planned, *make_interpreter(), false);
    check_runner(planned, *make_eager(), false);
    check_runner(planned, *cpu_backend(true), true);
    check_runner(planned, *cpu_backend(false), false);
    check_runtime(planned, {});
    cuda::HostDriverOptions refusing;
    refusing.refuse_graph = 0;
    check_runtime(planned, refusing);
  }
}

TEST_CASE("valid tokens: what is reduced is what plain loops give", "[cuda][diff]") {
  const PlannedRows planned(kReductions);
  const auto backend = cpu_backend(true);
  Runner runner =
      need(Runner::make(planned.pieces, planned.graph, planned.plan, *backend), *planned.context);
  Weights weights(planned.graph, 3);
  for (const std::int64_t tokens : kSteps) {
    INFO(tokens << " tokens");
    const Step step = one_sequence(tokens);
    const std::vector<double> x =
        values_of(need(weights.tensor("x", {{"n", tokens}}, step), *planned.context).view());
    const auto got = need(runner.run(step, weights, poisoned()), *planned.context).outputs;
    for (std::int64_t column = 0; column < 24; ++column) {
      double sum = 0, sizes = 0, most = -HUGE_VAL, least = HUGE_VAL;
      for (std::int64_t row = 0; row < tokens; ++row) {
        const double v = x[static_cast<std::size_t>(row * 24 + column)];
        sum += v, sizes += std::abs(v);
        most = std::max(most, v), least = std::min(least, v);
      }
      const auto of = [&](std::size_t output) {
        return load(DType::f32, got[output].data(), column);
      };
      const double rounding = 40 * 6e-8 * sizes;
      CHECK(of(0) == Approx(sum).margin(rounding));
      CHECK(of(1) == Approx(sum / static_cast<double>(tokens)).margin(rounding));
      CHECK(of(2) == most);
      CHECK(of(3) == least);
    }
  }
}

TEST_CASE("valid tokens: a piece between attentions reduces over them", "[cuda][diff]") {
  const PlannedRows planned(kDecoder);
  CHECK(planned.pieces.capturable() == 3);
  check_runner(planned, *cpu_backend(true), true);
  check_runtime(planned, {});
  cuda::HostDriverOptions bare;
  bare.libraries = false;
  check_runtime(planned, bare);
}

TEST_CASE("valid tokens: random graphs of rows and reductions over them", "[cuda][diff]") {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    const std::string text = random_text(seed);
    INFO("seed " << seed << ": " << text);
    const PlannedRows planned(text);
    check_runner(planned, *cpu_backend(true), true);
    check_runtime(planned, {});
  }
}
