// Which kernel runs for a class of operands: that of the measurement, which a store keeps.
#include "tensor/linalg/choices.hpp"

#include <map>

#include "tensor/parallel.hpp"
#include "tests/catch.hpp"

using namespace pw;

namespace {

constexpr std::array<std::string_view, 3> kKernels{"one", "two", "three"};

KernelClass operands(std::string_view op, std::int64_t rows) {
  return {op, {rows, 64}, {"by columns"}, std::int64_t{1} << 24};
}

/// Returns the kernels that run for a call, in order; the last one computes the result.
std::vector<std::size_t> runs(const KernelClass& of, std::size_t refused = kKernels.size()) {
  std::vector<std::size_t> out;
  CHECK(run_fastest(of, kKernels, [&](std::size_t i) {
    out.push_back(i);
    return i != refused;
  }));
  return out;
}

/// Keeps texts in place of measurements, and the keys that were requested.
struct Kept {
  explicit Kept(std::string first) : text(std::move(first)) {
    measure_kernels([this](const std::string& key, const auto& measure, const auto& usable) {
      ++requested[key];
      return usable(this->text) ? this->text : this->text = measure();
    });
  }
  ~Kept() { measure_kernels({}); }
  Kept(const Kept&) = delete;
  Kept& operator=(const Kept&) = delete;

  std::string text;
  std::map<std::string, int> requested;
};

}  // namespace

TEST_CASE("choices: without measurements the first kernel that takes the operands runs",
          "[backends]") {
  CHECK(runs(operands("unmeasured", 8)) == std::vector<std::size_t>{0});
  CHECK(runs(operands("unmeasured", 8), 0) == std::vector<std::size_t>{0, 1});
  CHECK(!run_fastest(operands("unmeasured", 8), kKernels, [](std::size_t) { return false; }));
  CHECK(kernel_choices().empty());
}

TEST_CASE("choices: a measurement decides for a class, once", "[backends]") {
  const Kept kept("1.000e-03\tthree\n2.000e-03\tone\n");
  CollectedChoices used;
  CHECK(runs(operands("kept", 100)) == std::vector<std::size_t>{2});
  CHECK(runs(operands("kept", 127)) == std::vector<std::size_t>{2});  // 0b11…, as 100
  CHECK(runs(operands("kept", 100), 2) == std::vector<std::size_t>{2, 0});
  CHECK(kept.requested.size() == 1);
  CHECK(kept.requested.begin()->second == 1);
  CHECK(kept.requested.begin()->first.find("kept 96 × 64, by columns, ") == 0);
  CHECK(used.used == std::vector<std::string>(3, kept.requested.begin()->first));
  runs(operands("kept", 128));
  CHECK(kept.requested.size() == 2);
  const auto choices = kernel_choices();
  REQUIRE(choices.size() == 2);
  CHECK(choices[1].operands.find("kept 96") == 0);
  REQUIRE(choices[1].times.size() == 2);
  CHECK(choices[1].times[0].kernel == "three");
  CHECK(choices[1].times[0].seconds == 1e-3);
}

TEST_CASE("choices: a text about other kernels is measured again, and small calls never",
          "[backends]") {
  const Kept kept("1.000e-03\tfour\n");
  const auto first = runs(operands("other", 8));
  for (std::size_t i = 0; i < kKernels.size(); ++i)
    CHECK(std::count(first.begin(), first.end(), i));
  CHECK(kept.text.find("four") == std::string::npos);
  // Calls with equal operands run one kernel: the one that computed the first result.
  CHECK(runs(operands("other", 8)) == std::vector<std::size_t>{first.back()});
  KernelClass small = operands("small", 8);
  small.work = 1000;
  CHECK(runs(small) == std::vector<std::size_t>{0});
  CHECK(kept.requested.size() == 1);
}

TEST_CASE("choices: a kernel that refuses the operands has no time", "[backends]") {
  const Kept kept("");
  runs(operands("refused", 8), 1);
  CHECK(kept.text.find("two") == std::string::npos);
}

TEST_CASE("choices: a text that is damaged is not used", "[backends]") {
  for (const char* text : {"1.0 one\n", "one\t1.0\n", "\t\n", "1e-3\n", "nan\tone\n"}) {
    INFO(text);
    Kept kept(text);
    const auto ran = runs(operands(text, 8));
    CHECK(!ran.empty());
    CHECK(kept.text.find('\n') != std::string::npos);
  }
}

TEST_CASE("choices: kernels inside a kernel, and parts of a loop, measure nothing", "[backends]") {
  const Kept kept("");
  std::vector<std::size_t> inner;
  CHECK(run_fastest(operands("outer", 8), kKernels, [&](std::size_t) {
    if (kept.requested.size() == 1 && kept.text.empty()) inner = runs(operands("inner", 8));
    return true;
  }));
  CHECK(inner == std::vector<std::size_t>{0});
  use_threads(2);
  parallel_for(2, 1, [&](std::int64_t begin, std::int64_t end) {
    if (end - begin == 1) CHECK(runs(operands("part", 8)) == std::vector<std::size_t>{0});
  });
  CHECK(kept.requested.count("part 8 × 64, by columns, 2 threads") == 0);
}
