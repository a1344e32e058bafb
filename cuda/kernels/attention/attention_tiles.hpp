// Which kernel of attention a step takes, by its rows and by whether its sequences have equally
// many new tokens: chosen by the model (attention_model.hpp). Any kernel is right for any step.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "cuda/kernels/attention/attention_model.hpp"

namespace pw::cuda {

/// What kernels there are, and which a step takes.
struct AttentionTiles {
  /// Up to how many rows, ascending, and which of all; the last for any number.
  using Chosen = std::vector<std::pair<std::int64_t, std::size_t>>;
  std::vector<AttentionTile> all;
  Chosen chosen;
  /// Of steps that have `query` new tokens of each sequence; empty: they take what others do.
  Chosen decodes = {};
  std::int64_t query = 1;
  /// `query`: new tokens of each sequence; 0: not equally many.
  [[nodiscard]] std::size_t of(std::int64_t rows, std::int64_t of_query) const;
};

/// What a step of so many rows is taken for. With `query` new tokens of each: sequences of 4096
/// keys. Else, up to 256 rows, a token of each of such sequences, and beyond that the beginning of
/// one sequence.
[[nodiscard]] AttentionWork typical_work(std::int64_t rows, std::int64_t query, std::int64_t heads,
                                         std::int64_t groups, std::int64_t width);
/// Tiles that may suit such steps, whatever is chosen of them.
[[nodiscard]] std::vector<AttentionTile> attention_candidates(const TensorMachine& machine,
                                                              const AttentionWork& work);
/// By the model, for `query` new tokens of sequences of 512, 4096 and 32768 keys, and for prompts,
/// one and of 512 tokens each: what loses least in all, but for a few steps that another one's
/// kernel serves as well, within 2 %.
[[nodiscard]] AttentionTiles attention_tiles(const TensorMachine& machine, std::int64_t heads,
                                             std::int64_t groups, std::int64_t width,
                                             std::int64_t query = 1);

}  // namespace pw::cuda
