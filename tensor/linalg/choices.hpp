// Chooses between kernels that compute the same result. Which one is fastest depends on the
// processor and on the operands, so each class of operands is measured once: all kernels run on the
// operands of the first call, in rounds, and the least time of each counts. Invariant: a class
// keeps its kernel for the life of the process, so that equal calls give equal bits, the measured
// one included. Until measure_kernels() is called, the first kernel in order runs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pw {

/// Names of kernels: ours, and those of a lent libtorch_cpu.
constexpr std::string_view kOwnKernel = "Piecewise", kTorchKernel = "PyTorch";

/// Operands for which one measurement holds, with one number of threads.
struct KernelClass {
  std::string_view op;                  ///< and its dtype
  std::array<std::int64_t, 6> sizes{};  ///< of which the two leading binary digits count; 0: unused
  std::array<std::string_view, 2> notes{};  ///< such as the layout of operands
  std::int64_t work = 0;                    ///< multiplications; small calls are not measured
};

/// Runs the chosen kernel of a class: run(i) computes the result by the kernel kernels[i], or
/// returns false if that one does not take the operands. If the chosen one does not, the others
/// follow in order. Returns false if none takes them. The names are static.
bool run_fastest(const KernelClass& operands, std::span<const std::string_view> kernels,
                 const std::function<bool(std::size_t)>& run);

/// Keeps measurements between processes: returns the text kept for a key if `usable` accepts it,
/// otherwise that of `measure`, which it keeps.
using MeasurementStore =
    std::function<std::string(const std::string& key, const std::function<std::string()>& measure,
                              const std::function<bool(const std::string&)>& usable)>;
/// Measures from now on; an empty function: the first kernel in order runs from now on.
void measure_kernels(MeasurementStore store);

/// Times of a class, the fastest kernel first; none if the processor was too busy for a
/// measurement, so that the first kernel in order runs.
struct KernelChoice {
  struct Time {
    std::string kernel;
    double seconds = 0;
  };
  std::string operands;  ///< the class in words
  std::vector<Time> times;
};
/// Returns the choices of this process, by the words of their class.
[[nodiscard]] std::vector<KernelChoice> kernel_choices();

/// Collects the classes, in words, for which this thread chooses while the object exists.
class CollectedChoices {
 public:
  CollectedChoices();
  ~CollectedChoices();
  CollectedChoices(const CollectedChoices&) = delete;
  CollectedChoices& operator=(const CollectedChoices&) = delete;

  std::vector<std::string> used;
};

/// Returns true on Intel's processors, for which the BLAS of PyTorch on x86, MKL, is optimised.
[[nodiscard]] bool is_intel();

}  // namespace pw
