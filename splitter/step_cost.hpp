// The time of a step as a function of its tokens: a roofline model over the captured pieces, in
// which a matmul takes whole tiles in whole waves; or interpolated measurements.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "splitter/splitter.hpp"

namespace pw {

/// Machine constants. The defaults are an H200 SXM: 132 multiprocessors, 989 · 10^12 dense 16-bit
/// operations and 4.8 · 10^12 bytes a second (NVIDIA, H200 data sheet, 2024). The tile size and the
/// overhead of a kernel are assumptions.
struct Machine {
  double operations = 989e12;  ///< per second, with 16-bit operands; twice that with 8-bit ones
  double bytes = 4.8e12;       ///< per second
  std::int64_t multiprocessors = 132;
  std::int64_t tile_rows = 64, tile_columns = 128;
  double replayed = 1e-6;  ///< seconds of overhead for a kernel of a captured graph
  double launched = 5e-6;  ///< seconds of overhead for a kernel with its own launch
};

/// Estimates the seconds of all captured pieces with `tokens` rows. Splitting ops run at their own
/// size whatever is captured, so they are excluded.
class StepCost {
 public:
  /// Builds the model. Symbols other than the tokens count as their maximum; values without a size
  /// cost nothing.
  StepCost(const StitchedGraph& pieces, const Graph& source, Machine machine = {});
  [[nodiscard]] double captured(std::int64_t tokens) const;
  [[nodiscard]] double eager(std::int64_t tokens) const;

 private:
  /// Ops of equal types, over all pieces.
  struct Work {
    std::vector<std::vector<DimId>> shapes;  ///< shapes of operands and results
    std::vector<std::int64_t> item_bytes;    ///< bytes of an element of each
    std::size_t a = 0, b = 0;                ///< for a product: indices of the factors; else equal
    double count = 0;
  };
  [[nodiscard]] double seconds(std::int64_t tokens, double a_kernel) const;
  [[nodiscard]] double seconds(const Work& work) const;

  ContextPtr context_;
  std::string tokens_;
  mutable std::map<std::string, std::int64_t, std::less<>> symbols_;
  Machine machine_;
  std::vector<Work> work_;
};

/// Interpolates linearly between measured times (ascending by tokens). Below them it returns the
/// first time; above them it continues the last line, with a slope of at least 0.
[[nodiscard]] double interpolated(const std::vector<std::pair<std::int64_t, double>>& times,
                                  std::int64_t tokens);

}  // namespace pw
