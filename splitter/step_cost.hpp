// The time of a step by its number of tokens: a roofline over the captured pieces, in which a
// matmul takes whole tiles in whole waves; or measured times.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "splitter/splitter.hpp"

namespace pw {

/// The defaults are an H200 SXM: 132 multiprocessors, 989 · 10^12 dense 16-bit operations and
/// 4.8 · 10^12 bytes a second (NVIDIA, H200 data sheet, 2024). The tile, and what a kernel costs
/// beside its work, are assumptions.
struct Machine {
  double operations = 989e12;  ///< a second, with 16-bit operands; twice that with 8-bit ones
  double bytes = 4.8e12;       ///< a second
  std::int64_t multiprocessors = 132;
  std::int64_t tile_rows = 64, tile_columns = 128;
  double replayed = 1e-6;  ///< seconds that a kernel of a captured graph costs
  double launched = 5e-6;  ///< seconds that a kernel costs that is launched by itself
};

/// Seconds of all captured pieces with `tokens` rows; splitting ops run at their own size whatever
/// is captured, so they are left out.
class StepCost {
 public:
  /// Symbols other than the tokens count as their maximum. Values without a size count nothing.
  StepCost(const StitchedGraph& pieces, const Graph& source, Machine machine = {});
  [[nodiscard]] double captured(std::int64_t tokens) const;
  [[nodiscard]] double eager(std::int64_t tokens) const;

 private:
  /// Ops of equal types, over all pieces.
  struct Work {
    std::vector<std::vector<DimId>> shapes;  ///< of what it reads and writes
    std::vector<std::int64_t> item_bytes;    ///< of each
    std::size_t a = 0, b = 0;                ///< of a product: indices of the factors; else equal
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

/// Straight lines between measured times (ascending by tokens); the first time below them, the last
/// line's slope, but no falling one, above.
[[nodiscard]] double interpolated(const std::vector<std::pair<std::int64_t, double>>& times,
                                  std::int64_t tokens);

}  // namespace pw
