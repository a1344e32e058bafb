// One executable of each engine, run by several threads and from within its own runs, at changing
// symbols, on weights that are frozen or not.
#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "backends/cpu/cpu.hpp"
#include "backends/cpu/frozen.hpp"
#include "backends/eager/eager.hpp"
#include "backends/host_functions.hpp"
#include "backends/interpreter/interpreter.hpp"
#include "backends/program.hpp"
#include "exec/runner.hpp"
#include "tests/backends/graphs.hpp"

namespace {

using namespace pw;
using namespace pw::test;

constexpr std::size_t kCallers = 4, kRuns = 40;
constexpr std::int64_t kWidth = 32;

// Row kernels, a product whose weight is computed from a weight, and a host op.
constexpr const char* kModel = R"(
  symbol n in 1..4096 tokens
  op mine.again(...)
  in x: f32[n, 32]
  in weight w: f32[32, 32]
  u = exp(transpose(w){dim0 = 0, dim1 = 1})
  a = mm(x * 2.0, u)
  b: f32[n, 32] = mine.again(a)
  c = neg(b) + x
  d = mm(c, w)
  out c, d)";

/// A graph, its executable, and the action of the thread's host function during its runs.
class Model {
 public:
  explicit Model(std::unique_ptr<Backend> backend)
      : graph_(graph_of(kModel)), backend_(std::move(backend)) {
    give_host_function(graph_.context(), "mine.again", [](const HostCall& call) {
      const TensorView& from = *call.operands[0];
      std::copy_n(from.data, from.bytes(), call.results[0].data);
      const auto now = std::exchange(within, nullptr);
      return now ? now(from) : std::monostate{};
    });
  }
  void compile() { executable_ = backend_->compile(graph_).value(); }
  [[nodiscard]] Backend& backend() const { return *backend_; }

  /// Rows filled with a number, times a weight filled with another.
  [[nodiscard]] std::vector<std::vector<double>> run(std::int64_t rows, const Tensor& weight,
                                                     cpu::FrozenWeights* frozen = nullptr) const {
    Tensor x(DType::f32, {rows, kWidth});
    for (std::int64_t i = 0; i < x.view().count(); ++i)
      store(DType::f32, x.data(), i, static_cast<double>((i * 7 + rows) % 13) / 16);
    const std::vector<Tensor> inputs{x, weight},
        outputs{Tensor(DType::f32, {rows, kWidth}), Tensor(DType::f32, {rows, kWidth})};
    const Step step = one_sequence(rows);
    std::optional<cpu::FrozenRun> kept;
    if (frozen != nullptr) kept.emplace(*frozen);
    RunContext context{{{"n", rows}}, &step, rows};
    context.frozen = kept ? &*kept : nullptr;
    const auto done = executable_->run(views(inputs), views(outputs), context);
    if (!done) return {};
    if (kept) kept->done();
    return {values(outputs[0]), values(outputs[1])};
  }

  static thread_local std::function<Status(const TensorView&)> within;

 private:
  Graph graph_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Executable> executable_;
};
thread_local std::function<Status(const TensorView&)> Model::within;

Tensor weight_of(int seed) {
  Tensor out(DType::f32, {kWidth, kWidth});
  std::mt19937 random(static_cast<unsigned>(seed));
  for (std::int64_t i = 0; i < out.view().count(); ++i)
    store(DType::f32, out.data(), i, static_cast<double>(random() % 64) / 256 - 0.125);
  return out;
}

std::vector<std::unique_ptr<Backend>> engines() {
  std::vector<std::unique_ptr<Backend>> all;
  all.push_back(make_eager());
  all.push_back(make_interpreter());
  all.push_back(make_interpreter(Precision::single));
  all.push_back(std::make_unique<CpuBackend>(BackendOptions{}));
  return all;
}

/// Calls work(i, random numbers) in each thread, and counts how often it returns false.
template <class Work>
int failures(const Work& work) {
  std::atomic<int> out = 0;
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < kCallers; ++i)
      threads.emplace_back([&, i] {
        std::mt19937 random(static_cast<unsigned>(i));
        for (std::size_t run = 0; run < kRuns; ++run) out += work(i, random) ? 0 : 1;
      });
  }
  return out;
}

constexpr std::int64_t kRows[] = {1, 3, 16, 70};

}  // namespace

TEST_CASE("threads: runs of one executable are side by side", "[threads]") {
  for (auto& engine : engines()) {
    INFO(engine->name());
    Model model(std::move(engine));
    model.compile();
    const Tensor weight = weight_of(1);
    std::vector<std::vector<std::vector<double>>> wanted;
    for (const std::int64_t rows : kRows) wanted.push_back(model.run(rows, weight));
    REQUIRE_FALSE(wanted[0].empty());
    CHECK(failures([&](std::size_t, std::mt19937& random) {
            const std::size_t at = random() % std::size(kRows);
            return model.run(kRows[at], weight) == wanted[at];
          }) == 0);
  }
}

TEST_CASE("threads: runs of one executable are within each other, and fail alone", "[threads]") {
  for (auto& engine : engines()) {
    INFO(engine->name());
    Model model(std::move(engine));
    model.compile();
    const Tensor weight = weight_of(2);
    const auto large = model.run(33, weight), small = model.run(5, weight);
    CHECK(failures([&](std::size_t i, std::mt19937& random) {
            bool inner = false;
            const bool fails = i == 0 && random() % 2 == 0;
            Model::within = [&](const TensorView&) -> Status {
              inner = model.run(5, weight) == small;
              if (fails) return fail(error_in("here", "PW1214", "this one fails"));
              return {};
            };
            const auto outer = model.run(33, weight);
            return inner && (fails ? outer.empty() : outer == large);
          }) == 0);
  }
}

TEST_CASE("threads: frozen weights are filled by one run, and read by the others", "[threads]") {
  auto backend = std::make_unique<CpuBackend>(BackendOptions{});
  const auto slots = backend->freeze();
  Model model(std::move(backend));
  model.compile();
  REQUIRE(slots->inputs().size() >=
          3);  // two products, and the nodes that compute the weight of one
  for (int turn = 0; turn < 5; ++turn) {
    const Tensor weight = weight_of(turn);
    std::vector<std::vector<std::vector<double>>> wanted;
    for (const std::int64_t rows : kRows) wanted.push_back(model.run(rows, weight));
    cpu::FrozenWeights frozen(*slots);
    CHECK(failures([&](std::size_t, std::mt19937& random) {
            const std::size_t at = random() % std::size(kRows);
            return model.run(kRows[at], weight, &frozen) == wanted[at];
          }) == 0);
  }
}

TEST_CASE("threads: a run within the one that fills frozen weights, and one that fails",
          "[threads]") {
  auto backend = std::make_unique<CpuBackend>(BackendOptions{});
  const auto slots = backend->freeze();
  Model model(std::move(backend));
  model.compile();
  const Tensor weight = weight_of(7), other = weight_of(8);
  const auto large = model.run(33, weight), small = model.run(5, weight);
  cpu::FrozenWeights frozen(*slots);
  for (const bool fails : {true, false, false}) {
    Model::within = [&](const TensorView&) -> Status {
      CHECK(model.run(5, weight, &frozen) == small);
      if (fails) return fail(error_in("here", "PW1214", "this one fails"));
      return {};
    };
    const auto outer = model.run(33, weight, &frozen);
    CHECK((fails ? outer.empty() : outer == large));
  }
  cpu::FrozenWeights changed(frozen, *slots, {1}), same(frozen, *slots, {});
  CHECK(model.run(5, other, &changed) == model.run(5, other));
  CHECK(model.run(5, other, &same) != model.run(5, other));  // nothing reported that it differs
  CHECK(model.run(5, weight, &frozen) == small);
}
