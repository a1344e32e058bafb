#include "verify/exact_outputs.hpp"

#include <cmath>

#include <fmt/format.h>

#include "backends/program.hpp"
#include "tensor/numerics.hpp"
#include "verify/samples/sampled_graph.hpp"

namespace pw {
namespace {

constexpr std::int64_t kMostElements = std::int64_t{1} << 22;  // of all values of a graph
constexpr double kMostWhole = 0x1p53;                          // above it f64 skips integers

/// Each element of each value needs several numbers for its bounds.
bool is_small(const Graph& graph, const Symbols& symbols) {
  std::int64_t elements = 0;
  for (NodeId node = graph.first(); node.valid(); node = graph.next(node))
    for (std::size_t r = 0; r < graph.result_count(node); ++r) {
      const ValueId value = graph.result(node, r);
      if (graph.type(value) == Types::unknown()) return false;
      const auto extents = extents_of(graph, value, symbols);
      if (!extents || (elements += element_count(*extents)) > kMostElements) return false;
    }
  return true;
}

/// Returns true if an element of an integer output differs.
bool differs(const TensorView& before, const TensorView& reference, std::int64_t i) {
  const double a = load(before.dtype, before.data, i), b = load(reference.dtype, reference.data, i);
  return a != b && std::fabs(a) <= kMostWhole && std::fabs(b) <= kMostWhole;
}

bool any_differs(const Tensor& before, const Tensor& reference) {
  if (is_float(before.dtype())) return false;
  const TensorView a = before.view(), b = reference.view();
  for (std::int64_t i = 0; i < a.count(); ++i)
    if (differs(a, b, i)) return true;
  return false;
}

/// Counts the exact elements that differ.
std::int64_t wrong_elements(const Tensor& before, const Tensor& reference,
                            const BoundedTensor& bounded) {
  const TensorView a = before.view(), b = reference.view(), exact = bounded.exact.view();
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < a.count(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    const bool is_exact = at < bounded.error.size() && bounded.error[at] == 0 &&
                          load(exact.dtype, exact.data, i) == load(b.dtype, b.data, i);
    wrong += is_exact && differs(a, b, i);
  }
  return wrong;
}

bool in_doubt(const Yardstick& yardstick) {
  for (std::size_t rank = 0; rank < yardstick.before.size(); ++rank)
    for (std::size_t i = 0; i < yardstick.before[rank].size(); ++i)
      if (any_differs(yardstick.before[rank][i], yardstick.reference[rank][i])) return true;
  return false;
}

}  // namespace

void check_exact_outputs(const CheckedRun& run, const Yardstick& yardstick,
                         std::span<NumericReport> reports) {
  const bool alone = run.step.ranks == nullptr && run.step.cache == nullptr;
  if (!alone || !in_doubt(yardstick) || !is_small(run.original, run.symbols)) return;
  const auto bounds = SampledGraph(run.original).bounds({run.ranks, run.symbols, run.step}, {});
  if (!bounds) return;
  for (std::size_t rank = 0; rank < reports.size() && rank < bounds->size(); ++rank)
    for (std::size_t i = 0; i < reports[rank].outputs.size(); ++i) {
      const Tensor &before = yardstick.before[rank][i], &reference = yardstick.reference[rank][i];
      OutputCheck& check = reports[rank].outputs[i];
      if (!check.passed || is_float(before.dtype())) continue;
      const std::int64_t wrong = wrong_elements(before, reference, (*bounds)[rank][i]);
      if (wrong == 0) continue;
      check.passed = false;
      check.reason = fmt::format(
          "the backend is wrong: {} of {} elements differ from the reference in the unrewritten "
          "run too, although nothing rounds",
          wrong, check.count);
    }
}

}  // namespace pw
